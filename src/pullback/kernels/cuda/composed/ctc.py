"""ctc_loss on the device: one pointwise kernel for each step in time, all samples and states together.

The states of a time lie beside columns of minus infinity, so that a path that stays, goes on or skips a blank reads
the same row at three places. What lengths decide is known on the host and brought to the device as masks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.cuda.array import DeviceArray, filled
from pullback.kernels.cuda.carry import NoKernel, upload
from pullback.kernels.cuda.composed.reading import known, read
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.index import scatter_add_into
from pullback.kernels.cuda.native import INT64, copied
from pullback.kernels.cuda.pointwise import pointwise
from pullback.kernels.numpy.sequence import ctc

DOUBLE = np.dtype(np.float64)
NEVER, ALWAYS = DOUBLE.type(-np.inf), DOUBLE.type(0)


def states_of(targets: Any, lengths: Any, blank: int) -> Any:
    """The states of each sample: its labels with blanks around them; what lies behind its end is blank."""
    samples, longest = len(lengths), int(max(lengths, default=0))
    states = filled((samples, 2 * longest + 1), INT64, blank, targets.device)
    if targets.ndim == 1:
        start = 0
        for nr, length in enumerate(lengths):
            states[nr, 1 : 2 * length : 2] = targets[start : start + length]
            start += length
    elif longest:
        inside = upload(np.arange(longest) < np.asarray(lengths).reshape(-1, 1), targets.device)
        states[:, 1::2] = np.where(inside, copied(targets[:, :longest], INT64), INT64.type(blank))
    return states


def may_skip(states: Any, blank: int) -> Any:
    """Zero where state s can be reached from s - 2, minus infinity elsewhere."""
    out = filled(states.shape, DOUBLE, NEVER, states.device)
    if states.shape[1] > 2:
        here, before = states[:, 2:], states[:, :-2]
        out[:, 2:] = np.where((here != blank) & (here != before), ALWAYS, NEVER)
    return out


def reached(stay: Any, near: Any, far: Any, skip: Any, emitted: Any) -> Any:
    """The log likelihood of a state, from those of the three it may come from."""
    return np.logaddexp(np.logaddexp(stay, near), far + skip) + emitted


def reached_or_last(stay: Any, near: Any, far: Any, skip: Any, emitted: Any, last: Any, start: Any) -> Any:
    """The same backwards, where a sample may have its last time."""
    return np.where(last, start, np.logaddexp(np.logaddexp(stay, near), far + skip)) + emitted


def stepped(compute: Any, *args: Any, out: Any) -> None:
    """One step in time, written where it belongs."""
    if pointwise(compute, args, {}, out) is None:
        raise NoKernel("a step of ctc_loss")


def forward(emitted: Any, skip: Any) -> Any:
    """alpha for every time, sample and state."""
    times, samples, states = emitted.shape
    rows = filled((times, samples, states + 2), DOUBLE, NEVER, emitted.device)
    if times:
        rows[0, :, 2:4] = emitted[0, :, :2]
    for t in range(1, times):
        before = rows[t - 1]
        stepped(reached, before[:, 2:], before[:, 1:-1], before[:, :-2], skip, emitted[t], out=rows[t, :, 2:])
    return rows[:, :, 2:]


def backward_pass(emitted: Any, skip: Any, input_lengths: Any, target_lengths: Any) -> Any:
    """beta for every time, sample and state; each sample starts at its own last time and last two states."""
    (times, samples, states), place = emitted.shape, emitted.device
    rows = filled((times + 1, samples, states + 2), DOUBLE, NEVER, place)
    onward = filled(skip.shape, DOUBLE, NEVER, place)
    if states > 2:
        onward[:, :-2] = skip[:, 2:]
    ends = np.full((samples, states), -np.inf)
    for nr, labels in enumerate(target_lengths):
        ends[nr, max(2 * labels - 1, 0) : 2 * labels + 1] = 0
    start = upload(ends, place)
    last = upload(np.asarray(input_lengths)[:, None] == np.arange(1, times + 1)[:, None, None], place)
    for t in range(times - 1, -1, -1):
        after = rows[t + 1]
        given = (after[:, :-2], after[:, 1:-1], after[:, 2:], onward, emitted[t], last[t], start)
        stepped(reached_or_last, *given, out=rows[t, :, :-2])
    return rows[:-1, :, :-2]


def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int) -> Any:
    """The negative log likelihood of each sample, and alpha as (sample, time, state)."""
    if type(log_probs) is not DeviceArray or type(targets) is not DeviceArray:
        raise NoKernel("targets of the host")
    place, states = log_probs.device, states_of(targets, target_lengths, blank)
    alpha = forward(read(ctc.emissions)(log_probs, states), may_skip(states, blank))
    times, labels = np.asarray(input_lengths, np.int64), np.asarray(target_lengths, np.int64)
    if len(alpha):
        at, nr = upload(np.maximum(times - 1, 0), place), upload(np.arange(len(labels)), place)
        ends = [alpha[at, nr, upload(np.maximum(2 * labels - k, 0), place)] for k in (0, 1)]
        some = np.where(upload(labels > 0, place), ends[1], NEVER)
        loss = -np.logaddexp(ends[0], some)
    else:
        loss = filled((len(labels),), DOUBLE, np.inf, place)
    if not times.all():  # no time at all is enough for no labels
        loss = np.where(upload(times > 0, place), loss, upload(np.where(labels > 0, np.inf, 0.0), place))
    return copied(loss, log_probs.dtype), copied(np.moveaxis(alpha, 1, 0), log_probs.dtype)


def ctc_loss_backward(
    grad: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, loss: Any, alpha: Any, blank: int,
    zero_infinity: bool,
) -> Any:  # fmt: skip
    """The gradient of the logits behind log_probs: what is believed minus the share of the alignments."""
    states = states_of(targets, target_lengths, blank)
    emitted = read(ctc.emissions)(log_probs, states)
    beta = backward_pass(emitted, may_skip(states, blank), input_lengths, target_lengths)
    both = np.moveaxis(copied(alpha, DOUBLE), 0, 1) + beta
    share = np.where(both == NEVER, ALWAYS, np.exp(both - emitted + copied(loss, DOUBLE)[:, None]))
    summed = filled(log_probs.shape, DOUBLE, 0, log_probs.device)
    if not scatter_add_into(summed, 2, contiguous(np.broadcast_to(states, emitted.shape)), contiguous(share)):
        raise NoKernel("sums in a certain order")
    out = (np.exp(copied(log_probs, DOUBLE)) - summed) * copied(grad, DOUBLE)[:, None]
    out = np.where(np.isinf(loss)[:, None], ALWAYS if zero_infinity else DOUBLE.type(np.nan), out)
    over = np.arange(len(log_probs))[:, None] >= np.asarray(input_lengths)
    return copied(np.where(upload(over[:, :, None], log_probs.device), ALWAYS, out), log_probs.dtype)


known |= {ctc.ctc_loss: ctc_loss, ctc.ctc_loss_backward: ctc_loss_backward}
