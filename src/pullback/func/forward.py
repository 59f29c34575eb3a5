"""Derivatives by forward mode: jvp, linearize. A jvp inside another works one level up, so that each has tangents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from pullback._modes import modes, transforming
from pullback._op.forward_mode import strip, tangent_of
from pullback._pytree import tree_flatten, tree_map, tree_unflatten
from pullback._tensor import Tensor, wrap
from pullback.autograd.forward_ad import dual_level
from pullback.autograd.tracebacks import trimming
from pullback.autograd.view import wants_grad
from pullback.batching import run  # noqa: F401 (attaches how ops run on batches)
from pullback.batching.tensor import at_level, batched, current_level, entered, lifted
from pullback.batching.views import is_view, up_to_date
from pullback.func.arguments import check_outputs, with_aux
from pullback.func.reverse import replaced
from pullback.ops.create.like import zeros_like

CALLER = "jvp(f, primals, tangents)"


@trimming
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """func(*primals), and how it moves when the primals move along the tangents: (output, tangent[, aux])."""
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{CALLER}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    return pushed(func, primals, tuple(range(len(primals))), tangents, strict, has_aux)


def pushed(
    func: Callable[..., Any], args: tuple[Any, ...], which: Any, tangents: Any, strict: bool, has_aux: bool
) -> Any:
    """jvp with respect to some arguments."""
    chosen = args[which] if isinstance(which, int) else tuple([args[i] for i in which])
    flat, spec = tree_flatten(chosen)
    moves, moves_spec = tree_flatten(tangents)
    if spec != moves_spec:
        raise RuntimeError(
            f"{CALLER}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{moves_spec}"
        )
    check_tensors(flat, "primals")
    check_tensors(moves, "tangents")
    nested = modes.dual_level >= 0
    with entered(None) if nested else nullcontext(current_level()) as level, nullcontext() if nested else dual_level():
        number = 0 if level is None else level.number
        duals = [dual(p, t, number) for p, t in zip(flat, moves, strict=True)]
        with transforming():
            output = func(*replaced(args, which, tree_unflatten(duals, spec)))
        aux = None
        if has_aux:
            output, aux = with_aux(output, CALLER)
        outputs, out_spec = tree_flatten(output)
        check_outputs(outputs, CALLER)
        pairs = [taken_apart(out, number if nested else None, strict) for out in outputs]
        aux = tree_map(
            lambda x: taken_apart(x, number if nested else None, False)[0] if isinstance(x, Tensor) else x, aux
        )
    values, moved = (tree_unflatten(column, out_spec) for column in zip(*pairs, strict=True))
    return (values, moved, aux) if has_aux else (values, moved)


def check_tensors(values: list[Any], what: str) -> None:
    """Raise unless there are tensors and nothing else."""
    if not values:
        raise RuntimeError(f"{CALLER}: Expected {what} to contain at least one Tensor.")
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{CALLER}: Expected {what} to only contain Tensors, got {type(value)}")


def dual(primal: Any, tangent: Any, level: int) -> Any:
    """A tensor that moves along a tangent."""
    for name, value in (("primal", primal), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype!r}")
    if tuple(tangent.shape) != tuple(primal.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    tensor = lifted(primal, level) if level else primal
    out = tensor.view_as(tensor) if wants_grad(tensor) else wrap(tensor._array)
    out._tangent = tangent
    return out


def taken_apart(out: Any, level: int | None, strict: bool) -> tuple[Any, Any]:
    """The value and the tangent of an output, as they are around the transform."""
    if is_view(out):
        up_to_date(out)
    tangent = tangent_of(out)
    if tangent is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        tangent = zeros_like(out)
    if level is None:
        return strip(out), tangent
    return at_level(out, level)[0], at_level(tangent, level)[0]


@trimming
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """func(*primals), and the linear function from tangents of the primals to those of the output."""
    output = func(*primals)
    _, spec = tree_flatten(primals)

    def linear(*tangents: Any) -> Any:
        moves, moves_spec = tree_flatten(tangents)
        if moves_spec != spec:
            raise RuntimeError(f"Expected the tangents {moves_spec} to have the same argspec as the primals {spec}")
        for i, (move, primal) in enumerate(zip(moves, tree_flatten(primals)[0], strict=True)):
            if move.shape != primal.shape:
                raise RuntimeError(
                    f"tangent:{i} with shape {move.shape!r} in flattened pytree doesn't match the shape "
                    f"{primal.shape!r} of the corresponding primal."
                )
            if move.dtype != primal.dtype:
                raise RuntimeError(
                    f"tangent:{i} with dtype {move.dtype!r} in flattened pytree doesn't match the dtype "
                    f"{primal.dtype!r} of the corresponding primal."
                )
        return jvp(func, primals, tangents)[1]

    return output, linear


__all__ = ["batched", "jvp", "linearize", "pushed"]
