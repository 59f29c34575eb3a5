"""torch.masked: reductions and normalizations that count only the elements a mask lets through.

An element the mask hides is replaced by what changes nothing: zero in a sum, one in a product, minus infinity where the
largest counts. Where a mask hides everything, that is the result.
"""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback.nn import functional as F

Dims = int | tuple[int, ...] | list[int] | None

# ------------------------------------------------------------------ hiding elements


def neutral(name: str, input: torch.Tensor, ord: Any = 2.0) -> torch.Tensor:
    """What a hidden element counts as."""
    kind = input.dtype
    if name == "sum":
        value: Any = 0
    elif name == "prod":
        value = 1
    elif name == "norm":
        value = torch.inf if ord == -torch.inf else 0
    elif name == "median":
        value, kind = torch.nan, kind if kind.is_floating_point else torch.float32
    else:
        value = limit(name, kind)
    return torch.tensor(value, dtype=kind)


def limit(name: str, kind: Any) -> Any:
    """The smallest value of a dtype where the largest counts, and the other way round."""
    smallest = name in ("amax", "argmax", "logaddexp", "logsumexp")
    if kind.is_floating_point:
        return -torch.inf if smallest else torch.inf
    if kind.is_complex and name == "logsumexp":
        return complex(-torch.inf, 0.0)
    if kind is torch.bool:
        raise NotImplementedError(f"identity of {name} on {kind} input")
    return torch.iinfo(kind).min if smallest else torch.iinfo(kind).max


