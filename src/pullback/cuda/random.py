"""The random numbers of CUDA devices. They come from the library's one default generator, as those on the CPU do."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback.cuda.devices import device_count, index_of, is_available, refuse


def manual_seed(seed: int) -> None:
    """Seed the default generator; ignored where there is no device, as torch ignores it."""
    if is_available():
        torch.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the default generator; ignored where there is no device, as torch ignores it."""
    manual_seed(seed)


def seed() -> None:
    """Seed the default generator with an unpredictable number; ignored where there is no device."""
    if is_available():
        torch.seed()


seed_all = seed


def initial_seed() -> int:
    """The seed the default generator was last started from."""
    return torch.initial_seed() if is_available() else refuse()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of the default generator, as a tensor of bytes."""
    index_of(device)
    return torch.get_rng_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Put the default generator into a state that `get_rng_state` returned."""
    index_of(device)
    torch.set_rng_state(new_state)


def get_rng_state_all() -> list[Any]:
    """One state per device."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Set the state of each device."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
