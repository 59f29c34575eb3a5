"""Connectionist temporal classification: the likelihood of a sequence of labels, over all its alignments with time.

A label sequence a b is read as the states - a - b - (- is the blank). Within the states of one sample a path may stay,
go to the next, or skip a blank between two different labels. `alpha[t, s]` is the log likelihood of reaching state s
at time t, `beta[t, s]` that of finishing from there, both with the emission at t. All samples move together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def states_of(targets: Array, lengths: Array, blank: int) -> Array:
    """The states of each sample: its labels with blanks around them; what lies behind its end is blank."""
    samples, longest = len(lengths), int(max(lengths, default=0))
    labels = np.full((samples, longest), blank, np.int64)
    if targets.ndim == 1:
        start = 0
        for nr, length in enumerate(lengths):
            labels[nr, :length] = targets[start : start + length]
            start += length
    else:
        labels[...] = targets[:, :longest]
        labels[np.arange(longest) >= np.asarray(lengths).reshape(-1, 1)] = blank
    states = np.full((samples, 2 * longest + 1), blank, np.int64)
    states[:, 1::2] = labels
    return states


def may_skip(states: Array, blank: int) -> Array:
    """Zero where state s can be reached from s - 2, minus infinity elsewhere."""
    out = np.full(states.shape, -np.inf)
    out[:, 2:][(states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])] = 0
    return out


def emissions(log_probs: Array, states: Array) -> Array:
    """The log probability of each state's label: (time, sample, state)."""
    if states.size and (states.min() < 0 or states.max() >= log_probs.shape[2]):
        wrong = states[(states < 0) | (states >= log_probs.shape[2])][0]
        raise IndexError(f"Target {wrong} is out of bounds.")
    samples = np.arange(states.shape[0])[:, None]
    return log_probs.astype(np.float64)[:, samples, states]


def shifted(values: Array, by: int) -> Array:
    """The values of the states before (by > 0) or after (by < 0); minus infinity where there is none."""
    out = np.full_like(values, -np.inf)
    if by > 0:
        out[:, by:] = values[:, :-by]
    else:
        out[:, :by] = values[:, -by:]
    return out


def forward(emitted: Array, skip: Array) -> Array:
    """alpha for every time, sample and state."""
    alpha = np.full(emitted.shape, -np.inf)
    if emitted.shape[0]:
        alpha[0, :, :2] = emitted[0, :, :2]
    for t in range(1, emitted.shape[0]):
        before = alpha[t - 1]
        reached = np.logaddexp(before, shifted(before, 1))
        alpha[t] = np.logaddexp(reached, shifted(before, 2) + skip) + emitted[t]
    return alpha


def backward_pass(emitted: Array, skip: Array, input_lengths: Array, target_lengths: Array) -> Array:
    """beta for every time, sample and state; each sample starts at its own last time and last two states."""
    beta = np.full(emitted.shape, -np.inf)
    steps = emitted.shape[0]
    after = np.full(emitted.shape[1:], -np.inf)
    skip_from = shifted(skip, -2)
    for t in range(steps - 1, -1, -1):
        reached = np.logaddexp(after, shifted(after, -1))
        now = np.logaddexp(reached, shifted(after, -2) + skip_from)
        for nr in np.flatnonzero(input_lengths == t + 1):
            last = 2 * target_lengths[nr]
            now[nr] = -np.inf
            now[nr, max(last - 1, 0) : last + 1] = 0
        after = beta[t] = now + emitted[t]
    return beta


def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int
) -> tuple[Array, Array]:
    """The negative log likelihood of each sample, and alpha as (sample, time, state)."""
    states = states_of(targets, target_lengths, blank)
    alpha = forward(emissions(log_probs, states), may_skip(states, blank))
    loss = np.full(len(input_lengths), np.inf)
    for nr, (steps, labels) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        if not steps:
            loss[nr] = 0 if not labels else np.inf
        else:
            last = alpha[steps - 1, nr, max(2 * labels - 1, 0) : 2 * labels + 1]
            loss[nr] = -np.logaddexp.reduce(last)
    return loss.astype(log_probs.dtype), np.moveaxis(alpha, 1, 0).astype(log_probs.dtype)


def ctc_loss_backward(
    grad: Array,
    log_probs: Array,
    targets: Array,
    input_lengths: Array,
    target_lengths: Array,
    loss: Array,
    alpha: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    """The gradient of the logits behind log_probs: what is believed minus the share of the alignments."""
    states = states_of(targets, target_lengths, blank)
    steps, samples, classes = log_probs.shape
    emitted = emissions(log_probs, states)
    beta = backward_pass(emitted, may_skip(states, blank), np.asarray(input_lengths), np.asarray(target_lengths))
    both = np.moveaxis(alpha, 0, 1) + beta
    share = np.where(both == -np.inf, 0.0, np.exp(both - emitted + loss[:, None]))
    places = (np.arange(steps)[:, None, None] * samples + np.arange(samples)[:, None]) * classes + states
    summed = np.bincount(places.reshape(-1), share.reshape(-1), steps * samples * classes)
    out = (np.exp(log_probs) - summed.reshape(log_probs.shape)) * grad[:, None]
    impossible = np.isinf(loss)
    if impossible.any():
        out[:, impossible] = 0 if zero_infinity else np.nan
    out[np.arange(steps)[:, None] >= np.asarray(input_lengths)] = 0
    return out.astype(log_probs.dtype)
