"""`torch.utils._contextlib`: contexts that are decorators too, for packages that derive their own from them."""

from __future__ import annotations

import functools
import inspect
from typing import Any


class _DecoratorContextManager:
    """A context; as a decorator, every call of the function enters a fresh one."""

    def __call__(self, orig_func: Any) -> Any:
        if inspect.isclass(orig_func) or inspect.isgeneratorfunction(orig_func):
            raise NotImplementedError("a context of torch.utils._contextlib decorates functions only here; use `with`")

        @functools.wraps(orig_func)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return orig_func(*args, **kwargs)

        return within

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A context like this one; classes with arguments override it."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without arguments: `@context` and `@context()` mean the same."""

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)
