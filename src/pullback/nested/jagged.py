"""Nested tensors of the jagged layout: values [sum of lengths, D, ...] and the offsets of the sequences in them.

The dimension whose size differs is the second one, until somebody transposes; in the values it stands one place
further to the left, because there the batch has no dimension of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback import Size, Tensor
from pullback.nested.tensor import Nested, Raggedness, leaves, nested_size, padded, refuse, sizes_text

ONE_RAGGED = (
    "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only "
    "allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
)


class NestedTensor(Nested):
    """A batch of sequences, one after the other."""

    __hash__ = Nested.__hash__
    __module__ = "torch.nested._internal.nested_tensor"
    rules: dict[str, Any] = {}
    ragged: Raggedness
    _ragged_idx: int

    @classmethod
    def around(cls, values: Tensor, ragged: Raggedness, place: int = 1) -> Any:
        """The nested tensor of these values."""
        made = cls.shell(values, values.dim() + 1)
        made.ragged, made._ragged_idx = ragged, place
        return made

    def like(self, values: Any) -> Any:
        """Other values in the same sequences."""
        return NestedTensor.around(values, self.ragged, self._ragged_idx)

    def parts(self) -> list[Any]:
        """The sequences."""
        return [self._values.narrow(self._ragged_idx - 1, begin, n) for begin, n in self.ragged.spans()]

    @property
    def shape(self) -> Size:
        """The shape, with a name for the size that differs."""
        sizes = list(self._values.shape)
        sizes[self._ragged_idx - 1] = self.ragged.size
        return nested_size(len(self.ragged.offsets) - 1, *sizes)

    layout = property(lambda self: torch.jagged, doc="torch.jagged.")
    _offsets = property(lambda self: self.ragged.offsets, doc="Where the sequences begin.")
    _lengths = property(lambda self: self.ragged.lengths, doc="How long they are, where there are gaps.")
    _max_seqlen = property(lambda self: self.ragged.longest(), doc="The length of the longest.")

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one size."""
        return self.shape if dim is None else self.shape[wrapped(dim, self.dim())]

    def stride(self, dim: int | None = None) -> Any:
        """How far elements lie apart; between sequences that differs."""
        steps = self._values.stride()
        whole = (self.ragged.size * steps[self._ragged_idx - 1], *steps)
        return whole if dim is None else whole[dim]

    def is_contiguous(self, memory_format: Any = torch.contiguous_format) -> bool:
        """Whether the sequences lie one after the other, without gaps."""
        return self.ragged.lengths is None and bool(self._values.is_contiguous())

    def values(self) -> Tensor:
        """All sequences in one tensor."""
        return self._values.view_as(self._values) if self._values.requires_grad else self._values

    def offsets(self) -> Any:
        """Where the sequences begin, and where the last ends."""
        return self.ragged.offsets

    def lengths(self) -> Any:
        """How long the sequences are, where there are gaps between them; else None."""
        return self.ragged.lengths

    def is_same_size(self, other: Any) -> bool:
        """Whether two have the same shape."""
        return isinstance(other, NestedTensor) and self.shape == other.shape

    def data_ptr(self) -> int:
        """0: it has no memory of its own."""
        return 0

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: there is no array of one shape."""
        refuse(".numpy() is not supported for tensor subclasses.")

    def tolist(self) -> Any:
        """Refused: there is no array of one shape."""
        refuse(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        node = self.grad_fn
        graph = f", grad_fn={node}" if node is not None else ", requires_grad=True" * self.requires_grad
        size = sizes_text(self.shape)
        return f"NestedTensor(size={size}, offsets={self.ragged.offsets}{graph}, contiguous={self.is_contiguous()})"

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            copied = self.like(self._values.detach().clone().requires_grad_(self.requires_grad))
            memo[id(self)] = copied
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt, (self._values, self.ragged.offsets, self.ragged.lengths, self._ragged_idx)

    pointwise_words = ("jagged", "strided")
    shape_words = ("shape", "jagged_shape")

    @staticmethod
    def pointwise(func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """A function of the elements."""
        return pointwise(func, name, args, kwargs)

    @staticmethod
    def unknown(name: str) -> str:
        """The text for what is not known."""
        return f"aten.{name}.default is not implemented for nested tensors; use unbind()"


def rebuilt(values: Any, offsets: Any, lengths: Any, place: int) -> Any:
    """A nested tensor from its parts."""
    return NestedTensor.around(values, Raggedness.of(offsets, lengths), place)


def from_list(parts: list[Any], dtype: Any = None) -> Any:
    """A nested tensor of these sequences, which differ in one size."""
    if not parts:
        refuse("Cannot construct a nested tensor from an empty tensor list")
    for fact in ("dtype", "device", "dim"):
        if any([asked(part, fact) != asked(parts[0], fact) for part in parts]):
            refuse(f"When constructing a nested tensor, all tensors in list must have the same {fact}")
    if parts[0].dim() == 0:
        refuse("Cannot construct a nested tensor from a list of zero-dim tensors")
    differ = [dim for dim in range(parts[0].dim()) if any([part.shape[dim] != parts[0].shape[dim] for part in parts])]
    if len(differ) > 1:
        refuse(ONE_RAGGED)
    dim = differ[0] if differ else 0
    values = torch.cat(parts, dim).to(dtype=dtype)
    sizes = torch.tensor([0, *[part.shape[dim] for part in parts]])
    return NestedTensor.around(values, Raggedness.of(sizes.cumsum(0)), dim + 1)


def asked(part: Any, fact: str) -> Any:
    """A fact about a tensor."""
    return part.dim() if fact == "dim" else getattr(part, fact)


# ------------------------------------------------------------------ element by element


def pointwise(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A function of the elements: of nested tensors of one shape, and of dense ones that broadcast."""
    nested = [one for one in leaves(args, kwargs) if isinstance(one, Nested)]
    first = nested[0]
    for other in nested[1:]:
        if not isinstance(other, NestedTensor) or other.ragged is not first.ragged:
            known = {"where": "where.self"}.get(name, f"{name}.Tensor")
            shapes = f"{sizes_text(first.shape)} and {sizes_text(other.shape)}"
            refuse(f"cannot call binary pointwise function {known} with inputs of shapes {shapes}")
    most = max(nested, key=lambda one: one.dim())
    align = lambda value: aligned(value, most, name)
    out = func(*[align(one) for one in args], **{key: align(value) for key, value in kwargs.items()})
    if name[-1] == "_":
        return args[0]
    return most.like(out)


