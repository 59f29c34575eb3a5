"""NumPy's functions on tensors."""

import numpy as np
import pytest

import pullback
from tests.conformance.both import on_both


@pytest.mark.parametrize(
    "expression",
    ["np.sin(x)", "np.add(x, 1)", "np.maximum(x, 0)", "np.exp(x.double())", "np.greater(x, 1)", "np.isnan(x)",
     "np.sqrt(x.int())", "np.modf(x)", "np.add.reduce(x)", "np.float64(2) * x", "x * np.float64(2)", "np.clip(x, 0, 1)",
     "np.reshape(x, (2, 1))", "np.cumsum(x)", "np.argmax(x)", "np.matmul(x, x)", "np.squeeze(x)", "np.round(x)",
     "np.split(x, 2)", "np.allclose(x, [1, 2])", "x * np.array([1.0, 2.0])"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_a_function_of_numpy_gives_what_it_gives_for_torchs_tensors(expression):
    on_both(lambda torch: quiet(expression, torch.tensor([1.0, 2.0])))()


def quiet(expression, x):
    """NumPy warns about torch's older protocol."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(expression, {"np": np, "x": x})


@pytest.mark.parametrize(
    "expression",
    ["np.concatenate([x, x])", "np.stack([x, x])", "np.vstack([x, x])", "np.where(x > 1, x, 0)", "np.sum(x)",
    "np.mean(x)",
     "np.std(x)", "np.zeros_like(x)", "np.sort(x)", "np.dot(x, x)", "np.linalg.norm(x)", "np.fft.fft(x)",
     "np.unique(x)",
     "np.array([1.0, 2.0]) + x", "np.multiply.outer(x, x)", "np.einsum('i,i', x, x)", "np.transpose(x)"],
)  # fmt: skip
def test_what_numpy_computes_of_tensors_is_a_tensor_with_numpys_values(expression):
    array = np.array([1.0, 2.0], np.float32)
    found = eval(expression, {"np": np, "x": pullback.tensor(array)})
    expected = eval(expression, {"np": np, "x": array})
    assert isinstance(found, pullback.Tensor)
    assert found.numpy().dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "expression",
    ["np.sin(x)", "np.array([1.0, 2.0, 3.0]) * x", "np.concatenate([x, x])", "np.stack([x, np.ones(3)], axis=1)",
    "np.sum(x)",
     "np.mean(x, axis=0, keepdims=True)", "np.std(x)", "np.var(x, ddof=1)", "np.where(x > 1, x, 0.0)",
     "np.clip(x, 0, 1.5)",
     "np.transpose(np.reshape(x, (3, 1)))", "np.einsum('i,i', x, x)", "np.max(x)", "np.cumsum(x, axis=0)",
     "np.expand_dims(x, 0)", "np.dot(x, x)"],
)  # fmt: skip
def test_gradients_pass_through_numpys_functions(expression):
    array = np.array([0.5, 1.25, 2.0])
    x = pullback.tensor(array, requires_grad=True)
    found = eval(expression, {"np": np, "x": x})
    np.testing.assert_allclose(found.detach().numpy(), eval(expression, {"np": np, "x": array}))
    found.sum().backward()
    step = 1e-6
    for i in range(3):
        moved = array.copy()
        moved[i] += step
        there = np.sum(eval(expression, {"np": np, "x": moved}))
        here = np.sum(eval(expression, {"np": np, "x": array}))
        assert abs((there - here) / step - x.grad[i].item()) < 1e-4


def test_a_function_without_an_op_says_that_gradients_do_not_pass():
    x = pullback.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        np.linalg.norm(x)


def test_facts_are_told_whether_gradients_are_wanted_or_not():
    x = pullback.ones(2, 3, requires_grad=True)
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((2, 3), 2, 6)


def test_out_may_be_a_tensor():
    out = pullback.zeros(2)
    assert np.add(pullback.ones(2), 1, out=out) is out
    assert out.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
@pytest.mark.parametrize("other", ["np.array(2.0)", "np.array(2)", "np.float64(2)", "np.ones(3, int)", "np.ones(3)"])
@pytest.mark.parametrize("sign", ["+", "*", "/", "==", "<"])
def test_an_array_beside_a_tensor_counts_as_numpy_counts_it(dtype, other, sign):
    def program(torch):
        x = torch.ones(3, dtype=getattr(torch, dtype))
        try:
            return quiet(f"x {sign} {other}", x)
        except (TypeError, NotImplementedError):
            return None

    if sign == "<" and "np.float64" not in other:
        pytest.skip("torch refuses to order a tensor and an array")
    on_both(program)()
