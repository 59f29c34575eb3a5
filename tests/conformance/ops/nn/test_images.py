"""What all functions of images share: half precision, channels that lie last, and tensors laid out in any way."""

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import on_both
from tests.conformance.ops.spatial import lines

CALLS = lines("""
F.conv2d(x, w)
F.conv2d(x, w[:, :1], padding=1, groups=4)
F.conv_transpose2d(x, w, stride=2)
F.max_pool2d(x, 3, 2, 1)
F.avg_pool2d(x, 3, 2, 1)
F.adaptive_avg_pool2d(x, 3)
F.adaptive_avg_pool2d(x, 4)
F.adaptive_max_pool2d(x, 3)
F.interpolate(x, scale_factor=2)
F.interpolate(x, size=(5, 11), mode='bilinear')
F.interpolate(x, size=(5, 11), mode='bicubic')
F.pad(x, (1, 1))
F.pad(x, (1, 1, 2, 0), mode='reflect')
F.pixel_unshuffle(x, 2)
F.channel_shuffle(x, 2)
""")


def images(torch, dtype="float64"):
    """A batch of images and a weight."""
    x = torch.linspace(-1, 1, 2 * 4 * 8 * 8, dtype=torch.float64).reshape(2, 4, 8, 8)
    w = torch.linspace(-1, 1, 4 * 4 * 3 * 3, dtype=torch.float64).reshape(4, 4, 3, 3)
    return (x * x * 3 - x).sin().to(getattr(torch, dtype)), w.cos().to(getattr(torch, dtype))


def evaluated(torch, call, x, w):
    """A call with its gradient."""
    x = x.detach().requires_grad_()
    out = eval(call, {"F": torch.nn.functional, "x": x, "w": w})
    (grad,) = torch.autograd.grad((out.double() ** 2).sum(), x)
    return out, grad


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("call", CALLS)
def test_half_precision_is_torchs_to_its_last_digits(call, dtype):
    (expected, expected_grad), (found, found_grad) = [
        evaluated(module, call, *images(module, dtype)) for module in (peer, pullback)
    ]
    assert str(found.dtype) == str(expected.dtype) and str(found_grad.dtype) == str(expected_grad.dtype)
    digits = 2e-3 if dtype == "float16" else 1.6e-2
    np.testing.assert_allclose(found.double().tolist(), expected.double().tolist(), digits, digits)
    np.testing.assert_allclose(found_grad.double().tolist(), expected_grad.double().tolist(), 3 * digits, 10 * digits)


@pytest.mark.parametrize("call", CALLS)
def test_channels_that_lie_last_stay_last(call):
    def program(torch):
        x, w = images(torch)
        out, grad = evaluated(torch, call, x.to(memory_format=torch.channels_last), w)
        return out, out.is_contiguous(memory_format=torch.channels_last), out.stride(), grad

    on_both(program)()


@pytest.mark.parametrize("call", CALLS)
def test_any_layout_gives_the_same_numbers(call):
    def program(torch):
        x, w = images(torch)
        transposed = x.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0)
        stepped = torch.stack([x, x + 1], -1)[..., 0]
        return [evaluated(torch, call, view, w.flip(3).flip(3)) for view in (transposed, stepped)]

    on_both(program)()
