"""Does the compiler work here? One small kernel, run and compared, before anything relies on it."""

from __future__ import annotations

import numpy as np

from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime import calls


def run() -> None:
    """Raise if a compiled kernel does not compute what it should."""
    width = lanes("float")

    def describe(code: Code, x: Value, out: Value, n: Value, factor: Value) -> None:
        spread = code.splat(factor, width)
        type = f"<{width} x float>"
        code.vectors(code.begin, code.end, width, lambda i: code.store(code.load(x, i, type) * spread, out, i))

    params = [calls.array("float32", "n"), calls.array("float32", "n", write=True), calls.integer("n"), calls.number()]
    scale = calls.kernel("pullback_selftest", params, describe)
    x = np.arange(37, dtype=np.float32)
    out = np.zeros_like(x)
    if not scale(x, out, 37, 2.0, 37, 8) or not np.array_equal(out, x * 2):
        raise RuntimeError("the compiled self test gives wrong results")
    if scale(x, out, 36, 2.0, 36, 8) or scale(x.astype("f8"), out, 37, 2.0, 37, 8):
        raise RuntimeError("the compiled self test accepts wrong arguments")
