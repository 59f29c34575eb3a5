"""Seeding and saving the state of random numbers, under torch's module name."""

from pullback._op.declare import spaces as _spaces
from pullback.ops.random.generator import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

thread_safe_generator = _spaces["torch"]["thread_safe_generator"]

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]
