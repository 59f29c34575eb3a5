"""Error texts that follow torch's and are raised from more than one place, as functions of values.

Programs match on these texts, so they stand here once and are compared with torch in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

BACKWARD_TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)

INFERENCE_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it "
    "in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)

INFERENCE_INPLACE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
    "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
)

NO_META_VALUES = "Cannot copy out of meta tensor; no data!"

LEAF_INPLACE = "a leaf Variable that requires grad is being used in an in-place operation."
RESIZED_DUAL = "cannot resize variables that has a forward grad"
VIEW_OF_LEAF_INPLACE = "a view of a leaf Variable that requires grad is being used in an in-place operation."

OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
PARTIAL_OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)

ONLY_FLOATS_REQUIRE_GRAD = "only Tensors of floating point and complex dtype can require gradients"


ONLY_CPU = (
    '\n  pullback computes on the CPU: use device="cpu", or device="cuda" only if torch.cuda.is_available(), which is '
    "False here"
)
"""What is added to torch's words about a device it was not compiled for."""


def not_on_host(device: object) -> str:
    """What is said to who wants to read elements of another device as an array of NumPy's."""
    return (
        f"can't convert {device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )


def two_devices(one: object, other: object) -> str:
    """What is said of operands on different devices."""
    return f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"


def like(name: str, known: Iterable[str]) -> str:
    """What is added to an error about a name that nothing has: those that look like it."""
    if name.startswith("_"):  # programs ask for such names only to see whether they are there
        return ""
    near = sorted([other for other in known if other[:1] != "_" and is_slip(name, other)])
    return f"\n  did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""


def is_slip(name: str, other: str) -> bool:
    """Whether two names differ by one letter, or by two that changed places."""
    shorter = min(len(name), len(other))
    if abs(len(name) - len(other)) > 1 or shorter < 2:
        return False
    start = end = 0
    while start < shorter and name[start] == other[start]:
        start += 1
    while end < shorter - start and name[-1 - end] == other[-1 - end]:
        end += 1
    mine, its = name[start : len(name) - end], other[start : len(other) - end]
    return max(len(mine), len(its)) == 1 or (len(mine) == 2 and mine == its[::-1])


def shape_text(shape: Sequence[int]) -> str:
    """A shape as torch writes it in errors: [2, 3]."""
    return f"[{', '.join(map(str, shape))}]"


def dim_out_of_range(dim: int, ndim: int) -> str:
    """The text of the IndexError for a dimension that does not exist; what is no integer is no dimension."""
    index(dim)
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    return f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"


def no_dimensions(dim: int) -> str:
    """The text of the IndexError for a dimension of a tensor that has none."""
    return f"Dimension specified as {dim} but tensor has no dimensions"


def size_mismatch(a: int, b: int, dim: int) -> str:
    """The text for two shapes that do not broadcast."""
    return f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"


def out_requires_grad(name: str) -> str:
    """The text for out= where a gradient is wanted."""
    return (
        f"{name}(): functions with out=... arguments don't support automatic differentiation, "
        "but one of the arguments requires grad."
    )


def type_name(value: Any) -> str:
    """The name of a value's type as torch shows it: types written in C carry the name of their module."""
    kind = type(value)
    name: str = kind.__name__
    if kind.__module__ in ("numpy", "collections", "torch._C"):
        return f"{kind.__module__}.{name}"
    return OF_TORCH.get(name, name) if kind.__module__.startswith("pullback.") else name


OF_TORCH = {
    "dtype": "torch.dtype",
    "device": "torch.device",
    "layout": "torch.layout",
    "memory_format": "torch.memory_format",
    "Size": "torch.Size",
    "finfo": "torch.finfo",
    "iinfo": "torch.iinfo",
}
"""Types of this library that torch writes in C, with the names they have there."""


def cannot_cast(source: str, target: str) -> str:
    """The text for an in-place or out= result whose type does not fit."""
    return f"result type {source} can't be cast to the desired output type {target}"


def tangent_size(shape: Sequence[int], given: Sequence[int]) -> str:
    """The text for a tangent that does not have the shape of its tensor."""
    return (
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
        f"supported. Tensor is of size {shape_text(shape)} while the given forward gradient is of size "
        f"{shape_text(given)}."
    )
