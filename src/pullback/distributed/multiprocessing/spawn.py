"""`spawn`: a function on several processes, which all end when one fails. The module is callable as the function."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from pullback._runtime.building import loaded


class ProcessException(Exception):
    """One of several processes failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It raised."""


class ProcessExitedException(ProcessException):
    """It ended with a code, or by a signal."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def run_one(fn: Callable[..., Any], index: int, args: tuple[Any, ...], error_file: str) -> None:
    """Run the function; what it raises is left in a file."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent says so
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that run a function."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their numbers."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one ends. True if all have; if one failed the others are ended, and its error is raised."""
        if not self.sentinels:
            return True
        ended = multiprocessing.connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ended:
            index = self.sentinels.pop(sentinel)  # type: ignore[call-overload]
            self.processes[index].join()
            if self.processes[index].exitcode:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self.end_all(30 if grace_period is None else grace_period)
        raise self.error_of(failed)

    def end_all(self, grace_period: float) -> None:
        """Ask all to end, and end those that do not."""
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = time.monotonic() + grace_period
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def error_of(self, index: int) -> ProcessException:
        """What a process failed with."""
        process = self.processes[index]
        if os.access(self.error_files[index], os.R_OK):
            with open(self.error_files[index], "rb") as file:
                text = pickle.load(file)
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            return ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


@contextlib.contextmanager
def torch_is_pullback(folder: str) -> Iterator[None]:
    """Where `import torch` means pullback, it does in the processes that are started in this block, too.

    A fresh process imports the program before anything else, with the path of its parent.
    """
    install = loaded("pullback.compat.install")
    if install.finder is None:
        yield
        return
    shim = os.path.join(folder, "shim")
    os.makedirs(os.path.join(shim, "torch"), exist_ok=True)
    with open(os.path.join(shim, "torch", "__init__.py"), "w", encoding="utf-8") as file:
        file.write('from pullback.compat.install import take_over\n\ntake_over("torch")\n')
    sys.path.insert(0, shim)
    try:
        yield
    finally:
        sys.path.remove(shim)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    numa_options: Any = None,
) -> ProcessContext | None:
    """Run `fn(index, *args)` in so many processes."""
    context: Any = multiprocessing.get_context(start_method)
    processes, files = [], []
    with tempfile.TemporaryDirectory(prefix="pullback-spawn-") as folder:
        if not join:  # the files must outlive this call
            folder = tempfile.mkdtemp(prefix="pullback-spawn-")
        with torch_is_pullback(folder):
            for index in range(nprocs):
                files.append(os.path.join(folder, str(index)))
                process = context.Process(target=run_one, args=(fn, index, args, files[-1]), daemon=daemon)
                process.start()
                processes.append(process)
        started = ProcessContext(processes, files)
        if not join:
            return started
        try:
            while not started.join():
                pass
        except BaseException:
            started.end_all(5)
            raise
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(index, *args)` in so many fresh processes; the first error ends them all and is raised here."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


class CallableModule(ModuleType):
    """This module, callable as the function of the same name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return spawn(*args, **kwargs)


sys.modules[__name__].__class__ = CallableModule
