"""Questions about tensors and dtypes as functions, and the settings of the process."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pullback import _dtype as dtypes
from pullback._arrays.element import finfo, iinfo
from pullback._arrays.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from pullback._dtype import dtype, result_dtype
from pullback._op.declare import spaces
from pullback._op.define import function
from pullback._tensor import Tensor
from pullback.kernels import workers
from pullback.ops.create.storage import TypedStorage, UntypedStorage

spaces["torch"].update(
    can_cast=dtypes.can_cast,
    promote_types=dtypes.promote_types,
    get_default_dtype=dtypes.get_default_dtype,
    set_default_dtype=dtypes.set_default_dtype,
    set_default_tensor_type=dtypes.set_default_tensor_type,
    finfo=finfo,
    iinfo=iinfo,
    **{one.name: one for one in (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)},
)


@function(raw=True, method=False, overridable=False)
def is_tensor(obj: Any, /) -> bool:
    """Return True if `obj` is a tensor, including instances of its subclasses."""
    return isinstance(obj, Tensor)


@function(raw=True, method=False, overridable=False)
def is_storage(obj: Any, /) -> bool:
    """Return True if `obj` is a storage, typed or untyped."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def asked(name: str, input: Any) -> Tensor:
    """The tensor a question is about, or torch's TypeError."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


@function(raw=True, method=False, overridable=False)
def is_floating_point(input: Tensor) -> bool:
    """Return True if the dtype of the input is a real floating-point one, such as float32 or bfloat16."""
    return asked("is_floating_point", input).is_floating_point()


@function(raw=True, method=False, overridable=False)
def is_complex(input: Tensor) -> bool:
    """Return True if the dtype of the input is complex."""
    return asked("is_complex", input).is_complex()


@function(raw=True, method=False)
def is_signed(input: Tensor) -> bool:
    """Return True if the dtype of the input can hold negative numbers."""
    return asked("is_signed", input).is_signed()


@function(raw=True)
def is_nonzero(input: Tensor) -> bool:
    """Return True if the only element of the input is not zero; an error if there is not exactly one."""
    return bool(asked("is_nonzero", input))


@function(raw=True, explained=True, method=False)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return True if two tensors have the same shape."""
    return asked("is_same_size", input).is_same_size(other)


@function(raw=True, method=False)
def is_inference(input: Tensor) -> bool:
    """Return True if the tensor was created in inference mode, so that autograd cannot use it."""
    return asked("is_inference", input).is_inference()


@function(raw=True, method=False)
def numel(input: Tensor) -> int:
    """Return the number of elements of a tensor: the product of its sizes."""
    return asked("numel", input).numel()


RESULT_TYPE_FORMS = (
    ("Tensor tensor, Tensor other", (True, True)),
    ("Number scalar, Tensor tensor", (False, True)),
    ("Tensor tensor, Number other", (True, False)),
    ("Number scalar1, Number scalar2", (False, False)),
)


@function(raw=True, explained=True, method=False, overridable=False)
def result_type(*args: Any, **kwargs: Any) -> dtype:
    """Return the dtype that an operation on two tensors or numbers would have, by the rules of type promotion.

    Numbers, and tensors without dimensions, only count where they are of a higher category (bool, integer, float,
    complex) than the tensors with dimensions.
    """
    operands = (*args, *kwargs.values())
    if len(operands) == 2 and all(isinstance(v, (Tensor, bool, int, float, complex, np.generic)) for v in operands):
        return result_dtype(operands)
    lines = []
    for form, wants_tensor in RESULT_TYPE_FORMS:
        lines.append(f" * ({form})\n")
        if len(operands) == 2:
            shown = [
                type(v).__name__ if fits(v, wanted) else f"!{type(v).__name__}!"
                for v, wanted in zip(operands, wants_tensor, strict=True)
            ]
            lines.append(f"      didn't match because some of the arguments have invalid types: ({', '.join(shown)})\n")
    got = ", ".join(type(v).__name__ for v in operands)
    raise TypeError(
        f"result_type() received an invalid combination of arguments - got ({got}), but expected one "
        f"of:\n{''.join(lines)}"
    )


def fits(value: Any, wants_tensor: bool) -> bool:
    """True if an argument may stand where a tensor, or else a number, is wanted."""
    return isinstance(value, Tensor if wants_tensor else (bool, int, float, complex, np.generic))


# ------------------------------------------------------------------ threads

interop = {"threads": os.cpu_count() or 1}


@function(raw=True, method=False)
def get_num_threads() -> int:
    """Return the number of threads that one operation may use."""
    return workers.threads()


@function(raw=True, method=False)
def set_num_threads(num: int, /) -> None:
    """Set the number of threads that one operation may use; `num` must be positive."""
    if not isinstance(num, int):
        raise TypeError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    workers.set_threads(num)


@function(raw=True, method=False)
def get_num_interop_threads() -> int:
    """Return the number of operations that may run at once."""
    return interop["threads"]


@function(raw=True, method=False)
def set_num_interop_threads(num: int, /) -> None:
    """Set the number of operations that may run at once; `num` must be positive."""
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    interop["threads"] = num
