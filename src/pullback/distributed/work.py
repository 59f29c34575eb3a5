"""`Work`: a collective that runs, or has run; and the lines in which they wait for their turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pullback.jit import futures

NO_TIMEOUT = timedelta(0)


class Future(futures.Future):
    """A result that another thread will bring."""

    def __init__(self, *, devices: Any = None) -> None:
        super().__init__(devices=devices)
        self._came, self._one = threading.Event(), threading.RLock()
        self.work: Any = None
        """What brings it, if whoever waits can do that himself."""

    def wait(self) -> Any:
        """The result, once it is there, or the error in its place."""
        if self.work is not None and self.work._line is not None:
            self.work._line.do(self.work)
        self._came.wait()
        return self.value()

    def settle(self, value: Any, error: Any) -> None:
        """Keep what came, and call those who wait for it."""
        with self._one:
            try:
                super().settle(value, error)
            finally:
                self._came.set()

    def add_done_callback(self, callback: Callable[[futures.Future], Any]) -> None:
        """Call a function with this Future once there is a result."""
        with self._one:
            super().add_done_callback(callback)

    def then(self, callback: Callable[[futures.Future], Any]) -> futures.Future:
        """A Future of what a function makes of this one."""
        following = Future()
        following.work = self.work

        def run(done: futures.Future) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(run)
        return following


class Work:
    """Something that was asked for: wait for it, or look whether it is done.

    Who waits does it himself if nobody has begun with it: no other thread has to wake up for that.
    """

    def __init__(self, result: Any = (), line: Line | None = None) -> None:
        self._result, self._line, self._source = result, line, -1
        self._error: BaseException | None = None
        self._taken = self._done = False
        self._gate = threading.Lock()  # open once it is done
        self._gate.acquire()
        self._future: Future | None = None

    def _finish(self, error: BaseException | None) -> None:
        self._error = error
        with promising:
            self._done = True
            future = self._future
        self._gate.release()
        if future is not None:
            self._settle(future)

    def _settle(self, future: Future) -> None:
        if self._error is None:
            future.set_result(self.result())
        else:
            future.settle(futures.ABSENT, self._error)

    def wait(self, timeout: timedelta = NO_TIMEOUT) -> bool:
        """Wait until it is done; an error it ended with is raised here."""
        if not self._done:
            seconds = timeout.total_seconds()
            if not seconds and self._line is not None:
                self._line.do(self)
            if not self._gate.acquire(timeout=seconds or -1):
                raise RuntimeError(f"Operation timed out after {round(seconds * 1000)} ms")
            self._gate.release()
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it is done, well or not."""
        return self._done

    def is_success(self) -> bool:
        """Whether it is done, and well."""
        return self._done and self._error is None

    def exception(self) -> BaseException | None:
        """The error it ended with."""
        return self._error

    def result(self) -> Any:
        """The tensors it wrote."""
        return list(self._result)

    def source_rank(self) -> int:
        """Who sent what was received."""
        return self._source

    _source_rank = source_rank

    def synchronize(self) -> None:
        """Wait."""
        self.wait()

    def get_future(self) -> Future:
        """The tensors it writes, as a Future."""
        with promising:
            made, done = self._future, self._done
            if made is None:
                made = self._future = Future()
                made.work = self
            else:
                done = False  # whoever made it settles it
        if done:
            self._settle(made)
        return made


class Line:
    """Work done one after the other: by who waits for it, or else by a thread of its own."""

    def __init__(self, name: str) -> None:
        self.name, self.turn = name, threading.Lock()
        self.waiting: deque[tuple[Callable[[], Any], Work]] = deque()
        self.wake = threading.Semaphore(0)
        self.thread: threading.Thread | None = None
        self.closed = False

    def run(self, job: Callable[[], Any], result: Any, later: bool) -> Work:
        """Do something; the errors of what is done at once are raised here."""
        work = Work(result, self)
        self.waiting.append((job, work))
        if not later:
            work.wait()
            return work
        if self.thread is None:
            self.thread = threading.Thread(target=self.serve, name=self.name, daemon=True)
            self.thread.start()
        self.wake.release()
        return work

    def do(self, wanted: Work | None) -> None:
        """Do what waits, up to one piece of work; None: the next one, if there is any."""
        while wanted is None or not wanted._taken:
            with self.turn:  # entries are taken in this lock only, so they are done in their order
                if not self.waiting or (wanted is not None and wanted._taken):
                    return
                job, work = self.waiting.popleft()
                work._taken = True
                error = None
                try:
                    source = job()
                    work._source = -1 if source is None else source
                except BaseException as raised:
                    error = raised
            work._finish(error)
            if wanted is None or wanted is work:
                return

    def serve(self) -> None:
        """Do what waits."""
        while True:
            self.wake.acquire()
            if self.closed and not self.waiting:
                return
            self.do(None)

    def close(self) -> None:
        """End the thread, after what waits."""
        self.closed = True
        if self.thread is not None:
            self.wake.release()
            if self.thread is not threading.current_thread():
                self.thread.join(5)


promising = threading.Lock()
"""Held while a Work becomes done, or gets its Future."""
Work.__module__ = "torch.distributed.distributed_c10d"
