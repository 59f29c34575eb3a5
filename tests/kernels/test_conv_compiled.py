"""Compiled convolutions beside NumPy's: any stride, padding, dilation and groups, in one to three dimensions."""

import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pullback.kernels import workers
from pullback.kernels.compiled import room
from pullback.kernels.numpy.conv import columns as conv
from tests.kernels.edge_of_memory import at_the_edge

pytestmark = pytest.mark.skipif(room("conv.plan") is None, reason="kernels are not compiled here")


@st.composite
def geometries(draw):
    """The shapes of input and weight, and stride, padding, dilation and groups."""
    ndim = draw(st.integers(1, 3))

    def each(low, high):
        return draw(st.tuples(*[st.integers(low, high)] * ndim))

    kernel, stride, padding, dilation = each(1, 4), each(1, 3), each(0, 4), each(1, 3)
    sizes = each(1, 26 if ndim < 3 else 9)
    spans = zip(sizes, padding, kernel, dilation, strict=True)
    assume(all(n + 2 * p >= d * (k - 1) + 1 for n, p, k, d in spans))
    groups = draw(st.sampled_from([1, 1, 1, 2, 3, 7]))
    each_in, each_out = draw(st.sampled_from([1, 2, 5, 8])), draw(st.sampled_from([1, 2, 3, 4, 9, 17]))
    x = (draw(st.integers(1, 4)), each_in * groups, *sizes)
    return x, (each_out * groups, each_in, *kernel), stride, padding, dilation, groups


def close(made, expected):
    tolerance = 2e-5 if expected.dtype == np.float32 else 1e-12
    assert made.dtype == expected.dtype and made.shape == expected.shape
    np.testing.assert_allclose(made, expected, rtol=0, atol=tolerance * np.abs(expected).max(initial=1.0))


def three_products(x, w, g, stride, padding, dilation, groups, kernels):
    """The output and both gradients."""
    forward, backward_input, backward_weight = kernels
    settings = (stride, padding, dilation, groups)
    return (
        forward(x, w, *settings),
        backward_input(g, w, x.shape[2:], *settings),
        backward_weight(x, g, w.shape[2:], *settings),
    )


NUMPY = (conv.convolve_numpy, conv.convolve_input_numpy, conv.convolve_weight_numpy)
COMPILED = (conv.convolve, conv.convolve_input, conv.convolve_weight)


@settings(max_examples=200, deadline=None)
@given(geometry=geometries(), dtype=st.sampled_from("fd"))
def test_output_and_gradients_of_any_geometry(geometry, dtype):
    x_shape, w_shape, *rest = geometry
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(x_shape).astype(dtype), rng.standard_normal(w_shape).astype(dtype)
    counts = conv.window_counts(x_shape[2:], w_shape[2:], *rest[:3])
    g = rng.standard_normal((x_shape[0], w_shape[0], *counts)).astype(dtype)
    expected = three_products(x, w, g, *rest, NUMPY)
    for made, wanted in zip(three_products(x, w, g, *rest, COMPILED), expected, strict=True):
        close(made, wanted)


