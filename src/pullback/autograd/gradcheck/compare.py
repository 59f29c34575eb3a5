"""Numerical against analytical derivatives: whole Jacobians (slow mode), or one random product of each (fast mode)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pullback._dtype import complex64, complex128, float32, float64, promote_types
from pullback.autograd.gradcheck.analytical import backward_jacobians, forward_jacobians
from pullback.autograd.gradcheck.errors import GradcheckError, mismatch, recomputed_slowly
from pullback.autograd.gradcheck.numerical import (
    Tensors,
    as_tuple,
    is_differentiable_type,
    numerical_jacobians,
    numerical_product,
    wanting,
)
from pullback.autograd.view import wants_grad
from pullback.ops.pointwise.compare import allclose
from pullback.ops.random.draw import rand
from pullback.ops.random.generator import Generator
from pullback.ops.shape.complex_views import view_as_real


@dataclass(frozen=True)
class Check:
    """What to compare and how closely."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    forward: bool = False
    """Forward mode instead of backward."""
    part: str = ""
    """"real" or "imaginary" where only that part of complex outputs (forward: inputs) is looked at."""
    complex_indices: tuple[int, ...] = ()


def close(analytical: Any, numerical: Any, rtol: float, atol: float) -> bool:
    """allclose in the wider of the two dtypes."""
    dtype = promote_types(analytical.dtype, numerical.dtype)
    return bool(allclose(analytical.to(dtype), numerical.to(dtype), rtol, atol))


def complaint(check: Check, analytical: Any, numerical: Any, output: int, input: int) -> str:
    """The text of a mismatch."""
    part = check.part if (input if check.forward else output) in check.complex_indices else ""
    return mismatch(analytical, numerical, output, input, part, check.forward)


# ------------------------------------------------------------------ slow mode


def compare_slowly(func: Callable[..., Any], inputs: Tensors, results: Any, outputs: Tensors, check: Check) -> None:
    """Compare every element of every Jacobian."""
    results = as_tuple(results)
    numerical = numerical_jacobians(func, inputs, results, check.eps, check.forward)
    if not outputs:
        if any((jacobian != 0).any() for per_output in numerical for jacobian in per_output):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    kept = [i for i, out in enumerate(filter(is_differentiable_type, results)) if wants_grad(out)]
    if check.forward:
        columns = forward_jacobians(func, inputs, results, check.check_grad_dtypes)
        for i, which in enumerate(kept):
            for j, per_output in enumerate(numerical):
                compare(check, columns[j][i], per_output[which], i, j)
        return
    for i, (which, out) in enumerate(zip(kept, outputs, strict=True)):
        analytical = backward_jacobians(inputs, out, check.nondet_tol, check.check_grad_dtypes)
        for j, (ours, per_output) in enumerate(zip(analytical, numerical, strict=True)):
            compare(check, ours, per_output[which], i, j)


def compare(check: Check, analytical: Any, numerical: Any, output: int, input: int) -> None:
    """Raise unless two Jacobians agree."""
    if not close(analytical, numerical, check.rtol, check.atol):
        raise GradcheckError(complaint(check, analytical, numerical, output, input))


# ------------------------------------------------------------------ fast mode


REAL = {complex128: float64, complex64: float32}


def random_direction(tensor: Any, generator: Any, real: bool = False) -> Any:
    """A random vector of length 1 with as many elements as the tensor."""
    vector = rand(tensor.numel(), generator=generator)
    vector = vector.to(tensor.device, REAL.get(tensor.dtype, tensor.dtype) if real else tensor.dtype)
    return vector / vector.norm()


def random_directions(inputs: Tensors, outputs: Tensors, forward: bool) -> tuple[list[Any] | None, list[Any]]:
    """Directions v of the outputs (none in forward mode) and u of the inputs: a pair (real, imaginary) for complex."""
    generator = Generator()
    u: list[Any] = []
    for _, tensor in wanting(inputs):
        one = random_direction(tensor, generator, real=True)
        u.append((one, random_direction(tensor, generator, real=True)) if tensor.is_complex() else one)
    return None if forward else [random_direction(out, generator) for out in outputs], u


def compare_quickly(func: Callable[..., Any], inputs: Tensors, results: Any, outputs: Tensors, check: Check) -> None:
    """Compare vᵀJu for random u and v: one number for each pair of input and output."""
    v, u = random_directions(inputs, outputs, check.forward)
    tensors = wanting(inputs)
    numerical = []
    for (_, tensor), direction in zip(tensors, u, strict=True):
        moved = numerical_product(func, inputs, tensor, direction, check.eps, check.forward)
        moved = [m for m, out in zip(moved, as_tuple(results), strict=True) if is_differentiable_type(out)]
        numerical.append(moved if v is None else [(a * b).sum() for a, b in zip(v, moved, strict=False)])
    if check.forward:
        columns = forward_jacobians(func, inputs, as_tuple(results), check.check_grad_dtypes, u)
        analytical = columns
    else:
        if not outputs:
            check_nothing_moves(func, inputs, u, check)
        analytical = by_input(
            [backward_products(inputs, out, w, u, check) for out, w in zip(outputs, v or (), strict=True)]
        )
    for i, per_output in enumerate(numerical):
        for j, theirs in enumerate(per_output):
            ours = analytical[i][j]
            if not close(ours, theirs, check.rtol, adjusted(check.atol, u[i], v[j] if v else None)):
                slowly = slow_explanation(func, inputs, outputs, i, j, check)
                raise GradcheckError(complaint(check, ours, theirs, j, i) + slowly)


