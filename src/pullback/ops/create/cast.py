"""Changing the dtype, the device or the order of memory: `to` and its short names."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from pullback._arrays.kinds import kind_on, laid_out, made_on
from pullback._arrays.packed import bits_of, decoded, from_bits, packed
from pullback._device import CPU, as_device, copies, device, place_of
from pullback._dtype import FLOAT, FROM_TYPE_NAME, NAMES, TYPE_NAME, defaults, dtype, named_dtype
from pullback._op.apply import apply
from pullback._op.define import Array, function, linear, op
from pullback._runtime import messages
from pullback._tensor import Tensor, channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format
from pullback.autograd.tracebacks import trim
from pullback.ops.create.copy import copied

TO_SIGNATURES = (
    " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
    "torch.memory_format memory_format = None)\n"
    " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = "
    "None)\n"
    " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
)


@op(
    vmap="formatted",
    sparse="entries",
    packed="cast",
    space=None,
    name="_to_copy",
    node="ToCopyBackward0",
    self=lambda grad: grad,
    result=linear,
)
def to_copy(self: Array, dtype: Any = None, memory_format: Any = None, device: Any = None) -> Array:
    """A copy in another dtype and order of memory, and on another device if one is named."""
    return made_on(device or CPU, copied, self, None if dtype is None else dtype.numpy, memory_format)


@op(vmap="formatted", sparse="entries", packed="cast", space=None, name="_to_copy")
def to_integers(self: Array, dtype: Any, memory_format: Any = None, device: Any = None) -> Array:
    """A copy in a dtype without derivatives."""
    return made_on(device or CPU, copied, self, dtype.numpy, memory_format)


@op(vmap="formatted", packed="cast", space=None, name="_to_copy", node="ToCopyBackward0", self=lambda grad: grad)
def to_packed(self: Array, dtype: Any, memory_format: Any = None) -> Array:
    """A copy as packed elements: see _arrays/packed.py."""
    numpy = dtype.stored
    if self.dtype is numpy:
        return from_bits(copied(bits_of(self), None, memory_format), numpy)
    wide = copied(decoded(self), np.dtype(np.complex64 if dtype.is_complex else np.float32), memory_format)
    bits = bits_of(packed(wide, numpy))
    return from_bits(laid_out(bits, [wide]), numpy)


def converted(
    self: Tensor, target: dtype | None, copy: bool = False, format: memory_format | None = None, place: Any = None
) -> Tensor:
    """Self if it already is what is asked for, otherwise a copy that is."""
    if place is not None and (wanted := place_of(place)) is not self.device:
        return recast(self, target, format, moved(self, wanted))
    if not copy and (target is None or target is self.dtype):
        if format is None or format is preserve_format or suggested(self) is format:
            return self
    return recast(self, target, format)


def suggested(self: Tensor) -> memory_format:
    """The memory format a tensor is taken to have: channels last where its strides say so, else contiguous."""
    for format, ndim in ((channels_last, 4), (channels_last_3d, 5)):
        if self.dim() == ndim and not self.is_contiguous() and self.is_contiguous(memory_format=format):
            return format
    return contiguous_format


def moved(self: Tensor, place: device) -> device:
    """The device to copy to, if that can be: raises for those that are not there, and for elements that are not."""
    if place is not CPU:
        kind_on(place)
    if self.is_meta:  # type: ignore[attr-defined]
        raise NotImplementedError(messages.NO_META_VALUES)
    return place


def recast(
    self: Tensor, target: dtype | None, format: memory_format | None = None, place: device | None = None
) -> Tensor:
    """A copy of self in another dtype, and on another device if one is named; integers and bools have no gradients."""
    if target is not None:
        if target.category < FLOAT:
            return copy_to(to_integers, self, target, format, place)  # type: ignore[no-any-return]
        if target.packed:
            return apply(to_packed.op, (self, target, format))  # type: ignore[no-any-return]
    return copy_to(to_copy, self, target, format, place)  # type: ignore[no-any-return]


def copy_to(copy: Any, self: Tensor, target: dtype | None, format: memory_format | None, place: device | None) -> Any:
    """Call one of the ops above; what comes from another device is not for the fast path."""
    return copy(self, target, format) if place is None else apply(copy.op, (self, target, format, place))


@function(nested="shape", raw=True, space=None)
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Convert a tensor to another dtype, device or memory format.

    Called as `to(dtype)`, `to(device, dtype)` or `to(other)`, which takes both from another tensor.
    The tensor itself is returned if nothing would change, unless `copy=True`. Gradients flow through the conversion.
    """
    try:
        if len(args) == 1 and not kwargs and type(args[0]) is dtype:
            return self if args[0] is self.dtype else recast(self, args[0])
        *wanted, unwaited = to_arguments(args, kwargs)
        return copies.unwaited(converted, self, *wanted) if unwaited else converted(self, *wanted)  # type: ignore[no-any-return, arg-type]
    except Exception as error:
        trim(error)
        raise


