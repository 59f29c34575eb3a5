"""unfold, fold and the shuffles of pixels and channels: values, graphs, derivatives of every order, errors."""

import pytest

from tests.conformance.both import on_both
from tests.conformance.ops.spatial import agree_in_every_order, agree_on, lines

CALLS = lines("""
F.unfold(x(2, 3, 5, 4), 2)
F.unfold(x(3, 5, 4), (2, 3), 1, 1, 2)
F.unfold(x(1, 2, 6, 6), 2, dilation=2, stride=(1, 2))
F.fold(x(2, 8, 9), (4, 4), 2)
F.fold(x(8, 9), 4, 2)
F.fold(x(1, 6, 6), (5, 4), (2, 3), padding=1, stride=(2, 2))
F.pixel_shuffle(x(1, 8, 2, 3), 2)
F.pixel_shuffle(x(9, 2, 3), 3)
F.pixel_shuffle(x(2, 2, 4, 2, 2), 2)
F.pixel_unshuffle(x(1, 2, 4, 6), 2)
F.pixel_unshuffle(x(1, 3, 6), 3)
F.channel_shuffle(x(2, 6, 3), 2)
F.channel_shuffle(x(1, 6, 2, 2), 3)
torch.pixel_shuffle(x(1, 4, 2, 3), 2)
torch.channel_shuffle(x(2, 6, 3), 2)
""")


@pytest.mark.parametrize("call", CALLS)
def test_a_rearrangement_is_torchs_with_its_graph_and_gradients(call):
    agree_on(call)


@pytest.mark.parametrize("call", CALLS)
def test_a_rearrangement_has_torchs_second_derivatives_and_tangents(call):
    agree_in_every_order(call)


@on_both
def test_the_node_of_unfold_saves_the_size_of_the_images(torch):
    node = torch.nn.functional.unfold(torch.ones(1, 2, 5, 4, requires_grad=True), 2).grad_fn
    return [node._saved_self_sym_argsize_minus_1, node._saved_self_sym_argsize_minus_2, node._saved_kernel_size]


@on_both
def test_the_native_shuffle_has_no_derivative(torch):
    out = torch.native_channel_shuffle(torch.ones(1, 4, 2, requires_grad=True), 2)
    return [out, out.sum().backward()]


ERRORS = lines("""
F.unfold(x(3, 4), 2)
F.unfold(x(2, 3, 4, 4), 5)
F.unfold(x(2, 3, 4, 4), (1, 2, 3))
F.unfold(x(2, 3, 4, 4), 2, dilation=0)
F.unfold(x(2, 3, 4, 4), 2, stride=0)
F.unfold(x(2, 3, 4, 4), 0)
F.unfold(x(2, 3, 4, 4), 2, padding=-1)
F.unfold(x(2, 3, 4, 4).long(), 2)
F.unfold(x(2, 0, 4, 4), 2)
F.fold(x(3), (4, 4), 2)
F.fold(x(1, 5, 9), (4, 4), 2)
F.fold(x(1, 4, 8), (4, 4), 2)
F.fold(x(1, 4, 9), (4, 4, 4), 2)
F.fold(x(1, 4, 9), (0, 4), 2)
F.fold(x(1, 4, 9), (4, 4), 2, stride=0)
F.pixel_shuffle(x(4, 4), 2)
F.pixel_shuffle(x(3, 4, 4), 2)
F.pixel_shuffle(x(4, 4, 4), 0)
F.pixel_unshuffle(x(4, 4), 2)
F.pixel_unshuffle(x(3, 4, 5), 2)
F.pixel_unshuffle(x(3, 4, 4), -1)
F.channel_shuffle(x(4, 4), 2)
F.channel_shuffle(x(2, 3, 4), 2)
F.channel_shuffle(x(2, 4, 4), 0)
""")


@pytest.mark.parametrize("call", ERRORS)
def test_a_wrong_call_raises_torchs_error(call):
    agree_on(call)
