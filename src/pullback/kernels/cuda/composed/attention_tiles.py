"""Attention on the device without its score matrix: which kernels, which tiles. See jit/cuda/attention.py.

On the emulated device the host's attention computes the same.
"""

from __future__ import annotations

import struct
from typing import Any

from pullback._arrays.half import SINGLE, is_half
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.device import required, stream_on
from pullback.kernels.cuda.launch import counted, function, window
from pullback.kernels.cuda.pointwise import made_for
from pullback.kernels.numpy.sequence import attention as host

ELEMENTS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat"}
FEATURES = (16, 32, 64, 96, 128)
"""Features there are kernels for; fewer are filled up with zeros in shared memory."""
TILES = {"float": ((64, 64), (64, 32), (32, 32), (32, 16)), "double": ((32, 32), (32, 16))}
"""Rows of a block and of a tile, the best first: the one is taken of which a multiprocessor has room for two."""
RESERVED = 1024
"""Bytes of shared memory that the system takes of every block."""
MOST_AWAY = (1 << 31) - (1 << 20)
MOST = 65535
"""Blocks along the second and third dimension of a grid."""


def steps_of(array: Any) -> tuple[int, ...]:
    """Strides along the batch, heads and rows, in elements; 0 where there is only one."""
    return tuple(
        [0 if n == 1 else s // array.itemsize for n, s in zip(array.shape[:3], array.strides[:3], strict=True)]
    )


def has_rows(array: Any) -> bool:
    """Whether features lie side by side and elements where strides can count them."""
    whole = not any([step % array.itemsize for step in array.strides])
    return whole and (array.shape[-1] == 1 or array.strides[-1] == array.itemsize)


def readable(array: Any) -> Any:
    """The array, or a copy whose features lie side by side."""
    return array if has_rows(array) else array.copy("C")


def is_near(array: Any) -> bool:
    """Whether 32 bits count the elements from the first of a head to the last."""
    steps = [step // array.itemsize for step in array.strides[-2:]]
    return sum([(n - 1) * abs(step) for n, step in zip(array.shape[-2:], steps, strict=True)]) < MOST_AWAY


def takes(query: Any, key: Any, value: Any, mask: Any) -> bool:
    """True for what the kernels can do."""
    given = (query, key, value)
    if room("cuda.attention") is None or query.dtype.name not in ELEMENTS:
        return False
    if not all([type(a) is DeviceArray and a.ndim == 4 and a.size and a.dtype == query.dtype for a in given]):
        return False
    if mask is not None and not (type(mask) is DeviceArray and mask.dtype.name in ELEMENTS):
        return False
    (batch, heads, _, features), (_, own, _, _) = query.shape, key.shape
    if key.shape != value.shape or key.shape[0] != batch or key.shape[3] != features or heads % own:
        return False
    facts = required().devices[query.device.index or 0].attributes
    if is_half(query.dtype) and facts["major"] < 8:
        return False
    near = all([is_near(a) for a in (*given, *([] if mask is None else [mask]))])
    return near and features <= FEATURES[-1] and max(heads, batch) <= MOST


class Call:
    """What all passes of one call are told, and how they are launched."""

    def __init__(self, query: Any, key: Any, value: Any, mask: Any, is_causal: bool, factor: float) -> None:
        self.query, self.key, self.value, self.mask, self.factor = query, key, value, mask, factor
        self.index = query.device.index or 0
        self.kind = SINGLE if is_half(query.dtype) else query.dtype
        """What sums are made in."""
        (self.batch, self.heads, self.queries, self.features), (_, self.own, self.keys, _) = query.shape, key.shape
        self.causal = "c" * is_causal
        self.element = ELEMENTS[query.dtype.name]
        self.padded = next(n for n in FEATURES if n >= self.features)

    def shape(self, kind: str) -> Any:
        """The tiles of a pass; None if the device has no room for any."""
        kernels, facts = room("cuda.attention"), required().devices[self.index].attributes
        halves = ((64, 64), (64, 32)) if kind == "forward" and self.padded <= 64 else ((64, 32),)
        shapes = [kernels.Shape(self.element, self.padded, *sizes) for sizes in TILES.get(self.element, halves)]
        space, most = facts["shared_memory_per_multiprocessor"], facts["shared_memory_per_block_optin"]
        needs = [shape.shared_bytes(kernels.own_of(kind)) for shape in shapes]
        twice = [shape for shape, n in zip(shapes, needs, strict=True) if 2 * (n + RESERVED) <= space and n <= most]
        return twice[0] if twice else shapes[-1] if needs[-1] <= most else None

    def passes(self, backward: bool) -> list[tuple[str, Any]] | None:
        """The kernels that make the results or the gradients, with their tiles; None if one has no room."""
        kinds = ["dq", "dk", "dv"] if backward else ["forward"]
        found = [(kind, self.shape(kind)) for kind in kinds]
        return None if any([shape is None for _, shape in found]) else found

    def run(self, kind: str, shape: Any, arrays: dict[str, Any], out: Any) -> None:
        """Launch a pass; `arrays` has what is not an operand of the forward."""
        counted("attention")
        kernels = room("cuda.attention")
        given = {"q": self.query, "k": self.key, "v": self.value, **arrays}
        rows = [given[letter] for letter in "qkvog" if letter in given] + [out]
        wide = 16 // out.itemsize
        even = self.features % wide == 0 and not any([a.address % 16 for a in rows])
        even = even and not any([step % wide for a in rows for step in steps_of(a)])
        ahead = required().devices[self.index].attributes["major"] >= 8
        letters = "w" * even + "a" * (even and ahead) + self.causal
        mask, element = self.mask, ""
        bias = (0, 0, 0, 0)
        if mask is not None:
            element = ELEMENTS[mask.dtype.name]
            steps = [step // mask.itemsize for step in mask.strides]
            bias = tuple([0] * (4 - mask.ndim) + [0 if n == 1 else s for n, s in zip(mask.shape, steps, strict=True)])
        name = kernels.name_of(kind, shape, letters, element)
        ready = function(self.index, name, lambda: kernels.text_of(kind, shape, letters, element))
        pointers = [given.get(letter) for letter in ("q", "k", "v", "o", "g", "lse", "delta")] + [mask, out]
        strides = [steps_of(given[letter]) if letter in given else (0, 0, 0) for letter in "qkvog"]
        sizes = (self.heads, self.heads // self.own, self.queries, self.keys, self.features)
        packed = struct.pack(
            f"{len(pointers)}Q{len(sizes) + 3 * len(strides) + 7}qd",
            *[0 if a is None else a.address for a in pointers],
            *sizes, *[step for steps in strides for step in steps], *steps_of(out), *bias, self.factor,
        )  # fmt: skip
        by_queries = kind in ("forward", "dq")
        tiles = -(-(self.queries if by_queries else self.keys) // shape.rows)
        grid = (tiles, self.heads if by_queries else self.own, self.batch)
        shared = shape.shared_bytes(kernels.own_of(kind))
        required().launch(self.index, ready, grid, shape.threads, stream_on(self.index), packed, shared)


def forward(query: Any, key: Any, value: Any, mask: Any, is_causal: bool, factor: float) -> Any:
    """The answers in the memory order of the queries, and the logarithms of the sums; None if no kernel can do it."""
    if not takes(query, key, value, mask):
        return None
    out = made_for([query], query.shape, query.dtype)
    query, key, value = (readable(a) for a in (query, key, value))
    call = Call(query, key, value, mask, is_causal, factor)
    passes = call.passes(False)
    if passes is None or not has_rows(out):
        return None
    lse = empty(query.shape[:3], call.kind, None, query.device)
    if required().emulated:
        counted("attention")
        given = [None if a is None else window(a) for a in (query, key, value, mask)]
        window(out)[...], window(lse)[...] = host.attention(*given, is_causal, factor)
        return [out, lse]
    call.run(*passes[0], {"lse": lse}, out)
    return [out, lse]


def gradients(
    grad: Any, query: Any, key: Any, value: Any, output: Any, lse: Any, mask: Any, is_causal: bool, factor: float
) -> Any:
    """The gradients of queries, keys and values; None if no kernel can make them."""
    more = (grad, output, lse)
    if not takes(query, key, value, mask) or not all([type(a) is DeviceArray and is_near(a) for a in more]):
        return None
    query, key, value, grad, output = (readable(a) for a in (query, key, value, grad, output))
    call = Call(query, key, value, mask, is_causal, factor)
    passes = call.passes(True)
    if passes is None:
        return None
    made = [empty(a.shape, a.dtype, None, a.device) for a in (query, key, value)]
    if required().emulated:
        counted("attention")
        given = [None if a is None else window(a) for a in (grad, query, key, value, output, lse, mask)]
        for out, found in zip(made, host.attention_backward(*given, is_causal, factor), strict=True):
            window(out)[...] = found
        return tuple(made)
    delta = empty(lse.shape, call.kind, None, query.device)
    arrays = {"o": output, "g": grad, "lse": lse, "delta": delta}
    for (kind, shape), out in zip(passes, made, strict=True):
        call.run(kind, shape, arrays, out)
    return tuple(made)
