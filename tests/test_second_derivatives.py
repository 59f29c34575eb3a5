"""Second derivatives of every op in all four orders, from the registry. Needs no torch.

The derivative of the derivative along two directions, computed backwards and forwards in every combination, is the
difference of first derivatives on either side. What a tangent rule may get wrong shows only here: that it takes the
transposed Jacobian, or what a node saved for a constant.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import func
from tests.op_samples import Sampled, outputs_of, sample, sampled_ops

STEP = 1e-6
NO_DERIVATIVE = ("is not implemented", "does not support it because it has not been implemented")
ORDERS = ("backward of backward", "forward of backward", "backward of forward", "forward of forward")
# Ops whose derivative is a convention, or that public functions call on less than they take.
CONVENTIONS = {
    "div_mode": "the derivative of a rounded quotient is zero between the steps",
    "nextafter": "moves with self though it is a neighbouring number",
    "weight_norm_op": "the norms it also returns are for its backward alone; see the program weight_norm below",
}
NOT_COMPLEX = {
    "prelu_kernel": "prelu takes floats only",
    "squared_difference": "mse_loss takes floats only",
    "soft_margin": "soft_margin_loss takes floats only",
    "euclidean_distance": "cdist takes floats only",
    "grouped": "grouped_mm takes floats only",
    "lstm_layer": "layers of an LSTM take floats only",
}


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def numbers(shape: tuple[int, ...], seed: int, complex_valued: bool = False) -> np.ndarray:
    generator = np.random.default_rng(seed)
    out = generator.uniform(-0.5, 0.5, shape)
    return np.asarray(out + 1j * generator.uniform(-0.5, 0.5, shape) if complex_valued else out)


def tensors(arrays: list[np.ndarray]) -> tuple[Any, ...]:
    return tuple([torch.from_numpy(np.array(array)) for array in arrays])


def as_number(outputs: list[Any]) -> Any:
    """All outputs as one real number, which bends even where the op does not."""
    total = 0
    for i, out in enumerate(outputs):
        parts = (out.real, out.imag) if out.is_complex() else (out,)
        for j, part in enumerate(parts):
            weight = torch.from_numpy(np.asarray(1 + numbers(tuple(part.shape), 10 * i + j)))
            total = total + (part * weight).sum() + 0.5 * (part * part).sum()
    return total


def inner(gradients: Any, directions: Any) -> Any:
    """The derivative along directions, from gradients."""
    total = 0
    for gradient, direction in zip(gradients, directions, strict=True):
        products = (gradient.conj() * direction).sum()
        total = total + (products.real if products.is_complex() else products)
    return total


def as_function(sampled: Sampled, complex_valued: bool) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """An op as a function of the inputs that have a derivative, and the point to look at."""
    names = sampled.moving()
    shapes = {name: value if isinstance(value := sampled.arguments[name], list) else None for name in names}
    point = [item for name in names for item in (shapes[name] or [sampled.arguments[name]])]
    if complex_valued:
        point = [array + 0.3j * numbers(array.shape, 90 + i) for i, array in enumerate(point)]

    def function(*inputs: Any) -> Any:
        rest = iter(inputs)
        given = {name: next(rest) if (v := shapes[name]) is None else [next(rest) for _ in v] for name in names}
        found = outputs_of(sampled.call(given))
        return as_number([out for out in found if out.dtype.is_floating_point or out.is_complex()])

    return function, point


def second_derivatives(function: Callable[..., Any], point: list[np.ndarray]) -> tuple[dict[str, Any], float]:
    """The second derivative along two directions in every order, or the error; and what it should be."""
    every = tuple(range(len(point)))
    first, second = (
        [numbers(x.shape, seed + i, np.iscomplexobj(x)) for i, x in enumerate(point)] for seed in (50, 150)
    )
    along, across = tensors(first), tensors(second)

    def backward(*inputs: Any) -> Any:
        return inner(func.grad(function, every)(*inputs), along)

    def forward(*inputs: Any) -> Any:
        return func.jvp(function, inputs, along)[1]

    def slope(step: float) -> float:
        return float(backward(*tensors([x + step * v for x, v in zip(point, second, strict=True)])))

    found: dict[str, Any] = {}
    for name, once in (("backward", backward), ("forward", forward)):
        try:
            found[f"backward of {name}"] = float(inner(func.grad(once, every)(*tensors(point)), across))
        except (NotImplementedError, RuntimeError) as error:
            found[f"backward of {name}"] = error
        try:
            found[f"forward of {name}"] = float(func.jvp(once, tensors(point), across)[1])
        except (NotImplementedError, RuntimeError) as error:
            found[f"forward of {name}"] = error
    return found, (slope(STEP) - slope(-STEP)) / (2 * STEP)


def check(found: dict[str, Any], expected: float) -> None:
    for order in ORDERS:
        value = found[order]
        if isinstance(value, Exception):
            if not any(text in str(value) for text in NO_DERIVATIVE):
                raise value
        else:
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6, err_msg=order)


@pytest.mark.parametrize("complex_valued", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("key", sampled_ops())
def test_second_derivatives_are_the_difference_of_first_ones(key: str, complex_valued: bool) -> None:
    if key in CONVENTIONS or (complex_valued and key in NOT_COMPLEX):
        pytest.skip(CONVENTIONS.get(key) or NOT_COMPLEX[key])
    sampled = sample(key)
    assert sampled is not None
    function, point = as_function(sampled, complex_valued)
    try:
        func.grad(function, tuple(range(len(point))))(*tensors(point))
    except Exception as error:
        if complex_valued or any(text in str(error) for text in NO_DERIVATIVE):
            pytest.skip(f"no first derivative: {error}")
        raise
    check(*second_derivatives(function, point))


# ------------------------------------------------------------------ programs: functions made of several ops

X, Y = numbers((3, 4), 1) * 2, numbers((3, 4), 2) * 2
CLASSES = [1, 3, 0]


def other() -> Any:
    return torch.from_numpy(Y.copy())


def clamped_in_place(x: Any) -> Any:
    square = x * x
    with torch.no_grad():
        square.clamp_(min=1e-9)  # it changes nothing here, but nobody records it
    return square.sqrt().sum() + (square * x).sum()


def filled(x: Any) -> Any:
    out = torch.zeros(3, 4, dtype=torch.float64)
    out[0] = x[0] ** 2
    seen = out[1]
    out[1:] += x[1:] * x[:1]
    seen *= x[2]
    return (out * out * x).sum()


def overwritten(x: Any) -> Any:
    out, last = x * 1, x[2] * 1
    out[1].mul_(x[0])
    out[2:] = x[:1].tanh()
    last[:2].exp_()
    out[0].exp_()
    return (out * out).sum() + (last * last).sum()


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: (torch.softmax(x, -1) * other()).sum(),
    "log_softmax": lambda x: (torch.log_softmax(x, 0) * other()).sum(),
    "cosine_similarity": lambda x: F.cosine_similarity(x, other()).sum(),
    "gaussian_nll_loss": lambda x: F.gaussian_nll_loss(x, other(), x * x + 0.5),
    "weight_norm": lambda x: (torch._weight_norm(x, other()[:, :1]) ** 2 * other()).sum(),
    "weight_norm's length": lambda x: (torch._weight_norm(other(), x[:, :1]) ** 3).sum(),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor(CLASSES)),
    "weighted cross_entropy": lambda x: F.cross_entropy(x, torch.tensor(CLASSES), weight=other()[0].abs()),
    "smoothed cross_entropy": lambda x: F.cross_entropy(x, torch.tensor(CLASSES), label_smoothing=0.1),
    "cross_entropy of images": lambda x: F.cross_entropy(x.reshape(1, 3, 2, 2), torch.tensor([[[0, 1], [2, 0]]])),
    "lp_pool1d": lambda x: F.lp_pool1d(x[None].abs() + 0.1, 3.0, 2).sum(),
    "lp_pool2d": lambda x: F.lp_pool2d(x[None, None] + 2, 2.0, 2).sum(),
    "local_response_norm": lambda x: (F.local_response_norm(x[None], 3) * other()).sum(),
    "prod": lambda x: x.prod() + x.prod(1).sum(),
    "prod with a zero": lambda x: (x * (torch.arange(12.0, dtype=torch.float64).reshape(3, 4) > 0)).prod(1).sum(),
    "cumprod": lambda x: (x.cumprod(1) * other()).sum(),
    "layer_norm": lambda x: (F.layer_norm(x, (4,)) * other()).sum(),
    "batch_norm": lambda x: (F.batch_norm(x, None, None, training=True) * other()).sum(),
    "group_norm": lambda x: (F.group_norm(x[None], 3)[0] * other()).sum(),
    "rms_norm": lambda x: (F.rms_norm(x, (4,)) * other()).sum(),
    "normalize": lambda x: F.normalize(x).sum(),
    "pairwise_distance": lambda x: F.pairwise_distance(x, other()).sum(),
    "attention": lambda x: (F.scaled_dot_product_attention(x[None], other()[None], x[None])[0] * other()).sum(),
    "avg_pool1d": lambda x: (F.avg_pool1d(x[None], 2) ** 3).sum(),
    "adaptive_avg_pool1d": lambda x: (F.adaptive_avg_pool1d(x[None], 2) ** 3).sum(),
    "interpolate": lambda x: (F.interpolate(x[None], 6, mode="linear") ** 3).sum(),
    "reflecting pad": lambda x: (F.pad(x[None], (1, 2), mode="reflect") ** 3).sum(),
    "circular pad": lambda x: (F.pad(x[None], (1, 2), mode="circular") ** 3).sum(),
    "diff of order 0": lambda x: (torch.diff(x, 0) ** 3).sum(),
    "median of a number": lambda x: (x.sum() ** 2).median(),
    "svdvals": lambda x: (torch.linalg.svdvals(x) ** 3).sum(),
    "an unrecorded write": clamped_in_place,
    "writes into zeros": filled,
    "writes through views": overwritten,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_of_programs(name: str) -> None:
    check(*second_derivatives(PROGRAMS[name], [X]))


def matrices(function: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    return {
        "hessian": func.hessian(function),
        "jacrev of jacrev": func.jacrev(func.jacrev(function)),
        "jacrev of jacfwd": func.jacrev(func.jacfwd(function)),
        "jacfwd of jacfwd": func.jacfwd(func.jacfwd(function)),
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_ways_to_the_hessian_agree(name: str) -> None:
    direction = tensors([numbers((3, 4), 5)])[0]
    (point,) = tensors([X])
    expected = func.grad(lambda x: (func.grad(PROGRAMS[name])(x) * direction).sum())(point).numpy()
    for way, matrix in matrices(PROGRAMS[name]).items():
        found = matrix(point).reshape(12, 12).numpy()
        np.testing.assert_allclose(found, found.T, rtol=1e-6, atol=1e-8, err_msg=way)
        np.testing.assert_allclose(
            found @ direction.numpy().reshape(-1), expected.reshape(-1), rtol=1e-6, atol=1e-8, err_msg=way
        )


# torch refuses these inside vmap: they look at values, or write what is batched into what is not.
NOT_IN_VMAP = {"gaussian_nll_loss", "writes into zeros"}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NOT_IN_VMAP])
def test_first_derivatives_inside_vmap_are_those_of_each_entry(name: str) -> None:
    points, directions = tensors([np.stack([X, Y]), np.stack([Y, X])])
    for derivative in (
        lambda x, v: func.grad(PROGRAMS[name])(x),
        lambda x, v: func.jvp(PROGRAMS[name], (x,), (v,))[1],
    ):
        found = func.vmap(derivative)(points, directions).numpy()
        expected = [derivative(x, v).numpy() for x, v in zip(points, directions, strict=True)]
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-6, atol=1e-9)
