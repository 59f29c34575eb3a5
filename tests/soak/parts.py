"""The parts of the soak run. Each is an endless stream of trials: (how many events, what went wrong or '')."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.soak.children import PROGRAMS, environment, run, start

Trials = Iterator[tuple[int, str]]
LAUNCH = (sys.executable, "-m", "pullback", "launch")
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


def ranks(rng: random.Random) -> Trials:
    """Ranks killed, stopped or out of memory while they train: the others go on, and every step is right."""
    while True:
        yield lose_ranks(rng, size=5, losses=4, transport=rng.choice(("", "sockets")))


def lose_ranks(
    rng: random.Random, size: int, losses: int, transport: str, stop: float = 0.1, mpiexec: str = ""
) -> tuple[int, str]:
    """Train on some ranks, of which some are lost; how many, and what went wrong. `mpiexec` is that of Open MPI."""
    words: list[object] = [*LAUNCH, "-n", size, "--elastic"]
    if mpiexec:
        words = [mpiexec, "--with-ft", "ulfm", "--oversubscribe", "-n", size, sys.executable]
    return train(
        [*words, PROGRAMS / "ranks.py"],
        transport,
        [5],
        lambda folder, child: lose(rng, folder, size, losses, stop, child),
        lambda lost: size - lost,
    )


def restarts(rng: random.Random) -> Trials:
    """The same under --restarts: all begin anew from the last checkpoint, and every step is right."""
    while True:
        yield lose_jobs(rng, 3, 4, rng.choice(("", "sockets")), rng.choice(("ddp", "fully_shard")))


def lose_jobs(
    rng: random.Random, size: int, losses: int, transport: str, how: str, stop: float = 0.1
) -> tuple[int, str]:
    """Train on some ranks, of which one is lost in each of the first attempts; how many, and what went wrong."""
    words = [*LAUNCH, "-n", size, "--restarts", losses, PROGRAMS / "restarts.py"]

    def disturb(folder: Path, child: subprocess.Popen[bytes]) -> tuple[int, list[str]]:
        sent: list[str] = []
        for attempt in range(losses):
            files = [folder / f"{attempt}-{rank}.pid" for rank in range(size)]
            if not until_all(files, child):
                break  # it has come to its end before
            sent += strike(rng, rng.choice(files), stop)
        return len(sent), sent

    return train(words, transport, [5, how], disturb, lambda lost: size)


def train(
    words: list[object],
    transport: str,
    given: list[object],
    disturb: Callable[[Path, subprocess.Popen[bytes]], tuple[int, list[str]]],
    wanted: Callable[[int], int],
) -> tuple[int, str]:
    """Start a program that trains, disturb it, and look how many ranks come to its end: (how many were lost, what
    went wrong). `wanted` says how many should where so many were lost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [*words, folder, 60, 0.02, *given]
        with open(folder / "said", "w") as said:
            child = subprocess.Popen(
                [str(word) for word in command],
                stdout=said,
                stderr=said,
                env=environment(PULLBACK_TRANSPORT=transport),
            )
        try:
            lost, sent = disturb(folder, child)
            child.wait(120)
        except subprocess.TimeoutExpired:
            return 0, f"ranks: hung with {transport or 'shared memory'}\n{(folder / 'said').read_text()[-3000:]}"
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGINT)  # it ends its ranks
                try:
                    child.wait(20)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
        right = len(list(folder.glob("*.right")))
        if child.returncode == 0 and right >= wanted(lost):
            return lost, ""
        said_last = (folder / "said").read_text()[-3000:]
        return lost, f"ranks: status {child.returncode}, {right} right, {sent} {transport} {given}\n{said_last}"


def until_all(files: list[Path], child: subprocess.Popen[bytes]) -> bool:
    """Wait until all files are there; whether they are, or the program has ended without them."""
    end = time.monotonic() + 90
    while not all(file.exists() for file in files):
        if child.poll() is not None:
            return False
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired("ranks", 90)
        time.sleep(0.01)
    return True


def strike(rng: random.Random, file: Path, stop: float) -> list[str]:
    """Send a signal to a rank, at any time soon; what was sent."""
    time.sleep(rng.random() * 0.5)
    draw = rng.random()
    number = signal.SIGSTOP if draw < stop else signal.SIGUSR1 if draw < 0.3 else signal.SIGKILL
    try:
        os.kill(int(file.read_text()), number)
    except ProcessLookupError:
        return []  # it has ended already
    return [f"{number.name} to {file.stem}"]


def lose(
    rng: random.Random, folder: Path, size: int, losses: int, stop: float, child: subprocess.Popen[bytes]
) -> tuple[int, list[str]]:
    """Send signals to some ranks once all have begun."""
    if not until_all([folder / f"{rank}.pid" for rank in range(size)], child):
        return 0, []
    sent: list[str] = []
    for rank in rng.sample(range(size), losses):
        sent += strike(rng, folder / f"{rank}.pid", stop)
    return len(sent), sent


PARTS: dict[str, tuple[Callable[[random.Random], Trials], int, str]] = {
    "threads": (threads, 6, "calls"),
    "forks": (forks, 6, "children"),
    "interrupts": (interrupts, 12, "interrupts"),
    "kills": (kills, 12, "kills"),
    "disk": (disk, 9, "saves"),
    "memory": (memory, 6, "refusals"),
    "hostile": (hostile, 10, "files"),
    "ranks": (ranks, 50, "lost ranks"),
    "restarts": (restarts, 15, "lost ranks"),
}
"""Each part, how many trials make a run of scale 1, and what it counts."""

if not hasattr(os, "fork"):
    for name in ("forks", "interrupts", "kills", "disk", "memory", "ranks", "restarts"):
        del PARTS[name]
