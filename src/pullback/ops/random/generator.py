"""Generator: the state random numbers come from, and the functions that seed, save and restore it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback._arrays.kinds import kind_on
from pullback._device import CPU, as_device, device, place_of
from pullback._op.declare import spaces
from pullback._op.define import function
from pullback._runtime.building import made
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.random.distributions import DEFAULT_SEED, Engine


class Generator:
    """A source of random numbers, equal to torch's generator of the same device for the same seed or state."""

    __slots__ = ("__weakref__", "_device", "_engine", "_first_seed")

    _device: device
    _first_seed: int

    def __init__(self, device: Any = None) -> None:
        if device is not None and as_device(device).type != "cpu":
            if as_device(device).type == "meta":
                raise RuntimeError("META device type not an accelerator.")
            kind_on(place_of(device))  # which raises for a device that is not there
        self._device = CPU if device is None else place_of(device)
        self._first_seed = DEFAULT_SEED

    def __getattr__(self, name: str) -> Any:
        """The engine is made when it is first needed: most programs that import the library draw nothing."""
        if name != "_engine":
            raise AttributeError(f"'Generator' object has no attribute {name!r}")
        return made(self._make_engine)

    def _make_engine(self) -> Engine:
        try:
            return object.__getattribute__(self, "_engine")  # type: ignore[no-any-return]  # made by another thread
        except AttributeError:
            engine = Engine if self._device is CPU else kind_on(self._device).engine or Engine
            self._engine = engine(self._first_seed)
            return self._engine

    @property
    def device(self) -> device:
        """Whose numbers are made."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Start again from `seed`."""
        if not isinstance(seed, int) or type(seed) is bool:
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        self._engine.seed(check_seed(seed))
        return self

    def seed(self) -> int:
        """Start again from a seed nobody can foresee, and return it."""
        seed = unforeseen()
        self._engine.seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed the generator was started from."""
        return self._engine.initial_seed

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes."""
        return wrap(self._engine.get_state())

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state `get_state` returned."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state._array.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        self._engine.set_state(np.ascontiguousarray(new_state._array))
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        out = Generator(self._device)
        out._engine = self._engine.clone()
        return out

    def get_offset(self) -> int:
        """How much was drawn; generators of the CPU do not count it."""
        if self._device is CPU:
            raise RuntimeError("CPU Generator does not use offset")
        return self._engine.offset  # type: ignore[attr-defined, no-any-return]

    def set_offset(self, offset: int) -> Generator:
        """Go on as if so much had been drawn; generators of the CPU do not count it."""
        if self._device is CPU:
            raise RuntimeError("CPU Generator does not use offset")
        if offset % 4:
            raise RuntimeError("offset must be a multiple of 4")
        self._engine.offset = int(offset)  # type: ignore[attr-defined]
        return self

    def graphsafe_get_state(self) -> Generator:
        """Raise: only the states of CUDA's generators can be captured in graphs."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Raise: only the states of CUDA's generators can be captured in graphs."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def __reduce__(self) -> Any:
        return restored, (self._engine.get_state(), str(self._device))


Generator.__module__ = "torch._C"


def restored(state: np.ndarray[Any, Any], place: str = "cpu") -> Generator:
    """A generator that continues from a pickled state."""
    out = Generator(place)
    out._engine.set_state(state)
    return out


def check_seed(seed: Any) -> int:
    """A seed as torch takes it: anything that fits 64 bits, signed or not."""
    seed = int(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError("Overflow when unpacking long long")
    return seed


def unforeseen() -> int:
    """A seed from the entropy of the system."""
    return int.from_bytes(os.urandom(8), "little")


default_generator = Generator()
default_generator._first_seed = unforeseen()
"""Drawn when the library is imported, so that the children of a process begin where it would."""
spaces["torch"].update(Generator=Generator, default_generator=default_generator)


generators: dict[device, Generator] = {}
"""The default generators of other devices, made when they are first needed."""
seeds: list[int] = []
"""The last seed that all of them were given, if there was one: those that are made later begin with it."""


def default_on(place: device) -> Generator:
    """The default generator of a device."""
    if place is CPU:
        return default_generator
    found = generators.get(place)
    if found is None:
        found = generators[place] = Generator(place)
        found._first_seed = seeds[0] if seeds else unforeseen()
    return found


def seed_all(seed: int) -> None:
    """Seed the default generators of all other devices, those that are yet to be made too."""
    seeds[:] = [check_seed(seed)]
    for one in generators.values():
        one.manual_seed(seed)


def engine_of(name: str, generator: Generator | None) -> Engine:
    """The engine to draw from; None means the default generator's."""
    if generator is None:
        return default_generator._engine
    if not isinstance(generator, Generator):
        raise TypeError(f"{name}(): argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator._engine


@function(raw=True, method=False)
def manual_seed(seed: int) -> Generator:
    """Seed the default generator of random numbers, and return it; the same seed gives the same numbers again.

    `seed` is an integer that fits 64 bits, signed or not. The numbers are those of torch's CPU generator.
    """
    made = default_generator.manual_seed(int(seed))
    seed_all(int(seed))
    return made


@function(raw=True, method=False)
def seed() -> int:
    """Seed the default generator with an unpredictable number, and return that number."""
    made = default_generator.seed()
    seed_all(made)
    return made


@function(raw=True, method=False)
def initial_seed() -> int:
    """Return the seed the default generator was last started from."""
    return default_generator.initial_seed()


@function(raw=True, method=False)
def get_rng_state() -> Tensor:
    """Return the state of the default generator, as a tensor of bytes; `set_rng_state` takes it back."""
    return default_generator.get_state()


@function(raw=True, method=False)
def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator into a state that `get_rng_state` returned."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Run a block and restore the state of the default generators afterwards, whatever the block draws or seeds.

    With `enabled=False` nothing is restored. `devices` are those whose generators are restored beside the CPU's, by
    default all.
    """
    as_device(device_type)
    if not enabled:
        yield
        return
    places = list(generators) if devices is None else [place_of(named(one, device_type)) for one in devices]
    engines = [default_on(place)._engine for place in (CPU, *places)]
    states = [engine.get_state() for engine in engines]
    try:
        yield
    finally:
        for engine, state in zip(engines, states, strict=True):
            engine.set_state(state)


def named(one: Any, kind: str) -> Any:
    """A device by its number, or as it is named."""
    return f"{kind}:{one}" if isinstance(one, int) else one
