"""Autocast: in a block some functions compute in a lower precision, some always in float32, some in the widest given.

These functions are patched for the time anybody is in such a block, so that nothing is asked outside of one. Inside of
them autocast is off, as in torch: a product within `pinverse` is not cast again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import ref

from pullback._device import device
from pullback._dtype import bfloat16, dtype, float16, float32, float64
from pullback._modes import is_grad_enabled, modes
from pullback._op.declare import functions, registry
from pullback._op.define import function
from pullback._op.patch import AUTOCAST, Action, Patch
from pullback._runtime.building import building
from pullback._runtime.messages import type_name
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.ops import load_all
from pullback.ops.create.cast import recast

DTYPES = {name: bfloat16 if name in ("cpu", "xla", "hpu", "maia") else float16 for name in
          ("cpu", "cuda", "xpu", "mps", "xla", "hpu", "mtia", "maia", "ipu", "privateuseone")}  # fmt: skip
"""The kinds of devices autocast knows, and the precision it chooses on each."""


class State(NamedTuple):
    """What is set in this thread."""

    enabled: frozenset[str] = frozenset()
    dtypes: dict[str, dtype] = DTYPES
    cache: bool = True
    nesting: int = 0
    holder: Any = None
    """What stands for this thread among those that cast."""


state: ContextVar[State] = ContextVar("autocast", default=State())  # noqa: B039  (a State is never changed)
cache: dict[int, tuple[Any, Tensor]] = {}
"""Weights in the lower precision: by id, with a reference that tells whether it is still the same tensor."""

# ------------------------------------------------------------------ casting


def widened(value: Any, target: dtype) -> Any:
    """An argument, or the tensors in a list, in a dtype; integers, complex numbers and float64 stay as they are."""
    if isinstance(value, Tensor):
        kind = value.dtype
        if kind is target or kind is float64 or not kind.is_floating_point:
            return value
        if kind is float32 and value._requires_grad and value.is_leaf and value._view is None and state.get().cache:
            return kept(value, target)
        return recast(value, target)
    if type(value) in (list, tuple):
        return type(value)([widened(item, target) for item in value])
    return value


def kept(weight: Tensor, target: dtype) -> Tensor:
    """A leaf that wants a gradient in the lower precision: cast once for all its uses in a block."""
    known = cache.get(id(weight))
    if known is not None and known[0]() is weight and known[1].dtype is target:
        return known[1]
    made = recast(weight, target)
    if is_grad_enabled():
        cache[id(weight)] = ref(weight), made
    return made


def device_kind(args: Any, kwargs: Any) -> str:
    """The kind of the device that a call computes on: that of its first tensor."""
    for value in (*args, *kwargs.values()):
        for item in value if type(value) in (list, tuple) else (value,):
            if isinstance(item, Tensor):
                return item.device.type  # type: ignore[no-any-return]
    return "cpu"


def lower_precision(args: Any, kwargs: Any) -> dtype:
    """The precision that was asked for."""
    return state.get().dtypes.get(device_kind(args, kwargs), bfloat16)


def single_precision(args: Any, kwargs: Any) -> dtype:
    """float32."""
    return float32


def single_alone(args: Any, kwargs: Any) -> dtype | None:
    """float32, unless indices are asked for too."""
    return None if kwargs.get("return_indices") else float32


def widest_precision(args: Any, kwargs: Any) -> dtype:
    """float32 if any tensor has it, otherwise the precision that was asked for."""
    widest = lower = lower_precision(args, kwargs)
    for value in (*args, *kwargs.values()):
        for item in value if type(value) in (list, tuple) else (value,):
            if isinstance(item, Tensor) and item.dtype.is_floating_point and item.dtype is not float64:
                if item.dtype is float32:
                    widest = float32
                elif item.dtype is not lower:
                    raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return widest


# ------------------------------------------------------------------ patching


def casting(precision: Callable[[Any, Any], dtype | None]) -> Action:
    """What a function does while anybody is in a block: cast its arguments first."""

    def run(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        now = state.get()
        kind = device_kind(args, kwargs)
        if kind not in now.enabled:
            return original(*args, **kwargs)
        target = None if kwargs.get("out") is not None else precision(args, kwargs)
        if target is not None:
            args = tuple([widened(value, target) for value in args])
            kwargs = {name: widened(value, target) for name, value in kwargs.items()}
        before = state.get()
        try:
            state.set(now._replace(enabled=now.enabled - {kind}))
            return original(*args, **kwargs)
        finally:
            state.set(before)

    return run


def rounded(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`linalg.pinv`: what it computes is cast, for its last step is a product; what it is given is not."""
    out, now = casting(lambda args, kwargs: None)(original, args, kwargs), state.get()
    kind = device_kind(args, kwargs)
    return widened(out, now.dtypes[kind]) if kind in now.enabled and kwargs.get("out") is None else out


ACTIONS: dict[str, Action] = {
    "lower": casting(lower_precision),
    "float32": casting(single_precision),
    "float32_alone": casting(single_alone),
    "widest": casting(widest_precision),
    "rounded": rounded,
}
"""What functions do by what they declare."""


def changes() -> list[tuple[Any, Action]]:
    """The functions that cast."""
    declared = [one for one in (*functions.values(), *registry.values()) if one.autocast]
    return [(one.call, ACTIONS[one.autocast]) for one in declared]


casts = Patch(AUTOCAST, changes)
"""Held by the threads that have autocast on for the CPU or for CUDA."""