def broadcast_mask(input: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mask in the shape of the input."""
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
            )
        mask = torch.broadcast_to(mask.clone(), input.shape)
    return mask.to(dtype=torch.bool)


def visible(name: str, input: torch.Tensor, mask: torch.Tensor | None, ord: Any = 2.0) -> torch.Tensor:
    """The input with its hidden elements replaced."""
    if mask is None:
        return input
    return torch.where(broadcast_mask(input, mask), input, neutral(name, input, ord))


def sorted_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions of a reduction from the front, in order; all for None and for an empty tuple."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = ndim or 1
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        found.append(d % ndim)
    return tuple(sorted(found))


def total_dtype(input: torch.Tensor, dtype: Any) -> Any:
    """The dtype of a sum or product: as asked, or int64 for smaller integers."""
    if dtype is not None:
        return dtype
    small = (torch.uint8, torch.bool, torch.int8, torch.int16, torch.int32)
    return torch.int64 if input.dtype in small else input.dtype


# ------------------------------------------------------------------ reductions


def sum(
    input: torch.Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The sum of the visible elements."""
    dims = sorted_dims(dim, input.ndim)
    return torch.sum(visible("sum", input, mask), dims, bool(keepdim), dtype=total_dtype(input, dtype))


def prod(
    input: torch.Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The product of the visible elements."""
    out = visible("prod", input, mask).to(dtype=total_dtype(input, dtype))
    for d in reversed(sorted_dims(dim, input.ndim)):
        out = out.prod(dim=d, keepdim=bool(keepdim))
    return out


def amax(
    input: torch.Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The largest visible element."""
    out = visible("amax", input, mask)
    return torch.amax(out, sorted_dims(dim, out.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)


def amin(
    input: torch.Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The smallest visible element."""
    out = visible("amin", input, mask)
    return torch.amin(out, sorted_dims(dim, out.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)


def argmax(
    input: torch.Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The position of the largest visible element, in the dtype of the input."""
    return torch.argmax(visible("argmax", input, mask), dim, bool(keepdim)).to(dtype=dtype or input.dtype)


def argmin(
    input: torch.Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The position of the smallest visible element, in the dtype of the input."""
    return torch.argmin(visible("argmin", input, mask), dim, bool(keepdim)).to(dtype=dtype or input.dtype)


def counted(input: torch.Tensor, dim: Dims, keepdim: bool, mask: Any) -> torch.Tensor:
    """How many elements are visible."""
    if mask is None:
        return sum(torch.ones(input.shape, dtype=torch.int64, device=input.device), dim, keepdim=keepdim)
    return torch.sum(broadcast_mask(input, mask), dim, bool(keepdim))


def mean(
    input: torch.Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The mean of the visible elements."""
    kind = input.dtype if dtype is None else dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be either a "
            f"floating point or complex dtype. Got: {kind}"
        )
    return sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask) / counted(input, dim, keepdim, mask)


def median(
    input: torch.Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The median of the visible elements."""
    (at,) = sorted_dims(dim, input.ndim)[:1] or (0,)
    kind, floating = dtype or input.dtype, input.dtype.is_floating_point
    out = torch.nanmedian(visible("median", input if floating else input.float(), mask), at, keepdim).values
    if floating:
        return out
    if torch.isnan(out).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return out.to(dtype=kind)


def logsumexp(
    input: torch.Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The logarithm of the sum of the exponentials of the visible elements."""
    dims = sorted_dims(dim, input.ndim)
    return torch.logsumexp(visible("logsumexp", input, mask), dims, keepdim=keepdim).to(dtype=dtype or input.dtype)


def norm(
    input: torch.Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> torch.Tensor:
    """The norm of the visible elements."""
    out, dims = visible("norm", input, mask, ord), sorted_dims(dim, input.ndim)
    return torch.linalg.vector_norm(out, ord, dims, bool(keepdim), dtype=dtype or input.dtype)


def var(
    input: torch.Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> torch.Tensor:
    """The variance of the visible elements."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1.0 if unbiased is None or unbiased else 0.0
    kind = dtype
    if kind is None:
        kind = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else torch.float32
    exact = kind if kind.is_floating_point or kind.is_complex else torch.float32
    count = counted(input, dim, True, mask)
    average = torch.divide(sum(input, dim, keepdim=True, dtype=kind, mask=mask), count)
    apart = torch.subtract(input, average)
    total = sum(apart * apart.conj(), dim, keepdim=keepdim, dtype=exact, mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    if correction != 0:
        count = torch.subtract(count.to(exact.to_real() if exact.is_complex else exact), float(correction))
        count = torch.maximum(count, count.new_zeros([]))
    return torch.divide(total, count).to(dtype=kind)


def std(
    input: torch.Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> torch.Tensor:
    """The standard deviation of the visible elements."""
    return torch.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


# ------------------------------------------------------------------ as many elements as before


def cumsum(input: torch.Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> torch.Tensor:
    """The running sum of the visible elements."""
    kind = dtype or input.dtype
    return torch.cumsum(visible("sum", input, mask), one_dim(dim, input), dtype=kind).to(dtype=kind)


def cumprod(input: torch.Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> torch.Tensor:
    """The running product of the visible elements."""
    kind = dtype or input.dtype
    return torch.cumprod(visible("prod", input, mask), one_dim(dim, input), dtype=kind).to(dtype=kind)


def one_dim(dim: int, input: torch.Tensor) -> int:
    """One dimension from the front."""
    return sorted_dims(dim, input.ndim)[0]


def softmax(input: torch.Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> torch.Tensor:
    """The softmax of the visible elements; hidden ones have the weight zero."""
    return F.softmax(visible("amax", input, mask), one_dim(dim, input), dtype=dtype or input.dtype)


def log_softmax(input: torch.Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> torch.Tensor:
    """The logarithm of softmax."""
    return F.log_softmax(visible("amax", input, mask), one_dim(dim, input), dtype=dtype or input.dtype)


def softmin(input: torch.Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> torch.Tensor:
    """The softmax of the negative visible elements."""
    return F.softmin(visible("amin", input, mask), one_dim(dim, input), dtype=dtype or input.dtype)


def normalize(
    input: torch.Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> torch.Tensor:
    """The visible elements divided by their norm."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return torch.divide(visible("sum", input, mask), torch.maximum(length, length.new_full([], eps)))


def logaddexp(
    input: torch.Tensor, other: torch.Tensor, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> torch.Tensor:
    """The logarithm of the sum of the exponentials of two tensors, each with its own mask."""
    out = torch.logaddexp(visible("logaddexp", input, input_mask), visible("logaddexp", other, other_mask))
    return out.to(dtype=dtype or input.dtype)


# ------------------------------------------------------------------ masked tensors


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> Any:
    """Tensors that carry a mask are not here: the functions above take one as an argument."""
    raise NotImplementedError(
        "MaskedTensor is not implemented; pass mask= to the functions of torch.masked, or use torch.where"
    )


as_masked_tensor = masked_tensor


def is_masked_tensor(obj: Any, /) -> bool:
    """False: no tensor carries a mask."""
    return False
