"""einsum: products of several tensors summed over the dimensions an equation names.

Every operand is brought to one order of dimensions: those of the result, then those to sum over. Pairs of operands are
then contracted from left to right, each as one product of batches of matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pullback._arrays.half import rounded, widened
from pullback._arrays.sizes import in_torch_words
from pullback._modes import is_grad_enabled, modes
from pullback._op.define import function
from pullback._runtime.quiet import quiet
from pullback._tensor import Tensor, fresh
from pullback.autograd.tracebacks import trim
from pullback.autograd.view import wants_grad
from pullback.kernels.numpy.linalg.products import batch_product
from pullback.ops.linalg.matmul import bmm
from pullback.ops.pointwise.arithmetic import mul
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.dims import permute_dims as permute
from pullback.ops.shape.reshape import reshape_to, unsqueeze, view_
from pullback.ops.shape.slicing import diagonal

ELLIPSIS = "..."
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Steps(NamedTuple):
    """What an equation is computed with: ops on tensors, or NumPy's functions where nobody wants gradients."""

    permute: Callable[..., Any]
    unsqueeze: Callable[..., Any]
    diagonal: Callable[..., Any]
    total: Callable[..., Any]
    mul: Callable[..., Any]
    bmm: Callable[..., Any]
    reshape: Callable[..., Any]
    view: Callable[..., Any]


ON_TENSORS = Steps(permute, unsqueeze, diagonal, sum_dim, mul, bmm, reshape_to, view_)
ON_ARRAYS = Steps(
    np.ndarray.transpose,
    lambda array, dim: array[..., None],
    np.ndarray.diagonal,
    lambda array, dims, keepdim: rounded(np.add.reduce(widened(array), dims, keepdims=keepdim), array.dtype),
    np.multiply,
    batch_product,
    np.ndarray.reshape,
    np.ndarray.reshape,
)


class Equation:
    """What an equation says: the labels of every operand, and where each label goes."""

    __slots__ = ("ellipsis_at", "ellipsis_dims", "operands", "places", "result_dims", "total_dims")

    def __init__(self, equation: str, ndims: tuple[int, ...]) -> None:
        left, arrow, right = equation.partition("->")
        self.operands = operand_labels(left, len(ndims))
        self.ellipsis_dims = 0
        counts = dict.fromkeys(LETTERS, 0)
        for i, (labels, ndim) in enumerate(zip(self.operands, ndims, strict=True)):
            self.count(i, labels, ndim, counts)
        self.places: dict[str, int] = {}
        self.ellipsis_at = 0
        if arrow:
            ellipsis_kept = self.place_result(right, len(left) + 2, counts)
        else:
            ellipsis_kept = True
            self.result_dims = self.ellipsis_dims
            for label, count in counts.items():
                if count == 1:
                    self.places[label] = self.result_dims
                    self.result_dims += 1
        self.total_dims = self.result_dims
        if not ellipsis_kept:
            self.ellipsis_at = self.total_dims
            self.total_dims += self.ellipsis_dims
        for label, count in counts.items():
            if count and label not in self.places:
                self.places[label] = self.total_dims
                self.total_dims += 1

    def count(self, i: int, labels: list[str], ndim: int, counts: dict[str, int]) -> None:
        """Count the labels of an operand, and the dimensions its ellipsis covers."""
        named = len([label for label in labels if label is not ELLIPSIS])
        for label in labels:
            if label is ELLIPSIS:
                self.ellipsis_dims = max(self.ellipsis_dims, ndim - named)
            else:
                counts[label] += 1
        if ELLIPSIS in labels:
            if named > ndim:
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({named}) is more than the number of "
                    f"dimensions ({ndim}) for operand {i}"
                )
        elif named != ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({ndim}) for operand {i} and no ellipsis was given"
            )

    def place_result(self, right: str, offset: int, counts: dict[str, int]) -> bool:
        """Place the labels of the result; True if the ellipsis is among them."""
        place, i, ellipsis_kept = 0, 0, False
        while i < len(right):
            label = right[i]
            if label == ".":
                if ellipsis_kept:
                    raise RuntimeError("einsum(): found '.' for output but an ellipsis (...) was already found")
                if right[i : i + 3] != ELLIPSIS:
                    raise RuntimeError("einsum(): found '.' for output that is not part of any ellipsis (...)")
                self.ellipsis_at, ellipsis_kept = place, True
                place += self.ellipsis_dims
                i += 2
            elif label != " ":
                check_letter(label, offset + i)
                if label in self.places:
                    raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
                if not counts[label]:
                    raise RuntimeError(
                        f"einsum(): output subscript {label} does not appear in the equation for any input operand"
                    )
                self.places[label] = place
                place += 1
            i += 1
        self.result_dims = place
        return ellipsis_kept


@lru_cache(1024)
def parsed(text: str, ndims: tuple[int, ...]) -> Equation:
    """An equation for operands of these numbers of dimensions, read once."""
    return Equation(text, ndims)


