"""Convolutions and transposed convolutions."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both, same
from tests.conformance.nn.layers import copies_agree, same_layer

LAYERS = [
    ("nn.Conv1d(4, 6, 3)", "x(2, 4, 7)"),
    ("nn.Conv1d(4, 6, 3)", "x(4, 7)"),
    ("nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False)", "x(2, 4, 9)"),
    ("nn.Conv2d(4, 6, 3)", "x(2, 4, 6, 5)"),
    ("nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2)", "x(2, 4, 6, 5)"),
    ("nn.Conv2d(4, 6, 3, padding='same')", "x(2, 4, 6, 5)"),
    ("nn.Conv2d(4, 6, (2, 3), padding='same', padding_mode='replicate')", "x(2, 4, 6, 5)"),
    ("nn.Conv2d(4, 6, 3, padding='valid')", "x(2, 4, 6, 5)"),
    ("nn.Conv2d(2, 3, 3, padding=1, padding_mode='reflect')", "x(1, 2, 4, 4)"),
    ("nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode='circular')", "x(1, 2, 4, 4)"),
    ("nn.Conv3d(2, 3, 2)", "x(1, 2, 3, 4, 3)"),
    ("nn.Conv3d(2, 4, (1, 2, 2), stride=2, padding=1, groups=2)", "x(1, 2, 3, 4, 3)"),
    ("nn.ConvTranspose1d(4, 6, 3)", "x(2, 4, 5)"),
    ("nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, dilation=2)", "x(2, 4, 5)"),
    ("nn.ConvTranspose2d(4, 2, 3)", "x(2, 4, 3, 3)"),
    ("nn.ConvTranspose2d(4, 2, 3, stride=(2, 3), padding=1, bias=False)", "x(2, 4, 3, 3), [6, 8]"),
    ("nn.ConvTranspose2d(4, 2, 3, stride=(2, 3), padding=1)", "x(2, 4, 3, 3), torch.Size([2, 2, 6, 8])"),
    ("nn.ConvTranspose3d(2, 3, 2)", "x(1, 2, 2, 3, 2)"),
    ("nn.LazyConv1d(6, 3)", "x(2, 4, 7)"),
    ("nn.LazyConv2d(6, 3, stride=2, groups=2)", "x(2, 4, 6, 5)"),
    ("nn.LazyConv3d(3, 2, bias=False)", "x(1, 2, 3, 4, 3)"),
    ("nn.LazyConvTranspose1d(6, 3)", "x(2, 4, 5)"),
    ("nn.LazyConvTranspose2d(2, 3, stride=2, output_padding=1)", "x(2, 4, 3, 3)"),
    ("nn.LazyConvTranspose3d(3, 2)", "x(1, 2, 2, 3, 2)"),
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_convolution_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), [pair for pair in LAYERS if "Lazy" not in pair[0]])
def test_a_copied_or_pickled_convolution_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


@on_both
def test_settings_no_convolution_has_are_refused(torch):
    nn = torch.nn
    return [
        attempt(lambda: nn.Conv2d(3, 4, 3, groups=2)),
        attempt(lambda: nn.Conv2d(4, 3, 3, groups=2)),
        attempt(lambda: nn.Conv2d(4, 4, 3, groups=0)),
        attempt(lambda: nn.Conv2d(4, 4, 3, stride=2, padding="same")),
        attempt(lambda: nn.ConvTranspose2d(4, 4, 3, padding_mode="reflect")),
    ]


def test_unknown_paddings_are_refused():
    for arguments in ({"padding": "some"}, {"padding_mode": "some"}):
        with pytest.raises(ValueError, match="one of"):
            pullback.nn.Conv2d(4, 4, 3, **arguments)


@on_both
def test_an_output_size_out_of_reach_is_refused(torch):
    layer = torch.nn.ConvTranspose2d(2, 2, 3, stride=2)
    images = torch.ones(1, 2, 3, 3)
    return [attempt(lambda s=size: layer(images, s)) for size in ([6, 7], [7, 9], [7], [1, 2, 3, 7, 7])]


@on_both
def test_a_lazy_convolution_tells_what_it_expects(torch):
    torch.nn.LazyConv2d(4, 3)(torch.ones(3, 3))


@on_both
def test_padding_of_each_side_is_kept_as_torch_keeps_it(torch):
    nn = torch.nn
    layers = [
        nn.Conv2d(1, 1, (2, 3), padding="same"),
        nn.Conv2d(1, 1, 3, padding=(1, 2)),
        nn.Conv1d(1, 1, 3, padding="valid"),
    ]
    return [layer._reversed_padding_repeated_twice for layer in layers]


NOTHING = [(0, 2, 3), (2, 0, 3), (0, 0, 3), (2, 2, 0), (0, 2, 0), (2, 0, 0)]
"""Numbers of images, channels and channels made."""


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("biased", [False, True])
def test_convolutions_of_nothing(name, padding, biased):
    def program(torch):
        call, ndim = getattr(torch.nn.functional, name), int(name[-2])
        for images, channels, made in NOTHING:
            if (ours := name.startswith("conv_transpose")) and images and not made:
                continue  # oneDNN says that it has no algorithm for it
            x = torch.ones(images, channels, *[5] * ndim, requires_grad=True)
            sizes = (channels, made) if ours else (made, channels)
            weight = torch.ones(*sizes, *[3] * ndim, requires_grad=True)
            operands = (x, weight, torch.ones(made, requires_grad=True)) if biased else (x, weight)

            def derived(operands=operands):
                out = call(*operands, padding=padding)
                grads = torch.autograd.grad(out.sum(), operands, create_graph=True)
                tangent = torch.func.jvp(lambda *given: call(*given, padding=padding), operands, operands)[1]
                return type(out.grad_fn).__name__, out.detach(), [g.detach() for g in grads], tangent.detach()

            seen = attempt(derived)
            yield (seen.kind, seen.text.partition("\n")[0]) if hasattr(seen, "text") else seen

    same(lambda torch: list(program(torch)))


def test_transposed_convolutions_of_no_images_may_make_no_pixels():
    def program(torch):
        for name, ndim in (("conv_transpose1d", 1), ("conv_transpose2d", 2), ("conv_transpose3d", 3)):
            x, weight = torch.ones(0, 2, *[0] * ndim), torch.ones(2, 3, *[3] * ndim)
            yield getattr(torch.nn.functional, name)(x, weight, padding=1).shape

    same(lambda torch: list(program(torch)))
