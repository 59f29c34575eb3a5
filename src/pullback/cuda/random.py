"""The random numbers of CUDA devices: torch's, for the same seed on a device of the same size."""

from __future__ import annotations

from typing import Any

from pullback.cuda.devices import device_count, index_of, is_available, refuse, rooms
from pullback.ops.random.generator import default_on, unforeseen
from pullback.ops.random.generator import seed_all as seed_all_devices


def generator(device: Any = None) -> Any:
    """The default generator of a device."""
    return default_on(rooms().placed(index_of(device)))


def manual_seed(seed: int) -> None:
    """Seed the default generator of the current device; ignored where there is no device, as torch ignores it."""
    if is_available():
        generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the default generators of all devices; ignored where there is no device, as torch ignores it."""
    if is_available():
        seed_all_devices(int(seed))


def seed() -> None:
    """Seed the default generator of the current device with an unpredictable number; ignored where there is none."""
    if is_available():
        generator().seed()


def seed_all() -> None:
    """Seed the default generators of all devices with one unpredictable number; ignored where there is none."""
    if is_available():
        seed_all_devices(unforeseen())


def initial_seed() -> int:
    """The seed the default generator of the current device was last started from."""
    return generator().initial_seed() if is_available() else refuse()  # type: ignore[no-any-return]


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of the default generator of a device, as a tensor of 16 bytes: its seed and its offset."""
    return generator(device).get_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Put the default generator of a device into a state that `get_rng_state` returned."""
    generator(device).set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """One state per device."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Set the state of each device."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
