"""Ways to run an op on a whole batch at once, by what its declaration says about its parameters.

    align ... pointwise: the batch in front, dimensions of size one after it, so that logical shapes broadcast
    front ... the op already works on leading dimensions: the batch in front
    shift ... the batch in front, `dim` counted one further, the batch put in front of `size`
              (along, over_all, permuted: the same for places along `dim`, for a `dim` that means all, and for an
              order of dimensions)
    fold .... the batch becomes part of the first dimension (of convolutions, pools: the samples)
    loop .... one call per entry of the batch

Nobody lists which op wants which. The first time an op is called with arguments of some form, a strategy is tried on
two entries of the batch and compared with the loop; the first that agrees is believed from then on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from pullback._modes import claimed_by, grad_enabled
from pullback._op.declare import Op
from pullback._op.ufuncs import is_loss, is_pointwise
from pullback._tensor import wrap
from pullback.batching.physical import SIZES, Call, Results, attached, front, in_front, invoke, merged, unmerged
from pullback.batching.random import is_random
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.join import stack
from pullback.ops.shape.reshape import unsqueeze
from pullback.ops.shape.slicing import narrow

Strategy = Callable[[Call], Results]
FILE_AN_ISSUE = "Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."

DIMS = {"dim", "dims", "dim0", "dim1", "dim2", "dimension"}


def align(call: Call) -> Results:
    """Pointwise: logical shapes broadcast after the batch."""
    width = max((call.ndim_of(i, j) for i, j in call.tensors()), default=0)

    def place(value: Any, dim: int | None) -> Any:
        if dim is None or (dim == 0 and value._array.ndim > width):
            return value
        value = front(value, dim)
        missing = width + 1 - value._array.ndim
        if missing > 0:
            shape = value._array.shape
            value = value.reshape((shape[0], *(1,) * missing, *shape[1:]))
        return value

    return in_front(invoke(call.op, call.with_tensors(place)))


def leading(call: Call) -> Results:
    """The op takes leading dimensions as they come."""
    return in_front(invoke(call.op, call.with_tensors(lambda value, dim: value if dim is None else front(value, dim))))


def shift(call: Call) -> Results:
    """Dimensions are counted one further, sizes begin with the batch."""
    return counted_further(call, call.with_tensors(call.whole))


def along(call: Call) -> Results:
    """The same, where `index` lists places along `dim` that are the same for all entries."""
    i = call.op.param_names.index("index")
    if call.dims[i] is not None:
        raise ValueError("every entry has places of its own")
    args = call.with_tensors(call.whole)
    args[i] = call.args[i]
    return counted_further(call, args)


def counted_further(call: Call, args: list[Any]) -> Results:
    """The op on whole batches."""
    for i, parameter in enumerate(call.op.params):
        if parameter.kind != "plain":
            continue
        if parameter.name in DIMS:
            args[i] = shifted(args[i])
        elif parameter.name in SIZES:
            args[i] = (call.size, *args[i])
        elif parameter.name == "repeats":
            args[i] = (1, *args[i])
        elif parameter.name == "ndim":
            args[i] = args[i] + 1
    return in_front(invoke(call.op, args))


def over_all(call: Call) -> Results:
    """A `dim` that was not given, or is empty, means all of them: all but the batch."""
    i = next(i for i, p in enumerate(call.op.params) if p.name in ("dim", "dims") and call.args[i] in (None, ()))
    args = list(call.args)
    args[i] = tuple(range(call.ndim_of(0, None)))
    return shift(Call(call.op, args, call.dims, call.size))


def permuted(call: Call) -> Results:
    """An order of all dimensions: the batch stays in front."""
    i = next(i for i, p in enumerate(call.op.params) if p.name == "dims")
    args = call.with_tensors(call.whole)
    ndim = call.ndim_of(0, None)
    args[i] = (0, *[d % ndim + 1 for d in args[i]])
    return in_front(invoke(call.op, args))


def unreduced(call: Call) -> Results:
    """A loss: that of each element, then the sum or the mean over each entry."""
    i = call.op.param_names.index("reduction")
    args = list(call.args)
    how, args[i] = args[i], 0
    out, _ = align(Call(call.op, args, call.dims, call.size))[0]
    out = out.reshape((call.size, -1))
    return [(out if how == 0 else out.mean(1) if how == 1 else out.sum(1), 0)]


def as_vectors(call: Call) -> Results:
    """Numbers with a `dim`: vectors of one element."""
    if any(call.ndim_of(i, j) for i, j in call.tensors()):
        raise ValueError("not numbers")
    grown = [call.whole(*call.at(i, j)).reshape((call.size, 1)) for i, j in call.tensors()]
    args = list(call.args)
    for (i, _), value in zip(call.tensors(), grown, strict=True):
        args[i] = value
    for i, parameter in enumerate(call.op.params):
        if parameter.name in DIMS:
            args[i] = (1,) if args[i] in (None, ()) else shifted(args[i])
    outs = invoke(call.op, args)
    return in_front([None if out is None else out.reshape((call.size,)) for out in outs])


def shifted(dim: Any) -> Any:
    """A dimension, or several, counted from behind the batch."""
    if type(dim) in (list, tuple):
        return tuple([shifted(d) for d in dim])
    return dim + 1 if type(dim) is int and dim >= 0 else dim


def fold(call: Call) -> Results:
    """The batch becomes part of the first dimension."""
    outs = invoke(call.op, call.with_tensors(lambda value, dim: value if dim is None else merged(front(value, dim))))
    return in_front([None if out is None else unmerged(out, call.size) for out in outs])


def no_entry(value: Any, dim: int) -> Any:
    """An entry of an empty batch: zeros, the sum of no entries."""
    return sum_dim(value, (dim,), False, None if value.dtype.category >= 2 else value.dtype)


def loop(call: Call) -> Results:
    """One call per entry."""
    if not call.size:
        # What one entry would give says the shape of none, with the history they have.
        outs = invoke(call.op, call.with_tensors(lambda value, dim: value if dim is None else no_entry(value, dim)))
        return in_front([None if out is None else narrow(unsqueeze(out, 0), 0, 0, 0) for out in outs])
    rows = [invoke(call.op, call.entry(i)) for i in range(call.size)]
    try:
        outs = [None if column[0] is None else stack(list(column), 0) for column in zip(*rows, strict=True)]
    except RuntimeError as error:
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"aten::{call.op.name}. {FILE_AN_ISSUE}"
        ) from error
    return in_front(outs)


# ------------------------------------------------------------------ which one


@cache
def aligns(op: Op) -> bool:
    """True for ops whose declaration says that `align` is the way: pointwise, without a reduction or random numbers."""
    return is_pointwise(op) and not is_loss(op) and not is_random(op)


believed: dict[Any, Strategy] = {}
"""What agreed with the loop, by the form of the call."""


def strategy_for(call: Call) -> Strategy:
    """The best strategy for a call of this form."""
    key = call.form()
    found = believed.get(key)
    if found is None:
        found = believed[key] = claimed_by(None, chosen, call)  # trials belong to no transform
    return found


def chosen(call: Call) -> Strategy:
    """Try the strategies and take the first that does what the loop does."""
    op = call.op
    named = {p.name for p in op.params if p.kind == "plain"}
    with_dims: tuple[Strategy, ...] = (shift, along, over_all, permuted, as_vectors, align, leading, fold)
    if named & (DIMS | SIZES):
        order = with_dims
    elif "reduction" in named:
        order = (fold, unreduced)
    elif op.promote or len(list(call.tensors())) == 1:
        order = (align, shift, leading, fold)
    else:
        order = (shift, align, leading, fold)
    if call.size < 1:
        return loop
    before = grad_enabled.get()
    try:
        grad_enabled.set(False)
        # With noise, since special values hide differences; and without, since noise hides that two values are equal.
        trials = [call.trial(noise) for noise in (True, False)]
        expected = [loop(trial) for trial in trials]
        pairs = list(zip(trials, expected, strict=True))
        slopes = gradients(loop, trials[0])
        for strategy in order:
            if all(agrees(strategy, trial, wanted) for trial, wanted in pairs):
                # An op may take shapes that its derivative does not: what is recorded must be differentiable as well.
                if slopes is None or alike(gradients(strategy, trials[0]), slopes):
                    return strategy
        return loop
    except (RuntimeError, IndexError, TypeError, ValueError):
        return loop  # it raises there what the program is to see
    finally:
        grad_enabled.set(before)


def gradients(strategy: Strategy, trial: Call) -> list[Any] | None:
    """The gradients of the sum of all that a strategy computes, by each tensor; None if there are none."""
    moving: list[Any] = []

    def leaf(value: Any, dim: int | None) -> Any:
        if value._array.dtype.kind not in "fc":
            return value
        out = wrap(value._array)
        out._requires_grad = True
        moving.append(out)
        return out

    again = Call(trial.op, trial.with_tensors(leaf), trial.dims, trial.size)
    before = grad_enabled.get()
    try:
        grad_enabled.set(True)
        outs = tuple([out for out, _ in strategy(again) if out is not None and out._requires_grad])
        ones = tuple([wrap(np.ones_like(out._array)) for out in outs])
        return attached["gradients"](outs, tuple(moving), ones, False, False) if outs else None
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
        return None
    finally:
        grad_enabled.set(before)


def alike(found: list[Any] | None, wanted: list[Any]) -> bool:
    """True if gradients are the same."""
    if found is None:
        return False
    for one, other in zip(found, wanted, strict=True):
        a, b = (None if t is None else t._array for t in (one, other))
        if a is None or b is None:
            if any(array is not None and array.any() for array in (a, b)):
                return False
        elif a.shape != b.shape or not same_values(a, b):
            return False
    return True


def agrees(strategy: Strategy, trial: Call, expected: Results) -> bool:
    """True if a strategy gives on a small batch what the loop gives."""
    try:
        outs = strategy(trial)
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, StopIteration):
        return False
    for (out, _), (wanted, _) in zip(outs, expected, strict=True):
        if (out is None) != (wanted is None):
            return False
        if out is None:
            continue
        a, b = out._array, wanted._array
        if a.shape != b.shape or a.dtype != b.dtype or not same_values(a, b):
            return False
    return True


def same_values(a: Any, b: Any) -> bool:
    """True if two arrays agree up to rounding, which must stay below the noise of a trial."""
    if a.dtype.char in "dD":
        return bool(np.allclose(a, b, rtol=1e-7, atol=1e-9, equal_nan=True))
    if a.dtype.kind in "fc":
        return bool(np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True))
    return bool(np.array_equal(a, b))


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
