"""`record`: what a program raised, in the file whose name the launcher gave."""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """The same function; what it raises is written to TORCHELASTIC_ERROR_FILE, if that is set, and raised on."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            name = os.environ.get("TORCHELASTIC_ERROR_FILE")
            if name:
                extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
                message = {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}
                with open(name, "w", encoding="utf-8") as file:
                    json.dump({"message": message}, file)
            raise

    return wrapper
