"""Random programs, as they are and compiled: `python -m tests.compiler.fuzz [seconds] [first seed]`; it needs torch."""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections import Counter

import numpy as np

import pullback
from tests.fuzz.generate import Theme, write
from tests.fuzz.program import ASSIGNED, FLOATS


def function_of(program):
    """The program as a function of its leaves, which returns every tensor it makes."""
    names = [name for name, _ in program.leaves]
    assigned = list(dict.fromkeys([match[1] for line in program.lines if (match := ASSIGNED.match(line))]))
    source = "\n    ".join(
        [f"def program({', '.join(names)}):", *program.lines, f"return ({''.join([n + ', ' for n in assigned])})"]
    )
    space = {"torch": pullback}
    exec(compile(source, f"<program {hash(source)}>", "exec"), space)
    return space["program"], source


def flat(value):
    if isinstance(value, pullback.Tensor):
        return [value]
    return [t for item in value for t in flat(item)] if isinstance(value, (tuple, list)) else []


def bits(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype in (pullback.bfloat16,):
        tensor = tensor.float()
    return tensor.numpy().copy(), tuple(tensor.shape), tensor.requires_grad


def shortened(leaf, size):
    """A leaf of which the first dimension is no longer than that."""
    if size is None or not leaf.dim():
        return leaf
    return leaf.detach()[:size].clone().requires_grad_(leaf.requires_grad)


def observed(function, program, noise, size=None):
    """Results, gradients, leaves in the end; or the error."""
    leaves = [shortened(leaf.build(pullback, noise), size) for _, leaf in program.leaves]
    try:
        result = flat(function(*leaves))
        out = [bits(t) for t in result] + [t.requires_grad for t in result]
        wanting = [t for t in leaves if t.requires_grad and t.is_leaf]
        roots = [t for t in result if t.requires_grad and t.grad_fn is not None]
        if roots and wanting:
            grads = pullback.autograd.grad(roots, wanting, [pullback.ones_like(t) for t in roots], allow_unused=True)
            out += [None if g is None else bits(g) for g in grads]
        return out + [bits(t) for t in leaves] + [t._version for t in leaves]
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[:1]]


def same(a, b, rounding=False):
    """Whether two observations are equal to the bit; with `rounding`, as near as sums in another order are."""
    if isinstance(a, (tuple, list)):
        return (
            type(a) is type(b) and len(a) == len(b) and all([same(x, y, rounding) for x, y in zip(a, b, strict=True)])
        )
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if rounding and a.dtype.kind in "fc":
            near = 1e-3 if a.dtype.itemsize <= 4 * (1 + (a.dtype.kind == "c")) else 1e-8
            scale = np.max(np.abs(a[np.isfinite(a)]), initial=0.0)
            return np.allclose(a, b, near, near * float(scale) + 1e-30, equal_nan=True)
        return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    return type(a) is type(b) and a == b


TAKEN = (*FLOATS, "int64", "int32", "uint8", "bool", "int8", "int16")


def compare(seed, theme):
    """The compiled function of a program, and what is different about it, in words; None for those not taken."""
    program = write(seed, theme, ("backward",))
    if not program.leaves or any([leaf.dtype not in TAKEN for _, leaf in program.leaves]):
        return None
    plain, source = function_of(program)
    compiled = pullback.compile(plain, options={"exact": True})
    alone, sized = (pullback.compile(plain, dynamic=dynamic) for dynamic in (False, True))
    sized._compiled.sizes.come_again = lambda arguments: True  # recorded at the same calls as the other one
    for noise, size in enumerate([None] * 4 + [1] * 3 + [0] * 3 + [2] * 3 + [None, 1, 0]):
        found = []
        for function in (plain, compiled, alone, sized):
            pullback.manual_seed(noise)
            found.append(observed(function, program, noise, size))
        expected, exact, rounded, given = found
        if not same(expected, exact) or not same(expected, rounded, rounding=True) or not same(rounded, given):
            shown = ["\n".join([str(x)[:200] for x in one]) for one in found]
            return compiled, "\n".join([f"DIFFERENT {seed} {noise} {size}", source, str(program), *shown])
    return compiled, ""


def main(seconds=60.0, first=0):
    warnings.simplefilter("ignore")
    end, seed, counts, reasons = time.time() + seconds, first, Counter(), Counter()
    theme = Theme(first)
    while time.time() < end:
        try:
            made = compare(seed, theme)
        except Exception:
            made = None
            counts["crashed"] += 1
            print("CRASH", seed, traceback.format_exc())
        seed += 1
        if made is None:
            continue
        compiled, text = made
        counts["different" if text else "same"] += 1
        print(text, end="")
        for entry in compiled._compiled.entries:
            counts["programs" if entry.why is None else "as written"] += 1
            if entry.why:
                reasons[entry.why.split(" at ")[0][:90]] += 1
    print(dict(counts), seed)
    for reason, count in reasons.most_common(25):
        print(count, reason)
    return counts["different"] + counts["crashed"]


if __name__ == "__main__":
    sys.exit(main(*[float(a) for a in sys.argv[1:2]], *[int(a) for a in sys.argv[2:3]]))
