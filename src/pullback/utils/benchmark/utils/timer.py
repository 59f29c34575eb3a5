"""Timer: how long a statement takes, measured as often as it needs."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from enum import Enum
from statistics import median_low
from textwrap import dedent
from typing import Any, NoReturn

import pullback as torch
from pullback.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer
LONGEST = 2147483647
Callback = Callable[[int, float], Any] | None


class Language(Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement: `timeit.Timer` with a warm-up, a number of threads, repetitions and labels."""

    _timer_cls: type[Any] = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("torch.utils.benchmark.Timer with language C++: there is no C++ here to compile")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        self._globals = dict(globals or {})
        self._globals.setdefault("torch", torch)
        self._language = Language.PYTHON
        stmt, setup = [dedent(code).removeprefix("\n").rstrip() for code in (stmt, setup)]
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        """The time of so many runs; never nothing."""
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of so many runs, after a warm-up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(int(number // 100), 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Not here, as in torch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callback = None) -> NoReturn:
        """Not here, as in torch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time: float) -> int:
        """How many runs make a measurement: so many that starting it does not count."""
        overhead = median_low([self._timeit(0) for _ in range(5)])
        number = 1
        while True:
            taken = self._timeit(number)
            long_enough = overhead / taken <= 1e-4 and taken >= min_run_time / 1000
            if long_enough or taken > min_run_time or number * 10 > LONGEST:
                return number
            number *= 10

    def _measured(
        self,
        number: int,
        enough: Callable[[Measurement], bool],
        shortest: float,
        longest: float | None,
        callback: Callback,
    ) -> Measurement:
        """Measurements until there are enough, and no longer than the longest."""
        found = Measurement(number, [], self._task_spec)
        while sum(found.raw_times) < shortest or not enough(found):
            taken = self._timeit(number)
            found = Measurement(number, [*found.raw_times, taken], self._task_spec)
            if callback is not None:
                callback(number, taken)
            if longest and sum(found.raw_times) > longest:
                break
        return found

    def blocked_autorange(self, callback: Callback = None, min_run_time: float = 0.2) -> Measurement:
        """Measurements for so long, each of so many runs that starting it does not count."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._estimate_block_size(min_run_time)
            return self._measured(number, lambda found: bool(found.raw_times), min_run_time, None, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callback = None,
    ) -> Measurement:
        """Measurements until they do not spread further than the threshold, or took too long."""
        enough = lambda found: len(found.raw_times) > 3 and found.meets_confidence(threshold)
        with set_torch_threads(self._task_spec.num_threads):
            number = self._estimate_block_size(0.05)
            return self._measured(number, enough, min_run_time, max_run_time, callback)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Not here: there are no instructions of compiled code to count."""
        raise NotImplementedError(
            "torch.utils.benchmark.Timer.collect_callgrind is not available in pullback; use blocked_autorange"
        )
