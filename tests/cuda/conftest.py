"""The tests of the CUDA device run on an emulated one, or on a real one where PULLBACK_CUDA=1 says so.

With PULLBACK_CUDA=simulate the text of the kernels runs on the host: see simulated.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from pullback._device import accelerators
from pullback.kernels.cuda import device, launch
from pullback.kernels.cuda.emulated import Emulated
from pullback.kernels.cuda.memory import pools

from .simulated import Simulated


@pytest.fixture(autouse=True, scope="module")
def cuda() -> Iterator[None]:
    """A device to test on, gone again afterwards: other tests expect none."""
    if os.environ.get("PULLBACK_CUDA") == "1":
        yield
        return
    before, make = device.found[:], launch.program
    if os.environ.get("PULLBACK_CUDA") == "simulate":
        there = Simulated(2)
        launch.program = there.program
    else:
        there = Emulated(2)
    device.found[:], accelerators[:] = [there], ["cuda"]
    yield
    pools.clear()
    launch.loaded.clear()
    launch.program = make
    device.found[:], accelerators[:] = before, []
