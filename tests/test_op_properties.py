"""What must hold for every op of the registry, whatever it computes. Needs no torch."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback._op import apply
from pullback._op.declare import registry
from pullback.autograd import forward_ad
from tests.op_samples import Sampled, as_tensor, is_sparse, outputs_of, sample, sampled_ops

STEP = 1e-6
NO_DERIVATIVE = ("is not implemented", "does not support it because it has not been implemented", "out of scope")
EVERY = int(os.environ.get("PULLBACK_SAMPLED_OPS", "1"))
"""4 takes every fourth op, where there is no time for all of them."""
DIFFERENTIABLE = sampled_ops()[::EVERY]
SAMPLED = sampled_ops(False)[::EVERY]
# Ops that are constant, or have a derivative only by convention: their finite differences say something else.
CONVENTIONS = {
    "div_mode": "the derivative of a rounded quotient is zero between the steps and of remainder-like use elsewhere",
    "nextafter": "moves with self though it is a neighbouring number",
    "weight_norm_op": "the norms it also returns are for its backward alone",
}


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def flat(tensors: list[Any]) -> list[Any]:
    return [item for tensor in tensors for item in (tensor if isinstance(tensor, list) else [tensor])]


def fixed(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).uniform(0.5, 1.5, shape))


def moved(sampled: Sampled, directions: list[np.ndarray], step: float) -> dict[str, Any]:
    """The moving inputs, each a step along its direction."""
    rest = iter(directions)

    def shift(value: Any) -> Any:
        return [shift(item) for item in value] if isinstance(value, list) else np.asarray(value + step * next(rest))

    return {name: shift(sampled.arguments[name]) for name in sampled.moving()}


def as_leaves(arrays: dict[str, Any]) -> dict[str, Any]:
    def make(value: Any) -> Any:
        if isinstance(value, list):
            return [make(item) for item in value]
        return pullback.tensor(value, requires_grad=True)

    return {name: make(value) for name, value in arrays.items()}


def real_outputs(sampled: Sampled, tensors: dict[str, Any]) -> list[Any]:
    """The outputs that hold real or complex floating point numbers, as pairs of real ones."""
    found = [out for out in outputs_of(sampled.call(tensors)) if out.dtype.is_floating_point or out.is_complex()]
    return [pullback.view_as_real(out) if out.is_complex() else out for out in found]


def weighted(sampled: Sampled, tensors: dict[str, Any]) -> Any:
    """The outputs as one number: each element times a fixed weight, added up."""
    total = 0
    for i, out in enumerate(real_outputs(sampled, tensors)):
        total = total + (out * pullback.from_numpy(fixed(tuple(out.shape), 10 + i))).sum()
    return total


def difference(function: Callable[[dict[str, Any]], np.ndarray], sampled: Sampled, directions: list[Any]) -> np.ndarray:
    """The derivative of a function of the inputs along the directions, from its values on either side."""
    ahead, behind = (function(moved(sampled, directions, step)) for step in (STEP, -STEP))
    return (ahead - behind) / (2 * STEP)


def directions_of(sampled: Sampled) -> list[np.ndarray]:
    arrays = flat([sampled.arguments[name] for name in sampled.moving()])
    return [np.asarray(fixed(array.shape, 50 + i) - 1) for i, array in enumerate(arrays)]


def skip_without_derivative(error: Exception) -> None:
    if any(text in str(error) for text in NO_DERIVATIVE):
        pytest.skip(f"as in torch: {error}")
    raise error


def gradients(sampled: Sampled, leaves: dict[str, Any], create_graph: bool = False) -> list[Any]:
    total = weighted(sampled, leaves)
    if not isinstance(total, pullback.Tensor) or not total.requires_grad:
        pytest.skip("no output has a derivative")
    return list(
        pullback.autograd.grad(total, flat(list(leaves.values())), create_graph=create_graph, allow_unused=True)
    )


def product(gradients: list[Any], directions: list[np.ndarray]) -> float:
    pairs = zip(gradients, directions, strict=True)
    return float(sum((grad.numpy(force=True) * v).sum() for grad, v in pairs if grad is not None))


@pytest.mark.parametrize("key", DIFFERENTIABLE)
def test_the_gradient_is_the_derivative(key: str) -> None:
    if key in CONVENTIONS:
        pytest.skip(CONVENTIONS[key])
    sampled, directions = sample(key), directions_of(sample(key))
    try:
        found = product(gradients(sampled, sampled.tensors()), directions)
    except (NotImplementedError, RuntimeError) as error:
        return skip_without_derivative(error)
    expected = difference(lambda at: np.array(weighted(sampled, as_leaves(at)).item()), sampled, directions)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("key", DIFFERENTIABLE)
def test_the_gradient_of_the_gradient_is_its_derivative(key: str) -> None:
    if key in CONVENTIONS:
        pytest.skip(CONVENTIONS[key])
    sampled, directions = sample(key), directions_of(sample(key))

    def slope(leaves: dict[str, Any], create_graph: bool) -> Any:
        """The first derivative along the directions, as a number that can be differentiated again."""
        grads = gradients(sampled, leaves, create_graph)
        pairs = zip(grads, directions, strict=True)
        return sum((grad * pullback.from_numpy(v)).sum() for grad, v in pairs if grad is not None)

    leaves = sampled.tensors()
    try:
        first = slope(leaves, True)
        if not isinstance(first, pullback.Tensor) or not first.requires_grad:
            found = 0.0
        else:
            second = pullback.autograd.grad(first, flat(list(leaves.values())), allow_unused=True)
            found = product(list(second), directions)
    except (NotImplementedError, RuntimeError) as error:
        return skip_without_derivative(error)
    expected = difference(lambda at: np.array(float(slope(as_leaves(at), False))), sampled, directions)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("key", DIFFERENTIABLE)
def test_forward_mode_is_the_derivative(key: str) -> None:
    if key in CONVENTIONS:
        pytest.skip(CONVENTIONS[key])
    sampled, directions = sample(key), directions_of(sample(key))
    rest = iter(directions)

    def dual(value: Any) -> Any:
        if isinstance(value, list):
            return [dual(item) for item in value]
        return forward_ad.make_dual(as_tensor(value), as_tensor(next(rest)))

    with forward_ad.dual_level():
        duals = {name: dual(sampled.arguments[name]) for name in sampled.moving()}
        try:
            outs = real_outputs(sampled, duals)
        except NotImplementedError as error:
            return skip_without_derivative(error)
        found = []
        for out in outs:
            primal, tangent = forward_ad.unpack_dual(out)
            found.append(np.zeros(tuple(primal.shape)) if tangent is None else tangent.numpy(force=True))

    def values(at: dict[str, Any]) -> np.ndarray:
        tensors = {name: as_tensor(value) for name, value in at.items()}
        return np.concatenate([out.numpy(force=True).reshape(-1) for out in real_outputs(sampled, tensors)])

    expected = difference(values, sampled, directions)
    np.testing.assert_allclose(np.concatenate([part.reshape(-1) for part in found]), expected, rtol=1e-4, atol=1e-6)


def first_is_moving(key: str) -> bool:
    op = registry[key]
    return bool(op.inplace) and isinstance(sample(key).arguments[op.param_names[0]], np.ndarray)


@pytest.mark.parametrize("key", [key for key in SAMPLED if first_is_moving(key)])
def test_in_place_is_out_of_place(key: str) -> None:
    sampled = sample(key)
    op, first = sampled.op, sampled.op.param_names[0]
    expected = sampled.call({})
    target = as_tensor(sampled.arguments[first])
    given = {name: as_tensor(value) for name, value in sampled.arguments.items() if name != first}
    positional = [given[p.name] for p in op.params[1:] if not p.keyword_only]
    keywords = {p.name: given[p.name] for p in op.params[1:] if p.keyword_only}
    if expected.dtype is not target.dtype or expected.shape != target.shape:
        pytest.skip("the result does not fit")
    from pullback._op.inplace import inplace, make_inplace

    in_full = target.clone()
    for written, result in (
        (target, make_inplace(op)(target, *positional, **keywords)),
        (in_full, inplace(op, in_full, tuple(given[p.name] for p in op.params[1:]))),
    ):
        assert result is written and written._version == 1
        np.testing.assert_array_equal(written.numpy(), expected.numpy())


def facts(tensors: list[Any]) -> list[Any]:
    """What can be seen of results: values, dtypes, whether they are views, and their nodes with all that these keep."""
    seen: list[Any] = []
    for tensor in tensors:
        node = tensor.grad_fn
        seen.append([
            tensor.numpy(force=True).tolist(), str(tensor.dtype), tuple(tensor.shape), tensor.stride(),
            tensor._is_view(), tensor.requires_grad, None if node is None else type(node).__name__, tensor.output_nr,
            None if node is None else [None if n is None else type(n).__name__ for n, _ in node.next_functions],
            None if node is None else sorted(name for name in dir(node) if name.startswith("_saved_")),
        ])  # fmt: skip
    return seen


@pytest.mark.parametrize("key", SAMPLED)
@pytest.mark.parametrize("grad", [False, True], ids=["plain", "grad"])
def test_the_fast_path_is_the_reference_path(key: str, grad: bool) -> None:
    sampled = sample(key)

    def both(call: Callable[[dict[str, Any]], Any]) -> tuple[list[Any], list[Any]]:
        leaves = sampled.tensors() if grad else {}
        outs = outputs_of(call(leaves))
        seen = facts(outs)
        wanted = [out for out in outs if out.requires_grad]
        if not wanted:
            return seen, []
        ones = [pullback.ones_like(out) for out in wanted]
        try:
            got = pullback.autograd.grad(wanted, flat(list(leaves.values())), ones, allow_unused=True)
        except (NotImplementedError, RuntimeError) as error:
            return seen, [str(error)]
        return seen, [None if part is None else part.numpy(force=True).tolist() for part in got]

    def reference(leaves: dict[str, Any]) -> Any:
        given = {**{name: as_tensor(value) for name, value in sampled.arguments.items()}, **leaves}
        return apply.apply(sampled.op, tuple(given.values()))

    assert both(sampled.call) == both(reference)


def test_most_ops_have_samples() -> None:
    dense = {key: op for key, op in registry.items() if not is_sparse(op)}
    everything = [key for key, op in dense.items() if op.differentiable and "backward" not in key]
    assert len(DIFFERENTIABLE) * EVERY > 0.75 * len(everything)


def in_dtype(value: Any, dtype: str) -> Any:
    if isinstance(value, list):
        return [in_dtype(item, dtype) for item in value]
    moving = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return (value * 3).astype(dtype) if moving else value


@pytest.mark.parametrize("key", SAMPLED)
def test_both_paths_take_and_refuse_the_same_dtypes(key: str) -> None:
    def attempt(call: Callable[[], Any]) -> Any:
        try:
            return [(str(out.dtype), out.numpy(force=True).tobytes()) for out in outputs_of(call())]
        except Exception as error:
            return type(error).__name__, str(error)

    sampled = sample(key)
    for dtype in ("bool", "int64", "uint8", "float32", "float16", "complex128"):
        given = {name: in_dtype(value, dtype) for name, value in sampled.arguments.items()}
        again = Sampled(sampled.op, given)
        fast = attempt(lambda again=again: again.call({}))
        reference = attempt(lambda given=given: apply.apply(sampled.op, tuple(map(as_tensor, given.values()))))
        assert fast == reference, dtype
