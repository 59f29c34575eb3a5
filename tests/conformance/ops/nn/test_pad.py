"""Padding in all modes: values, graphs, derivatives of every order, errors."""

import pytest

from tests.conformance.ops.spatial import agree_in_every_order, agree_on, lines

CALLS = lines("""
F.pad(x(2, 3), (1, 2))
F.pad(x(2, 3, 4), (1, -1, 2, 0), value=2.5)
F.pad(x(2, 3), (-1, -1))
F.pad(x(2, 3), ())
F.pad(x(2, 3), (0, 0))
F.pad(x(3, 2).T, (1, 1))
torch.constant_pad_nd(x(2, 3), [1, 0, 0, 1], 7)
F.pad(x(2, 5), (1, 3), mode='reflect')
F.pad(x(2, 2, 5), (-1, 3), mode='reflect')
F.pad(x(2, 5, 4), (1, 3, 2, 0), mode='reflect')
F.pad(x(1, 2, 5, 4), (1, 3, 2, 2), mode='reflect')
F.pad(x(1, 2, 3, 4, 4), (1, 3, 2, 2, 0, 1), mode='reflect')
F.pad(x(2, 5), (1, 7), mode='replicate')
F.pad(x(2, 5, 4), (1, 3, -2, 0), mode='replicate')
F.pad(x(1, 2, 3, 4, 4), (1, 3, 2, 2, 5, 1), mode='replicate')
F.pad(x(2, 5), (1, 3), mode='circular')
F.pad(x(2, 2, 5), (-1, 3), mode='circular')
F.pad(x(1, 2, 5, 4), (1, 3, 0, 2), mode='circular')
F.pad(x(1, 2, 3, 4, 4), (1, 3, 2, 2, 0, 1), mode='circular')
""")


@pytest.mark.parametrize("call", CALLS)
def test_a_padding_is_torchs_with_its_graph_and_gradients(call):
    agree_on(call)


@pytest.mark.parametrize("call", CALLS)
def test_a_padding_has_torchs_second_derivatives_and_tangents(call):
    agree_in_every_order(call)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("kind", ["float32", "int64", "uint8", "bool", "complex64"])
def test_dtypes_pad_as_torchs_do(kind, mode):
    agree_on(f"F.pad((x(2, 2, 5, grad=False) * 3).to(torch.{kind}), (2, 1), mode='{mode}')")


ERRORS = lines("""
F.pad(x(2, 3), (1,))
F.pad(x(2, 3), (1, 1, 1, 1, 1, 1))
F.pad(x(2, 3), (-3, -3))
F.pad(x(2, 3), 1)
F.pad(x(2, 3), (1, 1), mode='mirror')
F.pad(x(2, 3), (1, 1), mode='reflect', value=1)
F.pad(x(2, 3), (3, 1), mode='reflect')
F.pad(x(3), (1, 1), mode='reflect')
F.pad(x(2, 3, 4, 4), (1, 1), mode='reflect')
F.pad(x(2, 3, 4, 4, 4), (1, 1, 5, 1, 4, 1), mode='reflect')
F.pad(x(2, 3, 4), (-2, -2), mode='reflect')
F.pad(x(2, 0, 4), (1, 2), mode='reflect')
F.pad(x(2, 3, 0, 4), (1, 2, 1, 1), mode='replicate')
F.pad(x(2, 3, 4), (5, 2), mode='circular')
F.pad(x(2, 3, 4), (-2, -3), mode='circular')
torch.constant_pad_nd(x(2, 3), (1,))
""")


@pytest.mark.parametrize("call", ERRORS)
def test_a_wrong_call_raises_torchs_error(call):
    agree_on(call)
