"""Functions that are ops in torch's library and none here: what makes tensors, draws, fills, copies and detaches.

While a mode is on, or once a class has `__torch_dispatch__`, they are patched: whoever is told of ops is told of them.
"""

from __future__ import annotations

from typing import Any

from pullback._modes import dispatch_modes, grad_enabled, modes
from pullback._op.declare import spaces
from pullback._op.patch import DISPATCH, Action, Patch
from pullback._runtime.building import made
from pullback._tensor import Tensor
from pullback.library import dispatch
from pullback.library.binding import bind
from pullback.library.dispatch import anybody, tell
from pullback.library.overloads import OpOverload, ops
from pullback.ops import load_all

MAKING = (
    "arange empty empty_like empty_permuted empty_strided eye full full_like linspace logspace new_empty "
    "new_empty_strided new_full new_ones new_zeros ones ones_like rand rand_like randint randint_like randn randn_like "
    "randperm tril_indices triu_indices zeros zeros_like"
)
"""What makes tensors; they have no history."""
WRITING = "bernoulli_ cauchy_ copy_ exponential_ fill_ geometric_ log_normal_ normal_ random_ uniform_ zero_"
"""What writes to its first argument, and records that by itself."""
AS_WRITTEN = ("requires_grad", "names")
"""Keywords that are about tensors and not about what they hold."""


class Unlisted:
    """One call as it is told: the overload with its arguments."""

    def __init__(self, function: Any, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.func, self.args, self.kwargs = function, func, args, kwargs

    def again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function itself: those who are told after this one are told of it as well."""
        return self.function(*args, **kwargs)


def sized(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sizes of a tensor, which may be given one by one, as one list."""
    tensors = args[:1] if args and isinstance(args[0], Tensor) else ()
    rest = args[len(tensors) :]
    if rest and all([isinstance(n, int) and not isinstance(n, bool) for n in rest]):
        return (*tensors, list(rest))
    return (*tensors, *[list(a) if isinstance(a, tuple) else a for a in rest])


def told_as(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[OpOverload, Any] | None:
    """The overload that a call is in torch's library, and its arguments; None if the call fits none."""
    packet = getattr(ops.aten, name)
    for given in (args, sized(args)):
        try:
            overload, _ = packet._matching(given, kwargs)
            return overload, bind(overload._schema, given, kwargs)
        except RuntimeError:
            continue
    return None


def telling_of(name: str, call: Any) -> Action:
    """What such a function does meanwhile."""

    def run(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not anybody((*args, *kwargs.values())):
            return original(*args, **kwargs)
        about = {key: kwargs[key] for key in AS_WRITTEN if key in kwargs}
        given = {key: value for key, value in kwargs.items() if key not in about and value is not None}
        found = told_as(name, args, given)
        if found is None or about.get("names") is not None:
            return original(*args, **kwargs)
        overload, (positional, named) = found
        result = tell(Unlisted(call, overload, tuple(positional), named))
        return result.requires_grad_() if about.get("requires_grad") else result

    return run


def telling_of_detach(call: Any) -> Action:
    """What `detach` does meanwhile: below autograd nothing is left of its result's history."""

    def run(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not anybody(args):
            return original(*args, **kwargs)
        before = grad_enabled.get()
        try:
            grad_enabled.set(False)
            return tell(Unlisted(call, ops.aten.detach.default, args, {}))
        finally:
            grad_enabled.set(before)

    return run


def telling_of_item(call: Any) -> Action:
    """What `item` does meanwhile."""

    def run(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not anybody(args) or args[0].numel() != 1:
            return original(*args, **kwargs)
        return tell(Unlisted(call, ops.aten._local_scalar_dense.default, args, {}))

    return run


def telling_of_data(call: Any) -> Action:
    """What `tensor` does meanwhile: it is told once it has made one."""

    def run(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        stack = dispatch_modes.get()
        if not stack:
            return original(*args, **kwargs)
        try:
            dispatch_modes.set(())
            made = original(*args, **kwargs)
        finally:
            dispatch_modes.set(stack)
        wants = made.requires_grad
        told = tell(Unlisted(lambda tensor: tensor, ops.aten.lift_fresh.default, (made.detach_(),), {}))
        return told.requires_grad_() if wants else told

    return run


def functions() -> list[tuple[Any, Action]]:
    """Every such function, with what it does meanwhile."""
    found: dict[Any, Action] = {}
    for name in (*MAKING.split(), *WRITING.split()):
        for call in (spaces["torch"].get(name), getattr(Tensor, name, None)):
            if call is not None:
                found.setdefault(call, telling_of(name, call))
    found[Tensor.detach] = telling_of_detach(Tensor.detach)
    found[Tensor.item] = telling_of_item(Tensor.item)
    found[spaces["torch"]["tensor"]] = telling_of_data(spaces["torch"]["tensor"])
    return list(found.items())


told_too = Patch(DISPATCH, functions)


def begin_telling(who: Any) -> None:
    """From now on whoever is told of ops is told of these functions too."""
    load_all()
    modes.dispatch = dispatch.dispatcher
    made(lambda: told_too.hold(who))


dispatch.begin_telling = begin_telling
dispatch.end_telling = told_too.drop
