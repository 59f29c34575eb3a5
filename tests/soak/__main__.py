"""Run the parts, show progress, print a table; the exit status is 1 if anything failed."""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.soak.parts import PARTS


def soak(
    only: list[str], seed: int, scale: float, seconds: float | None
) -> list[tuple[str, int, int, list[str], float]]:
    """Run the parts: (name, trials, events, what went wrong, seconds) for each."""
    rows = []
    for name in only:
        part, trials, _ = PARTS[name]
        wanted = max(1, round(trials * scale))
        begun, done, events, problems = time.monotonic(), 0, 0, []
        stream = part(random.Random(f"{seed} {name}"))
        for count, problem in stream:
            done += 1
            events += count
            if problem:
                problems.append(problem)
                print(f"\n{problem}", file=sys.stderr)
            spent = time.monotonic() - begun
            if sys.stdout.isatty() or done & (done - 1) == 0:  # in a file: 1, 2, 4, 8 ...
                end = "\r" if sys.stdout.isatty() else "\n"
                print(f"{name}: {done} trials, {events} {PARTS[name][2]}, {spent:.0f} s", end=end, flush=True)
            if spent >= seconds / len(only) if seconds is not None else done >= wanted:
                break
        stream.close()  # type: ignore[attr-defined]
        rows.append((name, done, events, problems, time.monotonic() - begun))
    return rows


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, help="share this time among the parts, whatever the scale")
    parser.add_argument("--scale", type=float, default=1.0, help="how many times the usual number of trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between: " + ", ".join(PARTS))
    given = parser.parse_args()
    only = given.only.split(",")
    if unknown := [name for name in only if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]}")
    rows = soak(only, given.seed, given.scale, given.seconds)
    print(f"\n{'part':12} {'trials':>7} {'events':>9} {'failed':>7} {'seconds':>8}")
    for name, trials, events, problems, spent in rows:
        print(f"{name:12} {trials:7} {events:9} {len(problems):7} {spent:8.0f}  {PARTS[name][2]}")
    failed = any([problems for _, _, _, problems, _ in rows])
    print("something failed" if failed else "everything held")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
