"""The tests of the CUDA device run on an emulated one, or on a real one where PULLBACK_CUDA=1 says so."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from pullback._device import accelerators
from pullback.kernels.cuda import device
from pullback.kernels.cuda.emulated import Emulated
from pullback.kernels.cuda.memory import pools


@pytest.fixture(autouse=True, scope="module")
def cuda() -> Iterator[None]:
    """A device to test on, gone again afterwards: other tests expect none."""
    if os.environ.get("PULLBACK_CUDA") == "1":
        yield
        return
    before = device.found[:]
    device.found[:], accelerators[:] = [Emulated(2)], ["cuda"]
    yield
    pools.clear()
    device.found[:], accelerators[:] = before, []