def to_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dtype | None, bool, memory_format | None, device | None, bool]:
    """Sort out the three forms of `to`: the dtype, whether to copy in any case, the order of memory, the device, and
    whether not to wait."""
    rest = dict(kwargs)
    format = rest.pop("memory_format", None)
    first = args[0] if args else None
    if isinstance(first, Tensor) or "other" in rest or "tensor" in rest:
        names = ("other", "non_blocking", "copy")
    elif type(first) is dtype:
        names = ("dtype", "non_blocking", "copy")
    else:
        names = ("device", "dtype", "non_blocking", "copy")
    values = dict(zip(names, args, strict=False))
    if len(args) > len(names) or values.keys() & rest.keys() or not valid(values | rest):
        named, words = [named_dtype(value) for value in args], {key: named_dtype(kwargs[key]) for key in kwargs}
        if (*named, *words.values()) != (*args, *kwargs.values()):  # Python's own types of numbers
            with suppress(TypeError):
                return to_arguments(tuple(named), words)
        raise invalid_arguments(args, kwargs)
    values |= rest
    place, target = values.get("device"), values.get("dtype")
    other = values.get("other", values.get("tensor"))
    if other is not None:
        target, place = other.dtype, other.device
    return target, bool(values.get("copy", False)), format, place, bool(values.get("non_blocking", False))


KINDS = {
    "device": (device, str, int, type(None)),
    "dtype": (dtype, type(None)),
    "other": (Tensor,),
    "tensor": (Tensor,),
    "non_blocking": (bool,),
    "copy": (bool,),
}


def valid(values: dict[str, Any]) -> bool:
    """True if every argument of `to` has a name and a type it knows."""
    return all(name in KINDS and isinstance(value, KINDS[name]) for name, value in values.items())


def invalid_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    """Torch's TypeError for arguments that fit none of the forms."""
    got = ", ".join([type_text(a) for a in args] + [f"{name}={type_text(value)}" for name, value in kwargs.items()])
    got += ", " if kwargs and not args else ""
    return TypeError(
        f"to() received an invalid combination of arguments - got ({got}), but expected one of:\n{TO_SIGNATURES}"
    )


def type_text(value: Any) -> str:
    """The type of an argument as torch's errors name it."""
    if isinstance(value, (dtype, device, memory_format)):
        return f"torch.{type(value).__name__}"
    prefix = "numpy." if type(value).__module__ == "numpy" else ""
    return prefix + type(value).__name__


def short_name(name: str, target: dtype) -> None:
    """Publish `Tensor.<name>()`, which is `to(target)`."""

    def method(self: Tensor, memory_format: memory_format | None = preserve_format) -> Tensor:
        return converted(self, target, False, memory_format)

    method.__name__ = name
    method.__doc__ = f"`self.to({target!r})`."
    function(nested="shape", raw=True, space=None)(method)


SHORT_NAMES = ("half", "float", "double", "bfloat16", "int", "long", "short", "bool", "chalf", "cfloat", "cdouble")
for short in SHORT_NAMES:
    short_name(short, NAMES[short])
short_name("char", NAMES["int8"])
short_name("byte", NAMES["uint8"])


@function(raw=True, space=None)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Convert this tensor to the dtype of `other`; the tensor itself if it already has it."""
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
    return converted(self, other.dtype)


@function(nested="shape", raw=True, space=None, name="type")
def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Return the name of the tensor's type, such as "torch.FloatTensor"; with `dtype`, convert the tensor to that type.

    `dtype` is a dtype, a legacy tensor class or the name of one.
    """
    if dtype is None:
        name = TYPE_NAME[self.dtype]
        return name if self.device is CPU else name.replace("torch.", f"torch.{self.device.type}.", 1)
    return converted(self, dtype_of_type(dtype), place=place_of_type(dtype))


def place_of_type(value: Any) -> device | None:
    """The device a legacy type or its name stands for: "torch.cuda.FloatTensor" is on "cuda"; None if for none."""
    if isinstance(value, str):
        return place_of("cuda") if value.startswith(ON_CUDA) else CPU
    return place_of("cuda") if getattr(value, "is_cuda", None) is True else None


ON_CUDA = "torch.cuda."


def dtype_of_type(value: Any) -> dtype:
    """The dtype a legacy type, its name, or a dtype stands for."""
    if type(value) is dtype:
        return value
    if isinstance(value, str):
        found = FROM_TYPE_NAME.get(value.replace(ON_CUDA, "torch.", 1))
        if found is None:
            raise ValueError(f"invalid type: '{value}'")
        return found
    if not isinstance(value, type):
        raise TypeError("dtype must be a type, str, or dtype object")
    if value is Tensor:
        return defaults.dtype
    target = getattr(value, "dtype", None)
    if type(target) is dtype:
        return target
    raise ValueError(f"invalid type: '{getattr(value, '__name__', value)}'")


@function(nested="shape", raw=True, space=None)
def cpu(self: Tensor, memory_format: memory_format | None = preserve_format) -> Tensor:
    """Return this tensor on the CPU: itself if it is there already, else a copy."""
    return converted(self, None, False, memory_format, CPU)


@function(raw=True, space=None)
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = preserve_format) -> Tensor:
    """Return this tensor on a CUDA device: itself if it is there already, else a copy."""
    place = as_device("cuda" if device is None else device)
    if place.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    if non_blocking:
        return copies.unwaited(converted, self, None, False, memory_format, place)  # type: ignore[no-any-return]
    return converted(self, None, False, memory_format, place)


def is_on(kind: str) -> property:
    """A property that tells whether tensors are on a device of this type."""
    return property(lambda self: self.device.type == kind, doc=f"True if the tensor is on a {kind} device.")


for kind in ("cpu", "cuda", "xpu", "mps", "meta", "xla", "ipu", "hpu", "mtia", "vulkan", "maia"):
    setattr(Tensor, f"is_{kind}", is_on(kind))
Tensor.is_sparse = property(lambda self: False)  # type: ignore[attr-defined]
