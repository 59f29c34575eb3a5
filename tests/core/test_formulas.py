"""Formulas have two readings, on arrays and on tensors, so they may use only what both have: a walk over their code."""

import dis
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest

import pullback  # noqa: F401  # declares the ops
from pullback._op.declare import Op, registry
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


def attributes(code: CodeType) -> Iterator[str]:
    """The attributes a formula reads: `shape`, or `math.sqrt` for those of a global."""
    before: Any = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            of_global = before is not None and before.opname == "LOAD_GLOBAL"
            yield f"{before.argval}.{instruction.argval}" if of_global else instruction.argval
        if instruction.opname != "CACHE":
            before = instruction
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from attributes(constant)


def formulas(op: Op) -> Iterator[Any]:
    """The formulas of an op that are read both ways; forward-mode rules see only tensors."""
    yield from (f for f in (*op.formulas.values(), op.joint) if callable(f))


@pytest.mark.parametrize("key", sorted(registry))
def test_formulas_use_no_methods_of_tensors(key):
    op = registry[key]
    allowed = BOTH_HAVE | (NUMBERS_HAVE if "Number" in op.annotations.values() else set())
    found = {name for formula in formulas(op) for name in attributes(formula.__code__)}
    wrong = {
        name for name in found - allowed if name.partition(".")[0] not in MODULES and (key, name) not in EXCEPTIONS
    }
    assert not wrong, f"{key}: a formula uses {sorted(wrong)}; write it with operators and ops"


def test_the_walk_finds_methods():
    formula = lambda grad, other: grad.mul(other).sum() + math.pi  # noqa: F821
    assert set(attributes(formula.__code__)) == {"mul", "sum", "math.pi"}
