"""Worker processes: none is left behind, and the death of one is told."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pullback
from pullback.utils.data import DataLoader

LONG = 600
"""Seconds until a hang is a failure; nothing here waits so long for its verdict."""


def wait_for_no_children():
    end = time.monotonic() + LONG
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.05)
    return multiprocessing.active_children()


def test_no_worker_is_left_after_an_epoch():
    assert sum(batch.sum().item() for batch in DataLoader(range(10), 2, num_workers=2)) == 45
    assert wait_for_no_children() == []


def test_no_worker_is_left_when_an_epoch_is_abandoned():
    iterator = iter(DataLoader(range(100), 2, num_workers=2))
    next(iterator)
    del iterator
    assert wait_for_no_children() == []


def test_no_worker_is_left_after_an_interrupt():
    with pytest.raises(KeyboardInterrupt):
        for _ in DataLoader(range(100), 2, num_workers=2):
            raise KeyboardInterrupt
    assert wait_for_no_children() == []


SLOW_EPOCH = """
import multiprocessing, signal, time
from pullback.utils.data import DataLoader

class Slow:
    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        time.sleep(0.02)
        return index

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a program started in the background ignores Ctrl-C
    for number, _ in enumerate(DataLoader(Slow(), 2, num_workers=2, persistent_workers=True)):
        if number == 1:  # both have started, and leave Ctrl-C to the program
            print(*[child.pid for child in multiprocessing.active_children()], flush=True)
"""


def is_running(pid):
    """Whether there is such a process that has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(os.name != "posix", reason="a group of processes gets Ctrl-C")
def test_control_c_ends_the_program_and_its_workers(tmp_path):
    (tmp_path / "epoch.py").write_text(SLOW_EPOCH)  # a file, because workers that are not forked read it again
    environment = {**os.environ, "PYTHONPATH": str(Path(pullback.__file__).parents[1])}
    command = [sys.executable, str(tmp_path / "epoch.py")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as program:
        workers = [int(pid) for pid in program.stdout.readline().split()]
        os.killpg(program.pid, signal.SIGINT)
        _, errors = program.communicate(timeout=LONG)
    end = time.monotonic() + LONG
    while any(map(is_running, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(workers) == 2 and not any(map(is_running, workers))
    assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt")


class Dies:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_the_death_of_a_worker_is_an_error():
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Dies(), num_workers=1))
    assert wait_for_no_children() == []


class Sleeps:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        time.sleep(LONG)
        return index


@pytest.mark.slow
def test_waiting_too_long_is_an_error():
    with pytest.raises(RuntimeError, match=r"timed out after 0\.2 seconds"):
        list(DataLoader(Sleeps(), num_workers=1, timeout=0.2))
    assert wait_for_no_children() == []


def test_batches_may_come_out_of_order():
    got = sorted(batch.item() for batch in DataLoader(range(8), num_workers=2, in_order=False))
    assert got == list(range(8))
