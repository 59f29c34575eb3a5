"""Arguments of wrong types. Torch looks at types before anything else; here they are looked at once a call has failed,
so that calls which succeed pay nothing.

A function does not know how it was called: by position or by keyword, as `torch.sum(x, 0)` or as `x.sum(0)`. Torch's
texts do. The source of the call tells, if it can be read; if not, it counts as the call of a function by position.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Container
from inspect import signature
from types import FrameType, NoneType
from typing import Any

from pullback._op import asked
from pullback._op.declare import Declaration
from pullback._op.missing import MISSING, UNNAMED
from pullback._op.parser import refusal, signatures
from pullback._op.signatures import NUMPY_NAMES, public_name
from pullback._tensor import Tensor
from pullback.autograd.locations import MACHINERY, is_library, written_call


def refuse_wrong_types(
    f: Declaration, values: tuple[Any, ...], out: Any = None, frame: FrameType | None = None
) -> None:
    """After a call has failed: raise torch's TypeError if no signature of the function takes its arguments."""
    frame = frame or caller()
    if inside(frame):
        return
    name, params = f.call.__name__, f.params
    names = [public_name(p.name) for p in params]
    if asked.in_python(f.path):
        if not any([value is MISSING for value in values]):  # else that is what is wrong
            asked.refuse(f.path, dict(zip(names, values, strict=True)))
        return
    given = [value is not p.default and value is not MISSING for p, value in zip(params, values, strict=True)]
    # As many by position as it takes to come to the last one that is not what it would be anyway.
    count = max([nr for nr, p in enumerate(params, 1) if given[nr - 1] and not p.keyword_only], default=0)
    count = next((nr for nr, value in enumerate(values[:count]) if value is UNNAMED), count)
    keywords = tuple(
        [
            name
            for nr, (name, p) in enumerate(zip(names, params, strict=True))
            if given[nr] and (p.keyword_only or nr >= count)
        ]
    )
    by_name = dict(zip(names, values, strict=True)) | {"out": out}
    name, method = name.lstrip("_"), False
    kwargs = {key: by_name[key] for key in keywords}
    error = refusal(name, method, values[:count], kwargs)
    seen, about_types = written(frame), isinstance(sys.exc_info()[1], (AttributeError, TypeError, NoneType))
    if seen is None and count > 0 and not signatures(name, False):  # a method alone
        error = refusal(name, True, values[1:count], kwargs)
    as_method = count > 0 and isinstance(values[0], Tensor) and refusal(name, True, values[1:count], kwargs) is None
    if not about_types and (as_method or (seen is None and could_fit(name, names, values, given, count, kwargs))):
        return  # it fits as a method or in another way to write it, and what is wrong is known
    if seen is not None and (error is not None or not signatures(name, False)):
        count, keywords = seen
        known = [known_name(key, names) for key in keywords]
        # One that came from nowhere says that self was not written among the arguments.
        method = any([given[nr] and nr >= count and name not in known for nr, name in enumerate(names)])
        kwargs = {key: by_name[param] for key in keywords if (param := known_name(key, by_name)) in by_name}
        found = refusal(name, method, values[method : count + method], kwargs)
        if found is None and not about_types:
            return  # it fits: something else is wrong
        error = found or error
    if error is not None:
        raise error from None


def could_fit(
    name: str, names: list[str], values: tuple[Any, ...], given: list[bool], count: int, kwargs: dict[str, Any]
) -> bool:
    """Whether there is a way to write a call that its types fit: as a function or method, by position or keyword."""
    forms = (False, True) if count and isinstance(values[0], Tensor) else (False,)
    for method in [form for form in forms if signatures(name, form)]:
        for place in range(count, method - 1, -1):
            rest = {names[nr]: values[nr] for nr in range(place, count) if given[nr]}
            if refusal(name, method, values[method:place], {**rest, **kwargs}) is None:
                return True
    return False


def known_name(keyword: str, names: Container[str]) -> str:
    """The parameter that a keyword names, perhaps with NumPy's word for it."""
    return keyword if keyword in names else NUMPY_NAMES.get(keyword, keyword)


def refuse_call(
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    path: str = "",
    body: Any = None,
    frame: FrameType | None = None,
) -> None:
    """The same for a function that knows how it was called, unless it was as a method: `args` begins with self then."""
    frame = frame or caller()
    if inside(frame):
        return
    if asked.in_python(path):
        bound = signature(body).bind(*args, **kwargs)
        bound.apply_defaults()
        asked.refuse(path, bound.arguments)
        return
    seen = written(frame)
    method = len(args) > seen[0] if seen is not None else name.endswith("_") and isinstance(args[0], Tensor)
    error = refusal(name, method, args[method:], kwargs)
    if error is not None:
        raise error from None


def caller(beyond: int = 0) -> FrameType | None:
    """The frame that made the call which led here, or to a frame some calls further out."""
    frame: FrameType | None = sys._getframe(1 + beyond)
    while frame is not None and frame.f_code.co_filename.startswith(MACHINERY):
        frame = frame.f_back
    return frame


def inside(frame: FrameType | None) -> bool:
    """True if this library made the call, which may give what torch has no name for, and types are not the error."""
    if frame is None or not is_library(frame.f_code.co_filename):
        return False
    return not isinstance(sys.exc_info()[1], (AttributeError, TypeError))


def written(frame: FrameType | None) -> tuple[int, tuple[str, ...]] | None:
    """How many positional arguments the call has that a frame is making, and its keywords; None if it does not tell."""
    call = None if frame is None else written_call(frame.f_code, frame.f_lasti)
    if call is None or any([isinstance(one, ast.Starred) for one in call.args]):
        return None
    keywords = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    return (len(call.args), tuple(keywords)) if len(keywords) == len(call.keywords) else None
