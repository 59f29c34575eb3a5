"""`torch.Stream` and `torch.Event`: queues of work of any device, and marks in them.

The host has one stream, which does everything at once, and no events. `torch.cuda.Stream` and `torch.cuda.Event` are
those of CUDA devices.
"""

from __future__ import annotations

from typing import Any

from pullback._device import CPU, _device, current_cuda, device
from pullback._runtime.building import loaded

TYPES = ("cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla", "vulkan", "metal", "xpu",
         "mps", "meta", "hpu", "ve", "lazy", "ipu", "mtia", "privateuseone")  # fmt: skip
"""The types of devices, in the order of torch's numbers."""


def rooms() -> Any:
    """What knows the CUDA devices."""
    return loaded("pullback.kernels.cuda.device")


def driver() -> Any:
    """Their driver."""
    return rooms().required()


def place_of(what: str, given: Any) -> device:
    """The device of a stream or an event: the accelerator if none is named, and the host where there is none."""
    if given is None:
        return rooms().placed() if rooms().count() else CPU  # type: ignore[no-any-return]
    if not isinstance(given, (str, int, device)) or type(given) is bool:
        raise TypeError(f"{what}(): argument 'device' (position 1) must be torch.device, not {type(given).__name__}")
    place = device(given)
    if place.type == "cuda" and rooms().count():
        return rooms().placed(place.index)  # type: ignore[no-any-return]
    if place.type not in ("cpu", "meta"):
        raise RuntimeError(f"PyTorch is not linked with support for {place.type} devices")
    return place