def by_input(per_output: list[list[Any]]) -> list[Any]:
    """Results per output turned into results per input."""
    return list(zip(*per_output, strict=True))


def backward_products(inputs: Tensors, output: Any, v: Any, u: list[Any], check: Check) -> list[Any]:
    """vᵀJu for every input, by backward."""
    out = []
    for row, direction in zip(
        backward_jacobians(inputs, output, check.nondet_tol, check.check_grad_dtypes, v), u, strict=True
    ):
        row = row.squeeze(1)
        if row.is_complex():
            real, imaginary = view_as_real(row).unbind(-1)
            out.append(real.dot(direction[0]) + 1j * imaginary.dot(direction[1]))
        else:
            out.append(row.dot(direction))
    return out


def check_nothing_moves(func: Callable[..., Any], inputs: Tensors, u: list[Any], check: Check) -> None:
    """Without a differentiable output, no output may move with the inputs."""
    for (_, tensor), direction in zip(wanting(inputs), u, strict=True):
        for moved in numerical_product(func, inputs, tensor, direction, check.eps, False):
            if moved.numel() and moved.abs().max() > check.nondet_tol:
                raise GradcheckError("Numerical gradient for function expected to be zero")


def adjusted(atol: float, u: Any, v: Any) -> float:
    """The tolerance for a weighted sum of elements that may each be off by atol."""
    parts = u if isinstance(u, tuple) else (u,)
    return atol * sum(float(part.sum()) for part in parts) * (1.0 if v is None else float(v.sum().real))


def slow_explanation(
    func: Callable[..., Any], inputs: Tensors, outputs: Tensors, input: int, output: int, check: Check
) -> str:
    """The whole Jacobians of the pair that failed."""
    numerical = numerical_jacobians(func, inputs, outputs, check.eps, check.forward)[input][output]
    if check.forward:

        def one(moving: Any) -> Any:
            given = list(inputs)
            given[input] = moving
            return as_tuple(func(*given))[output]

        analytical = forward_jacobians(one, (inputs[input],), (outputs[output],))[0][0]
    else:
        analytical = backward_jacobians(inputs, outputs[output], float("inf"), False)[input]
    largest = (numerical - analytical).abs().max()
    agrees = bool(allclose(analytical, numerical, check.rtol, check.atol))
    return recomputed_slowly(numerical, analytical, largest, agrees)


# ------------------------------------------------------------------ complex numbers


def compare_parts(
    compare_all: Callable[..., None],
    func: Callable[..., Any],
    inputs: Tensors,
    results: Any,
    outputs: Tensors,
    check: Check,
) -> list[tuple[Callable[..., Any], Any, Any]]:
    """Compare, looking at imaginary and real parts of complex outputs (forward mode: inputs) one after the other.

    Returns the functions that were compared, each with its inputs and results.
    """
    if check.forward:
        indices = tuple([i for i, t in enumerate(inputs) if is_differentiable_type(t) and t.is_complex()])
    else:
        indices = tuple([i for i, out in enumerate(outputs) if out.is_complex()])
    some_complex = bool(indices) if check.forward else any(out.is_complex() for out in as_tuple(results))
    if not some_complex:
        compare_all(func, inputs, results, outputs, check)
        return [(func, inputs, outputs)]
    done = []
    for part in ("imaginary", "real"):
        split = real_inputs if check.forward else real_outputs
        one, given = split(func, inputs, indices, part)
        out = one(*given)
        differentiable = tuple([o for o in as_tuple(out) if wants_grad(o)])
        compare_all(one, given, out, differentiable, replace(check, part=part, complex_indices=indices))
        done.append((one, given, out))
    return done


def real_outputs(
    func: Callable[..., Any], inputs: Tensors, indices: tuple[int, ...], part: str
) -> tuple[Callable[..., Any], Tensors]:
    """The function with one part of its complex outputs."""

    def one(*given: Any) -> Tensors:
        outs = as_tuple(func(*given))
        return tuple([(o.imag if part == "imaginary" else o.real) if o.is_complex() else o for o in outs])

    return one, inputs


def real_inputs(
    func: Callable[..., Any], inputs: Tensors, indices: tuple[int, ...], part: str
) -> tuple[Callable[..., Any], Tensors]:
    """The function of one part of its complex inputs, the other part being fixed, and that part of the inputs."""

    def one(*given: Any) -> Tensors:
        whole = list(given)
        for i in indices:
            fixed = inputs[i]
            whole[i] = fixed.real + given[i] * 1j if part == "imaginary" else given[i] + fixed.imag * 1j
        return as_tuple(func(*whole))

    parts = [(t.imag if part == "imaginary" else t.real) if i in indices else t for i, t in enumerate(inputs)]
    return one, tuple(parts)
