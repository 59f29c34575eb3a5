"""A namespace of ops shows what is published there and nothing of how it came about: `dir` is a table of contents."""

from importlib import import_module

import pytest

import pullback  # noqa: F401  # declares the ops
from pullback._op.declare import spaces

NAMESPACES = ["fft", "functional", "linalg", "nn.functional", "random", "signal.windows", "sparse", "special"]
OTHERS = {"sparse": {"check_sparse_tensor_invariants"}, "random": {"Generator", "default_generator", "fork_rng"}}
"""What stands there beside ops."""


@pytest.mark.parametrize("name", NAMESPACES)
def test_it_shows_only_what_is_published(name):
    namespace = import_module(f"pullback.{name}")
    published = spaces.get(name, {}).keys() | spaces["torch"].keys() | OTHERS.get(name, set())
    assert {shown for shown in dir(namespace) if not shown.startswith("_")} <= published