@settings(max_examples=60, deadline=None)
@given(geometry=geometries(), dtype=st.sampled_from("fd"))
def test_a_bias_is_added_to_each_channel(geometry, dtype):
    x_shape, w_shape, *rest = geometry
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(x_shape).astype(dtype), rng.standard_normal(w_shape).astype(dtype)
    bias = rng.standard_normal(w_shape[0]).astype(dtype)
    around = (1,) * (len(x_shape) - 2)
    close(conv.convolve(x, w, *rest, bias), conv.convolve_numpy(x, w, *rest) + bias.reshape(-1, *around))
    g = rng.standard_normal((x_shape[0], w_shape[0], *conv.window_counts(x_shape[2:], w_shape[2:], *rest[:3])))
    g, bias = g.astype(dtype), rng.standard_normal(x_shape[1]).astype(dtype)
    made = conv.convolve_input(g, w, x_shape[2:], *rest, bias)
    close(made, conv.convolve_input_numpy(g, w, x_shape[2:], *rest) + bias.reshape(-1, *around))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is protected the way of Linux")
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("groups", [1, 6])
def test_nothing_beyond_the_arrays_is_read(stride, padding, groups):
    rng = np.random.default_rng(0)
    x = at_the_edge(rng.standard_normal((2, 6, 19, 21)).astype("f"))
    w = at_the_edge(rng.standard_normal((12, 6 // groups, 3, 3)).astype("f"))
    rest = (stride,) * 2, (padding,) * 2, (1, 1), groups
    expected = conv.convolve_numpy(x, w, *rest)
    g = at_the_edge(rng.standard_normal(expected.shape).astype("f"))
    wanted = three_products(x, w, g, *rest, NUMPY)
    for made, one in zip(three_products(x, w, g, *rest, COMPILED), wanted, strict=True):
        close(made, one)


def test_inf_and_nan_reach_the_windows_they_are_in_and_no_other():
    x, w = np.ones((1, 3, 30, 30), np.float32), np.ones((9, 3, 3, 3), np.float32)
    x[0, 1, 7, 29], x[0, 2, 20, 0] = np.inf, np.nan
    rest = (1, 1), (1, 1), (1, 1), 1
    np.testing.assert_array_equal(conv.convolve(x, w, *rest), conv.convolve_numpy(x, w, *rest))


def test_images_whose_channels_lie_last():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 11, 12, 5)).astype("f").transpose(0, 3, 1, 2)
    w = rng.standard_normal((4, 3, 3, 5)).astype("f").transpose(0, 3, 1, 2)
    rest = (2, 1), (1, 0), (1, 2), 1
    close(conv.convolve(x, w, *rest), conv.convolve_numpy(np.ascontiguousarray(x), np.ascontiguousarray(w), *rest))


def test_half_precision_is_summed_in_single():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 5, 9, 9)).astype("e"), rng.standard_normal((4, 5, 3, 3)).astype("e")
    rest = (1, 1), (1, 1), (1, 1), 1
    made = conv.convolve(x, w, *rest)
    expected = conv.convolve_numpy(x.astype("f"), w.astype("f"), *rest)
    assert made.dtype == np.float16
    np.testing.assert_allclose(made, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("wrong", ["channels", "batch", "groups", "grad channels"])
def test_shapes_that_do_not_fit_are_refused(wrong):
    x, w, g = np.ones((2, 4, 8, 8), "f"), np.ones((6, 2, 3, 3), "f"), np.ones((2, 6, 6, 6), "f")
    rest = (1, 1), (0, 0), (1, 1), 2
    with pytest.raises(ValueError, match="do not fit"):
        if wrong == "channels":
            conv.convolve(x[:, :3], w, *rest)
        elif wrong == "batch":
            conv.convolve_weight(x, g[:1], (3, 3), *rest)
        elif wrong == "groups":
            conv.convolve(x[:, :2], w[:3, :1], *rest)
        else:
            conv.convolve_input(g[:, :4], w, (8, 8), *rest)


@pytest.mark.parametrize("threads", [1, 3])
def test_output_and_gradient_of_the_input_are_the_same_for_any_number_of_threads(threads):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 32, 30, 30)).astype("f"), rng.standard_normal((64, 32, 3, 3)).astype("f")
    g = rng.standard_normal((3, 64, 30, 30)).astype("f")
    rest = (1, 1), (1, 1), (1, 1), 1

    def both():
        return conv.convolve(x, w, *rest).tobytes(), conv.convolve_input(g, w, (30, 30), *rest).tobytes()

    expected, before = both(), workers.threads()
    try:
        workers.set_threads(threads)
        assert both() == expected
    finally:
        workers.set_threads(before)


@settings(max_examples=150, deadline=None)
@given(geometry=geometries(), dtype=st.sampled_from("fd"), batch=st.sampled_from([1, 2, 4, 6, 8, 16]),
       cutting=st.tuples(*[st.booleans()] * 3), whole=st.booleans())  # fmt: skip
def test_every_layout_and_every_cut_gives_the_same(geometry, dtype, batch, cutting, whole):
    from pullback.kernels.jit.conv import cut as conv_cut
    from pullback.kernels.jit.conv import plan as compiled

    x_shape, w_shape = geometry[:2]
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((batch, *x_shape[1:])).astype(dtype), rng.standard_normal(w_shape).astype(dtype)
    g = rng.standard_normal((batch, w_shape[0], *conv.window_counts(x_shape[2:], w_shape[2:], *geometry[2:5])))
    together = min(batch & -batch, conv_cut.lanes("double"))

    def forced(element, channels, problems, work):
        at_once = [one._replace(batch=batch if whole else together) for one in problems]
        cuts = [[conv_cut.spans_of(*both) for both in zip(one.axes, cutting, strict=True)] for one in problems]
        both = list(zip(at_once, cuts, strict=True))
        assume(all(min(conv_cut.depths_of(*one)) >= conv_cut.blocks_of(*one) for one in both))
        return conv_cut.laid_out(channels, together, both, work), both

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "arranged_for", forced)
        for plan in (compiled.plan_forward, compiled.plan_input):
            plan.cache_clear()
        made = three_products(x, w, g.astype(dtype), *geometry[2:], COMPILED)[:2]
    for plan in (compiled.plan_forward, compiled.plan_input):
        plan.cache_clear()
    expected = three_products(x, w, g.astype(dtype), *geometry[2:], NUMPY)[:2]
    for one, wanted in zip(made, expected, strict=True):
        close(one, wanted)


@settings(max_examples=100, deadline=None)
@given(geometry=geometries(), dtype=st.sampled_from("fd"), listed=st.booleans(), deep=st.sampled_from([5, 192]))
def test_gradients_of_weights_by_turned_products(geometry, dtype, listed, deep):
    from pullback.kernels.jit.conv import plan as compiled
    from pullback.kernels.jit.conv import weight as conv_weight

    x_shape, w_shape = geometry[:2]
    rng = np.random.default_rng(0)
    counts = conv.window_counts(x_shape[2:], w_shape[2:], *geometry[2:5])
    x, g = (rng.standard_normal(shape).astype(dtype) for shape in (x_shape, (x_shape[0], w_shape[0], *counts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conv_weight, "is_suited", lambda *shape: True)
        patch.setattr(conv_weight, "is_listed", lambda *shape: listed)
        patch.setattr(conv_weight, "DEPTH", deep)
        compiled.plan_weight.cache_clear()
        made = conv.convolve_weight(x, g, w_shape[2:], *geometry[2:])
    compiled.plan_weight.cache_clear()
    close(made, conv.convolve_weight_numpy(x, g, w_shape[2:], *geometry[2:]))
