"""`python -m tests.ecosystem`: packages written for torch, run on pullback and compared with what torch printed.

It makes an environment under build/ecosystem, installs pullback, its shim and the packages there, runs every program
of `programs/`, compares the numbers it prints with `references/` and writes docs/ecosystem.md. With `--reference` it
installs torch instead of the shim and writes the references. With `--times` it makes both environments, runs every
program on torch and on pullback in turn, twice, writes the references, and keeps the shorter times in `times.json`,
from which the page has them. With `--subset` it runs a few programs of small packages, in the versions the references
were made with, and says so where these cannot be installed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.ecosystem.environments import FOLDER, ROOT, TORCH, NotInstalled, environment

HERE = Path(__file__).parent
PAGE = ROOT / "docs" / "ecosystem.md"
TIMES = HERE / "times.json"
PACKAGES = {
    "accelerate": "accelerate",
    "backpack": "backpack-for-pytorch",
    "botorch": "botorch",
    "captum": "captum",
    "diffusers": "diffusers",
    "e3nn": "e3nn",
    "einops": "einops",
    "fastai": "fastai",
    "geoopt": "geoopt",
    "gpytorch": "gpytorch",
    "higher": "higher",
    "kornia": "kornia",
    "lightning": "lightning",
    "opacus": "opacus",
    "peft": "peft",
    "pennylane": "pennylane",
    "pyro": "pyro-ppl",
    "safetensors": "safetensors",
    "sbi": "sbi",
    "sentence": "sentence-transformers",
    "skorch": "skorch",
    "stable": "stable-baselines3",
    "tensorboard": "tensorboard",
    "tensordict": "tensordict",
    "timm": "timm",
    "torchdiffeq": "torchdiffeq",
    "torchgeometric": "torch-geometric",
    "torchinfo": "torchinfo",
    "torchmetrics": "torchmetrics",
    "torchmin": "pytorch-minimize",
    "torchopt": "torchopt",
    "torchrl": "torchrl",
    "torchsde": "torchsde",
    "torchvision": "torchvision==0.28.0",
    "transformers": "transformers",
    "xtransformers": "x-transformers",
    "zuko": "zuko",
}
"""What to install for a program, by the first word of its name."""
SUBSET = ("einops", "higher", "safetensors", "torchdiffeq", "torchinfo", "torchmetrics", "torchsde")
INSTALLING = 150
"""Seconds the packages of the subset have to be fetched and installed; a slow network is no failure."""
REPEATS = 2
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
TOLERANCE = 1e-3
"""How far a number may be from torch's, relative to its size, or to 0.001 for small ones: training spreads rounding."""
Found = dict[str, Any]


def word(program: Path) -> str:
    """The first word of a program's name, by which its package is known."""
    return program.stem.partition("_")[0]


