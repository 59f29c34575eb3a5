"""The parts of the soak run. Each is an endless stream of trials: (how many events, what went wrong or '')."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.soak.children import run, start

Trials = Iterator[tuple[int, str]]
MODES = ({}, {"PULLBACK_OFTEN": "2"}, {"PULLBACK_KERNELS": "numpy"}, {"PULLBACK_CACHE": ""})


def threads(rng: random.Random) -> Trials:
    """Threads that make their first calls together, then train side by side."""
    while True:
        yield run("threads", rng.randrange(2**32), **rng.choice(MODES))


def forks(rng: random.Random) -> Trials:
    """Children forked while other threads import, compile and compute."""
    while True:
        yield run("forks", rng.randrange(2**32), **rng.choice(MODES))


def interrupts(rng: random.Random) -> Trials:
    """KeyboardInterrupt by a timer, anywhere in steps of training."""
    while True:
        yield run("interrupts", rng.randrange(2**32), 200, **rng.choice(MODES[:3]))


def kills(rng: random.Random) -> Trials:
    """SIGKILL during torch.save: the file is the old one or the new one, and the next save tidies up."""
    while True:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.pt"
            run("saves", file, 1)
            for _ in range(5):
                child = start("saves", file, 0)
                assert child.stdout is not None
                child.stdout.readline()  # it has begun
                time.sleep(rng.random() * 0.05)
                child.kill()
                child.communicate()
                count, problem = run("loads", file)
                yield count, problem
            count, problem = run("saves", file, 1)
            left = sorted(set(os.listdir(folder)) - {file.name})
            yield count, problem or (f"kills: the next save left {left}" if left else "")


def disk(rng: random.Random) -> Trials:
    """No room for a file: an error, and the old file is whole."""
    mounted = Mounted()
    try:
        while True:
            yield run("disk", "limit", rng.randrange(100, 400_000))
            if os.path.exists("/dev/full"):
                yield run("disk", "device", "/dev/full")
            if mounted.folder is not None:
                yield run("disk", "folder", mounted.folder)
    finally:
        mounted.close()


class Mounted:
    """A file system of one megabyte, where this process may make one."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp()
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
        try:
            made = subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            made = False
        self.folder: str | None = folder if made else None
        if not made:
            os.rmdir(folder)

    def close(self) -> None:
        """Take it away again."""
        if self.folder is not None:
            subprocess.run(["umount", self.folder], check=False)
            os.rmdir(self.folder)


def memory(rng: random.Random) -> Trials:
    """No memory: an error of torch's, and everything works once there is room."""
    while True:
        yield run("memory", rng.randrange(2**32), rng.choice((100, 200, 400)), **rng.choice(MODES[:3]))


def hostile(rng: random.Random) -> Trials:
    """Damaged and forged files: a clean error, no code is run, little memory is taken."""
    while True:
        yield run("hostile", rng.randrange(2**32), 100)


PARTS: dict[str, tuple[Callable[[random.Random], Trials], int, str]] = {
    "threads": (threads, 6, "calls"),
    "forks": (forks, 6, "children"),
    "interrupts": (interrupts, 12, "interrupts"),
    "kills": (kills, 12, "kills"),
    "disk": (disk, 9, "saves"),
    "memory": (memory, 6, "refusals"),
    "hostile": (hostile, 10, "files"),
}
"""Each part, how many trials make a run of scale 1, and what it counts."""

if not hasattr(os, "fork"):
    for name in ("forks", "interrupts", "kills", "disk", "memory"):
        del PARTS[name]
