"""The fast path and the reference path are the same: random programs run on both, everything seen is compared."""

import os
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

import pullback
from pullback._modes import modes
from tests.conformance.autograd.test_view_programs import instruction, run
from tests.conformance.both import difference, outcome

DTYPES = ("float32", "float64", "int64", "bool", "complex64", "uint8")
SHAPES = ((), (3,), (2, 3), (1, 3), (0, 3), (2, 1))
NUMBERS = (2, 0.5, True, -1, 3 + 1j, 1 << 40, 0.0)

UNARY = (
    lambda torch, t: t.exp(),
    lambda torch, t: -t,
    lambda torch, t: t.sum(),
    lambda torch, t: t.sum(0, keepdim=True),
    lambda torch, t: t.abs(),
    lambda torch, t: t.mean(-1),
    lambda torch, t: t.max(0),
    lambda torch, t: t[0],
    lambda torch, t: t[..., :2],
    lambda torch, t: t.unbind(0),
    lambda torch, t: t.reshape(-1),
    lambda torch, t: t.double(),
    lambda torch, t: torch.cat([t, t]),
    lambda torch, t: t.cumsum(0),
    lambda torch, t: t.relu(),
    lambda torch, t: t.transpose(0, -1),
)

BINARY = (
    lambda torch, a, b: a + b,
    lambda torch, a, b: a - b,
    lambda torch, a, b: a * b,
    lambda torch, a, b: a / b,
    lambda torch, a, b: a**b,
    lambda torch, a, b: a == b,
    lambda torch, a, b: a < b,
    lambda torch, a, b: torch.where(a > 0, a, b),
    lambda torch, a, b: torch.maximum(a, b),
    lambda torch, a, b: torch.add(a, b, alpha=2),
    lambda torch, a, b: a @ b,
    lambda torch, a, b: a.mul_(b),
    lambda torch, a, b: a.add_(b),
    lambda torch, a, b: torch.mul(a, b, out=torch.empty(0)),
)

step = st.tuples(st.sampled_from(["unary", "binary", "number", "number first"]), *[st.integers(0, 20)] * 3)
leaf = st.tuples(st.sampled_from(DTYPES), st.sampled_from(SHAPES), st.booleans())


def node_facts(tensor):
    """What the node of a tensor shows, apart from its memory."""
    node = tensor.grad_fn
    if node is None:
        return None
    saved = {name: getattr(node, name) for name in dir(node) if name.startswith("_saved_")}
    return [type(node).__name__, [(type(n).__name__, nr) for n, nr in node.next_functions], saved]


def arithmetic(torch, leaves, steps):
    """Interpret the steps; errors are part of the answer."""
    pool = []
    for dtype, shape, wants in leaves:
        t = (torch.arange(6.0)[: max(1, len(shape) * 3)].sum() + torch.ones(shape)).to(getattr(torch, dtype))
        pool.append(t.requires_grad_() if wants and (t.is_floating_point() or t.is_complex()) else t)
    notes = []
    for kind, what, i, j in steps:
        a, b = pool[i % len(pool)], pool[j % len(pool)]
        try:
            if kind == "unary":
                out = UNARY[what % len(UNARY)](torch, a)
            elif kind == "binary":
                out = BINARY[what % len(BINARY)](torch, a, b)
            else:
                pair = (a, NUMBERS[j % len(NUMBERS)])
                out = BINARY[what % 7](torch, *(pair if kind == "number" else pair[::-1]))
            made = [out] if isinstance(out, torch.Tensor) else list(out)
            for t in made:
                notes.append([t.detach().clone(), t.stride(), t._version, node_facts(t), t.is_leaf])
            pool.extend(made)
        except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError) as error:
            notes.append([type(error).__name__, str(error)])
    ends = [t.real.sum() if t.is_complex() else t.sum() for t in pool if t.requires_grad]
    if ends:
        inputs = [t for t in pool if t.requires_grad and t.is_leaf]
        for order in (False, True):
            try:
                notes += torch.autograd.grad(ends, inputs, allow_unused=True, retain_graph=True, create_graph=order)
            except RuntimeError as error:
                notes.append(str(error))
    return notes


def same_on_both_paths(program):
    """Assert that a program does the same with the fast path and without it."""
    fast = outcome(pullback, program)
    modes.hold("this test")
    try:
        reference = outcome(pullback, program)
    finally:
        modes.drop("this test")
    found = difference(reference, fast)
    assert found is None, found


@settings(max_examples=300)
@given(st.lists(leaf, min_size=1, max_size=3), st.lists(step, max_size=6))
def test_random_arithmetic(leaves, steps):
    same_on_both_paths(lambda torch: arithmetic(torch, leaves, steps))


@settings(max_examples=150)
@given(st.lists(instruction, max_size=9), st.booleans())
def test_random_programs_of_views_and_writes(steps, tracked_base):
    same_on_both_paths(lambda torch: run(torch, steps, tracked_base))


def test_the_environment_switches_the_fast_path_off():
    source = "import pullback; from pullback._modes import modes; print(modes.active, (pullback.ones(1) * 2).item())"
    environment = dict(os.environ, PULLBACK_REFERENCE="1", PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["True", "2.0"]
