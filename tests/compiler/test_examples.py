"""The programs in examples/ with their training step compiled: the losses are those they have as they are."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback

EXAMPLES = Path(__file__).parents[2] / "examples"
LEARNING = {"model", "u", "policy", "optimizer", "episode"}
"""Names in the first statement of a step; what comes before prepares the batch."""
AS_WRITTEN = {"lbfgs": "an optimizer was given a closure", "reinforce": "more than 64 values are read"}
"""Steps that are not recorded, and why."""


def names(nodes, kind):
    return {
        node.id for top in nodes for node in ast.walk(top) if isinstance(node, ast.Name) and isinstance(node.ctx, kind)
    }


def with_step(source):
    """The program with the body of its loop, from the forward pass to the loss as a number, in one function."""
    tree = ast.parse(source)
    (loop,) = [n for n in tree.body if isinstance(n, ast.For) and "progress" in ast.unparse(n.iter)]
    end = next(i for i, n in enumerate(loop.body) if ast.unparse(n).startswith("losses.append("))
    start = next(i for i, n in enumerate(loop.body[: end + 1]) if names([n], ast.Load) & LEARNING)
    before, body, after = loop.body[:start], loop.body[start:end], loop.body[end + 1 :]
    given = sorted(names([loop.target, *before], ast.Store) & names([*body, loop.body[end]], ast.expr_context))
    given = [name for name in given if name != "_"]
    later = sorted(names(body, ast.Store) & names(after, ast.Load))
    number = ast.unparse(loop.body[end].value.args[0])
    step = ast.parse(f"@compiled\ndef whole_step({', '.join(given)}):\n    return {', '.join([number, *later])},").body[
        0
    ]
    step.body = [*body, *step.body]
    call = ast.parse(
        f"number, {''.join([n + ', ' for n in later])}= whole_step({', '.join(given)})\nlosses.append(number)"
    ).body
    loop.body = [*before, *call, *after]
    tree.body.insert(tree.body.index(loop), step)
    return ast.unparse(ast.fix_missing_locations(tree))


def losses(name, compiled, tmp_path, monkeypatch):
    """The losses of a few steps."""
    monkeypatch.setattr(sys, "argv", [name, "--steps", "5", "--picture", str(tmp_path / "picture.svg")])
    source = (EXAMPLES / f"{name}.py").read_text("utf-8")
    source = (
        with_step(source).replace("import torch\n", "import pullback as torch\n").replace("from torch", "from pullback")
    )
    space = {"compiled": compiled, "__doc__": name, "__name__": name}
    exec(compile(source, f"<{name}>", "exec"), space)
    return space["losses"], space["whole_step"]


@pytest.mark.parametrize("name", sorted({p.stem for p in EXAMPLES.glob("*.py")} - {"support", "tour"}))
def test_an_example_learns_the_same_with_its_step_compiled(name, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    expected, _ = losses(name, lambda f: f, tmp_path, monkeypatch)
    found, step = losses(name, pullback.compile, tmp_path, monkeypatch)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-5)
    entries = step._compiled.entries
    reasons = [entry.why for entry in entries if entry.why]
    if name in AS_WRITTEN:
        assert AS_WRITTEN[name] in reasons[0]
    else:
        assert reasons == [] and sum([entry.calls for entry in entries]) >= 3
