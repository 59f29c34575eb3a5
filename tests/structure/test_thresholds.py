"""Sizes that choose between algorithms stand in one file, each with its reason."""

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "pullback"
A_SIZE = re.compile(r"\b(size|numel|count|length|nbytes|ndim)\)? *(<=?|>=?) *(\d{2,}|\d+ *<< *\d+|\d+ *\*\* *\d+)\b")
"""A comparison of a size with a number of two digits or more."""
NO_CHOICE = {
    "_arrays/sizes.py",  # what fits into 64 bits
    "ops/storage_classes.py",
    "kernels/numpy/random/distributions.py",  # from 2**32 on torch draws otherwise
    "kernels/jit/language/halves.py",  # what half precision can hold
    "insight/report.py",  # how bytes are shown
    "insight/explorer/numbers.py",
}


def test_every_threshold_has_its_reason():
    body = ast.parse((SOURCE / "_thresholds.py").read_text()).body
    for nr, line in enumerate(body):
        if isinstance(line, ast.Assign):
            after = body[nr + 1]
            assert isinstance(after, ast.Expr) and isinstance(after.value.value, str), ast.unparse(line)


def test_every_threshold_is_used():
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py") if path.name != "_thresholds.py")
    body = ast.parse((SOURCE / "_thresholds.py").read_text()).body
    names = [line.targets[0].id for line in body if isinstance(line, ast.Assign)]
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


def test_no_size_is_compared_with_a_bare_number():
    found = []
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).as_posix() not in NO_CHOICE:
            found += [f"{path.name}: {line.strip()}" for line in path.read_text().splitlines() if A_SIZE.search(line)]
    assert found == []
