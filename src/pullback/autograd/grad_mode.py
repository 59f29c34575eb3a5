"""Switching gradient recording on and off: no_grad, enable_grad, set_grad_enabled, inference_mode.

Each is a context manager, a decorator (also of generators, coroutines and classes' methods) or, for
set_grad_enabled, a plain call. The mode is local to the thread and to the asyncio task.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from pullback._modes import (
    grad_enabled,
    grad_layout_enforced,
    inference,
    is_grad_enabled,
    is_inference_mode_enabled,
    modes,
)
from pullback._runtime.interrupts import Block, covered
from pullback.autograd.locations import detached_here, here, own_stack
from pullback.autograd.tracebacks import trim

CLASS_DECORATION = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
    "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
    "and nothing else."
)
CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200


class ContextDecorator:
    """A context manager that can also decorate functions; each call enters a fresh copy."""

    def clone(self) -> Any:
        """A fresh context manager with the same arguments."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *error: object) -> None:
        raise NotImplementedError

    def __call__(self, function: Any) -> Any:
        return context_decorator(self.clone, function)


def context_decorator(make: Callable[[], Any], function: Any) -> Any:
    """The function with its body run inside `make()`."""
    if isinstance(function, type):
        warnings.warn(CLASS_DECORATION, FutureWarning, stacklevel=3)
    code = getattr(function, "__code__", None)
    flags = code.co_flags if isinstance(code, CodeType) else 0
    if flags & CO_ASYNC_GENERATOR:
        return wrap_async_generator(make, function)
    if flags & CO_GENERATOR:
        return wrap_generator(make, function)
    if flags & CO_COROUTINE:

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with make():
                return await function(*args, **kwargs)

        return coroutine

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        try:
            with make():
                return function(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return decorated


def wrap_generator(make: Callable[[], Any], function: FunctionType) -> Any:
    """A generator whose own code runs inside the mode, and whose caller's code does not."""

    @functools.wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        try:
            with make():
                response = inner.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make():
                        inner.close()
                    raise
                except BaseException:
                    with make():
                        response = inner.throw(*sys.exc_info())
                else:
                    with make():
                        response = inner.send(request)
        except StopIteration as end:
            return end.value

    return generator


def wrap_async_generator(make: Callable[[], Any], function: Any) -> Any:
    """The same for an asynchronous generator."""

    @functools.wraps(function)
    async def generator(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        try:
            with make():
                response = await inner.asend(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make():
                        await inner.aclose()
                    raise
                except BaseException:
                    with make():
                        response = await inner.athrow(*sys.exc_info())
                else:
                    with make():
                        response = await inner.asend(request)
        except StopAsyncIteration:
            return

    return generator


class NoParameter(ContextDecorator):
    """A mode that may decorate without parentheses: `@torch.no_grad`."""

    def __new__(cls, function: Any = None) -> Any:
        out = object.__new__(cls)
        return out if function is None else out(function)


def back_to(before: bool) -> None:
    """Leave a block that records nothing, or that records again."""
    if before:
        here().block = None
    grad_enabled.set(before)


class no_grad(NoParameter):
    """Inside, results do not require gradients, whatever their inputs do."""

    def __init__(self) -> None:
        self.before = False

    def __enter__(self) -> None:
        self.before = before = is_grad_enabled()
        try:
            if before:
                own_stack().block = detached_here("a no_grad block")
            grad_enabled.set(False)
        except BaseException:
            back_to(before)
            raise

    @covered
    def __exit__(self, *error: object) -> None:
        try:
            grad_enabled.set(self.before)
            if self.before:
                own_stack().block = None
        except BaseException:
            back_to(self.before)
            raise


class enable_grad(NoParameter):
    """Inside, gradients are recorded again."""

    def __enter__(self) -> None:
        self.before = before = is_grad_enabled()
        try:
            grad_enabled.set(True)
        except BaseException:
            grad_enabled.set(before)
            raise

    @covered
    def __exit__(self, *error: object) -> None:
        try:
            grad_enabled.set(self.before)
        except BaseException:
            grad_enabled.set(self.before)
            raise


class set_grad_enabled(ContextDecorator):
    """Switch gradient recording on or off: at once when called, or for a `with` block, or for a function."""

    def __init__(self, mode: Any) -> None:
        if type(mode) is not bool:
            kind = type(mode).__name__
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {kind}")
        self.before: Any = is_grad_enabled()
        self.mode = mode
        before = self.before
        try:
            if before or mode:
                own_stack().block = None if mode else detached_here("set_grad_enabled(False)")
            grad_enabled.set(mode)
        except BaseException:
            back_to(before)
            raise

    def __call__(self, function: Any) -> Any:
        grad_enabled.set(self.before)
        return ContextDecorator.__call__(self, function)

    def __enter__(self) -> None:
        if self.before is None:
            self.before = is_grad_enabled()
        try:
            grad_enabled.set(self.mode)
        except BaseException:
            back_to(self.before)
            raise

    @covered
    def __exit__(self, *error: object) -> None:
        try:
            back_to(self.before)
        except BaseException:
            back_to(self.before)
            raise

    def __str__(self) -> str:
        return f"{self.__class__.__module__}.{self.__class__.__name__}(mode={self.mode})"

    __repr__ = __str__

    def clone(self) -> Any:
        """A fresh one with the same mode, which is set on entering."""
        out = object.__new__(type(self))
        out.mode, out.before = self.mode, None
        return out


class inference_mode(Block, ContextDecorator):
    """Like no_grad, and new tensors count no writes: they may not meet autograd later."""

    def __new__(cls, mode: Any = True) -> Any:
        out = object.__new__(cls)
        if isinstance(mode, bool):
            return out
        out.mode = True
        return out(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def _before(self) -> Any:
        """Who holds the mode, and the modes around."""
        return object(), is_inference_mode_enabled(), is_grad_enabled()

    def _begin(self, before: Any) -> None:
        """Record nothing, or again."""
        modes.hold(before[0])
        if self.mode and before[2]:
            own_stack().block = detached_here("an inference_mode block", 3)
        inference.set(self.mode)
        grad_enabled.set(not self.mode)

    def _end(self, before: Any) -> None:
        """Back to the modes around."""
        who, inside, recording = before
        modes.drop(who)
        inference.set(inside)
        back_to(recording)

    def clone(self) -> Any:
        """A fresh one with the same mode."""
        return type(self)(self.mode)


class enforce_grad_layout_policy(ContextDecorator):
    """Whether gradients are copied into the layout of their leaves: at once when called, for a block or a function."""

    def __init__(self, enable: bool = True) -> None:
        self.before = before = grad_layout_enforced.get()
        self.mode = enable
        try:
            grad_layout_enforced.set(enable)
        except BaseException:
            grad_layout_enforced.set(before)
            raise

    def __call__(self, function: Any) -> Any:
        grad_layout_enforced.set(self.before)
        return ContextDecorator.__call__(self, function)

    def __enter__(self) -> None:
        pass

    @covered
    def __exit__(self, *error: object) -> None:
        try:
            grad_layout_enforced.set(self.before)
        except BaseException:
            grad_layout_enforced.set(self.before)
            raise

    def clone(self) -> Any:
        """A fresh one with the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled(ContextDecorator):
    """Accepted for torch's sake: backward here runs on the thread that calls it."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def clone(self) -> Any:
        """A fresh one with the same mode."""
        return type(self)(self.mode)