def turn_to(new: State) -> None:
    """Let a state hold in this thread; when it is interrupted, it may be called again with either state."""
    old = state.get()
    if new.holder is not None and casts.sites is None:
        load_all()  # here, not while somebody may wait for an import
    with building:
        if new.holder is not None:
            hold(new.holder)
        state.set(new)
        if old.holder is not None and old.holder is not new.holder:
            drop(old.holder)


def turn_back(before: State, new: State) -> None:
    """Let a state hold again that was left for another, or was about to be."""
    turn_to(before)
    if new.holder is not None and new.holder is not before.holder:
        with building:
            drop(new.holder)


def hold(who: Any) -> None:
    """Somebody turned autocast on."""
    modes.hold(who, casts=True)
    casts.hold(who)


def drop(who: Any) -> None:
    """The matching end of `hold`; once more does no harm."""
    casts.drop(who)
    modes.drop(who)


# ------------------------------------------------------------------ public


def known(name: Any) -> str:
    """The kind of a device that autocast knows."""
    kind = device(name).type
    if kind not in DTYPES:
        raise RuntimeError("unknown device type for autocast in get_autocast_dispatch_key_from_device_type")
    return kind


@function(raw=True, method=False)
def is_autocast_enabled(device_type: str = "cuda", /) -> bool:
    """Whether ops on a kind of device choose their own dtype."""
    return known(device_type) in state.get().enabled


SWITCH = " * (str device_type, bool enabled)\n * (bool enabled)\n"


@function(raw=True, method=False)
def set_autocast_enabled(*args: Any) -> None:
    """Switch autocast for a kind of device: `set_autocast_enabled("cpu", True)`."""
    if len(args) not in (1, 2):
        got = ", ".join([type(arg).__name__ for arg in args])
        raise TypeError(
            f"set_autocast_enabled() received an invalid combination of arguments - got ({got}), but expected one of:\n"
            + SWITCH
        )
    for position, (value, (name, kind)) in enumerate(zip(args, WANTED[-len(args) :], strict=True), 1):
        if type(value) is not kind:
            raise TypeError(
                f"set_autocast_enabled(): argument '{name}' (position {position}) must be {kind.__name__}, not "
                f"{type_name(value)}"
            )
    kind, enabled = known(args[0] if len(args) == 2 else "cuda"), args[-1]
    now = state.get()
    if enabled is (kind in now.enabled):
        return
    new = now._replace(enabled=now.enabled | {kind} if enabled else now.enabled - {kind})
    casts_now = bool(new.enabled & {"cpu", "cuda"})
    if casts_now is not bool(now.enabled & {"cpu", "cuda"}):
        new = new._replace(holder=object() if casts_now else None)
    try:
        turn_to(new)
    except BaseException:
        turn_back(now, new)
        raise


WANTED: tuple[tuple[str, type], ...] = (("device_type", str), ("enabled", bool))


@function(raw=True, method=False)
def get_autocast_dtype(device_type: str, /) -> dtype:
    """The dtype autocast computes in."""
    kind = device(device_type).type
    if kind not in DTYPES:
        raise RuntimeError("unsupported scalarType")
    return state.get().dtypes[kind]


@function(raw=True, method=False)
def set_autocast_dtype(device_type: str, dtype: dtype, /) -> None:
    """Set the dtype autocast computes in."""
    if type(dtype) is not type(bfloat16):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type_name(dtype)}"
        )
    now = state.get()
    state.set(now._replace(dtypes={**now.dtypes, device(device_type).type: dtype}))


@function(raw=True, method=False)
def is_autocast_cache_enabled() -> bool:
    """Whether weights are cast once for all their uses in a block."""
    return state.get().cache


@function(raw=True, method=False)
def set_autocast_cache_enabled(enabled: bool, /) -> None:
    """Set whether weights are cast once for all their uses in a block."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    state.set(state.get()._replace(cache=enabled))


@function(raw=True, method=False)
def clear_autocast_cache() -> None:
    """Forget the weights that were cast."""
    cache.clear()


def nested(step: int) -> int:
    """How many blocks there are around, after one more or less."""
    now = state.get()
    state.set(now._replace(nesting=now.nesting + step))
    return now.nesting + step


@function(raw=True, method=False)
def autocast_increment_nesting() -> int:
    """Count one more autocast block."""
    return nested(1)


@function(raw=True, method=False)
def autocast_decrement_nesting() -> int:
    """Count one autocast block less."""
    return nested(-1)


def publish_old_names(short: str, kind: str) -> None:
    """The names from before the device was an argument: is_autocast_cpu_enabled and its like."""

    def deprecated(old: str, new: str, answer: Any) -> None:
        def call(*args: Any) -> Any:
            warn(f"torch.{old} is deprecated. Please use torch.{new} instead.", DeprecationWarning)
            return answer(kind, *args)

        call.__name__ = call.__qualname__ = old.partition("(")[0]
        call.__doc__ = f"The same as torch.{new}."
        function(raw=True, method=False)(call)

    if short != "gpu":
        deprecated(f"is_autocast_{short}_enabled()", f"is_autocast_enabled('{kind}')", is_autocast_enabled)
        deprecated(
            f"set_autocast_{short}_enabled(enabled)", f"set_autocast_enabled('{kind}', enabled)", set_autocast_enabled
        )
    deprecated(f"get_autocast_{short}_dtype()", f"get_autocast_dtype('{kind}')", get_autocast_dtype)
    deprecated(f"set_autocast_{short}_dtype(dtype)", f"set_autocast_dtype('{kind}', dtype)", set_autocast_dtype)


for short_name, device_name in (("cpu", "cpu"), ("gpu", "cuda"), ("xla", "xla"), ("ipu", "ipu")):
    publish_old_names(short_name, device_name)
