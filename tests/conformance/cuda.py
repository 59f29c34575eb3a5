"""Every op on the CUDA device, emulated where there is none, beside torch on the CPU: all that is compared on the host.

Usage:
    PULLBACK_CUDA=emulate python -m tests.conformance.cuda                   # all ops; prints what the host does not do
    PULLBACK_CUDA=emulate python -m tests.conformance.cuda --op add sort     # these
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from pullback._tensor import wrap
from pullback.kernels.cuda.carry import upload

from . import aspects, harness
from .library import Library
from .samples import ops

WANTED = set(aspects.ALL)
KNOWN: dict[str, str] = {}
"""Ops that differ from the host on purpose, and why."""


class OnCuda(Library):
    """A library whose tensors are made on the CUDA device."""

    def tensor(self, array: np.ndarray, dtype: str, requires_grad: bool = False) -> Any:
        made = wrap(upload(super().tensor(array, dtype)._array))  # strides and all
        return made.requires_grad_() if requires_grad else made

    def array(self, tensor: Any) -> np.ndarray:
        return super().array(tensor.cpu())


def found(name: str, host: Library, device: Library, wanted: set[str]) -> list[str]:
    """What differs on the device and not on the host."""
    info = ops()[name]
    there = harness.compare_op(name, info, device, wanted)
    if not there.failed():
        return []
    here = harness.compare_op(name, info, host, wanted)
    lines = []
    for aspect, tally in there.tallies.items():
        known = here.tallies[aspect].differences if aspect in here.tallies else []
        lines += [f"{name}.{aspect}: {text}" for text in tally.differences if text not in known]
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--op", nargs="*")
    given = parser.parse_args(arguments)
    host = harness.load_peer("pullback")
    device = OnCuda(host.module)
    host.module.empty(0, device="cuda")
    total = 0
    for name in given.op or harness.collected(host):
        for line in found(name, host, device, WANTED)[:4]:
            total += 1
            print(line[:600], flush=True)
    print(total, "differences")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