class Stream:
    """A queue of work on a device: work of one stream is done in order, that of several at the same time.

    Args:
        device: the device; by default the accelerator, and the host where there is none.
        priority: a lower number is served first.
    """

    def __init__(self, device: Any = None, *, priority: int = 0, **known: Any) -> None:
        if known.keys() >= {"stream_id", "device_index", "device_type"}:
            self.device_type, self.device_index = known["device_type"], known["device_index"]
            self.stream_id = known["stream_id"]
            return
        place = place_of("Stream", device)
        self.device_type = TYPES.index(place.type)
        self.device_index = -1 if place.index is None else place.index
        self.stream_id = rooms().shared_stream(place.index, priority)[0] if place.type == "cuda" else 0

    @property
    def device(self) -> device:
        """The device the work is done on."""
        return _device(TYPES[self.device_type], None if self.device_index < 0 else self.device_index)

    @property
    def native_handle(self) -> int:
        """The handle of the driver."""
        if not self.works():
            raise RuntimeError("Backend doesn't support getting stream native handle.")
        return self.stream_id  # type: ignore[no-any-return]

    def works(self) -> bool:
        """True for a stream of a device that has some."""
        return TYPES[self.device_type] == "cuda"

    def synchronize(self) -> None:
        """Wait until all work is done."""
        if self.works():
            driver().wait(self.device_index, self.stream_id)

    def query(self) -> bool:
        """True if all work is done."""
        return not self.works() or driver().is_done(self.device_index, self.stream_id)

    def is_capturing(self) -> bool:
        """True while its work is written down in a graph instead of done."""
        memory = loaded("pullback.kernels.cuda.memory") if self.works() else None
        return memory is not None and self.stream_id in memory.pool_of(self.device_index).captured

    def record_event(self, event: Any = None) -> Any:
        """Put a mark into the stream: a new one, or the one given."""
        event = self.new_event() if event is None else event
        event.record(self)
        return event

    def new_event(self) -> Any:
        """A mark of its kind."""
        return Event(self.device)

    def wait_event(self, event: Any) -> None:
        """Let work that comes from now on wait for a mark."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work that comes from now on wait for all that was given to another stream."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        if self.works():
            self.before = [*getattr(self, "before", ()), entered(self)]
        return self

    def __exit__(self, *error: object) -> None:
        if self.works():
            left(self.before.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and facts(self) == facts(other)

    def __hash__(self) -> int:
        return hash(facts(self))

    def __repr__(self) -> str:
        kind, index, number = TYPES[self.device_type], self.device_index, self.stream_id
        return f"torch.Stream device_type={kind}, device_index={index}, stream_id={number}"


def facts(stream: Stream) -> tuple[int, int, int]:
    """What two objects of one stream have in common."""
    return stream.device_type, stream.device_index, stream.stream_id


def entered(stream: Any) -> tuple[int, Any]:
    """Let work go to a stream, and to its device; where it went before."""
    before = current_cuda.index, rooms().streams.current
    rooms().streams.use(stream.device_index, stream.stream_id)
    current_cuda.index = stream.device_index
    return before


def left(before: tuple[int, Any]) -> None:
    """Let work go where it went before."""
    current_cuda.index = before[0]
    rooms().streams.use_all(before[1])


class Event:
    """A mark in a stream: other streams and the host can wait for it, and measure the time between two.

    Args:
        device: the device; by default the accelerator, and the host, which has no events, where there is none.
        enable_timing: whether the time is measured.
        blocking: whether a thread that waits sleeps.
        interprocess: for other processes, which is not supported.
    """

    handle = index = 0
    recorded = False

    def __init__(
        self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
        **unknown: Any,
    ) -> None:  # fmt: skip
        for name in unknown:
            raise TypeError(f"Event() got an unexpected keyword argument '{name}'")
        if interprocess:
            raise NotImplementedError("events cannot be shared between processes; use interprocess=False")
        self.place: Any = place_of("Event", device)
        self.timing, self.blocking = enable_timing, blocking

    def works(self) -> bool:
        """True for an event of a device that has some."""
        return self.place.type == "cuda"  # type: ignore[no-any-return]

    @property
    def device(self) -> Any:
        """The device the mark is on."""
        return self.place

    @property
    def event_id(self) -> int:
        """The handle of the driver; 0 before it is recorded."""
        return self.handle

    def record(self, stream: Any = None) -> None:
        """Put the mark into a stream, by default the current one; the first time decides on which device it is."""
        if not self.works():
            raise RuntimeError(f"{self.place.type} backend doesn't support events.")
        index, number = on(stream)
        if not self.handle:
            self.index = index
            self.handle = driver().new_event(index, self.timing, self.blocking)
        elif index != self.index:
            raise RuntimeError(f"Event device {self.index} does not match recording stream's device {index}.")
        driver().record(index, self.handle, number)
        self.recorded = True

    def wait(self, stream: Any = None) -> None:
        """Let a stream, by default the current one, wait for the mark; nothing if it was never recorded."""
        if self.recorded:
            index, number = on(stream)
            driver().stream_waits(index, number, self.handle)

    def query(self) -> bool:
        """True if the mark was reached, or never recorded."""
        return not self.recorded or driver().has_happened(self.index, self.handle)

    def synchronize(self) -> None:
        """Wait until the mark is reached."""
        if self.recorded:
            driver().wait_event(self.index, self.handle)

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this mark to another."""
        if not (self.timing and end_event.timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.recorded and end_event.recorded):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise ValueError("Both events must be completed before calculating elapsed time.")
        return driver().elapsed(self.index, self.handle, end_event.handle)  # type: ignore[no-any-return]

    def ipc_handle(self) -> Any:
        """Refuse: events are not shared."""
        raise NotImplementedError("torch.Event ipc is not supported yet, please open an issue if you need this!")

    def __del__(self) -> None:
        if self.handle:
            driver().free_event(self.handle)

    def __repr__(self) -> str:
        kind, index = self.place.type, -1 if self.place.index is None else self.place.index
        return (
            f"torch.Event device_type={kind}, device_index={index}, event_flag={int(self.timing)}, "
            f"event_id={self.handle}"
        )


def on(stream: Any) -> tuple[int, int]:
    """The device and the handle of a stream; of the current one for None."""
    if stream is None:
        return current_cuda.index, rooms().stream_on(current_cuda.index)
    return stream.device_index, stream.stream_id
