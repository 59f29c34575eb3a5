"""Convolutions and transposed convolutions: values, graphs, derivatives of every order, errors."""

import warnings

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import on_both
from tests.conformance.ops.spatial import agree_in_every_order, agree_on, lines

CALLS = lines("""
F.conv1d(x(2, 3, 7), x(4, 3, 3), x(4))
F.conv1d(x(3, 7), x(4, 3, 3), x(4), padding=1)
F.conv1d(x(2, 4, 7), x(6, 2, 2), stride=2, dilation=2, groups=2)
F.conv1d(x(2, 3, 7), x(4, 3, 2), padding='same')
F.conv1d(x(2, 3, 7), x(4, 3, 3), padding='same', dilation=2)
F.conv2d(x(2, 3, 6, 5), x(4, 3, 3, 3), x(4))
F.conv2d(x(3, 6, 5), x(4, 3, 3, 3))
F.conv2d(x(1, 3, 6, 5), x(4, 3, 3, 2), padding='valid')
F.conv2d(x(1, 3, 6, 5), x(4, 3, 4, 3), x(4), padding='same')
F.conv2d(x(2, 4, 6, 5), x(4, 1, 3, 3), groups=4, padding=(1, 0))
F.conv2d(x(2, 2, 6, 5), x(4, 1, 2, 2), groups=2, stride=(2, 1))
F.conv2d(x(1, 2, 7, 7), x(2, 2, 3, 3), None, [2, 1], [1, 2], [2, 1])
F.conv2d(x(1, 3, 5, 4).transpose(2, 3), x(2, 3, 1, 1))
F.conv3d(x(1, 2, 4, 5, 4), x(3, 2, 2, 3, 2), x(3), padding=1)
F.conv3d(x(2, 4, 5, 4), x(4, 1, 2, 2, 2), groups=2)
F.conv_transpose1d(x(2, 3, 5), x(3, 4, 3), x(4), stride=2, output_padding=1)
F.conv_transpose2d(x(2, 3, 4, 5), x(3, 2, 3, 3), x(2), stride=(2, 1), padding=1)
F.conv_transpose2d(x(3, 4, 5), x(3, 2, 3, 3))
F.conv_transpose2d(x(1, 4, 4, 3), x(4, 1, 2, 2), groups=2, dilation=2, output_padding=1)
F.conv_transpose3d(x(1, 2, 3, 2, 3), x(2, 2, 2, 2, 2), x(2), stride=2)
torch.convolution(x(1, 2, 4, 4), x(3, 2, 3, 3), None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)
torch.convolution(x(1, 2, 4, 4), x(2, 3, 3, 3), x(3), (2,), (1,), (1,), True, (1,), 1)
torch.conv_tbc(x(6, 2, 3), x(3, 3, 4), x(4), 1)
""")


