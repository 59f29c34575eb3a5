"""Streams, queues of work on a CUDA device, and events, marks in them: see queues.py for what all devices share."""

from __future__ import annotations

import ctypes
from typing import Any

from pullback.cuda import queues
from pullback.cuda.devices import driver, index_of, is_available, rooms

CUDA = queues.TYPES.index("cuda")


class Stream(queues.Stream):
    """A queue of work on a device: work of one stream is done in order, that of several at the same time.

    A device has 32 of them for each priority, besides its default stream: whoever asks for more shares them.

    Args:
        device: the device; by default the current one.
        priority: a lower number is served first.
    """

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        if not is_available():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        index = kwargs.get("device_index")
        if index is None:
            index = index_of(None if type(device) is int and device < 0 else device)
        handle = kwargs.get("stream_id", kwargs.get("stream_ptr"))
        self.priority = priority
        if handle is None:
            handle, self.priority = rooms().shared_stream(index, priority)
        super().__init__(stream_id=handle, device_index=index, device_type=CUDA)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest priority and the highest, which is the lowest number."""
        return driver().priorities(index_of())  # type: ignore[no-any-return]

    @property
    def cuda_stream(self) -> int:
        """The handle of the driver."""
        return self.stream_id  # type: ignore[no-any-return]

    @property
    def _as_parameter_(self) -> Any:
        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The handle of the driver, for other libraries."""
        return 0, self.cuda_stream

    def new_event(self) -> Event:
        """A mark."""
        return Event()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and super().__eq__(other)

    __hash__ = queues.Stream.__hash__

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its handle."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device, stream_id=stream_ptr)


class Event(queues.Event):
    """A mark in a stream: other streams and the host can wait for it, and measure the time between two.

    Args:
        enable_timing: whether the time is measured.
        blocking: whether a thread that waits sleeps.
        interprocess: for other processes, which is not supported.
        external: accepted.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if not is_available():
            raise RuntimeError("Tried to instantiate dummy base class Event")
        super().__init__("cuda", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    @property
    def cuda_event(self) -> int:
        """The handle of the driver; 0 before it is recorded."""
        return self.handle

    @property
    def _as_parameter_(self) -> Any:
        return ctypes.c_void_p(self.handle)

    @property
    def device(self) -> Any:
        """The device the mark is on; None before it is recorded."""
        return rooms().placed(self.index) if self.handle else None

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: Any) -> Any:
        """Refuse: events are not shared."""
        raise NotImplementedError("events cannot be shared between processes")

    def ipc_handle(self) -> Any:
        """Refuse: events are not shared."""
        raise NotImplementedError("events cannot be shared between processes")

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.handle:#x}>" if self.handle else "<torch.cuda.Event uninitialized>"


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
    """Let work go to a stream, and its device be the current one."""
    if stream is not None:
        queues.entered(stream)


class StreamContext:
    """Within the block, work on the stream's device goes to the stream, and the device is the current one."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.before: Any = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self.before = queues.entered(self.stream)

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            queues.left(self.before)


def stream(stream: Stream | None) -> StreamContext:
    """Within the block, work on the stream's device goes to the stream; None changes nothing."""
    return StreamContext(stream)
