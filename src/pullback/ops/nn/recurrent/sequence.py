"""Packing padded sequences: for each time step, the items of the sequences that are still going on."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._tensor import Tensor
from pullback.ops.index.gather import index_copy
from pullback.ops.nn.norm.layer_norm import plain_tuple
from pullback.ops.shape.dims import transpose
from pullback.ops.shape.reshape import reshape_to, zeros_of


@op(vmap="entries", space=None)
def packed_rows(batch_sizes: Array, batch: int) -> Array:
    """Where each packed item stands in a padded (time * batch) list of items."""
    return np.concatenate([step * batch + np.arange(going) for step, going in enumerate(batch_sizes)])


def unpacked(grad: Any, sizes: Any, batch_sizes: Any, batch_first: bool) -> Any:
    """The gradient of the padded sequences: zero where there was padding."""
    steps, batch = (sizes[1], sizes[0]) if batch_first else (sizes[0], sizes[1])
    rest = tuple(sizes[2:])
    flat = index_copy(zeros_of(grad, (steps * batch, *rest)), 0, packed_rows(batch_sizes, batch), grad)
    out = reshape_to(flat, (steps, batch, *rest))
    return transpose(out, 0, 1) if batch_first else out


def check_lengths(input: Array, lengths: Array, batch_first: bool) -> None:
    """Torch's demands on the lengths of padded sequences."""
    if input.size == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    steps, batch = input.shape[:2][::-1] if batch_first else input.shape[:2]
    if lengths.size != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.size} (batch_size={batch})"
        )
    if lengths[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (lengths[1:] > lengths[:-1]).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if lengths[0] > steps:
        raise RuntimeError(f"Expected sequence length {lengths[0]} to be at most {steps}")


@op(
    vmap="entries",
    space=None,
    name="_pack_padded_sequence",
    outputs=("result0", "result1"),
    input=lambda grad, input_sym_sizes, result1, batch_first: unpacked(grad, input_sym_sizes, result1, batch_first),
    result=lambda input_t, lengths, batch_first: (pack_op(input_t, lengths, batch_first)[0], None),
)
def pack_op(input: Array, lengths: Array, batch_first: bool) -> Any:
    """The items within the lengths, time step by time step, and how many there are in each step."""
    check_lengths(input, lengths, batch_first)
    steps_first = input.swapaxes(0, 1) if batch_first else input
    batch_sizes = np.add.reduce(lengths[None, :] > np.arange(lengths[0])[:, None], axis=1)
    rows = np.arange(steps_first.shape[1])[None, :] < batch_sizes[:, None]
    return steps_first[: batch_sizes.size][rows], batch_sizes


pack_op.op.fields = plain_tuple


@function(method=False)
def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> Any:
    """Padded sequences, the longest first, as packed items and the number of items of each time step."""
    return pack_op(input, lengths, batch_first)


@function(method=False)
def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
) -> Any:
    """Packed items as padded sequences, and the lengths of the sequences."""
    sizes = batch_sizes.tolist()
    batch, rest = sizes[0], data.shape[1:]
    steps = max(len(sizes), total_length)
    out = data.new_full((steps, batch, *rest), padding_value)
    step = item = 0
    for going, same in groupby(sizes):  # steps with the same number of sequences are one block
        count = len(list(same))
        block = data[item : item + going * count].view(count, going, *rest)
        out[step : step + count].narrow(1, 0, going).copy_(block)
        step, item = step + count, item + going * count
    lengths = batch_sizes.new_tensor([sum(going > i for going in sizes) for i in range(batch)])
    return (out.transpose(0, 1) if batch_first else out), lengths