@pytest.fixture(autouse=True, scope="module")
def warned_already():
    """Both libraries warn once about the copy that an uneven padding needs: here, so that no test depends on order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in (peer, pullback):
            module.conv1d(module.ones(1, 1, 3), module.ones(1, 1, 2), padding="same")


@pytest.mark.parametrize("call", CALLS)
def test_a_convolution_is_torchs_with_its_graph_and_gradients(call):
    agree_on(call)


@pytest.mark.parametrize("call", [call for call in CALLS if "conv_tbc" not in call])
def test_a_convolution_has_torchs_second_derivatives_and_tangents(call):
    agree_in_every_order(call)


@pytest.mark.parametrize("kind", ["float32", "int64", "int32", "uint8", "complex64", "complex128"])
@pytest.mark.parametrize("call", ["F.conv2d({0}, {1})", "F.conv1d({0}[0], {1}[0])", "F.conv_transpose2d({0}, {1})"])
def test_dtypes_convolve_as_torchs_do(call, kind):
    arguments = [f"(x({shape}, grad=False) * 3).to(torch.{kind})" for shape in ("2, 2, 5, 5", "2, 2, 3, 3")]
    agree_on(call.format(*arguments))


@pytest.mark.parametrize(
    "call", ["F.conv2d(x(1, 2, 4, 4, dtype=c128), x(2, 2, 2, 2, dtype=c128), x(2, dtype=c128))",
             "F.conv_transpose1d(x(1, 2, 4, dtype=c128), x(2, 3, 2, dtype=c128))"]
)  # fmt: skip
def test_complex_gradients_are_torchs(call):
    def program(torch):
        inputs = []

        def x(*shape, dtype):
            real = torch.linspace(-1, 1, int(np.prod(shape)), dtype=torch.float64).reshape(shape)
            inputs.append(torch.complex(real, real.flip(-1) * 0.5).requires_grad_())
            return inputs[-1]

        out = eval(call, {"F": torch.nn.functional, "x": x, "c128": torch.complex128})
        return out, torch.autograd.grad((out * out.conj()).real.sum(), inputs)

    on_both(program)()


@on_both
def test_the_node_of_a_convolution_saves_what_torchs_does(torch):
    x = torch.ones(1, 2, 5, 5, requires_grad=True)
    weight = torch.ones(3, 2, 3, 3, requires_grad=True)
    found = []
    for out in (
        torch.conv2d(x, weight, torch.ones(3), 2, 1),
        torch.conv2d(x, weight, padding="valid"),
        torch.convolution(x, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1),
        torch.conv_transpose2d(x, torch.ones(2, 3, 2, 2), stride=2, output_padding=1),
    ):
        node = out.grad_fn
        names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups", "bias_sym_sizes_opt")
        found.append([getattr(node, f"_saved_{name}") for name in names])
        found.append([node._saved_input, node._saved_weight])
    return found


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d"])
def test_tangents_pass_through_the_gradients_too(name):
    def program(torch):
        forward_ad = torch.autograd.forward_ad
        x = torch.linspace(-1, 1, 2 * 3 * 25, dtype=torch.float64).reshape(2, 3, 5, 5).requires_grad_()
        w = torch.linspace(-1, 2, 3 * 3 * 9, dtype=torch.float64).reshape(3, 3, 3, 3).requires_grad_()
        b = torch.ones(3, dtype=torch.float64, requires_grad=True)
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(t, t.detach() * t.detach() + 1) for t in (x, w, b)]
            out = getattr(torch.nn.functional, name)(*duals, stride=2)
            grads = torch.autograd.grad((out * out * out).sum(), (x, w, b), create_graph=True)
            return [forward_ad.unpack_dual(grad) for grad in grads]

    on_both(program)()


ERRORS = lines("""
F.conv2d(x(2, 3), x(4, 3, 3, 3))
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3))
F.conv2d(x(1, 3, 4, 4), x(4, 3))
F.conv2d(x(1, 3, 4, 4), x(4, 2, 3, 3))
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), x(5))
F.conv2d(x(1, 3, 4, 4), x(4, 3, 5, 5))
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), stride=0)
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), stride=(1, 1, 1))
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), padding=-1)
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), dilation=0)
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), groups=2)
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), groups=0)
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), groups=8)
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), padding='around')
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), padding='same', stride=2)
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3), padding='same')
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3).float())
F.conv2d(x(1, 3, 4, 4), x(4, 3, 3, 3), x(4).float())
F.conv2d(x(1, 3, 0, 4), x(4, 3, 3, 3), padding=2)
F.conv2d(3, x(4, 3, 3, 3))
F.conv1d(x(2, 3), x(4, 3, 3, 3))
F.conv_transpose2d(x(1, 2, 3, 3), x(3, 4, 3, 3))
F.conv_transpose2d(x(1, 3, 3, 3), x(3, 4, 3, 3), x(5))
F.conv_transpose2d(x(1, 3, 3, 3), x(3, 4, 3, 3), output_padding=1)
F.conv_transpose2d(x(1, 3, 3, 3), x(3, 4, 3, 3), padding=3)
F.conv_transpose2d(x(1, 3, 3, 3), x(3, 4, 3, 3), groups=2)
F.conv_transpose1d(x(1, 3, 3), x(3, 4, 3), padding='same')
F.conv_tbc(x(2, 3), x(3, 3, 4), x(4), 1)
F.conv_tbc(x(5, 2, 3), x(3, 2, 4), x(4), 1)
""")


@pytest.mark.parametrize("call", ERRORS)
def test_a_wrong_call_raises_torchs_error(call):
    agree_on(call)


@pytest.mark.parametrize("batch, channels, size, kernel", [(1, 16, 40, 3), (9, 8, 7, 3), (2, 3, 64, 7)])
def test_work_done_in_pieces_gives_the_whole(monkeypatch, batch, channels, size, kernel):
    monkeypatch.setattr(pullback.kernels.numpy.conv.columns, "COLUMNS_AT_A_TIME", 4096)
    generator = np.random.default_rng(0)
    arrays = [
        generator.standard_normal(shape) for shape in ((batch, channels, size, size), (5, channels, kernel, kernel))
    ]
    results = []
    for module in (peer, pullback):
        x, weight = (module.tensor(array, requires_grad=True) for array in arrays)
        out = module.conv2d(x, weight, stride=2, padding=1)
        (out * out).sum().backward()
        results.append([out.detach().numpy(), x.grad.numpy(), weight.grad.numpy()])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)


def test_an_empty_batch_convolves_to_an_empty_batch():
    weight = pullback.ones(4, 3, 3, 3, requires_grad=True)
    out = pullback.conv2d(pullback.empty(0, 3, 5, 5), weight)
    out.sum().backward()
    assert out.shape == (0, 4, 3, 3) and not weight.grad.any()
