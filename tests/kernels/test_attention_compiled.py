"""Compiled attention beside its NumPy counterpart, which makes the whole matrix of scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.kernels.compiled import room
from pullback.kernels.numpy.sequence import attention as numpy_attention

pytestmark = pytest.mark.skipif(room("runtime.calls") is None, reason="kernels are not compiled here")


def numbers(shape, dtype, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@settings(deadline=None, max_examples=50)
@given(
    batches=st.integers(1, 2), shared=st.integers(1, 3), groups=st.integers(1, 2), queries=st.integers(1, 70),
    keys=st.integers(1, 90), features=st.sampled_from([1, 8, 16, 20, 32, 48, 80]), dtype=st.sampled_from(["f", "d"]),
    causal=st.booleans(), mask=st.sampled_from(["none", "numbers", "blind", "one row"]), turned=st.booleans(),
)  # fmt: skip
def test_attention_and_its_gradients_are_numpys(
    batches, shared, groups, queries, keys, features, dtype, causal, mask, turned
):
    heads = shared * groups
    q = numbers((batches, queries, heads, features), dtype, 0).transpose(0, 2, 1, 3)
    q = q if turned else np.ascontiguousarray(q)
    k, v = numbers((batches, groups, keys, features), dtype, 1), numbers((batches, groups, keys, features), dtype, 2)
    grad = numbers((batches, heads, queries, features), dtype, 3)
    bias = None
    if mask != "none" and not causal:
        bias = numbers((1, heads, queries, keys) if mask != "one row" else (keys,), dtype, 4)
        if mask == "blind":
            bias[:, :, 0] = -np.inf
    scale = features**-0.5

    def everything():
        out, sums = numpy_attention.attention(q, k, v, bias, causal, scale)
        return out, sums, *numpy_attention.attention_backward(grad, q, k, v, out, sums, bias, causal, scale)

    assert room("attention").forward(q, k, v, bias, causal, scale) is not None
    compiled = everything()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_attention, "room", lambda name: None)
        expected = everything()
    tolerance = 1e-4 if dtype == "f" else 1e-11
    for actual, wanted in zip(compiled, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)
        assert actual.dtype == wanted.dtype


def test_answers_lie_in_memory_as_the_queries_do():
    q = numbers((2, 5, 3, 16), "float32", 0).transpose(0, 2, 1, 3)
    out, _ = room("attention").forward(q, q, q, None, False, 0.25)
    assert out.strides == q.strides


@pytest.mark.parametrize(
    "change",
    [lambda q: q[..., ::2], lambda q: q.astype("float16"), lambda q: q[:, :, :0], lambda q: q[0]],
    ids=["strided features", "half", "no queries", "three dimensions"],
)
def test_what_the_kernel_does_not_take_is_left_to_numpy(change):
    q = change(numbers((2, 3, 4, 32), "float32", 0))
    assert room("attention").forward(q, q, q, None, False, 1.0) is None


def test_no_matrix_of_scores_is_made():
    import pullback

    q = numbers((1, 8, 2048, 64), "float32", 0)
    room("attention").forward(q, q, q, None, True, 0.125)
    pullback.empty_cache()
    before = pullback.memory_stats()["live"]
    room("runtime.buffers").buffers.counters["peak"].value = before
    room("attention").forward(q, q, q, None, True, 0.125)
    scores = 8 * 2048 * 2048 * 4
    assert pullback.memory_stats()["peak"] - before < scores / 10
