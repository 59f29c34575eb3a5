"""The source generated for five ops, and the formulas that are written into it, compared with golden copies.

What changes there changes every op. The copies are the same for every version of Python and NumPy.

After a change that is meant, write the copies anew and read the difference:

    PULLBACK_WRITE_GOLDEN=1 python -m pytest tests/op/test_golden.py
"""

import os

import pytest

import pullback  # noqa: F401  # declares the ops
from pullback._op.declare import registry
from pullback._op.inline import formula_call
from pullback.ops import load_all

load_all()

OPS = {
    "mul": "two operands, numbers too, saved only as needed",
    "sum_dim": "a reduction: plain arguments and a shape",
    "exp": "saves its result",
    "cat": "a list of tensors",
    "select_int": "a view",
}


def generated(key):
    """The eager function and the node of an op, as source."""
    op = registry[key]
    op.compile()
    return f"# {OPS[key]}\n\n{op.eager_source}\n\n\n{op.node_source}\n"


def inlined() -> str:
    """The gradients that are computed in the step of the node itself, with no call of their formula."""
    found = []
    for key, op in sorted(registry.items()):
        if not op.module["__name__"].startswith("pullback.ops"):
            continue  # declared only where something else has been imported
        for name in op.differentiable if op.joint is None else ():
            if "(" not in (source := formula_call(op, name, "array")) or "FLOAT32" in source:
                found.append(f"{key}.{name} = {source.partition(' if ')[0]}\n")
    return "".join(found)


def compare(path, source):
    """Compare with a golden copy, or write it."""
    if os.environ.get("PULLBACK_WRITE_GOLDEN") == "1":
        path.write_text(source)
    assert path.exists(), f"no golden copy {path.name}: run with PULLBACK_WRITE_GOLDEN=1"
    assert source == path.read_text(), "not the golden copy: if that is meant, run with PULLBACK_WRITE_GOLDEN=1"


@pytest.mark.parametrize("key", OPS)
def test_the_generated_source_is_the_golden_copy(key, root):
    compare(root / "tests" / "golden" / f"{key}.txt", generated(key))


def test_the_formulas_written_into_nodes_are_those_of_the_golden_copy(root):
    compare(root / "tests" / "golden" / "formulas.txt", inlined())


@pytest.mark.parametrize("key", OPS)
def test_the_fast_path_is_straight_line_code(key):
    """What a microsecond is too short for: star arguments, isinstance, with, properties of tensors.

    The one exception is `**rare`, which replaces three keywords with defaults and costs less than two of them.
    """
    eager = generated(key).split("class ")[0].replace("**rare", "")
    for costly in ("*args", "**", "isinstance(", "with ", ".shape)", ".requires_grad\n", ".grad_fn"):
        assert costly not in eager, f"{key}: {costly} in the fast path"
