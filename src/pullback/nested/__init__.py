"""torch.nested: batches whose sequences have different lengths, without padding. See docs/nested.md."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.nested import attention, jagged_shapes, strided
from pullback.nested.jagged import NestedTensor, from_list
from pullback.nested.strided import StridedNested
from pullback.nested.tensor import Raggedness
from pullback.ops.interop.overriding import install

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

install()  # functions ask, too: one that were only seen through its ops would look at shapes that nobody has


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A nested tensor with copies of these tensors; a leaf."""
    check_layout(layout)
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [part if isinstance(part, Tensor) else torch.as_tensor(part) for part in tensor_list]
    parts = [part.detach().to(device=device) for part in parts]
    if layout is torch.jagged:
        made: Any = from_list(parts, dtype)
    else:
        made = StridedNested.of(check_dims(parts), dtype or (parts[0].dtype if parts else torch.get_default_dtype()))
    return made.detach().requires_grad_(requires_grad)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
    """A nested tensor of these tensors, or of the rows of one; gradients go back to them."""
    check_layout(layout)
    several = isinstance(ts, (list, tuple)) and all([isinstance(one, Tensor) for one in ts])
    if not isinstance(ts, Tensor) and not several:
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if isinstance(ts, Tensor):
        if ts.is_nested:
            if layout is ts.layout:
                return ts.to(dtype=dtype, device=device)
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        if ts.dim() < 2:
            raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
        ts = ts.unbind()
    parts = [part.to(device=device) for part in ts]
    if layout is torch.jagged:
        return from_list(parts, dtype)
    return StridedNested.of(check_dims(parts), dtype or (parts[0].dtype if parts else torch.get_default_dtype()))


def check_layout(layout: Any) -> None:
    """Raise unless there are nested tensors of this layout."""
    if layout not in (None, torch.strided, torch.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")


def check_dims(parts: list[Any]) -> list[Any]:
    """Tensors of as many dimensions each."""
    for place, part in enumerate(parts):
        if part.dim() != parts[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{part.dim()} for Tensor at index {place} and dimension {parts[0].dim()} for Tensor at index 0."
            )
    return parts


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Any = None,
    lengths: Any = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A view of `values`: sequence i goes from `offsets[i]` to `offsets[i + 1]`, or is `lengths[i]` long."""
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)), None
    if not isinstance(offsets, Tensor):
        kind = type(offsets).__name__
        raise TypeError(f"_nested_view_from_jagged(): argument 'offsets' (position 2) must be Tensor, not {kind}")
    if jagged_dim is not None and jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    return NestedTensor.around(values, Raggedness.of(offsets, lengths), jagged_dim or 1)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> Any:
    """The entries `start` to `start + length` of each row of a tensor; both may differ from row to row."""
    check_layout(layout)
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout is not torch.jagged:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(torch.unbind(torch.narrow(tensor, dim, start, length)), layout=torch.strided)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    batch, size = tensor.shape[:2]
    start = torch.as_tensor(start).expand(batch) if isinstance(start, int) else start
    length = torch.as_tensor(length).expand(batch) if isinstance(length, int) else length
    begins = torch.arange(batch) * size + start
    offsets = torch.cat([begins, (begins[-1:] + length[-1:])])
    return nested_tensor_from_jagged(tensor.flatten(0, 1), offsets, length.clone())


def masked_select(tensor: Tensor, mask: Tensor) -> Any:
    """What a mask chooses of each row."""
    for name, one in (("tensor", tensor), ("mask", mask)):
        if one.layout is not torch.strided:
            colon = ":" if name == "mask" else ""
            raise RuntimeError(f"torch.nested.masked_select requires a strided {name}, given{colon} {one.layout}")
    lengths = mask.expand(tensor.shape).sum(dim=tensor.ndim - 1).view(-1)
    return nested_tensor_from_jagged(tensor.masked_select(mask), lengths=lengths)


def to_padded_tensor(input: Any, padding: float, output_size: Any = None, out: Any = None) -> Tensor:
    """A tensor with all sequences, the shorter ones padded at their ends."""
    if not input.is_nested:
        raise NotImplementedError("Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend.")
    made = input.to_padded_tensor(padding, output_size)
    return made if out is None else out.copy_(made)  # type: ignore[no-any-return]
