"""The source of randomness: torch's Mersenne Twister, its kept normal samples and its saved state.

See note: random.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import numpy as np

from pullback._runtime.building import guarded
from pullback._thresholds import MANY_WORDS
from pullback.kernels.compiled import room

# The Mersenne Twister makes its numbers 624 at a time. The engine holds one such block, so that its place in the
# block is exactly the `next` of torch's state, and small draws are a slice.
BLOCK = 624

# torch's saved state, byte for byte. `normal_x` and `normal_rho` are always 0 and nobody reads them.
_STATE = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "key", "normal_y", "normal_valid", "float_normal", "float_valid"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", (BLOCK,)), "<f8", "<i4", "<f4", "?"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)

DEFAULT_SEED = 67280421310721

Make = Callable[[np.ndarray], np.ndarray]
"""What makes numbers of 32 bit words, several of them for each."""


UINT64 = np.dtype(np.uint64)
LOWER_HALF_FIRST = -1 if sys.byteorder == "little" else 1
"""The step that brings the halves of a number, upper half first, into this machine's order."""


def joined(words: np.ndarray) -> np.ndarray:
    """Numbers of 64 bits of two words each, the first being the upper half; a new array."""
    return words.reshape(-1, 2)[:, ::LOWER_HALF_FIRST].copy().view(UINT64).reshape(-1)


class Engine:
    """A generator of raw 32 and 64 bit numbers, equal to torch's CPU generator for the same seed or state.

    `next_float_normal_sample` and `next_double_normal_sample` are the halves of a Box-Muller pair not handed out yet.
    """

    __slots__ = (
        "_bits",
        "_block",
        "_end",
        "_generator",
        "_key",
        "_lock",
        "_position",
        "_tables",
        "initial_seed",
        "next_double_normal_sample",
        "next_float_normal_sample",
    )

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        # NumPy loads its random package when it is first named, which importing this module must not do.
        self._bits = np.random.MT19937(0)
        self._generator = np.random.Generator(self._bits)
        self._lock = threading.RLock()
        self._key: np.ndarray | None = None
        self.seed(seed)
        guarded(self._lock)

    def seed(self, seed: int) -> None:
        """Start again from `seed`; as in torch, 64 bits are remembered and the lower 32 are used."""
        seed = int(seed)
        with self._lock:
            self.initial_seed = seed & 0xFFFF_FFFF_FFFF_FFFF
            self._bits._legacy_seeding(seed & 0xFFFF_FFFF)
            self._begin(np.empty(0, np.uint32), 0, 0)
            self.next_float_normal_sample: float | None = None
            self.next_double_normal_sample: float | None = None

    def _begin(self, block: np.ndarray, position: int, end: int) -> None:
        """Go on from a place in another block."""
        block.flags.writeable = False
        self._block, self._position, self._end = block, position, end
        self._tables: dict[tuple[Make, int], np.ndarray | None] = {}

    def few(self, make: Make, words: int, n: int) -> np.ndarray | None:
        """Draw `n` numbers of so many words each that are all in the block, as `make` makes them of the block at once.

        They are a view, not to be written. The answer is None, and nothing is drawn, where the block has fewer, and
        where numbers of this kind are asked for the first time: a single draw is not worth a table.
        """
        with self._lock:
            start = self._position
            stop = start + n * words
            if stop > self._end:
                return None
            phase = start % words
            table = self._tables.get((make, phase))
            if table is None:
                if (make, phase) not in self._tables:
                    self._tables[make, phase] = None
                    return None
                table = self._tables[make, phase] = make(self._block[phase : BLOCK - (BLOCK - phase) % words])
            self._position = stop
            first = start // words
            return table[first : first + n]

    def raw32(self, n: int) -> np.ndarray:
        """Draw `n` numbers of 32 bits as a uint32 array, which may be read-only."""
        with self._lock:
            start = self._position
            stop = start + n
            if stop <= self._end:
                self._position = stop
                return self._block[start:stop]
            kept = self._block[start : self._end]
            missing = n - len(kept)
            if n >= MANY_WORDS and (compiled := room("random")) is not None:
                if self._key is None:
                    self._key = compiled.key_of(self._bits)
                if self._key is not None:
                    numbers, block = compiled.continue_block(self._key, kept, n)
                    self._begin(block, (missing - 1) % BLOCK + 1, BLOCK)
                    return numbers
            fresh = self._generator.integers(0, 1 << 32, -(-missing // BLOCK) * BLOCK, np.uint32)
            # A copy, lest a slice of the block keep a large draw alive.
            self._begin(fresh[-BLOCK:].copy(), BLOCK - (len(fresh) - missing), BLOCK)
            fresh = fresh[:missing]
            return np.concatenate((kept, fresh)) if len(kept) else fresh

    def raw64(self, n: int) -> np.ndarray:
        """Draw `n` numbers of 64 bits as a uint64 array; the first 32 bits drawn are the upper half."""
        return joined(self.raw32(2 * n))

    def ready(self) -> int:
        """Count the numbers left in the block, starting a new one if there are none."""
        if self._position == self._end:
            self.raw32(1)
            self._position -= 1
        return self._end - self._position

    def unread(self, n: int) -> None:
        """Give back the last `n` numbers drawn, which must come from one block."""
        with self._lock:
            self._position -= n

    def clone(self) -> Engine:
        """Make an independent engine in the same state."""
        other = Engine(0)
        other.set_state(self.get_state())
        return other

    def get_state(self) -> np.ndarray:
        """Return the state as 5056 bytes, the layout of `torch.get_rng_state()`."""
        state = np.zeros((), _STATE)
        with self._lock:
            state["seed"] = self.initial_seed
            state["left"] = self._end - self._position + 1
            state["seeded"] = 1
            state["next"] = self._position
            state["key"] = self._bits.state["state"]["key"]
            if self.next_double_normal_sample is not None:
                state["normal_y"], state["normal_valid"] = self.next_double_normal_sample, 1
            if self.next_float_normal_sample is not None:
                state["float_normal"], state["float_valid"] = self.next_float_normal_sample, True
        return np.frombuffer(state.tobytes(), np.uint8).copy()

    def set_state(self, new_state: np.ndarray) -> None:
        """Continue from a state made by `get_state` or by `torch.get_rng_state()`."""
        if not isinstance(new_state, np.ndarray) or new_state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} but found the input RNG state size to be "
                f"{new_state.size}"
            )
        state = np.frombuffer(new_state.tobytes(), _STATE)[0]
        left, position = int(state["left"]), int(state["next"])
        if not state["seeded"] or not 0 < left <= BLOCK or position + left - 1 > BLOCK:
            raise RuntimeError("Invalid mt19937 state")
        with self._lock:
            key = state["key"].astype(np.uint32)
            # From place 0 the key yields the numbers of the block it stands for, without moving on.
            self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 0}}
            self._begin(self._generator.integers(0, 1 << 32, BLOCK, np.uint32), position, position + left - 1)
            self.initial_seed = int(state["seed"])
            self.next_float_normal_sample = float(state["float_normal"]) if state["float_valid"] else None
            self.next_double_normal_sample = float(state["normal_y"]) if state["normal_valid"] else None