def run(python: Path, program: Path) -> tuple[Found, float]:
    """What a program printed and how it ended; and how long it took."""
    start = time.perf_counter()
    try:
        done = subprocess.run([python, "-W", "ignore", program], capture_output=True, text=True, timeout=1800)
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess([], 124, "", "TimeoutError: it ran for half an hour")
    seconds = time.perf_counter() - start
    name = PACKAGES[word(program)].partition("==")[0]
    ask = [python, "-c", f"import importlib.metadata as m; print(m.version({name!r}))"]
    version = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
    raised = [line for line in done.stderr.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
    error = "" if not done.returncode else raised[-1] if raised else f"ended with status {done.returncode}"
    return {"package": name, "version": version, "output": done.stdout, "error": error}, seconds


def distance(ours: str, theirs: str) -> float | None:
    """The largest relative distance between the numbers of two outputs; None if the words around them differ."""
    if NUMBER.sub("#", ours) != NUMBER.sub("#", theirs):
        return None
    pairs = zip(map(float, NUMBER.findall(ours)), map(float, NUMBER.findall(theirs)), strict=True)
    return max((abs(a - b) / max(abs(b), 1e-3) for a, b in pairs), default=0.0)


def row(program: str, ours: Found, theirs: Found | None, times: dict[str, float] | None) -> tuple[str, bool]:
    """A line of the table, and whether all is well."""
    works = not ours["error"]
    if not works:
        same, well = str(ours["error"]).replace("|", "\\|")[:160], False
    elif theirs is None:
        same, well = "no reference", True
    else:
        far = distance(str(ours["output"]), str(theirs["output"]))
        well = far is not None and far <= TOLERANCE
        same = "other text" if far is None else f"{'yes' if well else 'no'}, within {far:.0e}"
    took = "not measured"
    if times is not None:
        took = f"{times['pullback']:.1f} s / {times['torch']:.1f} s = {times['pullback'] / times['torch']:.2f}"
    cells = (ours["package"], ours["version"], f"`{program}`", "yes" if works else "no", same, took)
    return "| " + " | ".join(map(str, cells)) + " |", well


HEAD = """# Packages written for torch

Each program is run on torch {version} and on pullback through `pullback shim install`; the numbers it prints are
compared. `make ecosystem` runs them again and writes this page; `make ecosystem TIMES=1` also takes the times: every
program on torch and on pullback in turn, each twice, of which the shorter counts. A time is that of the whole program,
from the start of Python with all imports to its end, on two cores with nothing else to do.

| package | version | program | works | same numbers | time / torch's |
|---|---|---|---|---|---|
"""


def in_turn(pythons: dict[str, Path], program: Path) -> tuple[Found, Found, dict[str, float]]:
    """What a program gave on pullback and on torch, and the shortest time of each, run in turn."""
    found: dict[str, Found] = {}
    times = dict.fromkeys(pythons, float("inf"))
    for _ in range(REPEATS):
        for name, python in pythons.items():
            found[name], seconds = run(python, program)
            times[name] = min(times[name], round(seconds, 2))
    return found["pullback"], found["torch"], times


def main() -> int:
    """Run all, compare, write the table; 1 if a program fails or prints other numbers."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--reference", action="store_true", help="run on torch and keep what it prints")
    what.add_argument("--times", action="store_true", help="run on torch and on pullback in turn and keep the times")
    what.add_argument("--subset", action="store_true", help="run a few small ones, if they can be installed")
    parser.add_argument("--python", type=Path, help="an environment that is there already, instead of making one")
    parser.add_argument("--only", default="", help="programs whose names begin so, with commas between")
    given = parser.parse_args()
    programs = sorted((HERE / "programs").glob("*.py"))
    if given.subset:
        programs = [program for program in programs if word(program) in SUBSET]
    programs = [program for program in programs if program.stem.startswith(tuple(given.only.split(",")))]
    pythons = {}
    try:
        for name in ["torch"] * (given.reference or given.times) + ["pullback"] * (not given.reference):
            pythons[name] = given.python or made(name, given.subset, programs)
    except NotInstalled as error:
        print(f"the packages could not be installed: {error}")
        return 0 if given.subset else 1
    times = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    rows, well = [], True
    for program in programs:
        if given.reference:
            theirs, _ = run(pythons["torch"], program)
            print(program.stem, theirs["error"] or "kept", flush=True)
            keep(program, theirs)
            continue
        if given.times:
            ours, theirs, times[program.stem] = in_turn(pythons, program)
            TIMES.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n")
            keep(program, theirs)
        else:
            ours, _ = run(pythons["pullback"], program)
        line, good = row(program.stem, ours, reference_of(program), times.get(program.stem))
        print(line, flush=True)
        rows.append(line)
        well = well and good
    if rows and not given.only and not given.subset:
        PAGE.write_text(HEAD.format(version=TORCH.partition("==")[2]) + "\n".join(rows) + "\n")
    return 0 if well else 1


def path_of(program: Path) -> Path:
    """Where what torch printed for a program is kept."""
    return HERE / "references" / f"{program.stem}.json"


def reference_of(program: Path) -> Found | None:
    """What torch printed for a program; None if it has not been run on torch yet."""
    path = path_of(program)
    return json.loads(path.read_text()) if path.exists() else None


def keep(program: Path, theirs: Found) -> None:
    """Keep what torch printed, if it came to its end."""
    if not theirs["error"]:
        path_of(program).write_text(json.dumps(theirs, indent=1) + "\n")


def made(name: str, subset: bool, programs: list[Path]) -> Path:
    """The environment with torch or with pullback: of all packages as they are now, or of the subset as it was."""
    if not subset:
        return environment(
            FOLDER / {"torch": "reference"}.get(name, name), PACKAGES.values(), reference=name == "torch"
        )
    found = [reference_of(program) for program in programs]
    packages = [f"{one['package']}=={one['version']}" for one in found if one is not None]
    return environment(FOLDER / "subset", packages, seconds=INSTALLING)


if __name__ == "__main__":
    sys.exit(main())
