"""Padded and packed sequences."""

import pickle

import pytest

from tests.conformance.both import attempt, on_both


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_padding_undo_each_other(batch_first):
    @on_both
    def program(torch):
        rnn = torch.nn.utils.rnn
        x = torch.arange(30.0).reshape((2, 5, 3) if batch_first else (5, 2, 3)).sin().requires_grad_()
        packed = rnn.pack_padded_sequence(x, [5, 3], batch_first=batch_first)
        padded, lengths = rnn.pad_packed_sequence(packed, batch_first=batch_first, total_length=7, padding_value=2.0)
        (first,) = torch.autograd.grad(padded.pow(3).sum(), x, create_graph=True)
        first.square().sum().backward()
        node = packed.data.grad_fn
        return [
            packed, padded, lengths, first, x.grad, node, padded.grad_fn,
            node._saved_batch_first, node._saved_input_sym_sizes, node._saved_result1, rnn.unpack_sequence(packed),
        ]  # fmt: skip

    program()


@on_both
def test_unsorted_sequences_are_sorted_and_put_back(torch):
    rnn = torch.nn.utils.rnn
    a, b = torch.arange(3.0), torch.ones(2)
    packed = rnn.pack_sequence([b, a], enforce_sorted=False)
    return packed, rnn.pad_packed_sequence(packed), rnn.unpack_sequence(packed), repr(packed)


@on_both
def test_sequences_are_filled_up_at_one_side(torch):
    rnn = torch.nn.utils.rnn
    a, b = torch.arange(3.0, requires_grad=True), torch.ones(2)
    right = rnn.pad_sequence([a, b])
    right.sum().backward()
    return [
        right,
        right.grad_fn,
        a.grad,
        rnn.pad_sequence([b, a], batch_first=True, padding_value=5.0, padding_side="left"),
        rnn.pad_sequence(torch.ones(2, 3)),
        rnn.unpad_sequence(rnn.pad_sequence([b, b * 2]), torch.tensor([2, 1])),
    ]


@on_both
def test_lengths_that_do_not_fit_are_refused(torch):
    rnn = torch.nn.utils.rnn
    x = torch.ones(4, 2, 3)
    packed = rnn.pack_padded_sequence(x, [4, 3])
    return [
        [attempt(lambda n=n: rnn.pack_padded_sequence(x, n)) for n in ([4, 0], [3, 4], [3])],
        attempt(lambda: rnn.pack_padded_sequence(torch.ones(0, 2, 3), [1, 1])),
        attempt(lambda: rnn.pad_packed_sequence(packed, total_length=2)),
        attempt(lambda: rnn.pad_sequence(3)),
        attempt(lambda: rnn.pad_sequence([])),
        attempt(lambda: rnn.pad_sequence([x], padding_side="top")),
        attempt(lambda: rnn.PackedSequence(x)),
    ]


@on_both
def test_a_packed_sequence_can_be_converted_and_pickled(torch):
    rnn = torch.nn.utils.rnn
    packed = rnn.pack_sequence([torch.arange(3.0), torch.ones(2)])
    return [
        packed.double().data,
        packed.to(torch.float32) is packed,
        packed.int().data,
        packed.is_cuda,
        packed.cpu() is packed,
        pickle.loads(pickle.dumps(packed)),
        rnn.PackedSequence((packed.data, packed.batch_sizes)).batch_sizes,
        rnn.invert_permutation(torch.tensor([2, 0, 1])),
        rnn.invert_permutation(None),
    ]
