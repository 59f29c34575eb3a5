"""The vector product in three dimensions of small row-major arrays, by a builtin that makes its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._thresholds import LARGE
from pullback.kernels.jit.compiler.target import ELEMENTS
from pullback.kernels.jit.runtime.entries import Entry, again
from pullback.kernels.jit.small.places import dimension


def cross(dtype: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """f(a, b, dim) for arrays of one shape. A coordinate is rounded as torch rounds it: its first product is not."""
    name, note = f"cross_{dtype}", "the vector product"
    if (found := again(name, note, otherwise)) is not None:
        return found
    entry = Entry(name, 3)
    code, element = entry.code, ELEMENTS[dtype]
    a, b = entry.array(0, dtype), entry.array(1, dtype)
    ndim = code.convert(a.ndim, "i64")
    dim = dimension(entry, 2, ndim)
    entry.require(code.compare("eq", a.ndim, b.ndim))
    entry.same(a.ndim, a.dims, b.dims)
    entry.require(code.compare("eq", code.load(a.dims, dim, "i64"), 3))
    size = a.size()
    entry.require(size < LARGE)
    inner = code.variable(code.const(1, "i64"))
    with code.loop(dim + 1, ndim) as axis:
        inner.set(inner.get() * code.load(a.dims, axis, "i64"))
    made = entry.result(dtype, a.ndim, a.dims)
    left, right, out = (entry.data(array) for array in (a.object, b.object, made))
    step = inner.get()
    with code.when(size > 0), code.loop(0, size, step * 3) as start, code.loop(start, start + step) as i:
        first, second = ([code.load(x, i + step * axis, element) for axis in range(3)] for x in (left, right))
        for axis in range(3):
            y, z = (axis + 1) % 3, (axis + 2) % 3
            taken = first[z].binary(second[y], ("fmul", ""))
            code.store(code.fma(first[y], second[z], -taken), out, i + step * axis)
    return entry.builtin(made, note, otherwise)