def check_letter(label: str, position: int) -> None:
    """Only letters name dimensions."""
    if label not in LETTERS:
        raise RuntimeError(
            f"einsum(): invalid subscript given at index {position} in the equation string, subscripts must be in "
            "[a-zA-Z]"
        )


def operand_labels(left: str, count: int) -> list[list[str]]:
    """The labels of each operand, from the left side of the equation."""
    found: list[list[str]] = [[]]
    i = 0
    while i < len(left):
        label = left[i]
        if label == ",":
            found.append([])
            if len(found) > count:
                raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
        elif label == ".":
            if ELLIPSIS in found[-1]:
                raise RuntimeError(
                    f"einsum(): found '.' for operand {len(found) - 1} for which an ellipsis was already found"
                )
            if left[i : i + 3] != ELLIPSIS:
                raise RuntimeError(f"einsum(): found '.' for operand {len(found) - 1} that is not part of any ellipsis")
            found[-1].append(ELLIPSIS)
            i += 2
        elif label != " ":
            check_letter(label, i)
            found[-1].append(label)
        i += 1
    if len(found) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return found


class Alignment:
    """Brings operands to the common order of dimensions; remembers the sizes and how many operands have a dimension."""

    __slots__ = ("ellipsis_sizes", "equation", "sizes", "users")

    def __init__(self, equation: Equation) -> None:
        self.equation = equation
        self.sizes: dict[str, int] = {}
        self.ellipsis_sizes = [1] * equation.ellipsis_dims
        self.users = [0] * equation.total_dims

    def note(self, i: int, label: str, size: int) -> None:
        """Note the size a label has, which all operands must agree on."""
        if size == 1:
            return
        seen = self.sizes.get(label, 1)
        if seen not in (1, size):
            raise RuntimeError(
                f"einsum(): subscript {label} has size {size} for operand {i} which does not broadcast with previously "
                f"seen size {seen}"
            )
        self.sizes[label] = size
        self.users[self.equation.places[label]] += 1

    def note_ellipsis(self, i: int, j: int, dim: int, size: int) -> None:
        """The same for a dimension an ellipsis covers."""
        if size == 1:
            return
        seen = self.ellipsis_sizes[j]
        if seen not in (1, size):
            raise RuntimeError(
                f"einsum(): dimension {dim} covered by ellipsis in operand {i}has size {size} which does not broadcast "
                f"with previously seen ellipsis with size {seen} for the respective dimension"
            )
        self.ellipsis_sizes[j] = size
        self.users[self.equation.ellipsis_at + j] += 1


def aligned(steps: Steps, alignment: Alignment, i: int, tensor: Any) -> Any:
    """An operand with all dimensions of the equation, in its order; those it lacks have size one."""
    equation, labels = alignment.equation, alignment.equation.operands[i]
    order = [-1] * equation.total_dims
    covered = tensor.ndim - (len(labels) - 1)
    dim = 0
    for label in labels:
        if label is ELLIPSIS:
            for j in range(equation.ellipsis_dims - covered, equation.ellipsis_dims):
                alignment.note_ellipsis(i, j, dim, tensor.shape[dim])
                order[equation.ellipsis_at + j] = dim
                dim += 1
            continue
        place = equation.places[label]
        size = tensor.shape[dim]
        if order[place] == -1:
            alignment.note(i, label, size)
            order[place] = dim
            dim += 1
            continue
        before = order[place]
        if size != tensor.shape[before]:
            raise RuntimeError(
                f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {size} != "
                f"{tensor.shape[before]}"
            )
        last = tensor.ndim - 2  # the diagonal comes as the last dimension, and goes where its first label is
        tensor = steps.permute(steps.diagonal(tensor, 0, before, dim), (*range(before), last, *range(before, last)))
    for place, found in enumerate(order):
        if found == -1:
            tensor = steps.unsqueeze(tensor, dim)
            order[place] = dim
            dim += 1
    return steps.permute(tensor, tuple(order))


def contracted(steps: Steps, a: Any, b: Any, users: list[int], first: int) -> Any:
    """The product of two operands, summed over the dimensions from `first` on that nobody else has."""
    of_a, of_b = a.shape, b.shape
    shared: list[int] = []
    only_a: list[int] = []
    only_b: list[int] = []
    for dim in range(first, len(users)):
        in_a, in_b = of_a[dim] != 1, of_b[dim] != 1
        if in_a and in_b:
            users[dim] -= 1
            if users[dim] == 1:
                shared.append(dim)
                users[dim] = 0
        elif users[dim] == 1 and (in_a or in_b):
            (only_a if in_a else only_b).append(dim)
            users[dim] = 0
    if only_a:
        a = steps.total(a, tuple(only_a), True)
    if only_b:
        b = steps.total(b, tuple(only_b), True)
    return sum_of_products(steps, a, b, tuple(shared)) if shared else steps.mul(a, b)


