"""Ways to run an op on a whole batch at once. An op says which is its own (`vmap=`), or its declaration implies it:

    aligned .... pointwise: the batch in front, dimensions of size one after it, so that logical shapes broadcast
    boxed ...... the same where torch promotes dtypes by the batches, not by what the program sees
    paired ..... the same for two operands that do not promote, unless one is a batch of numbers
    unreduced .. losses: the same, and then the sum or the mean of each entry
    dims ....... those with a `dim` or sizes among their parameters: the batch in front, `dim` counted one further, the
                 batch put in front of `size` (given_dims, rolled, new_dims, permuted, along: variants of it)
    leading .... the op works on leading dimensions as they come: the batch in front
    matrices ... the same for ops of matrices, which vectors with a batch in front are not
    samples .... the batch becomes part of the first dimension, that of the samples or channels
    entries .... one call per entry of the batch, which a warning says

Nothing is tried: what an op does with a batch follows from its declaration and the shapes of a call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, wraps
from math import prod
from typing import Any

from pullback._dtype import FROM_NUMPY, result_numpy_dtype
from pullback._op.declare import Op
from pullback._op.ufuncs import is_loss, is_pointwise
from pullback._tensor import normal_dim
from pullback.batching.physical import Call, Results, front, in_front, invoke, merged, padded, unmerged
from pullback.batching.random import is_random, run_random
from pullback.batching.tensor import batched
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.join import stack
from pullback.ops.shape.reshape import unsqueeze
from pullback.ops.shape.slicing import narrow

Rule = Callable[[Call], Results]
rules: dict[str, Rule] = {}
"""By name, under which an op declares it as `vmap=`: those of this file and of the files rules*.py."""
FILE_AN_ISSUE = "Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."

DIMS = {"dim", "dims", "dim0", "dim1", "dim2", "dimension"}
SIZES = {"size", "sizes", "input_sizes"}


def rule(function: Rule) -> Rule:
    """Let ops name a function as their way to run on a batch."""
    rules[function.__name__] = function
    return function


def way(function: Rule) -> Rule:
    """A rule for many ops."""
    return rule(told_of_an_entry(function))


def told_of_an_entry(function: Rule) -> Rule:
    """What is wrong with a call is said as of one entry, which is all that the program sees."""

    @wraps(function)
    def run(call: Call) -> Results:
        if not call.size:
            return of_nothing(call)
        try:
            return function(call)
        except (RuntimeError, IndexError, TypeError, ValueError):
            invoke(call.op, call.entry(0))
            raise

    return run


@cache
def rule_of(op: Op) -> Rule:
    """How an op runs on a batch."""
    if is_random(op):
        return run_random
    return rules[op.vmap or implied(op) or "entries"]


def implied(op: Op) -> str:
    """The way of an op that does not name one; "" if nothing tells, as of ops that a program adds."""
    if is_pointwise(op):
        return "unreduced" if is_loss(op) else "aligned"
    return "dims" if any(p.kind == "plain" and p.name in DIMS | SIZES for p in op.params) else ""


@cache
def aligns(op: Op) -> bool:
    """True for ops that are `aligned`, the quickest way."""
    return rule_of(op) in (aligned, boxed, paired)


# ------------------------------------------------------------------ broadcasting


@rule
def aligned(call: Call) -> Results:
    """Pointwise: logical shapes broadcast after the batch."""
    width = max((call.ndim_of(i, j) for i, j in call.tensors()), default=0)

    def place(value: Any, dim: int | None) -> Any:
        if dim is None or (dim == 0 and value._array.ndim > width):
            return value
        return padded(front(value, dim), True, width + 1)

    return in_front(invoke(call.op, call.with_tensors(place)))


@rule
def boxed(call: Call) -> Results:
    """The same for an op that promotes dtypes by what it is given: a batch of numbers counts as a vector there."""
    return aligned(call)


@rule
def paired(call: Call) -> Results:
    """The same for two operands of dtypes of their own: those of a batch of numbers and of what stands beside it."""
    if number_beside(call):
        dtype = FROM_NUMPY[result_numpy_dtype([seen_array(call, i) for i in (0, 1)])]
        call.args[:2] = [value.to(dtype) for value in call.args[:2]]
    return aligned(call)


def number_beside(call: Call) -> bool:
    """True for two tensors of which one is a batch of numbers: torch brings them to one dtype before it asks for it."""
    tensors = [i for i, j in call.tensors() if j is None]
    return len(tensors) == 2 and sum(call.dims[i] is not None and not call.ndim_of(i, None) for i in tensors) == 1


def seen_array(call: Call, i: int) -> Any:
    """The array the program sees, for its shape and dtype."""
    value, dim = call.args[i], call.dims[i]
    return value._array if dim is None else batched(value, dim, 0)._array


@way
def overwritten(call: Call) -> Results:
    """Into the first tensor, each entry of which has memory of its own, something else is written that broadcasts."""
    target, source = (call.whole(call.args[i], call.dims[i]) for i in (0, 1))
    return in_front(invoke(call.op, [target, padded(source, True, target._array.ndim), *call.args[2:]]))


@way
def unreduced(call: Call) -> Results:
    """A loss: that of each element, then the sum or the mean over each entry."""
    i = call.op.param_names.index("reduction")
    args = list(call.args)
    how, args[i] = args[i], 0
    out, _ = aligned(Call(call.op, args, call.dims, call.size))[0]
    if how == 0:
        return [(out, 0)]
    out = out.reshape((call.size, prod(out._array.shape[1:])))
    return [(out.mean(1) if how == 1 else out.sum(1), 0)]


@way
def unreduced_backward(call: Call) -> Results:
    """The gradient of a loss: every element has its share of what arrives at its entry."""
    i = call.op.param_names.index("reduction")
    args = list(call.args)
    how, args[i] = args[i], 0
    if how == 1:
        value, dim = call.at(1, None)
        args[0] = args[0] / max(1, value._array.size // (1 if dim is None else call.size))
    return aligned(Call(call.op, args, call.dims, call.size))


# ------------------------------------------------------------------ leading dimensions


@way
def leading(call: Call) -> Results:
    """The op takes leading dimensions as they come."""
    return in_front(invoke(call.op, call.with_tensors(call.whole)))


@way
def matrices(call: Call) -> Results:
    """The same for matrices and the vectors beside them; what has other dimensions is computed entry by entry."""
    first, *others = [call.shape_of(i, j) for i, j in call.tensors()]
    if len(first) >= 2 and all(len(shape) == len(first) for shape in others):
        return leading(call)
    if len(first) < 2 or any(shape[: len(first) - 2] != first[:-2] or len(shape) > len(first) for shape in others):
        return one_by_one(call)
    invoke(call.op, call.entry(0))  # which may refuse a vector that looks like a matrix with the batch in front
    return leading(call)


@way
def samples(call: Call) -> Results:
    """The batch becomes part of the first dimension."""
    outs = invoke(call.op, call.with_tensors(lambda value, dim: merged(call.whole(value, dim))))
    return in_front([None if out is None else unmerged(out, call.size) for out in outs])


@way
def formatted(call: Call) -> Results:
    """A memory format that asks for samples and channels has them; any other is that of the leading dimensions."""
    memory_format = call.args[call.op.param_names.index("memory_format")]
    return samples(call) if "channels_last" in str(memory_format) else leading(call)


# ------------------------------------------------------------------ dimensions that are counted


@way
def dims(call: Call) -> Results:
    """Dimensions are counted one further, sizes begin with the batch; a `dim` that is not there means all.

    An index of other dimensions than the tensor, which may be where it has no elements, goes entry by entry.
    """
    ndims = beside_index(call)
    return entries(call) if len(ndims) > 1 and ndims != NUMBER_AND_VECTOR else counted(call, all_of=True)


@way
def given_dims(call: Call) -> Results:
    """The same, where no dimensions are none."""
    return counted(call)


@rule
def rolled(call: Call) -> Results:
    """The same; dimensions are those of an entry, also where there are no elements to roll."""
    for dim in call.args[2]:
        normal_dim(dim, call.ndim_of(0, None))
    return rolled_entries(call)


@told_of_an_entry
def rolled_entries(call: Call) -> Results:
    """Where no dimensions mean that each entry is rolled as if it were flat."""
    if call.args[2] or len(call.args[1]) != 1:
        return counted(call)
    whole = call.whole(call.args[0], call.dims[0])
    shape = whole._array.shape
    (out,) = invoke(call.op, [whole.reshape((shape[0], prod(shape[1:]))), call.args[1], (1,)])
    return in_front([out.reshape(shape)])


@way
def new_dims(call: Call) -> Results:
    """The same, where dimensions are counted in the result, which has one more."""
    return counted(call, new=1)


@way
def dims_of_vectors(call: Call) -> Results:
    """The same; but numbers, which the op does not take for vectors of one element, go one by one."""
    shape = shape_of(call)
    return counted(call) if (call.ndim_of(0, None) if shape is None else shape) else entries(call)


@way
def along(call: Call) -> Results:
    """The same, where `index` lists places along `dim`, if these are the same for all entries."""
    i = call.op.param_names.index("index")
    return counted(call, shared=i) if call.dims[i] is None else entries(call)


@way
def permuted(call: Call) -> Results:
    """An order of all dimensions: the batch stays in front."""
    ndim = call.ndim_of(0, None)
    return in_front(invoke(call.op, [call.whole(call.args[0], call.dims[0]), (0, *further(call.args[1], ndim))]))


NUMBER_AND_VECTOR = {0, 1}
"""Numbers of dimensions: beside an index a number counts as a vector of one element."""


def beside_index(call: Call) -> set[int]:
    """The numbers of dimensions of the tensors with an index among them; of no others."""
    if call.op.kinds.get("index", "plain") == "plain":
        return set()
    return {call.ndim_of(i, j) for i, j in call.tensors()}


def counted(call: Call, new: int = 0, shared: int = -1, all_of: bool = False) -> Results:
    """The op on whole batches; the argument `shared` stays as it is."""
    plain = [(i, p.name) for i, p in enumerate(call.op.params) if p.kind == "plain"]
    shape = shape_of(call)
    others = [(i, j) for i, j in call.tensors() if i != shared]
    ndim = max([call.ndim_of(i, j) for i, j in others]) + new if shape is None else len(shape)
    numbers = not (ndim if shape is not None else new or call.ndim_of(*others[0]))
    mixed = beside_index(call) == NUMBER_AND_VECTOR

    def place(value: Any, dim: int | None) -> Any:
        whole = call.whole(value, dim)
        return vector(whole) if numbers or (mixed and whole._array.ndim == 1) else whole

    args = call.with_tensors(place)
    if shared >= 0:
        args[shared] = call.args[shared]
    for i, name in plain:
        if name in DIMS and all_of and (args[i] is None or args[i] == ()):
            args[i] = tuple(range(1, max(ndim, numbers) + 1))
        elif name in DIMS and args[i] is not None:
            args[i] = further(args[i], max(ndim, numbers))
        elif name in SIZES and is_shape(args[i]):
            args[i] = (call.size, *(args[i] or (1,) * numbers))
    outs = invoke(call.op, args)
    if numbers or mixed:  # of which not every op makes numbers, or anything at all
        shapes = [None if out is None else out._array.shape for out in invoke(call.op, call.entry(0))]
        outs = [
            out if shape is None else out.reshape((call.size, *shape)) for out, shape in zip(outs, shapes, strict=True)
        ]
    return in_front(outs)


def shape_of(call: Call) -> Any:
    """The sizes among the arguments, in which dimensions are counted; None if there are none."""
    for parameter, given in zip(call.op.params, call.args, strict=True):
        if parameter.name in SIZES and is_shape(given):
            return given
    return None


def is_shape(given: Any) -> bool:
    """True for sizes of all dimensions, not of one."""
    return isinstance(given, (list, tuple))


def vector(value: Any) -> Any:
    """Numbers with a `dim` count as vectors of one element."""
    return unsqueeze(value, 1) if value._array.ndim == 1 else value


def further(dim: Any, ndim: int) -> Any:
    """A dimension, or several, counted from behind the batch."""
    if is_shape(dim):
        return tuple([further(d, ndim) for d in dim])
    if not -ndim <= dim < ndim:
        raise IndexError(f"dimension {dim} of {ndim}")
    return dim % ndim + 1


# ------------------------------------------------------------------ one by one


@rule
def entries(call: Call) -> Results:
    """One call per entry."""
    if not call.size:
        return of_nothing(call)
    warn_about_loop(call.op)
    return one_by_one(call)


def one_by_one(call: Call) -> Results:
    """The same without a warning."""
    rows = [invoke(call.op, call.entry(i)) for i in range(call.size)]
    try:
        outs = [None if column[0] is None else stack(list(column), 0) for column in zip(*rows, strict=True)]
    except RuntimeError as error:
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"aten::{call.op.name}. {FILE_AN_ISSUE}"
        ) from error
    return in_front(outs)


def of_nothing(call: Call) -> Results:
    """What one entry would give says the shape of none, with the history they have."""
    outs = invoke(call.op, call.with_tensors(lambda value, dim: value if dim is None else no_entry(value, dim)))
    return in_front([None if out is None else narrow(unsqueeze(out, 0), 0, 0, 0) for out in outs])


def no_entry(value: Any, dim: int) -> Any:
    """An entry of an empty batch: zeros, the sum of no entries."""
    return sum_dim(value, (dim,), False, None if value.dtype.category >= 2 else value.dtype)


said: set[str] = set()
quiet: ContextVar[bool] = ContextVar("quiet", default=False)
"""True where nobody asked for a batch, so that nobody wants to hear about a loop."""


def warn_about_loop(op: Op) -> None:
    """Say once for each op that it runs entry by entry."""
    if op.name not in said and not quiet.get():
        said.add(op.name)
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"aten::{op.name}. Please file us an issue on GitHub so that we can prioritize its implementation.",
            UserWarning,
            stacklevel=2,
        )
