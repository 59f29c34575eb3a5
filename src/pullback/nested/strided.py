"""Nested tensors of the strided layout: one row with all elements, and the shape of each part."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any

import pullback as torch
from pullback import Size, Tensor
from pullback.nested.jagged import wrapped
from pullback.nested.tensor import SIZES_REFUSED, Nested, first_of, leaves, padded, refuse


class StridedNested(Nested):
    """A list of tensors of as many dimensions each."""

    __hash__ = Nested.__hash__
    rules: dict[str, Any] = {}
    _sizes: list[Any]

    @classmethod
    def around(cls, values: Tensor, sizes: list[Any], ndim: int) -> Any:
        """The nested tensor of these elements."""
        made = cls.shell(values, ndim)
        made._sizes = sizes
        return made

    @classmethod
    def of(cls, parts: list[Any], dtype: Any = None) -> Any:
        """The nested tensor of these tensors."""
        flat = [part.reshape(-1).to(dtype=dtype) for part in parts]
        values = torch.cat(flat) if flat else torch.empty(0, dtype=dtype)
        return cls.around(values, [part.shape for part in parts], 1 + parts[0].dim() if parts else 1)

    def like(self, values: Any) -> Any:
        """Other elements in the same shapes."""
        return StridedNested.around(values, self._sizes, self.dim())

    def parts(self) -> list[Any]:
        """The tensors: views of the row."""
        counts = [prod(size) for size in self._sizes]
        ends = list(accumulate(counts))
        return [
            self._values.narrow(0, end - n, n).view(size)
            for n, end, size in zip(counts, ends, self._sizes, strict=True)
        ]

    @property
    def shape(self) -> Size:
        """Refused: there is no one shape."""
        refuse(SIZES_REFUSED)

    layout = property(lambda self: torch.strided, doc="torch.strided.")

    def size(self, dim: int | None = None) -> Any:
        """One size, if all have it."""
        if dim is None:
            refuse(SIZES_REFUSED)
        dim = wrapped(dim, self.dim())
        if dim == 0:
            return len(self._sizes)
        found = {size[dim - 1] for size in self._sizes}
        if len(found) != 1:
            refuse(f"Given dimension {dim} is irregular and does not have a size.")
        return found.pop()

    def stride(self, dim: int | None = None) -> Any:
        """Refused: there are no strides of all."""
        refuse("Internal error: NestedTensorImpl doesn't support strides. Please file an issue.")

    def is_contiguous(self, memory_format: Any = torch.contiguous_format) -> bool:
        """True: the elements lie one after the other."""
        return True

    def values(self) -> Tensor:
        """All elements."""
        return self._values

    def is_same_size(self, other: Any) -> bool:
        """Whether two have parts of the same shapes."""
        return isinstance(other, StridedNested) and self._sizes == other._sizes

    def data_ptr(self) -> int:
        """Where they begin."""
        return int(self._values.data_ptr())

    def _nested_tensor_size(self) -> Tensor:
        """The shapes of the parts, a row each."""
        return torch.tensor([list(size) for size in self._sizes])

    def _nested_tensor_strides(self) -> Tensor:
        """The strides of the parts, a row each."""
        return torch.tensor([list(part.stride()) for part in self.parts()])

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: there is no array of one shape."""
        refuse(SIZES_REFUSED)

    def tolist(self) -> Any:
        """Refused: there is no array of one shape."""
        refuse("Internal error: NestedTensorImpl doesn't support strides. Please file an issue.")

    def __len__(self) -> int:
        refuse(SIZES_REFUSED)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        shown = [repr(part.detach().requires_grad_(self.requires_grad)) for part in self.parts()]
        lines = ",\n".join(["  " + text.replace("\n", "\n  ") for text in shown])
        node = self.grad_fn
        graph = (
            f", grad_fn=<{type(node).__name__}>" if node is not None else ", requires_grad=True" * self.requires_grad
        )
        return f"nested_tensor([\n{lines}\n]{graph})"

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self.like(self._values.detach().clone().requires_grad_(self.requires_grad))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt, (self._values, self._sizes, self.dim())

    pointwise_words = ("strided",)
    shape_words = ("shape",)

    @staticmethod
    def pointwise(func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """A function of the elements."""
        return pointwise(func, name, args, kwargs)

    @staticmethod
    def unknown(name: str) -> str:
        """The text for what is not known."""
        return (
            f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend. "
            "unbind() gives the parts, and layout=torch.jagged knows more."
        )


StridedNested.__name__, StridedNested.__qualname__, StridedNested.__module__ = "Tensor", "Tensor", "torch"


def rebuilt(values: Any, sizes: Any, ndim: int) -> Any:
    """A nested tensor from its parts."""
    return StridedNested.around(values, sizes, ndim)


def pointwise(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A function of the elements of nested tensors of the same shapes, and of numbers."""
    nested = [one for one in leaves(args, kwargs) if isinstance(one, Nested)]
    first = nested[0]
    base = name.rstrip("_")
    dense = [one for one in leaves(args, kwargs) if isinstance(one, Tensor) and not isinstance(one, Nested)]
    if any([one.dim() or one.numel() != 1 for one in dense]):
        kinds = ("nested self and non-nested other", "non-nested self and nested other")
        refuse(f"Expected both self and other to be nested, but got a {kinds[isinstance(args[1], Nested)]}")
    if any([not isinstance(one, StridedNested) for one in nested]):
        refuse(SIZES_REFUSED)
    if len(nested) > 1 and base in ("eq", "ge", "gt"):
        refuse(f"{base} does not support nested tensor as other value.")
    if any([one._sizes != first._sizes for one in nested]):
        refuse(f"{base} does not support broadcasting when given a NestedTensor")
    plain = lambda value: value._values if isinstance(value, Nested) else value
    out = func(*[plain(one) for one in args], **{key: plain(value) for key, value in kwargs.items()})
    return args[0] if name[-1] == "_" else first.like(out)


ASK = " if you need this feature, please open an issue on github describing your use case."


def no_shape(*args: Any, **kwargs: Any) -> Any:
    """A function that asks for the one shape of all parts."""
    refuse(SIZES_REFUSED)


def no_where(*args: Any, **kwargs: Any) -> Any:
    """`where`, which wants tensors of one shape."""
    refuse("self must not be nested")


StridedNested.rules |= {"flatten": no_shape, "unflatten": no_shape, "view_as": no_shape, "where": no_where}


def rule(known: Any) -> Any:
    """Declare what the layout does in a function of this name."""
    StridedNested.rules[known.__name__] = known
    return known


def each(self: Any, function: Any) -> Any:
    """A function of each part."""
    return StridedNested.of([function(part) for part in self.parts()], None)


@rule
def unbind(self: Any, dim: int = 0) -> tuple[Any, ...]:
    """The parts."""
    if wrapped(dim, self.dim()) != 0:
        refuse(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    return tuple(self.parts())


@rule
def to_padded_tensor(self: Any, padding: float, output_size: Any = None) -> Tensor:
    """All parts in one tensor."""
    parts = self.parts()
    needed = [len(parts), *[max(column) for column in zip(*self._sizes, strict=True)]]
    wanted = needed if output_size is None else list(output_size)
    if len(wanted) != len(needed):
        refuse("Length of output_size does not match NestedTensor dims. Broadcasting is not supported.")
    if any([have > want for have, want in zip(needed, wanted, strict=True)]):
        refuse("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
    out = padded(parts, padding, wanted)
    if wanted[0] == len(parts):
        return out
    return torch.cat([out, torch.full((wanted[0] - len(parts), *wanted[1:]), padding, dtype=out.dtype)])


@rule
def contiguous(self: Any, memory_format: Any = torch.contiguous_format) -> Any:
    """The tensor itself."""
    return self


@rule
def sum(self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sums over the last dimension."""
    if dim is None:
        raise NotImplementedError(StridedNested.unknown("sum"))
    dims = dim if isinstance(dim, (list, tuple)) else [dim]
    if len(dims) != 1:
        refuse("NestedTensor only allows reduction of a single dimension for now.")
    if wrapped(dims[0], self.dim()) != self.dim() - 1:
        refuse(
            "NestedTensor can only be reduced across the last dimension for now got dimension "
            f"{wrapped(dims[0], self.dim())} instead."
        )
    if not keepdim:
        refuse("NestedTensor always requires keepdim=True for now.")
    return each(self, lambda part: part.sum(-1, True, dtype=dtype))


@rule
def softmax(self: Any, dim: int, dtype: Any = None) -> Any:
    """Along one dimension of the parts."""
    dim = wrapped(dim, self.dim())
    if dim == 0:
        refuse("Cannot apply softmax across nested dimension 0")
    return each(self, lambda part: torch.softmax(part, dim - 1, dtype=dtype))


@rule
def layer_norm(self: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Normalize over the last dimensions."""
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    return each(self, lambda part: torch.nn.functional.layer_norm(part, normalized_shape, weight, bias, eps))


@rule
def linear(self: Any, weight: Any, bias: Any = None) -> Any:
    """A linear map of the last dimension."""
    return each(self, lambda part: torch.nn.functional.linear(part, weight, bias))


@rule
def matmul(self: Any, other: Any) -> Any:
    """Products of the parts of two."""
    nested = [isinstance(one, StridedNested) for one in (self, other)]
    if not all(nested):
        kinds = "nested self and non-nested other" if nested[0] else "non-nested self and nested other"
        refuse(f"Expected both to be nested, but got a {kinds}")
    pairs = list(zip(self.parts(), other.parts(), strict=True))
    for a, b in pairs:
        if a.shape[-1] != b.shape[-2]:
            refuse(
                f"matmul: Nested tensors cannot be matrix multiplied, last dimension of self has sizes {a.shape[-1]}"
                f" and second to last dimension of other has sizes {b.shape[-2]}"
            )
    return StridedNested.of([torch.matmul(a, b) for a, b in pairs])


@rule
def bmm(self: Any, mat2: Any) -> Any:
    """Products of the parts with those of another, or with the matrices of a batch."""
    others = mat2.parts() if isinstance(mat2, StridedNested) else mat2.unbind()
    own = self.parts() if isinstance(self, StridedNested) else self.unbind()
    return StridedNested.of([torch.matmul(a, b) for a, b in zip(own, others, strict=True)])


@rule
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    """Two dimensions of the parts exchanged."""
    a, b = wrapped(dim0, self.dim()), wrapped(dim1, self.dim())
    if 0 in (a, b):
        refuse("Nested tensor dimension 0 cannot be transposed")
    return each(self, lambda part: part.transpose(a - 1, b - 1))


@rule
def view(self: Any, *size: Any) -> Any:
    """The parts in other shapes; -1 stands for the size they have there."""
    sizes = list(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    if sizes[0] != len(self._sizes):
        refuse("view: For now nested view cannot change or infer the implicit batch dimension")

    def one(part: Any) -> Any:
        own = [part.shape[d] if n == -1 and d < part.dim() else n for d, n in enumerate(sizes[1:])]
        return part.reshape(own)

    return each(self, one)


StridedNested.rules |= {"reshape": view, "__matmul__": matmul}


@rule
def unsqueeze(self: Any, dim: int) -> Any:
    """One dimension more."""
    dim = wrapped(dim, self.dim() + 1)
    if dim == 0:
        refuse(f"unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported at the moment{ASK}")
    return each(self, lambda part: part.unsqueeze(dim - 1))


@rule
def squeeze(self: Any, dim: Any = None) -> Any:
    """Without a dimension of size 1."""
    if dim is None:
        refuse(f"squeeze(): For nested tensors, squeeze without the dim argument is not supported at the moment{ASK}")
    dim = wrapped(dim, self.dim())
    if dim == 0:
        refuse(f"squeeze(): For nested tensors, squeezing dimension 0 is not supported at the moment{ASK}")
    return each(self, lambda part: part.squeeze(dim - 1))


@rule
def select(self: Any, dim: int, index: int) -> Any:
    """One part, or one entry of each."""
    dim = wrapped(dim, self.dim())
    return self.parts()[index] if dim == 0 else each(self, lambda part: part.select(dim - 1, index))


@rule
def narrow(self: Any, dim: int, start: int, length: int) -> Any:
    """Some of the parts."""
    if wrapped(dim, self.dim()) != 0:
        refuse(f"narrow(): only dim=0 supported for nested tensors, but got: {dim}")
    return StridedNested.of(self.parts()[start : start + length])


@rule
def chunk(self: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Pieces of each part, along the last dimension."""
    if wrapped(dim, self.dim()) != self.dim() - 1:
        refuse("Chunk for nested tensors is currently only supported for the last dimension.")
    columns = zip(*[part.chunk(chunks, -1) for part in self.parts()], strict=True)
    return tuple([StridedNested.of(list(column)) for column in columns])


@rule
def split_with_sizes(self: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """Pieces of these sizes of each part, along the last dimension."""
    if wrapped(dim, self.dim()) != self.dim() - 1:
        refuse("split_with_sizes for nested tensors is currently only supported for the last dimension.")
    columns = zip(*[part.split(list(split_sizes), -1) for part in self.parts()], strict=True)
    return tuple([StridedNested.of(list(column)) for column in columns])


@rule
def split(self: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Pieces of these sizes."""
    if isinstance(split_size_or_sections, int):
        raise NotImplementedError(StridedNested.unknown("split.Tensor"))
    return split_with_sizes(self, split_size_or_sections, dim)


@rule
def cat(tensors: Any, dim: int = 0) -> Any:
    """The parts of several: one after the other, or each beside the other."""
    rows = [one.parts() for one in tensors]
    dim = wrapped(dim, tensors[0].dim())
    if dim == 0:
        return StridedNested.of([part for row in rows for part in row])
    return StridedNested.of([torch.cat(list(column), dim - 1) for column in zip(*rows, strict=True)])


@rule
def embedding(input: Any, weight: Any, *args: Any, **options: Any) -> Any:
    """The rows of a table that the elements choose."""
    return each(input, lambda part: torch.nn.functional.embedding(part, weight, *args, **options))


@rule
def __getitem__(self: Any, key: Any) -> Any:
    """One part, and what follows of it; or a part of each."""
    part, keys = first_of(self, key)
    if part is not None:
        return part
    if keys and keys[0] is Ellipsis and all([isinstance(one, int) for one in keys[1:]]):
        return each(self, lambda part: part[tuple(keys)])
    raise NotImplementedError(StridedNested.unknown("slice.Tensor"))
