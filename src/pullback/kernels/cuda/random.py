"""Random numbers on the device: those torch's CUDA generator draws for the same seed, on a device of the same size.

A generator is a seed and an offset. A draw takes some turns from every thread's sequence, and moves the offset by four
for each (kernels/jit/cuda/philox.py). How the numbers fall onto elements depends on how many threads there are, and
thereby on the device, as in torch.

Draws that have no kernel (poisson, binomial, ...) take theirs from the default generator of the host.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._tensor import preserve_format
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.carry import OnHost, upload
from pullback.kernels.cuda.device import placed, required, stream_on
from pullback.kernels.cuda.kind import outlines
from pullback.kernels.cuda.launch import BLOCK, counted, function, launch
from pullback.kernels.cuda.making import known
from pullback.kernels.cuda.memory import pool_of
from pullback.kernels.cuda.native import NATIVE
from pullback.kernels.cuda.pointwise import made_for, pointwise
from pullback.kernels.cuda.recording import spoil
from pullback.kernels.numpy.random import distributions as host
from pullback.ops.nn.activation.dropout import divided, kept_elements, scaled_elements
from pullback.ops.random import draw as drawing
from pullback.ops.random import fill, generator

MASK = (1 << 64) - 1
WIDE = 1 << 28
"""From this range on integers are drawn from 64 bits."""


class Philox:
    """The state of a generator: what was drawn is where it stands in all its sequences."""

    def __init__(self, seed: int) -> None:
        self.initial_seed, self.offset = seed & MASK, 0

    def seed(self, seed: int) -> None:
        """Start again."""
        self.initial_seed, self.offset = seed & MASK, 0

    def get_state(self) -> Any:
        """The seed and the offset, eight bytes each."""
        return np.frombuffer(struct.pack("<QQ", self.initial_seed, self.offset), np.uint8).copy()

    def set_state(self, state: Any) -> None:
        """Go on from there; torch takes a seed alone, too."""
        if state.nbytes not in (8, 16):
            raise RuntimeError("RNG state is wrong size")
        parts = struct.unpack(f"<{state.nbytes // 8}Q", state.tobytes())
        self.initial_seed, self.offset = parts[0], parts[1] if len(parts) > 1 else 0

    def clone(self) -> Philox:
        """Another one that stands where this one does."""
        other = Philox(self.initial_seed)
        other.offset = self.offset
        return other

    def taken(self, turns: int) -> int:
        """Where a draw of so many turns begins."""
        before = self.offset
        self.offset += 4 * turns
        return before

    def __getattr__(self, name: str) -> Any:
        return getattr(generator.default_generator._engine, name)  # what has no kernel is drawn on the host


def engine_on(index: int) -> Any:
    """The default generator of a device."""
    return generator.default_on(placed(index))._engine


# ------------------------------------------------------------------ draws


def spread(index: int, count: int, unroll: int) -> tuple[int, int]:
    """How many blocks draw so many numbers, and how many turns each of their threads takes."""
    facts = required().devices[index].attributes
    most = facts["multi_processor_count"] * (facts["max_threads_per_multi_processor"] // BLOCK)
    blocks = min(-(-count // BLOCK), most)
    return blocks, (count - 1) // (BLOCK * blocks * unroll) + 1


def draw(
    engine: Any, kind: str, shape: Any, a: Any, b: Any, stop: Any, place: Any = None, near: int = 0, blocks: int = 0
) -> DeviceArray:
    """A new array of draws, as the kernels make them; `near` says how many neighbours a turn gives, if it does, and
    `blocks` how many draw if not as many as the device likes."""
    place = placed() if place is None else place
    index = place.index or 0
    if stream_on(index) in pool_of(index).captured:
        raise NotImplementedError(
            "random numbers cannot be drawn while a CUDA graph is captured: every replay would draw the same; draw "
            "them before, and copy them into a tensor that the graph reads"
        )
    if not isinstance(engine, Philox):
        if engine is not generator.default_generator._engine:
            raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
        engine = engine_on(index)
    unroll = {"wide": 2, "uniform64": 2, "normal64": 2}.get(kind, 4)
    dtype = np.float64 if kind.endswith("64") else np.int64 if kind in ("integers", "wide") else np.float32
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (int(shape),)
    out = empty(shape, dtype, None, place)
    count = math.prod(shape)
    if not count:
        return out  # type: ignore[no-any-return]
    spoil()  # each call draws others
    blocks, turns = (blocks, 1) if blocks else spread(index, count, unroll)
    offset = engine.taken(near or turns) // 4
    kernels = room("cuda.philox")
    counted("random")
    if kernels is None or required().emulated:
        made = computed(kind, count, engine.initial_seed, offset, blocks * BLOCK, bool(near), a, b, stop)
        required().upload(index, out.address, np.ascontiguousarray(made.astype(dtype, copy=False)), stream_on(index))
        return out  # type: ignore[no-any-return]
    name = kernels.name_of(kind, bool(near))
    ready = function(index, name, lambda: kernels.text_of(kind, bool(near)))
    letter = "q" if dtype is np.int64 else "d"
    seed = engine.initial_seed if engine.initial_seed < 1 << 63 else engine.initial_seed - (1 << 64)
    launch(index, ready, (blocks, 1, 1), "Qqqq" + letter * 3, out.address, count, seed, offset, a, b, stop)
    return out  # type: ignore[no-any-return]


def computed(kind: str, count: int, seed: int, offset: int, threads: int, near: bool, a: Any, b: Any, stop: Any) -> Any:
    """What the kernels compute, by NumPy."""
    unroll = {"wide": 2, "uniform64": 2, "normal64": 2}.get(kind, 4)
    at = np.arange(count, dtype=np.uint64)
    size = np.uint64(threads * unroll)
    turn, within = at // size, at % size
    if near:
        thread, place = within // np.uint64(unroll), within % np.uint64(unroll)
    else:
        thread, place = within % np.uint64(threads), within // np.uint64(threads)
    x, place = words(turn + np.uint64(offset), thread, seed), place.astype(np.int64)
    if kind in ("integers", "wide"):
        thirty_two = np.uint64(32)
        numbers = x if kind == "integers" else [(x[0] << thirty_two) | x[1], (x[2] << thirty_two) | x[3]]
        return np.choose(place, numbers) % np.uint64(a) + np.int64(b).astype(np.uint64)
    if kind.endswith("64"):
        shift = np.uint64(21)
        first = (x[0] ^ (x[1] << shift)) * 2.0**-53 + 2.0**-54
        second = (x[2] ^ (x[3] << shift)) * 2.0**-53 + 2.0**-54
        if kind == "normal64":
            r = np.sqrt(-2.0 * np.log(first))
            first, second = r * np.sin(2.0 * math.pi * second), r * np.cos(2.0 * math.pi * second)
        values = np.choose(place, [first, second])
    else:
        numbers = [fused(word.astype(np.float32), 2.0**-32, 2.0**-33) for word in x]
        if kind == "tosses":
            return np.where(np.choose(place, numbers) < np.float32(stop), np.float32(a), np.float32(b))
        if kind == "normal":
            turn_over = float(np.float32(6.2831855))
            angles = [fused(word.astype(np.float32), turn_over * 2.0**-32, turn_over * 2.0**-33) for word in x[1::2]]
            sizes = [np.sqrt(np.float32(-2) * np.log(u)) for u in numbers[::2]]
            numbers = [f(angle) * r for angle, r in zip(angles, sizes, strict=True) for f in (np.sin, np.cos)]
        values = np.choose(place, numbers)
    made = fused(values, a, b) if values.dtype == np.float32 else values * a + b
    return np.where(made == made.dtype.type(stop), made.dtype.type(b), made)


def fused(x: Any, a: float, b: float) -> Any:
    """x * a + b of float32, rounded once."""
    return (x.astype(np.float64) * np.float32(a) + np.float32(b)).astype(np.float32)


def words(counter: Any, thread: Any, seed: int) -> list[Any]:
    """The four words of turns."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    state = [counter & low, counter >> half, thread & low, thread >> half]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = state[0] * np.uint64(0xD2511F53), state[2] * np.uint64(0xCD9E8D57)
        state = [
            (second >> half) ^ state[1] ^ np.uint64(keys[0]), second & low,
            (first >> half) ^ state[3] ^ np.uint64(keys[1]), first & low,
        ]  # fmt: skip
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, (0x9E3779B9, 0xBB67AE85), strict=True)]
    return state


