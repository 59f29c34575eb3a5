"""Sizes, numbers and indices that cannot be: torch's errors, nothing changed, and no process that dies.

Every line of hostile_calls.txt runs on both libraries, in processes of their own that have little memory.
Both must return the same or raise the same class with the same text; a process that dies fails the test.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHILD = Path(__file__).with_name("hostile_child.py")
FILE = Path(__file__).with_name("hostile_calls.txt")


def sections() -> dict[str, list[str]]:
    """The lines of the file by the headings they stand under."""
    found: dict[str, list[str]] = {}
    for line in FILE.read_text().splitlines():
        if line.startswith("#"):
            lines = found.setdefault(line[2:], [])
        elif line:
            lines.append(line)
    return found


def outcomes(library: str, lines: list[str]) -> dict[int, Any]:
    """What came of each line; after one that kills the process, another goes on with the next."""
    left, found = list(enumerate(lines)), {}
    while left:
        run = subprocess.run(
            [sys.executable, str(CHILD), library], input=json.dumps(left), capture_output=True, text=True
        )
        began = -1
        for line in run.stdout.splitlines():
            number, outcome = json.loads(line)
            if outcome == "began":
                began = number
            else:
                found[number] = outcome
        if began in found or began < 0:
            assert run.returncode == 0, run.stderr[-2000:]
            break
        found[began] = ["died", run.returncode, run.stderr[-300:]]
        left = [(number, line) for number, line in left if number > began]
    return found


def clean(outcome: Any) -> Any:
    """An outcome without what may differ: torch's source lines, our notes, and how much memory it was."""
    if isinstance(outcome, list) and outcome[:1] == ["raised"]:
        text = re.sub(r"\nException raised from.*", "", outcome[2], flags=re.DOTALL)
        text = re.sub(r"\[enforce fail at \S+\] |you tried to allocate \d+ bytes", "", text)
        text = re.sub(r"(\n  \w+(\[\d+\])?: \[.*\] torch\.\w+)+$", "", text)
        text = re.sub(r"\n  \w+(\[[\d, ]+\])* is -?\d+; .*$|\n  pullback computes on the CPU.*$", "", text)
        return [*outcome[:2], text.strip()]
    return outcome


@pytest.mark.parametrize("section", sections())
def test_hostile_calls_end_as_in_torch(section):
    lines = sections()[section]
    theirs, ours = outcomes("torch", lines), outcomes("pullback", lines)
    wrong = [
        f"{line}\n    torch: {clean(theirs[nr])}\n    ours:  {clean(ours[nr])}"
        for nr, line in enumerate(lines)
        if clean(theirs[nr]) != clean(ours[nr])
    ]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(lines)} differ", *wrong[:10]])


@pytest.mark.parametrize("section", sections())
def test_a_refused_call_changes_nothing(section):
    lines = sections()[section]
    changed = [
        lines[nr] for nr, outcome in outcomes("pullback", lines).items() if outcome[0] == "raised" and outcome[3]
    ]
    assert not changed, changed
