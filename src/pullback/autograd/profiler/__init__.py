"""Where the time goes: `profile` measures every op and backward step of a block, `record_function` names parts.

with profile() as prof:
    model(x).sum().backward()
print(prof.key_averages().table(sort_by="self_cpu_time_total"))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import extract_stack
from typing import Any

from pullback._arrays.kinds import exists
from pullback._device import place_of
from pullback._modes import modes
from pullback._runtime.interrupts import covered
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.autograd.grad_mode import ContextDecorator
from pullback.autograd.locations import is_library, stack_text
from pullback.autograd.profiler.events import EventList, FunctionEvent, FunctionEventAvg, Interval
from pullback.autograd.profiler.recorder import USER_SCOPE, Recorder, collected

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "emit_itt",
    "emit_nvtx",
    "profile",
    "record_function",
]


class profile:
    """Measure what happens in a block.

    Args:
        enabled: False to measure nothing.
        record_shapes: note the shapes of inputs.
        profile_memory: note how many bytes results take.
        with_stack: note where in the program each op was called.
        with_flops: count the operations of products, convolutions, mul and add.
        use_device: "cuda" measures the time between marks in the current stream around every call, too.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        **options: Any,
    ) -> None:
        self.use_device = device_measured("cuda" if use_cuda else use_device, use_cuda)
        self.enabled = enabled
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops = with_flops
        self.entered = False
        self._events: EventList | None = None
        self._recorder: Recorder | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._recorder = Recorder(
            self.record_shapes, self.with_stack, self.profile_memory, self.with_flops, self.use_device is not None
        )
        try:
            self._recorder.install()
        except BaseException:
            self._recorder.remove()
            raise
        return self

    @covered
    def __exit__(self, *error: object) -> None:
        try:
            if self.enabled and self._recorder is not None:
                self._recorder.remove()
                self._events = collected(self._recorder)
        except BaseException:
            if self._recorder is not None:
                self._recorder.remove()
            raise

    @property
    def function_events(self) -> EventList:
        """Every event."""
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._events is None else repr(list(self._events))

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._events is None else str(self._events)

    def table(self, *args: Any, **kwargs: Any) -> str:
        """All events as a table: see EventList.table."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str, metadata: Any = None, use_python_export: bool = False) -> None:
        """Write the events for chrome://tracing and Perfetto."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with times for flame graphs."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Events of one name taken together."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """Everything taken together."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return self.function_events.self_cpu_time_total


def device_measured(wanted: str | None, by_old_name: bool) -> str | None:
    """The device whose time is measured beside the host's; None, with torch's warnings, if there is none such."""
    if by_old_name:
        text = "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead."
        warn(text, FutureWarning)
    if wanted is None:
        return None
    if wanted not in ("cuda", "xpu", "mtia", "hpu"):
        warn(f"The {wanted} is not a valid device option.")
        return None
    if wanted == "cuda" and exists(place_of("cuda")):
        return wanted
    warn(f"{wanted.upper()} is not available, disabling {wanted.upper()} profiling")
    return None


class record_function(ContextDecorator):
    """Name a block (or a function) in profiles."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self.recorder: Any = None
        self.event: Any = None

    def clone(self) -> record_function:
        """A fresh block of the same name."""
        return record_function(self.name, self.args)

    def __enter__(self) -> record_function:
        if isinstance(modes.profiler, Recorder):
            self.recorder = modes.profiler
            self.event = self.recorder.begin(self.name, USER_SCOPE)
        return self

    def __exit__(self, *error: object) -> None:
        if self.recorder is not None:
            self.recorder.end(self.event)
            self.recorder = None


class emit_nvtx:
    """Not available: marks for NVIDIA's tools need a GPU."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise NotImplementedError("emit_nvtx needs CUDA, which does not exist here; use autograd.profiler.profile")

    def __enter__(self) -> emit_nvtx:
        return self

    def __exit__(self, *error: object) -> None:
        return None


class emit_itt(emit_nvtx):
    """Not available: marks for Intel's tools need their library."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise NotImplementedError("emit_itt needs Intel's ITT library; use autograd.profiler.profile")


# ------------------------------------------------------------------ a list of ops, for error messages


class OpLog:
    """Installed as `modes.profiler`: writes down every op and where it was called."""

    def __init__(self, log: list[Any], outer: Any) -> None:
        self.log, self.outer = log, outer

    def note(self, name: str, values: Any) -> None:
        """One line."""
        shown = ", ".join(
            f"{v.dtype!r}{list(v._array.shape)}" if isinstance(v, Tensor) else repr(v)[:40] for v in values
        )
        frames = [(frame.filename, frame.lineno or 0, frame.name) for frame in extract_stack()]
        self.log.append((f"{name}({shown})", stack_text(frame for frame in frames if not is_library(frame[0]))))

    def call(self, op: Any, bound: dict[str, Any], out: Any, action: Any) -> Any:
        """An op."""
        self.note(op.name, bound.values())
        return action(op, bound, out) if self.outer is None else self.outer.call(op, bound, out, action)

    def call_inplace(self, op: Any, self_: Any, args: tuple[Any, ...], action: Any) -> Any:
        """The in-place twin of an op."""
        self.note(f"{op.name}_", (self_, *args))
        return action(op, self_, args) if self.outer is None else self.outer.call_inplace(op, self_, args, action)

    def run_node(self, node: Any, action: Any, grad: Any = None) -> Any:
        """Backward steps are not written down."""
        return action() if self.outer is None else self.outer.run_node(node, action, grad)


@contextmanager
def log_ops(log: list[Any]) -> Iterator[None]:
    """Append (op, stack) to `log` for every op of the block."""
    before = modes.profiler
    own = OpLog(log, before)
    try:
        modes.hold(own)
        modes.profiler = own
        yield
    finally:
        modes.profiler = before
        modes.drop(own)
