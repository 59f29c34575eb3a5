"""Steps of optimizers on the device: the rule that optim/fused.py has traced, one launch for all parameters alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.memory import is_non_overlapping_and_dense
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.carry import upload
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import counted, function, launch, window
from pullback.kernels.jit.language.expression import numpy_function

TABLES = 256
tables: dict[Any, DeviceArray] = {}
"""Tables of addresses on the device, by what is in them: parameters stay where they are, gradients mostly do."""
texts: dict[Any, tuple[str, str, Any]] = {}
"""Kernels by their expressions, which are kept so that no others are taken for them."""
MOST = 65535
"""Columns a grid may have."""


class Updating:
    """What `optim.fused.Step` asks of arrays of the device."""

    @staticmethod
    def takes(arrays: list[Any]) -> bool:
        """True for arrays that lie alike, without gaps, on one device."""
        first = arrays[0]
        for a in arrays:
            if type(a) is not DeviceArray or a.dtype != first.dtype or a.device is not first.device:
                return False
            if a.shape != first.shape or a.strides != first.strides:
                return False
        return 0 not in first.shape and min(first.strides) > 0 and is_non_overlapping_and_dense(first)

    @staticmethod
    def run(results: dict[int, Any], several: list[list[Any]], numbers: list[float]) -> None:
        """Give arrays of tuples, by their positions, the values of expressions."""
        by_place: dict[Any, list[list[Any]]] = {}
        for arrays in several:
            by_place.setdefault((arrays[0].device, arrays[0].dtype), []).append(arrays)
        for (place, dtype), tuples in by_place.items():
            for start in range(0, len(tuples), MOST):
                update(place, dtype, results, tuples[start : start + MOST], numbers)


def update(place: Any, dtype: Any, results: Any, tuples: Any, numbers: list[float]) -> None:
    """The same on one device."""
    counted("update")
    if required().emulated:
        for arrays in tuples:
            computed(results, [window(a) for a in arrays], numbers)
        return
    index, many = place.index or 0, len(tuples[0])
    kernels = room("cuda.updates")
    known = (id(results), dtype, many)
    if known not in texts:
        texts[known] = (*kernels.text_of(dtype.name, many, results), results)
    name, text, _ = texts[known]
    rows = tuple([(*[a.address for a in arrays], arrays[0].size) for arrays in tuples])
    table = tables.get((place, rows))
    if table is None:
        if len(tables) >= TABLES:
            tables.clear()
        table = tables[place, rows] = upload(np.array(rows, np.int64), place)
    blocks = max([-(-row[-1] // (kernels.THREADS * kernels.EACH)) for row in rows])
    ready = function(index, name, lambda: text)
    launch(index, ready, (blocks, len(rows), 1), "Q" + "d" * len(numbers), table.address, *numbers)


def computed(results: Any, arrays: list[Any], numbers: list[float]) -> None:
    """What the kernel does, by NumPy."""
    steps, given = room("pointwise.update").parts_of(results.values())
    kind = arrays[0].dtype.type
    values = {id(node): kind(number) for node, number in zip(given, numbers, strict=True)}
    for node in steps:
        if node.op == "input":
            values[id(node)] = arrays[node.value].copy()
            continue
        args = [values[id(arg)] if id(arg) in values else kind(arg.value) for arg in node.args]
        values[id(node)] = args[0] if node.op == "cast" else numpy_function(node.op)(*args)
    for place, root in results.items():
        arrays[place][...] = values[id(root)]


DeviceArray.updating = Updating
