"""What was measured: events, events of one name taken together, and lists of both."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pullback.autograd.locations import cell_of, is_library
from pullback.autograd.profiler.table import build_table, format_time, html_table

FUNCTION, BACKWARD_FUNCTION, USER_SCOPE = 0, 1, 7
"""Scopes, with torch's numbers."""


class Interval:
    """From when to when, in microseconds since the profile began."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it took."""
        return self.end - self.start


class Times:
    """Times as text, for events and averages alike."""

    @property
    def cpu_time(self) -> float:
        """Average time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_str") and not name.startswith("__"):
            return format_time(getattr(self, name[:-4]))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def device_time(self) -> float:
        """Average time of a call on the device."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cuda_time(self) -> float:
        """The same under its old name, as the two below."""
        return self.device_time

    @property
    def cuda_time_total(self) -> float:
        """Time on the device, with everything that was called."""
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        """Time on the device without what was called."""
        return self.self_device_time_total  # type: ignore[no-any-return]

    device_time_total = 0.0
    node_id = -1
    overload_name = ""
    is_async = is_remote = is_legacy = False
    use_device = None
    device_type = "DeviceType.CPU"


class FunctionEvent(Times):
    """One call of an op, one backward step, or one record_function block."""

    def __init__(self, id: int, name: str, thread: int, scope: int) -> None:
        self.id = id
        self.name = self.key = self.trace_name = name
        self.thread = thread
        self.fwd_thread = thread
        self.scope = scope
        self.count = 1
        self.time_range = Interval(0.0, 0.0)
        self.sequence_nr = -1
        """The number of the backward node this call made, or was: links forward and backward."""
        self.input_shapes: list[Any] = []
        self.stack: list[str] = []
        self.own_memory = self.own_device_memory = self.flops = 0
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.is_user_annotation = scope == USER_SCOPE

    @property
    def cpu_time_total(self) -> float:
        """Time of the call, with everything it called."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """Time of the call without what it called."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes of the results of this call and of everything it called."""
        return self.own_memory + sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes of the results that this call made itself."""
        return self.own_memory

    @property
    def self_device_time_total(self) -> float:
        """Time on the device without what was called."""
        return max(self.device_time_total - sum(child.device_time_total for child in self.cpu_children), 0.0)

    @property
    def device_memory_usage(self) -> int:
        """Bytes on the device, of the results of this call and of everything it called."""
        return self.own_device_memory + sum(child.device_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """Bytes on the device, of the results that this call made itself."""
        return self.own_device_memory

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name= device_type={self.device_type} node_id=-1 "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} None_time=0.000us name={self.name} "
            f"thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"None_memory_usage=0 is_async=False is_remote=False seq_nr={self.sequence_nr} is_legacy=False>"
        )


class FunctionEventAvg(Times):
    """All events of one key."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.device_time_total = self.self_device_time_total = 0.0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = None
        self.stack: list[str] = []
        self.scope: int | None = None
        self.cpu_parent: Any = None
        self.cpu_children: Any = None
        self.is_user_annotation = False

    def add(self, other: Any) -> FunctionEventAvg:
        """Count another event (or average) of the same key."""
        if self.key is None:
            self.key, self.scope, self.cpu_parent = other.key, other.scope, other.cpu_parent
            self.cpu_children, self.input_shapes, self.stack = other.cpu_children, other.input_shapes, other.stack
            self.is_user_annotation = other.is_user_annotation
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.device_time_total += other.device_time_total
        self.self_device_time_total += other.self_device_time_total
        self.device_memory_usage += other.device_memory_usage
        self.self_device_memory_usage += other.self_device_memory_usage
        self.count += other.count
        self.flops += other.flops
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time={self.self_device_time_total_str} "
            f"cuda_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.device_memory_usage}>"
        )


class EventList(list[Any]):
    """Events or averages: printable as a table, exportable as a trace."""

    def __init__(
        self,
        events: Iterable[Any] = (),
        profile_memory: bool = False,
        with_flops: bool = False,
        use_device: str | None = None,
    ) -> None:
        super().__init__(events)
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._use_device = use_device

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return html_table(self)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return float(sum(event.self_cpu_time_total for event in self))

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table, sorted by an attribute such as "self_cpu_time_total"."""
        return build_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
            use_device=self._use_device,
        )

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """One entry for every name (and shapes of inputs, and innermost lines of the stack, if asked)."""
        groups: dict[tuple[Any, ...], FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key: tuple[Any, ...] = (event.key, event.is_user_annotation)
            if group_by_input_shape:
                key += (str(event.input_shapes),)
            if group_by_stack_n > 0:
                key += tuple(event.stack[:group_by_stack_n])
            groups[key].add(event)
        averages = EventList(groups.values(), self._profile_memory, self._with_flops, self._use_device)
        for average in averages:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shape:
                average.input_shapes = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """Everything as one entry."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def supported_export_stacks_metrics(self) -> list[str]:
        """What export_stacks can write."""
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write stacks with times, one per line, for tools that draw flame graphs."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError("metric should be one of: " + str(self.supported_export_stacks_metrics()))
        table = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                if event.stack and int(getattr(event, metric, 0)) > 0:
                    line = ";".join(entry.translate(table) for entry in reversed(event.stack))
                    file.write(f"{line} {int(getattr(event, metric))}\n")

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing and Perfetto, forward calls linked to their backward steps."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "traceEvents": trace_events(self), "displayTimeUnit": "ms"}, file)


def trace_events(events: Iterable[FunctionEvent]) -> list[dict[str, Any]]:
    """Events in the format of Chrome's tracing tool."""
    out: list[dict[str, Any]] = []
    forward: dict[int, FunctionEvent] = {}
    for event in events:
        category = "user_annotation" if event.is_user_annotation else "cpu_op"
        args: dict[str, Any] = {"Sequence number": event.sequence_nr} if event.sequence_nr >= 0 else {}
        if event.input_shapes:
            args["Input Dims"] = event.input_shapes
        if event.stack:
            args["Call stack"] = ";".join(event.stack)
        start = event.time_range.start
        out.append(
            {
                "ph": "X",
                "cat": category,
                "name": event.name,
                "pid": 1,
                "tid": event.thread,
                "ts": start,
                "dur": event.cpu_time_total,
                "args": args,
            }
        )
        if event.sequence_nr < 0:
            continue
        if event.scope != BACKWARD_FUNCTION:
            forward.setdefault(event.sequence_nr, event)
        elif (made_by := forward.pop(event.sequence_nr, None)) is not None:
            arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.sequence_nr, "pid": 1}
            out.append({"ph": "s", "tid": made_by.thread, "ts": made_by.time_range.start, **arrow})
            out.append({"ph": "f", "bp": "e", "tid": event.thread, "ts": start, **arrow})
    return out


def caller_stack(skip: int) -> list[str]:
    """Where the program is, innermost first, without the frames of the library."""
    out = []
    frame: Any = sys._getframe(skip)
    while frame is not None:
        code = frame.f_code
        if not is_library(code.co_filename):
            out.append(f"{cell_of(code.co_filename) or code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return out
