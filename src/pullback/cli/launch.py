"""`pullback launch -n 4 train.py`: a program on several ranks, here or on several machines."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import IO, Any

import pullback
from pullback.cli.output import Mistake, say
from pullback.cli.program import add_program, compiled

EXAMPLES = """
examples:
  pullback launch -n 4 train.py --epochs 3        four ranks on this machine
  pullback launch -n 8 --hosts a,b train.py       four on each of two machines, started through ssh
  pullback launch -n 4 --restarts 2 train.py      start all of it anew if a rank fails, twice at most
  pullback launch -n 4 --elastic train.py         the others go on if a rank fails: see elastic.run
  pullback launch -n 4 --prefix train.py          every line begins with the rank that wrote it

The program finds its rank as torchrun's does: `torch.distributed.init_process_group("gloo")`. If a rank fails, what it
said is shown, the others are stopped, and the status is its own. Each rank computes with its share of the cores.
"""
GRACE = 5.0
"""Seconds that ranks have to end once they are asked to."""
LOST = re.compile(r"\bLost rank (\d+)")
"""What a rank says that fails because another one did."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("-n", "--ranks", type=int, default=None, metavar="N", help="how many ranks; else one per core")
    parser.add_argument("--hosts", default="", metavar="A,B", help="machines to start them on, in equal parts")
    parser.add_argument("--ssh", default="ssh", metavar="COMMAND", help="what starts a program on another machine")
    parser.add_argument("--port", type=int, default=0, help="where ranks find each other; a free one by itself")
    parser.add_argument("--threads", type=int, default=0, help="threads of each rank; else its share of the cores")
    parser.add_argument("--restarts", type=int, default=0, metavar="K", help="how often all is started anew")
    parser.add_argument("--elastic", action="store_true", help="if a rank fails, the others go on without it")
    parser.add_argument("--least", type=int, default=1, metavar="N", help="with --elastic: how many must be left")
    parser.add_argument("--prefix", action="store_true", help="begin every line with the rank that wrote it")
    add_program(parser)


