"""Steps of optimizers on the device: the rule that optim/fused.py has traced, one launch for all parameters alike."""

from __future__ import annotations

from typing import Any

from pullback._arrays.memory import is_non_overlapping_and_dense
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import counted, function, launch, window
from pullback.kernels.jit.language.expression import numpy_function

texts: dict[Any, tuple[str, str, int, Any]] = {}
"""Kernels by their expressions, which are kept so that no others are taken for them."""


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
            most = most_rows(len(tuples[0]))
            for start in range(0, len(tuples), most):
                update(place, dtype, results, tuples[start : start + most], numbers)


def update(place: Any, dtype: Any, results: Any, tuples: Any, numbers: list[float]) -> None:
    """The same on one device."""
    counted("update")
    if required().emulated:
        for arrays in tuples:
            computed(results, [window(a) for a in arrays], numbers)
        return
    index, rows = place.index or 0, [(*[a.address for a in arrays], arrays[0].size) for arrays in tuples]
    name, text, words = kernel_of(results, dtype, len(tuples[0]), len(rows))
    table = [word for row in rows for word in row]
    ready = function(index, name, lambda: text)
    types = "d" * len(numbers) + "Q" * len(table) + f"{8 * (words - len(table))}x"
    launch(index, ready, (columns([row[-1] for row in rows]), len(rows), 1), types, *numbers, *table)


def kernel_of(results: Any, dtype: Any, many: int, rows: int) -> tuple[str, str, int]:
    """The name, the text and the words of a table of the kernel that updates so many tuples of arrays."""
    kernels = room("cuda.updates")
    words = next(words for words in kernels.WORDS if rows * (many + 1) <= words)
    known = (id(results), dtype, many, words)
    if known not in texts:
        texts[known] = (*kernels.text_of(dtype.name, many, results, words), words, results)
    return texts[known][:3]


def most_rows(many: int) -> int:
    """How many tuples of arrays one launch updates."""
    return int(room("cuda.updates").WORDS[-1]) // (many + 1)


def columns(sizes: list[int]) -> int:
    """How many blocks share the largest array."""
    kernels = room("cuda.updates")
    return max([-(-size // (kernels.THREADS * kernels.EACH)) for size in sizes])


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
