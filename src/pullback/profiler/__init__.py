"""Profiles of long runs: a schedule says which steps to measure, a handler what to do with what was measured.

with profile(schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=tensorboard_trace_handler("log")) as p:
    for batch in loader:
        train(batch)
        p.step()
"""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from secrets import token_hex
from typing import Any

import pullback as torch
from pullback._runtime.warnings import warn_once
from pullback.autograd import profiler as measuring
from pullback.autograd.profiler import record_function
from pullback.profiler.schedule import ProfilerAction, ProfilerActivity, always, schedule

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

NONE, WARMUP, RECORD, SAVE = ProfilerAction
CLEARED = (
    "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will be reported. To "
    "keep events across cycles, set acc_events=True."
)


def supported_activities() -> set[ProfilerActivity]:
    """What can be measured here."""
    return {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if torch.cuda.is_available() else set())


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Any:
    """A handler that writes one trace file per recorded round into a folder."""

    def handle(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle


class profile:
    """Measure a run.

    Args:
        activities: what to measure: ProfilerActivity.CPU, and CUDA where there is a device.
        schedule: a function from step number to ProfilerAction; without it everything is recorded.
        on_trace_ready: called with this object at the end of every recorded round.
        record_shapes: note the shapes of inputs.
        profile_memory: note how many bytes results take.
        with_stack: note where in the program each op was called.
        acc_events: keep the events of earlier rounds.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        self.activities = set(activities) if activities else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        if use_cuda:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
        self.options = {"record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack}
        self.options["with_flops"] = with_flops
        self.use_device = "cuda" if ProfilerActivity.CUDA in self.activities or use_cuda else None
        self.schedule = schedule or always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: measuring.profile | None = None
        self.trace_id: str | None = None
        self.trace_id_callback = custom_trace_id_callback
        self.step_block: record_function | None = None
        self.earlier: list[Any] = []
        self.metadata: dict[str, Any] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self.move(NONE, self.current_action)
        self.begin_step()

    def stop(self) -> None:
        """End; a round that was being recorded is handed to the handler."""
        self.end_step()
        if self.current_action in (RECORD, SAVE):
            self.finish_round()
        self.current_action = NONE

    def step(self) -> None:
        """Say that the next step begins."""
        self.end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self.move(before, self.current_action)
        self.begin_step()

    # ---------------------------------------------------------------- rounds

    def move(self, before: ProfilerAction, now: ProfilerAction) -> None:
        """From one step's action to the next one's."""
        if before is SAVE:
            self.finish_round()
        elif before in (RECORD, WARMUP) and now.value < before.value:
            warnings.warn(f"Incorrect schedule: {before.name} followed by {now.name}", stacklevel=3)
            if before is RECORD:
                self.close()
        if now in (RECORD, SAVE) and before not in (RECORD,):
            if self.profiler is not None and not self.acc_events:
                warn_once(CLEARED)
            self.prepare_trace()
            self.start_trace()

    def prepare_trace(self) -> None:
        """Make ready to measure."""
        self.profiler = measuring.profile(**self.options, use_device=self.use_device)
        self.trace_id = token_hex(16).upper() if self.trace_id_callback is None else self.trace_id_callback()

    def start_trace(self) -> None:
        """Begin to measure."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        self.profiler.__enter__()

    def stop_trace(self) -> None:
        """Stop measuring."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self.close()

    def get_trace_id(self) -> str | None:
        """What tells one trace from another; None before the first."""
        return self.trace_id

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Ask this function for the id of each trace from now on."""
        self.trace_id_callback = callback

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Not available: what is measured is decided when a trace begins."""
        raise NotImplementedError("toggle_collection_dynamic is not available; use a schedule, or two profiles")

    def close(self) -> None:
        """Stop measuring."""
        if self.profiler is not None and self.profiler._events is None:
            self.profiler.__exit__(None, None, None)
            if self.acc_events:
                self.earlier += self.profiler.function_events

    def finish_round(self) -> None:
        """Stop measuring and call the handler."""
        self.close()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def begin_step(self) -> None:
        """Name the step in the profile."""
        if self.record_steps:
            self.step_block = record_function(f"ProfilerStep#{self.step_num}")
            self.step_block.__enter__()

    def end_step(self) -> None:
        """The step is over."""
        if self.step_block is not None:
            self.step_block.__exit__(None, None, None)
            self.step_block = None

    # ---------------------------------------------------------------- results

    def events(self) -> measuring.EventList:
        """Every event of the last round (with acc_events, of all rounds)."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting events")
        if not self.acc_events:
            return self.profiler.function_events
        return measuring.EventList(self.earlier, bool(self.options["profile_memory"]), use_device=self.use_device)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> measuring.EventList:
        """Events of one name taken together."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str, *, use_python_export: bool = False) -> None:
        """Write the events for chrome://tracing and Perfetto; compressed if the name ends in gz."""
        if not path.endswith(".gz"):
            self.events().export_chrome_trace(path)
            return
        plain = path + ".tmp"
        self.events().export_chrome_trace(plain)
        with open(plain, "rb") as source, gzip.open(path, "wb") as target:
            shutil.copyfileobj(source, target)
        os.remove(plain)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with times for flame graphs."""
        if not self.options["with_stack"]:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Not available: allocations are not followed over time."""
        raise NotImplementedError("export_memory_timeline is not available; profile_memory=True shows bytes per op")

    def add_metadata(self, key: str, value: str) -> None:
        """Keep a note with the profile."""
        self.metadata[key] = value

    add_metadata_json = preset_metadata_json = add_metadata