def free_port() -> int:
    """A port nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


class Job:
    """The ranks of one start."""

    def __init__(self, given: argparse.Namespace, attempt: int) -> None:
        self.given, self.attempt, self.failed = given, attempt, -1
        self.hosts = [host for host in given.hosts.split(",") if host] or [""]
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.size = given.ranks or cores * len(self.hosts)
        if self.size < 1 or self.size % len(self.hosts):
            raise Mistake(f"{self.size} ranks cannot be divided among {len(self.hosts)} machines")
        self.each = self.size // len(self.hosts)
        self.threads = given.threads or max(cores // self.each, 1)
        self.port = given.port or free_port()
        self.store: Any = None
        if given.elastic:  # it outlives every rank
            self.store = pullback.distributed.TCPStore("127.0.0.1", self.port, None, True, wait_for_workers=False)
        self.lock = threading.Lock()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.readers: list[threading.Thread] = []
        self.causes: dict[int, int] = {}
        """Who failed because of whom."""

    def variables(self, rank: int) -> dict[str, str]:
        """What a rank finds in its environment, under torchrun's names."""
        local = rank % self.each
        numbers = {"RANK": rank, "LOCAL_RANK": local, "WORLD_SIZE": self.size, "LOCAL_WORLD_SIZE": self.each}
        numbers |= {"GROUP_RANK": rank // self.each, "MASTER_PORT": self.port, "OMP_NUM_THREADS": self.threads}
        numbers |= {"TORCHELASTIC_RESTART_COUNT": self.attempt, "TORCHELASTIC_MAX_RESTARTS": self.given.restarts}
        master = self.hosts[0] or "127.0.0.1"
        if self.store is not None:
            numbers |= {"PULLBACK_ELASTIC": 1, "PULLBACK_ELASTIC_LEAST": self.given.least}
            master = socket.gethostbyname(socket.gethostname()) if self.hosts[0] else master
        words = {"MASTER_ADDR": master, "TORCHELASTIC_RUN_ID": "pullback"}
        words |= {"TORCHELASTIC_USE_AGENT_STORE": "True"} if self.store is not None else {}
        return words | {k: str(v) for k, v in numbers.items()}

    def command(self, rank: int) -> tuple[list[str], dict[str, str]]:
        """How a rank is started, and its environment: on another machine in this folder, through ssh."""
        own = [sys.executable, "-m", "pullback", "run", *(["-m"] if self.given.module else []), self.given.script]
        own += self.given.arguments
        host, extra = self.hosts[rank // self.each], self.variables(rank)
        if not host:
            return own, {**os.environ, **extra}
        if "PYTHONPATH" in os.environ:
            extra["PYTHONPATH"] = os.environ["PYTHONPATH"]
        words = [f"{name}={shlex.quote(value)}" for name, value in extra.items()]
        line = f"cd {shlex.quote(os.getcwd())} && exec env {' '.join(words)} {shlex.join(own)}"
        return [*shlex.split(self.given.ssh), host, line], dict(os.environ)

    def start(self) -> None:
        """Start all ranks, and read what they say."""
        for rank in range(self.size):
            command, environment = self.command(rank)
            try:
                process = subprocess.Popen(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                )
            except OSError as error:
                self.stop()
                raise Mistake(f"{command[0]} cannot be started: {error.strerror}") from None
            self.processes.append(process)
            for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                reader = threading.Thread(target=self.forward, args=(rank, source, target), daemon=True)
                reader.start()
                self.readers.append(reader)

    def forward(self, rank: int, source: IO[bytes], target: Any) -> None:
        """Pass on what a rank says, line by line; once one has failed, the others have no more to say.

        A traceback is passed on as a whole, and not at all if it tells of another rank that has failed: what that one
        says may come later.
        """
        start = f"[rank {rank}] " if self.given.prefix else ""
        held: list[str] = []
        for content in source:
            line = content.decode(errors="replace")
            held.append(start + line)
            if self.store is None and (line.startswith("Traceback ") or (len(held) > 1 and line[:1].isspace())):
                continue
            lost = LOST.search(line) if len(held) > 1 else None
            if lost and int(lost[1]) < self.size and self.has_failed(int(lost[1])):
                self.causes[rank] = int(lost[1])
            elif self.failed in (-1, rank):
                self.write(target, held)
            held = []
        if self.failed in (-1, rank):
            self.write(target, held)

    def write(self, target: Any, lines: list[str]) -> None:
        """Pass on lines, with none of another rank's between them."""
        with self.lock:
            target.write("".join(lines))
            target.flush()

    def has_failed(self, rank: int) -> bool:
        """Whether a rank that another one misses has failed by itself."""
        try:
            return bool(self.processes[rank].wait(GRACE))
        except subprocess.TimeoutExpired:
            return False

    def wait(self) -> int:
        """Wait until all have ended, or one has failed; the status of that one."""
        waiting = dict(enumerate(self.processes))
        lost = 0
        while waiting:
            for rank, process in list(waiting.items()):
                code = process.poll()
                if code is None:
                    if self.store is not None and self.store.check([f"elastic/end/{rank}"]):
                        process.kill()  # the others have waited for it in vain
                    continue
                del waiting[rank]
                if self.store is not None:
                    self.store.set(f"elastic/ended/{rank}", str(code))
                lost += bool(code)
                if code and (self.store is None or self.size - lost < self.given.least):
                    self.failed = self.cause(rank)
                    self.stop()
                    return self.processes[self.failed].wait() or code
                if code:
                    say(f"rank {rank} {ended(code)}; {self.size - lost} are left")
            time.sleep(0.02)
        self.listen_out()
        return 0

    def cause(self, rank: int) -> int:
        """The rank that failed first, as far as those that failed tell."""
        seen: set[int] = set()
        while rank not in seen:
            seen.add(rank)
            for reader in self.readers[2 * rank : 2 * rank + 2]:
                reader.join(GRACE)
            rank = self.causes.get(rank, rank)
        return rank

    def listen_out(self) -> None:
        """Let the last lines be passed on."""
        for reader in self.readers:
            reader.join(GRACE)

    def stop(self) -> None:
        """Ask all that still run to end, and end those that do not."""
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        end = time.monotonic() + GRACE
        for process in self.processes:
            try:
                process.wait(max(end - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.listen_out()


def ended(code: int) -> str:
    """How a rank ended, in words."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Start the ranks, as often as asked for; the status of the one that failed last, or 0."""
    if not given.module and not given.hosts:
        compiled(given.script)  # a file that is not there is told once
    for attempt in range(given.restarts + 1):
        job = Job(given, attempt)
        try:
            job.start()
            code = job.wait()
        except BaseException:
            job.stop()
            raise
        if not code:
            return 0
        left = given.restarts - attempt
        say(f"rank {job.failed} {ended(code)}; the others were stopped" + (f"; {left} restarts left" if left else ""))
    return code if code > 0 else 128 - code
