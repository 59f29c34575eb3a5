"""Formulas have two readings, on arrays and on tensors: they use only what both have. A walk over their source."""

import ast
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback._op import tracing
from pullback._op.declare import Op, names_of, registry
from pullback.ops import load_all

load_all()

BOTH_HAVE = {"shape", "ndim", "dtype"}
"""What an array and a tensor mean the same thing by."""

NUMBERS_HAVE = {"conjugate"}
"""What formulas may ask of an argument declared to be a Python number."""

MODULES = {"math"}
"""Modules whose functions formulas may call: they see numbers, not arrays."""

EXCEPTIONS = {
    ("batch_norm_op", "size"): "in the branch for arrays alone",
    ("batch_norm_op", "kernels.backward"): "in the branch for arrays alone",
    ("layer_norm_op", "kernels.backward"): "in the branch for arrays alone",
    ("group_norm_op", "kernels.backward"): "in the branch for arrays alone",
    ("lstm_layer", "kernels.lstm_layer_backward"): "in the branch for arrays alone",
}
"""(op, what it uses) -> why that is all right."""


@cache
def functions_in(path: str) -> dict[tuple[int, tuple[str, ...]], list[Any]]:
    """The functions and lambdas of a file, by the line they begin in and the names of their arguments."""
    found: dict[tuple[int, tuple[str, ...]], list[Any]] = {}
    for node in ast.walk(ast.parse(Path(path).read_text())):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            line = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            names = tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args))
            found.setdefault((line, names), []).append(node)
    return found


def attributes(formula: Any) -> Iterator[str]:
    """The attributes a formula reads: `shape`, or `math.sqrt` for those of a name that is not its own."""
    code = formula.__code__
    known = functions_in(code.co_filename)[code.co_firstlineno, names_of(formula)]
    for function in known:
        inner = list(ast.walk(function))
        own = {a.arg for a in inner if isinstance(a, ast.arg)}
        own |= {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for node in inner:
            if isinstance(node, ast.Attribute):
                of_global = isinstance(node.value, ast.Name) and node.value.id not in own
                yield f"{node.value.id}.{node.attr}" if of_global else node.attr


def formulas(op: Op) -> Iterator[Any]:
    """The formulas of an op that are read both ways; forward-mode rules see only tensors."""
    yield from (f for f in (*op.formulas.values(), op.joint) if callable(f))


@pytest.mark.parametrize("key", sorted(registry))
def test_formulas_use_no_methods_of_tensors(key):
    op = registry[key]
    allowed = BOTH_HAVE | (NUMBERS_HAVE if "Number" in op.annotations.values() else set())
    found = {name for formula in formulas(op) for name in attributes(formula)}
    wrong = {
        name for name in found - allowed if name.partition(".")[0] not in MODULES and (key, name) not in EXCEPTIONS
    }
    assert not wrong, f"{key}: a formula uses {sorted(wrong)}; write it with operators and ops"


def test_the_walk_finds_methods():
    formula = lambda grad, other: grad.mul(other).sum() + math.pi
    assert set(attributes(formula)) == {"mul", "sum", "math.pi"}


conj = itself = tracing.itself


@pytest.mark.parametrize(
    ("formula", "expression"),
    [
        (lambda grad: grad, "grad"),
        (lambda grad, other: grad * conj(other), "multiply(grad, other)"),
        (lambda grad, self, other: -grad * (self / other), "multiply(negative(grad), divide(self, other))"),
        (lambda grad, a, b: grad + a - b, "subtract(add(grad, a), b)"),
    ],
)
def test_a_formula_of_operators_is_read_as_ufuncs(formula, expression):
    assert tracing.operators(formula, conj=itself) == expression


@pytest.mark.parametrize(
    "formula",
    [
        lambda grad: 2 * grad,
        lambda grad: grad * 2,
        lambda grad: grad**2,
        lambda grad, other: grad if other else -grad,
        lambda grad, other: grad if other == 1 else -grad,
        lambda grad, other: grad if other in (1, 2) else -grad,
        lambda grad, other: grad if other != 1 else -grad,
        lambda grad, other: grad * other.shape,
        lambda grad: (grad, grad),
        lambda grad: isinstance(grad, object) and grad,
        lambda grad: math.pi * grad,
        lambda grad: [x for x in grad],
        lambda grad: None,
    ],
)
def test_a_formula_with_choices_numbers_or_other_names_is_not_read(formula):
    assert tracing.operators(formula, conj=itself) is None


def test_a_constant_of_a_module_is_known_in_the_backward_step():
    """ldexp multiplies by log(2), which generated code must not name."""
    x, y = (pullback.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    pullback.ldexp(x, y).sum().backward()
    assert pullback.allclose(y.grad, pullback.tensor([1.0, 2.0]) * 2 ** y.detach() * math.log(2))