def sum_of_products(steps: Steps, left: Any, right: Any, shared: tuple[int, ...]) -> Any:
    """The product summed over the dimensions both have, which stay with size one: a batch of matrix products."""
    of_left, of_right = left.shape, right.shape
    both, only_left, only_right = [], [], []
    for dim in range(len(of_left)):
        if dim in shared:
            continue
        if of_left[dim] != 1 and of_right[dim] != 1:
            both.append(dim)
        elif of_left[dim] != 1:
            only_left.append(dim)
        else:
            only_right.append(dim)
    if only_left and only_right and only_right[-1] < only_left[0]:
        # In this order the result needs no other order of dimensions afterwards.
        left, right, of_left, of_right, only_left, only_right = right, left, of_right, of_left, only_right, only_left
    batch, rows = prod([of_left[d] for d in both]), prod([of_left[d] for d in only_left])
    columns, inner = prod([of_right[d] for d in only_right]), prod([of_left[d] for d in shared])
    order = (*both, *only_left, *shared, *only_right)
    left = steps.reshape(steps.permute(left, order), (batch, rows, inner))
    right = steps.reshape(steps.permute(right, (*both, *shared, *only_right, *only_left)), (batch, inner, columns))
    sizes = (
        *[of_left[d] for d in both],
        *[of_left[d] for d in only_left],
        *[1] * len(shared),
        *[of_right[d] for d in only_right],
    )
    out = steps.view(steps.bmm(left, right), sizes)
    return steps.permute(out, tuple([order.index(d) for d in range(len(order))]))


def equation_first(args: tuple[Any, ...], by_mode: bool = True) -> tuple[Any, ...]:
    """The equation and the operands of a call. torch looks for classes among the operands, for none in a list of them:
    a class is told of them one by one, a mode of the list."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation = ",".join(["".join([letter(n) for n in numbers]) for numbers in args[1::2]])
        if len(args) % 2:
            args = (equation + "->" + "".join([letter(n) for n in args[-1]]), *args[:-1:2])
        else:
            args = (equation, *args[::2])
    return args if by_mode or len(args) > 2 or not isinstance(args[1], (list, tuple)) else (args[0], *args[1])


@function(raw=True, method=False, numpy=("einsum",), told=equation_first)
def einsum(*args: Any) -> Tensor:
    """Sum products of tensors in the notation of Einstein, as in `einsum("ij,jk->ik", a, b)`.

    Each operand has a list of letters, one for each dimension; dimensions with the same letter have the same size and
    go together. Letters that are missing after `->` are summed over; the result has the dimensions named there.
    Without `->` the result has the letters that occur once, in alphabetical order. A letter twice in one operand takes
    the diagonal, and `...` stands for the other dimensions, which broadcast.
    Instead of the equation, lists of numbers may follow the operands: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    try:
        called = equation_first(args)
        equation, operands = called[0], called[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            return einsum(equation, *operands[0])
        return summed(equation, operands)
    except Exception as error:
        trim(error)
        raise


def letter(n: Any) -> str:
    """The label a number stands for."""
    if n is ...:
        return ELLIPSIS
    if 0 <= n < len(LETTERS):
        return LETTERS[n]
    raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")


@in_torch_words
def summed(text: str, tensors: tuple[Tensor, ...]) -> Tensor:
    """The result of an equation."""
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type(tensor).__name__}")
    if len(tensors) > 1 and not modes.active and same_plain_dtype(tensors):
        out = fresh(quiet().run(summed_by, ON_ARRAYS, text, [tensor._array for tensor in tensors]))
        # What is summed over is viewed without its dimensions at the end, and a view it stays.
        equation = parsed(text, tuple([tensor._array.ndim for tensor in tensors]))
        return out if equation.total_dims == equation.result_dims else view_(out, out._array.shape)
    return summed_by(ON_TENSORS, text, tensors)


def same_plain_dtype(tensors: tuple[Tensor, ...]) -> bool:
    """True for plain floating point tensors of one dtype of which nobody wants gradients."""
    kind = tensors[0]._array.dtype
    if kind.char not in "fdFD":
        return False
    for tensor in tensors:
        if type(tensor) is not Tensor or tensor._array.dtype is not kind:
            return False
        if (tensor._requires_grad or tensor._view is not None) and is_grad_enabled() and wants_grad(tensor):
            return False
    return True


def summed_by(steps: Steps, text: str, operands: Any) -> Any:
    """The result of an equation, on tensors or on arrays."""
    equation = parsed(text, tuple([operand.ndim for operand in operands]))
    alignment = Alignment(equation)
    out, first = aligned(steps, alignment, 0, operands[0]), equation.result_dims
    rest = [aligned(steps, alignment, i, operands[i]) for i in range(1, len(operands))]
    for other in rest:
        out = contracted(steps, out, other, alignment.users, first)
    if equation.total_dims == first:
        return out
    if not rest:
        return steps.total(out, tuple(range(first, equation.total_dims)), False)
    return steps.view(out, tuple(out.shape[:first]))
