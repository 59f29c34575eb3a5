"""Random programs on torch and on pullback, in child processes.

    python -m tests.fuzz --programs 3000           # as CI does
    python -m tests.fuzz --seconds 3600            # an hour
    python -m tests.fuzz --seed 12345 --only 17    # one program of a run again

Every difference is reduced to a small program and printed once for each op and aspect.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import signal
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection, wait
from typing import Any

from tests.fuzz.worker import alone, batch

BATCH = 1000
"""Programs of one child: it is cold at its start and warm at its end, as a user's process is."""
SILENT = 600
"""A child that says nothing for so many seconds hangs."""
SETTINGS: list[dict[str, str]] = [
    {},
    {"PULLBACK_OFTEN": "1"},
    {"PULLBACK_KERNELS": "numpy"},
    {"PULLBACK_OFTEN": "1"},
    {},
    {"PULLBACK_REFERENCE": "1"},
]
"""The library as it starts, with builtins from the first call on, without the compiler, without the fast path."""


class Run:
    """The children and what they have found."""

    def __init__(self, seed: int, only: int | None, modes: list[str], wild: bool, show_known: bool) -> None:
        self.seed, self.only, self.modes, self.wild, self.show_known = seed, only, modes, wild, show_known
        # Torch and its op database are imported once; each child is a copy of a process that has done nothing else.
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["tests.fuzz.generate"])
        self.children: dict[Connection, list[Any]] = {}
        self.counts: Counter[str] = Counter()
        self.known: Counter[str] = Counter()
        self.found: dict[tuple[str, str], str] = {}
        self.repeated: Counter[tuple[str, str]] = Counter()
        self.killed: set[int] = set()
        self.next = 0
        self.since = self.longest = 0

    def start(self, begin: int | None = None) -> None:
        """Start a child on the next batch, or on what is left of one from a program on."""
        here, there = self.context.Pipe(duplex=False)
        if begin is None:
            number, self.next = self.next, self.next + 1
        else:
            number = begin // BATCH
        settings = SETTINGS[(self.seed + number) % len(SETTINGS)]
        child = self.context.Process(
            target=batch,
            args=(
                self.seed,
                number,
                BATCH,
                settings,
                there,
                self.only,
                self.modes,
                self.wild,
                self.show_known,
                begin or 0,
            ),
            daemon=True,
        )
        child.start()
        there.close()
        self.children[here] = [child, time.monotonic(), (number, None), settings]

    def listen(self) -> None:
        """Take what the children say; note those that died or hang."""
        for pipe in wait(list(self.children), timeout=5):
            assert isinstance(pipe, Connection)
            state = self.children[pipe]
            try:
                kind, what, more = pipe.recv()
            except EOFError:
                del self.children[pipe]
                self.ended(state)
                continue
            state[1] = time.monotonic()
            if kind == "writing":
                state[2] = (what, more)
            elif kind == "program":
                state[2] = (what, more)
                self.counts["programs"] += 1
                self.since += 1
                self.longest = max(self.longest, self.since)
            elif kind == "same":
                self.counts[what] += 1
            elif kind == "known":
                self.known[what] += 1
                if self.show_known:
                    text, (_, aspect, said) = more
                    print(f"\n--- known: {what} (program {state[2][0]})\n{text}\n  {aspect}: {said}", flush=True)
            elif kind == "full":
                del self.children[pipe]
                stopped(state[0])
                self.start(what)
            elif kind == "different":
                op, aspect, text = more
                self.report((op, aspect), f"{what}\n  {aspect}: {text}", state)
            else:
                del self.children[pipe]
                stopped(state[0])
        for pipe, (child, since, what, settings) in list(self.children.items()):
            if time.monotonic() - since > SILENT:
                stopped(child, 0)
                self.report(
                    ("hang", str(what[0])),
                    f"no answer for {SILENT} s in program {what}",
                    [child, since, what, settings],
                )
                del self.children[pipe]

    def ended(self, state: list[Any]) -> None:
        """A child has died. Torch may have done it alone; the rest of the batch is run by another."""
        stopped(state[0])
        number = state[2][0]
        if state[2][1] is None:
            self.report(("crash", str(state[0].exitcode)), f"exit code {state[0].exitcode} before its programs", state)
            return
        again = self.context.Process(target=alone, args=(self.seed, number, self.modes, self.wild), daemon=True)
        again.start()
        stopped(again, SILENT)
        if again.exitcode:
            self.known["crashes of torch without anybody else"] += 1
        elif state[0].exitcode == -signal.SIGKILL and number not in self.killed:
            self.killed.add(number)  # by somebody else: it is run again
            self.start(number)
            return
        else:
            text = f"exit code {state[0].exitcode} in program {state[2]}"
            self.report(("crash", str(state[0].exitcode)), text, state)
        if self.only is None and (number + 1) % BATCH:
            self.start(number + 1)

    def report(self, key: tuple[str, str], text: str, state: list[Any]) -> None:
        self.repeated[key] += 1
        self.since = 0
        if key not in self.found:
            self.found[key] = text
            setting = " ".join(f"{k}={v}" for k, v in state[3].items()) or "as it starts"
            print(
                f"\n--- {key[0]}: {key[1]} (program {state[2][0]} of seed {self.seed}, {setting})\n{text}", flush=True
            )

    def summary(self, seconds: float) -> str:
        modes = ", ".join(f"{name} {count}" for name, count in self.counts.most_common() if name != "programs")
        lines = [f"{self.counts['programs']} programs in {seconds:.0f} s (seed {self.seed}); the same on both: {modes}"]
        lines += [f"{count:6d} known: {why}" for why, count in self.known.most_common()]
        lines += [f"{self.repeated[key]:6d} DIFFERENT: {key[0]}, {key[1]}" for key in self.found]
        lines.append(f"{self.longest} programs in a row without a difference")
        return "\n".join(lines)

    def progress(self, seconds: float) -> str:
        done = self.counts["programs"]
        return (
            f"{done} programs in {seconds:.0f} s ({done / seconds:.0f}/s), {len(self.found)} kinds of differences, "
            f"{sum(self.known.values())} known; {self.since} programs since the last difference"
        )


