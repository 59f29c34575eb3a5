"""Products of matrices on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import counted, function, launch, window
from pullback.kernels.cuda.native import ELEMENTS, native

def product(a: Any, b: Any, added: Any = None, beta: float = 0.0, alpha: float = 1.0) -> Any:
    """alpha * a @ b + beta * added, of matrices or of stacks of them; None if no kernel can give it."""
    kind = a.dtype
    operands = (a, b) if added is None else (a, b, added)
    if kind.name not in ("float32", "float64") or any([o.dtype != kind for o in operands]):
        return None
    if (
        room("cuda.products") is None
        or a.shape[-1] != b.shape[-2]
        or any([type(o) is not DeviceArray for o in operands])
    ):
        return None
    rows, depth, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    shape = (*a.shape[:-2], rows, columns)
    out = empty(shape, kind, None, a.device)
    more = out if added is None else np.broadcast_to(added, shape)
    if not out.size:
        return out
    counted("product")
    if required().emulated:
        made = alpha * np.matmul(window(a), window(b))
        window(out)[...] = made if added is None or not beta else made + beta * window(more)  # type: ignore[arg-type]
        return out
    kernels = room("cuda.products")
    steps: list[int] = []
    for matrix in (a, b, out, more):
        own = [step // matrix.itemsize for step in matrix.strides]
        steps += own if len(own) == 3 else [0, *own]
    key = (ELEMENTS[kind.name], (steps[1] == 1, steps[5] == 1))
    ready = function(out.device.index or 0, kernels.name_of(*key), lambda: kernels.text_of(*key))
    grid = (-(-columns // kernels.TILE), -(-rows // kernels.TILE), shape[0] if len(shape) == 3 else 1)
    addresses = (a.address, b.address, out.address, more.address)
    numbers = (*addresses, rows, columns, depth, *steps, alpha, beta if added is not None else 0.0)
    launch(out.device.index or 0, ready, grid, "Q" * 4 + "q" * 15 + "dd", *numbers)
    return out


@native("mm", "bmm")
def mm(a: Any, b: Any) -> Any:
    """a @ b"""
    return product(a, b)


@native("addmm", "baddbmm")
def addmm(added: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * added + alpha * a @ b"""
    if a.dtype.kind != "f":
        return None
    return product(a, b, added, float(beta), float(alpha))