# ------------------------------------------------------------------ distributions


def floating(kind: str, engine: Any, shape: Any, dtype: Any, a: float, b: float, stop: float) -> Any:
    """Floats: halves are drawn in float32, complex numbers as pairs."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        factor = a / math.sqrt(2) if kind == "normal" else a
        return floating(kind, engine, (*shape, 2), part, factor, b, stop).view(dtype).reshape(shape)
    wide = dtype == np.float64
    made = draw(engine, kind + ("64" if wide else ""), shape, a, b, stop)
    if made.dtype == dtype:
        return made
    made = made.astype(dtype)
    if kind == "uniform" and is_half(dtype):  # rounding may have reached the end
        ended = pointwise(begun_again, (made, stop, b), {})
        made = begun_again(made, stop, b) if ended is None else ended  # on the host
    return made


def begun_again(made: Any, stop: float, start: float) -> Any:
    """What has reached the end stands at the start."""
    return np.where(made == made.dtype.type(stop), made.dtype.type(start), made)


def uniform(engine: Any, shape: Any, dtype: Any, low: float = 0.0, high: float = 1.0) -> Any:
    """Numbers of [low, high)."""
    host.uniform(generator.default_generator._engine, (0,), np.dtype(dtype), low, high)  # which refuses
    return floating("uniform", engine, shape, dtype, high - low, low, high)


def normal(engine: Any, shape: Any, dtype: Any, mean: float = 0.0, std: float = 1.0, contiguous: bool = True) -> Any:
    """Normal numbers."""
    host.normal(generator.default_generator._engine, (0,), np.dtype(dtype), mean, std)  # which refuses
    return floating("normal", engine, shape, dtype, std, mean, math.nan)


def random_from_to(engine: Any, shape: Any, dtype: Any, low: int, high: int | None) -> Any:
    """Integers of [low, high)."""
    dtype = np.dtype(dtype)
    host.random_from_to(generator.default_generator._engine, (0,), dtype, low, high)  # which refuses
    if high is None or dtype.kind not in "iub" or not 0 < high - low < 1 << 63:
        return host.random_from_to(generator.default_generator._engine, shape, dtype, low, high)
    kind = "integers" if high - low < WIDE else "wide"
    made = draw(engine, kind, shape, high - low, low, 0)
    return made if made.dtype == dtype else made.astype(dtype)


def bernoulli(engine: Any, shape: Any, dtype: Any, p: float = 0.5) -> Any:
    """Ones with one probability."""
    dtype = np.dtype(dtype)
    host.bernoulli(generator.default_generator._engine, (0,), dtype, p)  # which refuses
    made = draw(engine, "uniform64" if dtype == np.float64 else "uniform", shape, 1.0, 0.0, math.nan)
    return np.less(made, made.dtype.type(p)).astype(dtype)


# ------------------------------------------------------------------ what is made of uniform and normal numbers


def waited(u: Any, rate: float) -> Any:
    """Waiting times, from numbers of (0, 1]: near one the logarithm stays away from zero."""
    kind, least = u.dtype.type, float(np.finfo(u.dtype).eps) / 2
    logarithm = np.where(u >= kind(1 - least), kind(-least), np.log(u))
    return kind(kind(-1) / kind(rate)) * logarithm


def slanted(u: Any, median: float, sigma: float) -> Any:
    """Cauchy numbers; float32 stays away from both ends, where the tangent is infinite."""
    kind = u.dtype.type
    if u.dtype == np.float32:
        least = kind(np.finfo(u.dtype).eps)
        u = np.maximum(np.minimum(u, kind(1) - least), least)
    return kind(median) + kind(sigma) * np.tan(kind(math.pi) * (u - kind(0.5)))


def counted_tosses(u: Any, p: float) -> Any:
    """How often is tossed until the first success."""
    kind = u.dtype.type
    return np.ceil(np.log(u) / np.log1p(kind(-p)))


def raised(z: Any, mean: float, std: float) -> Any:
    """The exponentials of normal numbers."""
    kind = z.dtype.type
    return np.exp(z * kind(std) + kind(mean))


def transformed(kind: str, transform: Any, refusing: Any) -> Any:
    """Draws of a distribution that are made of uniform numbers of (0, 1], or of normal ones, one for each element."""

    def make(engine: Any, shape: Any, dtype: Any, *bounds: float) -> Any:
        dtype = np.dtype(dtype)
        on_host, some = generator.default_generator._engine, dtype.kind in "iub" and 0 not in shape
        refusing(on_host.clone() if some else on_host, (int(some),), dtype, *bounds)
        found = draw(engine, kind + ("64" if dtype == np.float64 else ""), shape, 1.0, 0.0, math.nan)
        made = pointwise(transform, (found, *bounds), {}, found) if found.size else found
        if made is None:  # on the host, without the compiler
            found[...] = transform(found.on_host(), *bounds)
            made = found
        return made if made.dtype == dtype else made.astype(dtype)

    return make


exponential = transformed("uniform", waited, host.exponential)
cauchy = transformed("uniform", slanted, host.cauchy)
geometric = transformed("uniform", counted_tosses, host.geometric)
log_normal = transformed("normal", raised, host.log_normal)


# ------------------------------------------------------------------ draws for arrays


def tosses(self: Any, generator_given: Any = None) -> Any:
    """Ones with the probabilities of an array: neighbours are drawn together."""
    if self.dtype.kind != "f":
        return None
    engine = generator.engine_of("bernoulli", generator_given)
    host.bernoulli_of_array(generator.default_generator._engine, np.zeros(0, self.dtype), (0,), self.dtype)
    made = draw(engine, "uniform", self.shape, 1.0, 0.0, math.nan, self.device, near=3)
    return np.less_equal(made, self).astype(self.dtype)


def kept(array: Any, engine: Any, p: float) -> Any:
    """Ones with probability 1 - p, as dropout draws them: four neighbours at a time where the size allows it."""
    if not array.flags.c_contiguous or array.dtype.kind != "f" or array.dtype == np.float64 or array.size % 4:
        return bernoulli_like(array, engine, 1 - p)
    _, turns = spread(array.device.index or 0, array.size, 4)
    made = draw(engine, "uniform", array.shape, 1.0, 0.0, math.nan, array.device, near=turns)
    return np.less(made, np.float32(1 - p)).astype(array.dtype)


def scaled(array: Any, engine: Any, p: float) -> Any:
    """The noise of dropout: such ones over the probability of being kept, drawn and written by one kernel."""
    if not array.flags.c_contiguous or array.dtype.kind != "f" or array.dtype == np.float64 or array.size % 4:
        return divided(kept(array, engine, p), 1 - p)
    _, turns = spread(array.device.index or 0, array.size, 4)
    one = float(np.float32(1) / np.float32(1 - p))
    made = draw(engine, "tosses", array.shape, one, 0.0, float(np.float32(1 - p)), array.device, near=turns)
    return made if made.dtype == array.dtype else made.astype(array.dtype)


def bernoulli_like(array: Any, engine: Any, p: float) -> Any:
    """Ones with one probability in the shape and memory order of an array."""
    out = np.empty_like(array)
    ordered = host.fill_order(out)
    ordered[...] = bernoulli(engine, ordered.shape, array.dtype, p)
    return out


def normal_around(mean: Any, std: Any, generator_given: Any = None) -> Any:
    """Normal numbers with means and deviations from arrays."""
    engine = generator.engine_of("normal", generator_given)
    arrays = [value for value in (mean, std) if isinstance(value, np.ndarray)]
    if any([a.dtype.kind != "f" for a in arrays]):
        return None
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    numbers = floating("normal", engine, shape, arrays[0].dtype, 1.0, 0.0, math.nan)
    return numbers * std + mean


class Drawing(OnHost):
    """A function of the host's draws, here on the device."""

    __slots__ = ("here",)

    def __init__(self, function: Any, here: Any) -> None:
        super().__init__(function)
        self.here = here

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.here(*args, **kwargs)


