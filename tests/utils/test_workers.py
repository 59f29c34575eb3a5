"""Worker processes: none is left behind, and the death of one is told."""

import multiprocessing
import os
import signal
import time

import pytest

from pullback.utils.data import DataLoader


def wait_for_no_children():
    end = time.monotonic() + 10
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
        time.sleep(3)
        return index


def test_waiting_too_long_is_an_error():
    with pytest.raises(RuntimeError, match=r"timed out after 0\.2 seconds"):
        list(DataLoader(Sleeps(), num_workers=1, timeout=0.2))
    assert wait_for_no_children() == []


def test_batches_may_come_out_of_order():
    got = sorted(batch.item() for batch in DataLoader(range(8), num_workers=2, in_order=False))
    assert got == list(range(8))