def stopped(child: Any, patience: float = 60) -> None:
    """Wait for a child to end, and end it after so many seconds."""
    child.join(patience)
    if child.is_alive():
        child.kill()
        child.join()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, help="the run to repeat; a new one otherwise")
    parser.add_argument("--programs", type=int, default=3000, help="how many programs (rounded up to batches)")
    parser.add_argument("--seconds", type=float, help="as many programs as fit into this time, instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="child processes at a time")
    parser.add_argument("--only", type=int, help="only the program of this number")
    parser.add_argument(
        "--modes", nargs="+", default=[], help="only these: eager, backward, double, jvp, vmap, rr, fr, rf, ff"
    )
    parser.add_argument("--wild", action="store_true", help="programs that turn more often to what is seldom done")
    parser.add_argument("--known", action="store_true", help="print the programs whose differences are known, as well")
    parser.add_argument("--report", action="store_true", help="say what differs, and end well all the same")
    chosen = parser.parse_args()
    run = Run(
        secrets.randbits(24) if chosen.seed is None else chosen.seed,
        chosen.only,
        chosen.modes,
        chosen.wild,
        chosen.known,
    )
    print(f"seed {run.seed}", flush=True)
    began = told = time.monotonic()
    batches = -(-chosen.programs // BATCH)
    if chosen.only is not None:
        run.next, batches = chosen.only // BATCH, chosen.only // BATCH + 1

    def more() -> bool:
        return time.monotonic() - began < chosen.seconds if chosen.seconds else run.next < batches

    while more() or run.children:
        while more() and len(run.children) < chosen.jobs:
            run.start()
        run.listen()
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(run.progress(told - began), file=sys.stderr, flush=True)
    print("\n" + run.summary(time.monotonic() - began))
    print(f"{run.counts['programs']} programs compared, {sum(run.repeated.values())} differ")
    return 1 if run.found and not chosen.report else 0


if __name__ == "__main__":
    sys.exit(main())
