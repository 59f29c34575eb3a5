"""`Work`: a collective that runs, or has run; and the lines in which they wait for their turn."""

from __future__ import annotations

import queue
import threading
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

    def wait(self) -> Any:
        """The result, once it is there, or the error in its place."""
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

        def run(done: futures.Future) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(run)
        return following


class Work:
    """Something that was asked for: wait for it, or look whether it is done."""

    def __init__(self, result: Any = ()) -> None:
        self._result, self._error, self._source = result, None, -1
        self._future: Future = Future()

    def _finish(self, error: BaseException | None) -> None:
        self._error = error  # type: ignore[assignment]
        if error is None:
            self._future.set_result(self.result())
        else:
            self._future.settle(futures.ABSENT, error)

    def wait(self, timeout: timedelta = NO_TIMEOUT) -> bool:
        """Wait until it is done; an error it ended with is raised here."""
        seconds = timeout.total_seconds() or None
        if not self._future._came.wait(seconds):
            raise RuntimeError(f"Operation timed out after {round((seconds or 0) * 1000)} ms")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it is done, well or not."""
        return self._future._came.is_set()

    def is_success(self) -> bool:
        """Whether it is done, and well."""
        return self.is_completed() and self._error is None

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
        return self._future


class Line:
    """Work done one after the other: at once if nothing waits, else, or if asked to, in a thread of its own."""

    def __init__(self, name: str) -> None:
        self.name, self.turn = name, threading.Lock()
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.count, self.change = 0, threading.Lock()
        self.thread: threading.Thread | None = None

    def run(self, job: Callable[[], Any], result: Any, later: bool) -> Work:
        """Do something; the errors of what is done at once are raised here."""
        work = Work(result)
        with self.change:
            at_once = not later and self.count == 0
            if at_once:
                self.turn.acquire()
            else:
                self.count += 1
                if self.thread is None:
                    self.thread = threading.Thread(target=self.serve, name=self.name, daemon=True)
                    self.thread.start()
        if at_once:
            try:
                source = job()
            finally:
                self.turn.release()
            work._source = -1 if source is None else source
            work._finish(None)
            return work
        self.waiting.put((job, work))
        if not later:
            work.wait()
        return work

    def serve(self) -> None:
        """Do what waits."""
        while True:
            entry = self.waiting.get()
            if entry is None:
                return
            job, work = entry
            error = None
            with self.turn:
                try:
                    source = job()
                    work._source = -1 if source is None else source
                except BaseException as raised:
                    error = raised
            with self.change:
                self.count -= 1
            work._finish(error)
            del entry, job, work, error

    def close(self) -> None:
        """End the thread, after what waits."""
        if self.thread is not None:
            self.waiting.put(None)
            if self.thread is not threading.current_thread():
                self.thread.join(5)


Work.__module__ = "torch.distributed.distributed_c10d"
