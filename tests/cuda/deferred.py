"""A device that is late: work of a stream is done only when somebody waits for it.

A simulated device (simulated.py) whose launches, copies and fills hang in their streams until the host waits for the
stream, for an event in it, or for the device. A stream that waits for an event lets the stream of the event run up to
it. So what lacks a wait computes with what nobody has written yet, on every run and not now and then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pullback._device import accelerators
from pullback.kernels.cuda import device, launch, native, pointwise
from pullback.kernels.cuda.driver import is_pinned
from pullback.kernels.cuda.memory import pools

from .simulated import Simulated


class Deferred(Simulated):
    """Streams that do nothing before they must."""

    def __init__(self, count: int = 1) -> None:
        super().__init__(count)
        self.queues: dict[int, deque[tuple[str, Any]]] = {}
        self.marks: dict[int, tuple[int, int]] = {}
        """For each event how often it was recorded, and in which stream last."""
        self.reached: dict[int, int] = {}
        """How many of these records have been reached."""
        self.log: list[tuple[Any, ...]] = []
        """What was asked for, in order: ("launch", stream), ("record", event, stream), ("wait", stream, event)."""
        self.replayed_on: int | None = None
        self.synchronizations: list[str] = []
        """What the host waited for."""

    # ---------------------------------------------------------------- queues
    def later(self, stream: int, work: Callable[[], None]) -> None:
        stream = stream if self.replayed_on is None else self.replayed_on
        self.queues.setdefault(stream, deque()).append(("work", work))

    def advance(self, stream: int, until: tuple[int, int] | None = None) -> None:
        """Do the work of a stream, up to a record of an event or all of it."""
        queue = self.queues.setdefault(stream, deque())
        while queue:
            kind, what = queue.popleft()
            if kind == "work":
                what()
            elif kind == "record":
                self.reached[what[0]] = max(self.reached.get(what[0], 0), what[1])
                if what == until:
                    return
            else:
                event, times, other = what
                if self.reached.get(event, 0) < times:
                    self.advance(other, (event, times))

    # ---------------------------------------------------------------- work
    def launch(
        self, index: int, function: Any, grid: Any, threads: int, stream: int, arguments: bytes, shared: int = 0
    ) -> None:
        self.log.append(("launch", stream))
        given = (index, function, tuple(grid), threads, stream, bytes(arguments), shared)
        self.later(stream, lambda: Simulated.launch(self, *given))

    def copy(self, index: int, target: int, source: int, nbytes: int, stream: int) -> None:
        self.log.append(("copy", stream))
        self.later(stream, lambda: Simulated.copy(self, index, target, source, nbytes, stream))

    def fill(self, index: int, address: int, byte: int, nbytes: int, stream: int) -> None:
        self.log.append(("fill", stream))
        self.later(stream, lambda: Simulated.fill(self, index, address, byte, nbytes, stream))

    def upload(self, index: int, address: int, host: Any, stream: int) -> None:
        """Pageable memory is read at once, pinned memory when it is its turn; both are written then."""
        self.log.append(("upload", stream))
        taken = host if is_pinned(host) else host.copy()
        self.later(stream, lambda: Simulated.upload(self, index, address, taken, stream))

    def download(self, index: int, host: Any, address: int, stream: int) -> None:
        self.log.append(("download", stream))
        self.synchronizations.append("download")
        self.advance(stream)
        super().download(index, host, address, stream)

    def download_later(self, index: int, host: Any, address: int, stream: int) -> None:
        self.log.append(("download_later", stream))
        self.later(stream, lambda: Simulated.download(self, index, host, address, stream))

    def launch_graph(self, index: int, graph: Any, stream: int) -> None:
        """The work of a graph goes to the stream it is replayed on."""
        self.replayed_on = stream
        try:
            super().launch_graph(index, graph, stream)
        finally:
            self.replayed_on = None

    # ---------------------------------------------------------------- waiting
    def synchronize(self, index: int) -> None:
        self.synchronizations.append("device")
        for stream in list(self.queues):
            self.advance(stream)

    def wait(self, index: int, stream: int) -> None:
        self.synchronizations.append("stream")
        self.advance(stream)

    def is_done(self, index: int, stream: int) -> bool:
        return not self.queues.get(stream)

    def record(self, index: int, event: int, stream: int) -> None:
        super().record(index, event, stream)
        self.log.append(("record", event, stream))
        times = self.marks.get(event, (0, 0))[0] + 1
        self.marks[event] = times, stream
        self.queues.setdefault(stream, deque()).append(("record", (event, times)))

    def wait_event(self, index: int, event: int) -> None:
        self.synchronizations.append("event")
        if event in self.marks and not self.has_happened(index, event):
            self.advance(self.marks[event][1], (event, self.marks[event][0]))

    def has_happened(self, index: int, event: int) -> bool:
        return self.reached.get(event, 0) >= self.marks.get(event, (0, 0))[0]

    def stream_waits(self, index: int, stream: int, event: int) -> None:
        self.log.append(("wait", stream, event))
        times, other = self.marks[event]
        self.queues.setdefault(stream, deque()).append(("wait", (event, times, other)))

    def streams_launched(self) -> list[int]:
        """The streams of all launches since the last time, in order."""
        found = [entry[1] for entry in self.log if entry[0] == "launch"]
        self.log.clear()
        return found


@contextmanager
def instead(there: Any) -> Iterator[Any]:
    """Within the block, this is the device; what was remembered of another is forgotten, before and after."""
    found, before, make = device.found[:], accelerators[:], launch.program
    held, known = dict(pools), dict(launch.loaded)
    device.found[:], accelerators[:] = [there], ["cuda"]
    if isinstance(there, Simulated):
        launch.program = there.program
    forget()
    try:
        yield there
    finally:
        forget()
        launch.loaded.update(known)
        pools.update(held)
        launch.program = make
        device.found[:], accelerators[:] = found, before


def forget() -> None:
    """What the library knows of the memory and the kernels of a device."""
    for remembered in (pools, launch.loaded, pointwise.known, native.plans):
        remembered.clear()
