"""`torch.jit.fork` and `wait`: outside of TorchScript a forked function runs at once, in torch as here."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from pullback.jit.scripting import USE_COMPILE, deprecated

ABSENT: Any = object()


class Future:
    """A result that is there, or will be."""

    def __init__(self, *, devices: Any = None) -> None:
        self._value, self._error = ABSENT, None
        self._then: list[Callable[[Future], Any]] = []

    def __class_getitem__(cls, parameters: Any) -> Any:
        return cls  # an annotation

    def done(self) -> bool:
        """Whether there is a result."""
        return self._value is not ABSENT or self._error is not None

    def wait(self) -> Any:
        """The result, or the error that was in its place."""
        return self.value()

    def value(self) -> Any:
        """The result, or the error that was in its place."""
        if self._error is not None:
            raise self._error
        if self._value is ABSENT:
            raise RuntimeError("the result of this Future was never set: nothing runs in the background in pullback")
        return self._value

    def set_result(self, result: Any) -> None:
        """Give the result."""
        self.settle(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give an error in the place of the result."""
        if not builtins.isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self.settle(ABSENT, result)

    def settle(self, value: Any, error: Any) -> None:
        """Keep what came, and call those who wait for it."""
        if self.done():
            raise RuntimeError("Future can only be marked completed once")
        self._value, self._error = value, error
        for callback in self._then:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call a function with this Future once there is a result."""
        if self.done():
            callback(self)
        else:
            self._then.append(callback)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A Future of what a function makes of this one."""
        following = Future()

        def run(done: Future) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(run)
        return following


def fork(func: Any, *args: Any, **kwargs: Any) -> Future:
    """Run a function now; its result comes back as a Future."""
    deprecated("fork", USE_COMPILE)
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Any) -> Any:
    """The result of a Future."""
    deprecated("wait", USE_COMPILE)
    if not builtins.isinstance(future, Future):
        raise TypeError(
            "wait(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (arg0: torch._C.Future) -> object\n\nInvoked with: {future!r}"
        )
    return future.wait()


_fork, _wait = fork, wait
