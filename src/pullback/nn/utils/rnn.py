"""Sequences of different lengths: padded to one length, or packed time step by time step.

A packed sequence holds, for each time step, the items of all sequences that are still going on:

    a a a         data = a b c  a b  a        batch_sizes = 3 2 1
    b b
    c
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pullback
from pullback import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip

NOT_ON_CPU = (
    "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They should be "
    "instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
    "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
)


class PackedSequence_(NamedTuple):
    """The four parts of a packed sequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences of different lengths, time step by time step, the longest sequence first."""

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(NOT_ON_CPU)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same sequence with its data in another dtype or place."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def pin_memory(self) -> PackedSequence:
        """The same sequence with its data in pinned memory."""
        return type(self)(self.data.pin_memory(), self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """There is no CUDA here: raises as torch's CPU build does."""
        kwargs["device"] = "cuda"
        return self.to(*args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data is on the CPU already."""
        return self.to(*args, **kwargs)

    def double(self) -> PackedSequence:
        """The data as float64."""
        return self.to(dtype=pullback.double)

    def float(self) -> PackedSequence:
        """The data as float32."""
        return self.to(dtype=pullback.float)

    def half(self) -> PackedSequence:
        """The data as float16."""
        return self.to(dtype=pullback.half)

    def long(self) -> PackedSequence:
        """The data as int64."""
        return self.to(dtype=pullback.long)

    def int(self) -> PackedSequence:
        """The data as int32."""
        return self.to(dtype=pullback.int)

    def short(self) -> PackedSequence:
        """The data as int16."""
        return self.to(dtype=pullback.short)

    def char(self) -> PackedSequence:
        """The data as int8."""
        return self.to(dtype=pullback.int8)

    def byte(self) -> PackedSequence:
        """The data as uint8."""
        return self.to(dtype=pullback.uint8)

    @property
    def is_cuda(self) -> bool:
        """False: there is no CUDA here."""
        return False

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one."""
    if permutation is None:
        return None
    places = pullback.arange(permutation.numel())
    return pullback.empty_like(permutation).scatter_(0, permutation, places)


# ------------------------------------------------------------------ packing


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences that are padded to one length."""
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=pullback.int64)
    else:
        lengths = pullback.as_tensor(lengths, dtype=pullback.int64)
    order = None
    if not enforce_sorted:
        lengths, order = pullback.sort(lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = pullback._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The sequences padded to one length, and their lengths."""
    steps = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    padded, lengths = pullback._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, steps
    )
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths."""
    lengths = pullback.as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one, each with its own length."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


# ------------------------------------------------------------------ padding


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences of different lengths as one tensor, filled up at one side."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max([sequence.size(0) for sequence in sequences])
    rest = sequences[0].shape[1:]
    shape = (len(sequences), longest, *rest) if batch_first else (longest, len(sequences), *rest)
    out = sequences[0].new_full(shape, padding_value)
    for i, sequence in enumerate(sequences):
        length = sequence.size(0)
        start = longest - length if padding_side == "left" else 0
        row = out.select(0 if batch_first else 1, i)
        row.narrow(0, start, length).copy_(sequence)
    return out


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each with its own length."""
    if not batch_first:
        padded_sequences.transpose_(0, 1)
    places = pullback.arange(padded_sequences.shape[1])
    return [sequence[places < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]
