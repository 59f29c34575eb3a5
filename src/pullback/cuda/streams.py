"""Streams, queues of work on a device, and events, marks in them."""

from __future__ import annotations

from typing import Any

from pullback._device import _device
from pullback.cuda.devices import driver, index_of, is_available, rooms


class Stream:
    """A queue of work on a device: work of one stream is done in order, that of several at the same time.

    Args:
        device: the device; by default the current one.
        priority: a lower number is served first.
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        if not is_available():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        self.device_index = kwargs.pop("device_index", None)
        if self.device_index is None:
            self.device_index = index_of(device)
        handle = kwargs.pop("stream_id", None)
        self.priority = priority
        self.cuda_stream = driver().new_stream(self.device_index, priority) if handle is None else handle

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest priority and the highest, which is the lowest number."""
        return driver().priorities(index_of())  # type: ignore[no-any-return]

    @property
    def stream_id(self) -> int:
        """The handle of the driver."""
        return self.cuda_stream  # type: ignore[no-any-return]

    @property
    def device(self) -> Any:
        """The device the work is done on."""
        return _device("cuda", self.device_index)

    def synchronize(self) -> None:
        """Wait until all work is done."""
        driver().wait(self.device_index, self.cuda_stream)

    def query(self) -> bool:
        """True if all work is done."""
        return driver().is_done(self.device_index, self.cuda_stream)  # type: ignore[no-any-return]

    def record_event(self, event: Event | None = None) -> Event:
        """Put a mark into the stream."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let work that comes from now on wait for a mark."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work that comes from now on wait for all that was given to another stream."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self.context = StreamContext(self)
        self.context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.context.__exit__(*error)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device_index, self.cuda_stream) == (
            other.device_index,
            other.cuda_stream,
        )

    def __hash__(self) -> int:
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its handle."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device, stream_id=stream_ptr)


class Event:
    """A mark in a stream: other streams and the host can wait for it, and measure the time between two.

    Args:
        enable_timing: whether the time is measured.
        blocking: whether a thread that waits sleeps.
        interprocess: for other processes, which is not supported.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if not is_available():
            raise RuntimeError("Tried to instantiate dummy base class Event")
        if interprocess:
            raise NotImplementedError("events cannot be shared between processes; use interprocess=False")
        self.timing, self.blocking = enable_timing, blocking
        self.cuda_event, self.index, self.recorded = 0, 0, False

    def made_on(self, index: int) -> int:
        """The driver's mark; made when it is first recorded."""
        if not self.cuda_event:
            self.index = index
            self.cuda_event = driver().new_event(index, self.timing, self.blocking)
        return self.cuda_event

    @property
    def device(self) -> Any:
        """The device the mark is on; None before it is recorded."""
        return _device("cuda", self.index) if self.cuda_event else None

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark into a stream, by default the current one."""
        stream = current_stream() if stream is None else stream
        driver().record(stream.device_index, self.made_on(stream.device_index), stream.cuda_stream)
        self.recorded = True

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for the mark."""
        if self.recorded:
            stream = current_stream() if stream is None else stream
            driver().stream_waits(stream.device_index, stream.cuda_stream, self.cuda_event)

    def query(self) -> bool:
        """True if the mark was reached."""
        return not self.recorded or driver().has_happened(self.index, self.cuda_event)

    def synchronize(self) -> None:
        """Wait until the mark is reached."""
        if self.recorded:
            driver().wait_event(self.index, self.cuda_event)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to another."""
        if not (self.timing and end_event.timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.recorded and end_event.recorded):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return driver().elapsed(self.index, self.cuda_event, end_event.cuda_event)  # type: ignore[no-any-return]

    def ipc_handle(self) -> Any:
        """Refuse: events are not shared."""
        raise NotImplementedError("events cannot be shared between processes")

    def __del__(self) -> None:
        if getattr(self, "cuda_event", 0):
            driver().free_event(self.cuda_event)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self.cuda_event else "<torch.cuda.Event uninitialized>"


def current_stream(device: Any = None) -> Stream:
    """The stream that work on a device goes to."""
    index = index_of(device)
    return Stream(device_index=index, stream_id=rooms().stream_on(index))


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to where no other is chosen."""
    return Stream(device_index=index_of(device), stream_id=0)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """A stream that another library made, by its handle."""
    return ExternalStream(data_ptr, device)


def set_stream(stream: Stream | None) -> None:
    """Let work go to a stream."""
    if stream is not None:
        rooms().streams.use(stream.device_index, stream.cuda_stream)


class StreamContext:
    """Within the block, work on the stream's device goes to the stream."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.before = 0

    def __enter__(self) -> None:
        if self.stream is not None:
            self.before = rooms().streams.use(self.stream.device_index, self.stream.cuda_stream)

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            rooms().streams.use(self.stream.device_index, self.before)


def stream(stream: Stream | None) -> StreamContext:
    """Within the block, work on the stream's device goes to the stream; None changes nothing."""
    return StreamContext(stream)
