"""The oldest ways to make tensors: `Tensor(2, 3)`, `FloatTensor([1, 2])`, `x.new(...)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import _dtype as dtypes
from pullback._arrays.kinds import exists
from pullback._arrays.sizes import allocated, check_sizes
from pullback._device import CPU, check_device, place_of
from pullback._dtype import defaults, dtype
from pullback._op.declare import spaces
from pullback._op.define import function
from pullback._op.overrides import as_subclass
from pullback._tensor import Size, Tensor, fresh
from pullback.ops.create.cast import converted
from pullback.ops.create.copy import detach
from pullback.ops.create.data import array_of, is_sequence
from pullback.ops.create.filled import is_int, sizes_of


def legacy(target: dtype, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """What the legacy constructors return: uninitialised memory of a size, or a copy of data."""
    check_device(kwargs.pop("device", None) or CPU)
    if kwargs:
        data = kwargs.pop("data", None)
        args = args if data is None else (data,)
    if not args:
        return fresh(np.empty(0, target.numpy))
    first = args[0]
    if isinstance(first, Size) or is_int(first):
        shape = sizes_of("new", args)
        check_sizes(shape)
        return fresh(allocated(np.empty, shape, target.numpy))
    if isinstance(first, Tensor):
        return detach(first)
    if not is_sequence(first) and not isinstance(first, str):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return fresh(array_of(first, target))


def construct(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`Tensor(2, 3)` makes memory of that size, `Tensor([1, 2])` a copy of the data, both in the default dtype."""
    out = legacy(defaults.dtype, args, dict(kwargs))
    return out if cls is Tensor else as_subclass(out, cls)


def make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """A tensor of class `cls` on the memory of `data`."""
    out = as_subclass(detach(data), cls)
    out._requires_grad = require_grad
    return out


Tensor.__new__ = construct  # type: ignore[method-assign, assignment]
Tensor._make_subclass = staticmethod(make_subclass)  # type: ignore[attr-defined]


class tensortype(type):
    """The type of FloatTensor and its like: calling one makes a tensor, and isinstance asks for the dtype."""

    dtype: dtype

    is_cuda: bool

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        if not cls.is_cuda:
            return legacy(cls.dtype, args, dict(kwargs))
        place = place_of("cuda")
        if not exists(place):
            raise TypeError(f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled.")
        return converted(legacy(cls.dtype, args, dict(kwargs)), None, place=place)

    def __instancecheck__(cls, instance: Any) -> bool:
        if not isinstance(instance, Tensor) or instance.dtype is not cls.dtype:
            return False
        return instance.device.type == ("cuda" if cls.is_cuda else "cpu")


ON_CUDA: dict[str, tensortype] = {}
"""The classes of `torch.cuda`, by name."""
LEGACY = (
    dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.uint8, dtypes.int8, dtypes.int16,
    dtypes.int32, dtypes.int64, dtypes.bool_,
)  # fmt: skip
for kind in LEGACY:
    name, text = f"{kind.scalar_type}Tensor", f"Makes tensors of dtype {kind}, from sizes or from data."
    names = {"dtype": kind, "__module__": "torch", "is_cuda": False, "__doc__": text}
    spaces["torch"][name] = tensortype(name, (), names)
    names = {"dtype": kind, "__module__": "torch.cuda", "is_cuda": True, "__doc__": text[:-1] + ", on a CUDA device."}
    ON_CUDA[name] = tensortype(name, (), names)


@function(raw=True, space=None)
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Create a tensor with the dtype of this one, by the rules of the legacy constructors.

    Ints are the sizes of an uninitialised tensor, a sequence is data to copy. `new_empty` and `new_tensor` are clearer.
    """
    made = legacy(self.dtype, args, dict(kwargs))
    return made if self.device is CPU else converted(made, None, place=self.device)
