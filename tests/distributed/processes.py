"""Starts a program on several ranks, as torchrun would, and collects what they recorded. No process outlives a test."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
START = """
import importlib, json, os, sys, time, warnings
torch = importlib.import_module(os.environ["LIBRARY"])
dist = torch.distributed
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
records = {}

def plain(value):
    if isinstance(value, torch.Tensor):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)

def record(name, call):
    try:
        records[name] = plain(call())
    except Exception as error:
        records[name] = f"{type(error).__name__}: {error}"
"""
END = """
with open(os.environ["RECORDS"], "w") as file:
    json.dump(records, file)
"""


def free_port() -> int:
    """A port nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(source: str, size: int, library: str, folder: str, **variables: str) -> list[subprocess.Popen[str]]:
    """One process for each rank."""
    port, started = free_port(), []
    for rank in range(size):
        environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        environment |= {"LIBRARY": library, "RECORDS": f"{folder}/{rank}.json", "PYTHONPATH": str(ROOT / "src")}
        environment |= {"PYTHONFAULTHANDLER": "1"}  # who dies of a signal says where
        environment |= variables
        command = [sys.executable, "-c", START + source + END]
        with open(f"{folder}/{rank}.txt", "w") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, text=True, cwd=ROOT)
        started.append(process)
    return started


def finish(started: list[subprocess.Popen[str]], seconds: float = 600) -> list[int]:
    """Wait for all, and end those that do not."""
    end = time.monotonic() + seconds
    try:
        for process in started:
            process.wait(max(end - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        pass
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
    return [process.returncode for process in started]


def run_ranks(
    source: str, size: int = 2, library: str = "pullback", seconds: float = 600, **variables: str
) -> list[Any]:
    """What each rank of a program recorded."""
    with tempfile.TemporaryDirectory() as folder:
        codes = finish(start(source, size, library, folder, **variables), seconds)
        said = [Path(folder, f"{rank}.txt").read_text() for rank in range(size)]
        assert codes == [0] * size, f"ended with {codes}:\n" + "\n".join(said)
        return [json.loads(Path(folder, f"{rank}.json").read_text()) for rank in range(size)]


def close(theirs: Any, ours: Any, path: str = "") -> list[str]:
    """Where two records differ by more than rounding."""
    if isinstance(theirs, dict):
        return [line for key in theirs for line in close(theirs[key], ours.get(key), f"{path}/{key}")]
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [line for i, (a, b) in enumerate(zip(theirs, ours)) for line in close(a, b, f"{path}/{i}")]
    if isinstance(theirs, float) and isinstance(ours, float):
        same = abs(theirs - ours) <= 2e-4 * abs(theirs) + 2e-5
    else:
        same = theirs == ours
    return [] if same else [f"{path}: torch {theirs!r}, pullback {ours!r}"]