def aligned(value: Any, like: Any, name: str) -> Any:
    """An operand as the values of a nested tensor need it."""
    if isinstance(value, Nested):
        return value._values
    if not isinstance(value, Tensor) or value.dim() == 0:
        return value
    if value.dim() > like.dim():
        raise NotImplementedError("NYI: broadcasting NT with T with larger dim")
    place = like._ragged_idx
    if value.dim() < like.dim():
        own = value.dim() - (like.dim() - place)  # where in `value` the ragged dimension stands
        if own >= 0 and value.shape[own] != 1:
            shapes = f"{like.shape} and {value.shape}"
            refuse(f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {shapes}")
        return value
    if value.shape[0] == 1 and value.shape[place] == 1:
        return value.squeeze(0)
    spans = like.ragged.spans()
    if value.shape[place] not in (1, like.ragged.longest()) or value.shape[0] not in (1, len(spans)):
        target = [len(spans), *like._values.shape]
        target[place] = like.ragged.longest()
        value = value.expand(target)  # raises
    rows = [value[i if value.shape[0] > 1 else 0] for i in range(len(spans))]
    stretched = value.shape[place] == 1
    cut = [
        row.expand([n if d == place - 1 else m for d, m in enumerate(row.shape)])
        if stretched
        else row.narrow(place - 1, 0, n)
        for row, (_, n) in zip(rows, spans, strict=True)
    ]
    return torch.cat(cut, place - 1)


# ------------------------------------------------------------------ rules by name


def rule(known: Any) -> Any:
    """Declare what the layout does in a function of this name."""
    NestedTensor.rules[known.__name__] = known
    return known


def inner(self: Any, dim: int, name: str) -> int:
    """A dimension of the values that is neither the batch nor ragged."""
    dim = wrapped(dim, self.dim())
    if dim == 0:
        refuse(f"{name}(): not supported for NestedTensor on dim=0")
    if dim == self._ragged_idx:
        refuse(f"{name}(): not supported for NestedTensor on ragged dim")
    return dim - 1


def wrapped(dim: int, count: int) -> int:
    """A dimension counted from the left."""
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count


@rule
def unbind(self: Any, dim: int = 0) -> tuple[Any, ...]:
    """The sequences."""
    if wrapped(dim, self.dim()) != 0:
        refuse("unbind(): only supported for NestedTensor on dim=0")
    return tuple(self.parts())


@rule
def to_padded_tensor(self: Any, padding: float, output_size: Any = None) -> Tensor:
    """All sequences in one tensor; longer ones than asked for are cut off."""
    if self.ragged.lengths is not None:
        refuse("to_padded_tensor(): not supported for nested tensors with holes")
    sizes = [len(self), *self._values.shape]
    sizes[self._ragged_idx] = self.ragged.longest()
    wanted = list(output_size) if output_size is not None else sizes
    place = self._ragged_idx - 1
    parts = [part.narrow(place, 0, min(part.shape[place], wanted[self._ragged_idx])) for part in self.parts()]
    return padded(parts, padding, wanted)


@rule
def contiguous(self: Any, memory_format: Any = torch.contiguous_format) -> Any:
    """The sequences one after the other, without gaps."""
    if self.is_contiguous():
        return self
    if self.ragged.lengths is None:
        return self.like(self._values.contiguous())
    return gathered(self.parts(), self._ragged_idx - 1)


def gathered(parts: list[Any], dim: int, ragged: Any = None) -> Any:
    """Sequences put together along a dimension; `ragged` if they are as long as others."""
    if ragged is None or ragged.lengths is not None:
        ragged = Raggedness.of(torch.tensor([0, *[part.shape[dim] for part in parts]]).cumsum(0))
    return NestedTensor.around(torch.cat(parts, dim), ragged, dim + 1)


def reduction(name: str) -> Any:
    """What a reduction does: over everything, over the lengths, or inside."""

    def reduce(self: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
        call = getattr(torch, name)
        if dim is None:
            return call(self._values, **options)
        dims = {wrapped(d, self.dim()) for d in (dim if isinstance(dim, (list, tuple)) else [dim])}
        ragged = self._ragged_idx
        if ragged in dims and self.ragged.lengths is not None:
            refuse(
                f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors "
                "with holes"
            )
        if 0 in dims and ragged not in dims:
            refuse(
                f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for "
                "nested tensors"
            )
        if ragged in dims and 0 not in dims and len(dims) > 1:
            refuse(f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors")
        inside = sorted([d - 1 for d in dims if d])
        over: Any = inside if isinstance(dim, (list, tuple)) and len(inside) > 1 else inside[0]
        if dims == {ragged}:
            return stacked([call(part, over, keepdim, **options) for part in self.parts()])
        out = call(self._values, over, keepdim, **options)
        if ragged in dims:
            return out.unsqueeze(0) if keepdim and 0 in dims else out
        fewer = 0 if keepdim else sum([d < ragged for d in dims])
        again = lambda values: NestedTensor.around(values, self.ragged, ragged - fewer)
        return type(out)([again(one) for one in out]) if isinstance(out, tuple) else again(out)

    return reduce


def stacked(rows: list[Any]) -> Any:
    """What was made of each sequence, in one tensor; or in a tuple of them, as `max` gives."""
    if isinstance(rows[0], tuple):
        return type(rows[0])([torch.stack(column) for column in zip(*rows, strict=True)])
    return torch.stack(rows)


for one in ("sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin"):
    NestedTensor.rules[one] = reduction(one)


def extremum(name: str) -> Any:
    """`max` and `min`: a reduction, or a function of the elements of two."""
    reduce = reduction(name)

    def call(self: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
        if isinstance(dim, Tensor):
            return getattr(torch, f"{name}imum")(self, dim)
        return reduce(self, dim, keepdim, **options)

    return call


NestedTensor.rules |= {"max": extremum("max"), "min": extremum("min")}


def along(function: Callable[..., Any]) -> Any:
    """A function along one dimension that keeps it: softmax."""

    def call(self: Any, dim: int, *args: Any, **options: Any) -> Any:
        dim = wrapped(dim, self.dim())
        if dim == 0:
            refuse(f"{function.__name__}(): not supported for NestedTensor on dim=0")
        if dim != self._ragged_idx:
            return self.like(function(self._values, dim - 1, *args, **options))
        parts = [function(part, dim - 1, *args, **options) for part in self.parts()]
        return gathered(parts, dim - 1, self.ragged)

    return call


NestedTensor.rules |= {name: along(getattr(torch, name)) for name in ("softmax", "log_softmax")}


@rule
def layer_norm(self: Any, normalized_shape: Any, *args: Any, **options: Any) -> Any:
    """Normalize over the last dimensions."""
    if self.dim() - len(normalized_shape) <= self._ragged_idx:
        refuse("layer_norm(): not supported when normalizing over the ragged dimension for NestedTensor")
    return self.like(torch.nn.functional.layer_norm(self._values, normalized_shape, *args, **options))


@rule
def rms_norm(self: Any, normalized_shape: Any, *args: Any, **options: Any) -> Any:
    """Normalize over the last dimensions."""
    if self.dim() - len(normalized_shape) <= self._ragged_idx:
        refuse("rms_norm(): not supported when normalizing over the ragged dimension for NestedTensor")
    return self.like(torch.nn.functional.rms_norm(self._values, normalized_shape, *args, **options))


@rule
def linear(self: Any, weight: Any, bias: Any = None) -> Any:
    """A linear map of the last dimension."""
    if self._ragged_idx == self.dim() - 1:
        refuse("linear(): not supported for NestedTensor on ragged dim")
    return self.like(torch.nn.functional.linear(self._values, weight, bias))


@rule
def matmul(self: Any, other: Any) -> Any:
    """Products of matrices: of each sequence with one for all, one each, or another sequence."""
    nested = [isinstance(one, NestedTensor) for one in (self, other)]
    last, before = self.dim() - 1, other.dim() - 2
    if nested == [True, False] and self._ragged_idx != last:
        if other.dim() == 2:
            return self.like(torch.matmul(self._values, other))
        if other.dim() == self.dim() and other.shape[0] == len(self):
            parts = [torch.matmul(a, b) for a, b in zip(self.parts(), other.unbind(), strict=True)]
            return gathered(parts, self._ragged_idx - 1, self.ragged)
    if all(nested) and self.ragged is other.ragged:
        pairs = [torch.matmul(a, b) for a, b in zip(self.parts(), other.parts(), strict=True)]
        if self._ragged_idx == last and other._ragged_idx == before:
            return torch.stack(pairs)
        if self._ragged_idx < last and other._ragged_idx < before:
            return gathered(pairs, self._ragged_idx - 1, self.ragged)
    shown = [sizes_text(self.shape) if nested[0] else self.shape, other.shape]
    refuse(f"matmul(): not supported between inputs of shapes {shown[0]} and {shown[1]}")


NestedTensor.rules |= {"bmm": matmul, "mm": matmul, "__matmul__": matmul}


@rule
def embedding(input: Any, weight: Any, *args: Any, **options: Any) -> Any:
    """The rows of a table that the elements choose."""
    return input.like(torch.nn.functional.embedding(input._values, weight, *args, **options))