def drawn(make: Any, engine: Any, size: Any, dtype: Any, *bounds: Any) -> Any:
    """What a function draws."""
    if isinstance(make, Drawing):
        return make(engine, size, dtype, *bounds)
    made = make(engine, size, dtype, *bounds)
    return upload(made) if type(made) is np.ndarray else made


def array_drawn(pattern: Any, dtype: Any, format: Any, make: Any, engine: Any, *bounds: Any) -> Any:
    """An array like another, of draws."""
    array = known_like(pattern, dtype, format)
    ordered = host.fill_order(array)
    ordered[...] = make(engine, ordered.shape, dtype, *bounds)
    return array


def known_like(pattern: Any, dtype: Any, format: Any) -> Any:
    """`array_like` on the device: of a pattern that may be the host's."""
    if type(pattern) is DeviceArray and (format is None or format is preserve_format):
        return made_for([pattern], pattern.shape, dtype)
    outline = pattern if type(pattern) is np.ndarray else outlines.of(pattern)
    laid = drawing.array_like(outline, dtype, format)
    return empty(laid.shape, dtype, laid.strides)


HERE = {host.uniform: uniform, host.normal: normal, host.random_from_to: random_from_to, host.bernoulli: bernoulli,
        host.exponential: exponential, host.cauchy: cauchy, host.geometric: geometric,
        host.log_normal: log_normal}  # fmt: skip
known.update({there: Drawing(there, here) for there, here in HERE.items()})
known.update({drawing.drawn: drawn, drawing.array_drawn: array_drawn, kept_elements: kept, scaled_elements: scaled})
for _op in (fill.draw_uniform, fill.draw_normal, fill.draw_random_to, fill.draw_random_from_to, fill.draw_exponential,
            fill.draw_cauchy, fill.draw_geometric, fill.draw_log_normal):  # fmt: skip
    NATIVE[_op.op.key] = _op.op.declared
NATIVE[drawing.tosses_of.op.key] = tosses
for _op in (drawing.normal_around_tensor, drawing.normal_with_tensor, drawing.normal_of_tensors):
    NATIVE[_op.op.key] = normal_around
DeviceArray.engine = Philox
