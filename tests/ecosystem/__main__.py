"""`python -m tests.ecosystem`: packages written for torch, run on pullback and compared with what torch printed.

It makes an environment under build/ecosystem, installs pullback, its shim and the packages there, runs every program
of `programs/`, compares the numbers it prints with `references/` and writes docs/ecosystem.md. With `--reference` it
installs torch instead of the shim and writes the references.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TORCH = "torch==2.13.0"
PACKAGES = {
    "accelerate": "accelerate",
    "botorch": "botorch",
    "captum": "captum",
    "diffusers": "diffusers",
    "e3nn": "e3nn",
    "einops": "einops",
    "gpytorch": "gpytorch",
    "higher": "higher",
    "kornia": "kornia",
    "lightning": "lightning",
    "opacus": "opacus",
    "peft": "peft",
    "pyro": "pyro-ppl",
    "safetensors": "safetensors",
    "sentence": "sentence-transformers",
    "skorch": "skorch",
    "stable": "stable-baselines3",
    "tensordict": "tensordict",
    "timm": "timm",
    "torchdiffeq": "torchdiffeq",
    "torchgeometric": "torch-geometric",
    "torchinfo": "torchinfo",
    "torchmetrics": "torchmetrics",
    "torchrl": "torchrl",
    "torchsde": "torchsde",
    "torchvision": "torchvision==0.28.0",
    "transformers": "transformers",
    "xtransformers": "x-transformers",
}
"""What to install for a program, by the first word of its name."""
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
TOLERANCE = 1e-3
"""How far a number may be from torch's, relative to its size, or to 0.001 for small ones: training spreads rounding."""


def environment(folder: Path, reference: bool) -> Path:
    """A Python with the packages and either pullback under torch's name or torch itself."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(folder, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if reference:
        subprocess.run([*install, TORCH], check=True)
    else:
        subprocess.run([*install, "--editable", f"{ROOT}[fast]"], check=True)
        subprocess.run([python, "-m", "pullback", "shim", "install"], check=True)
    limits = folder / "constraints.txt"
    limits.write_text(TORCH + ("\n" if reference else "+pullback\n"))
    subprocess.run([*install, "--constraint", limits, *PACKAGES.values()], check=True)
    return python


def run(python: Path, program: Path) -> dict[str, object]:
    """What a program printed, how it ended, and how long it took."""
    start = time.perf_counter()
    done = subprocess.run([python, "-W", "ignore", program], capture_output=True, text=True, timeout=1800)
    seconds = round(time.perf_counter() - start, 1)
    name = PACKAGES[program.stem.partition("_")[0]].partition("==")[0]
    ask = [python, "-c", f"import importlib.metadata as m; print(m.version({name!r}))"]
    version = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
    raised = [line for line in done.stderr.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
    error = "" if not done.returncode else raised[-1] if raised else f"ended with status {done.returncode}"
    return {"package": name, "version": version, "output": done.stdout, "error": error, "seconds": seconds}


def distance(ours: str, theirs: str) -> float | None:
    """The largest relative distance between the numbers of two outputs; None if the words around them differ."""
    if NUMBER.sub("#", ours) != NUMBER.sub("#", theirs):
        return None
    pairs = zip(map(float, NUMBER.findall(ours)), map(float, NUMBER.findall(theirs)), strict=True)
    return max((abs(a - b) / max(abs(b), 1e-3) for a, b in pairs), default=0.0)


def row(program: str, ours: dict[str, object], theirs: dict[str, object] | None) -> tuple[str, bool]:
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
    timed = theirs is not None and theirs["seconds"] is not None and ours["seconds"] is not None
    seconds = f"{ours['seconds']} s / {theirs['seconds']} s" if theirs and timed else "not measured"
    cells = (ours["package"], ours["version"], f"`{program}`", "yes" if works else "no", same, seconds)
    return "| " + " | ".join(map(str, cells)) + " |", well


HEAD = """# Packages written for torch

Each program is run on torch {version} and on pullback through `pullback shim install`; the numbers it prints are
compared. `make ecosystem` runs them again. Times are for the whole program, imports included, pullback's first; where
one of the two runs was on a busy machine they are left out.

| package | version | program | works | same numbers | time / torch's |
|---|---|---|---|---|---|
"""


def main() -> int:
    """Run all, compare, write the table; 1 if a program fails or prints other numbers."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem", description=__doc__)
    parser.add_argument("--reference", action="store_true", help="run on torch and keep what it prints")
    parser.add_argument("--python", type=Path, help="an environment that is there already, instead of making one")
    parser.add_argument("--only", default="", help="programs whose names begin so")
    given = parser.parse_args()
    kind = "reference" if given.reference else "pullback"
    python = given.python or environment(ROOT / "build" / "ecosystem" / kind, given.reference)
    rows, well = [], True
    for program in sorted((HERE / "programs").glob(f"{given.only}*.py")):
        path = HERE / "references" / f"{program.stem}.json"
        found = run(python, program)
        if given.reference:
            print(program.stem, found["error"] or "kept", flush=True)
            if not found["error"]:
                path.write_text(json.dumps(found, indent=1) + "\n")
            continue
        theirs = json.loads(path.read_text()) if path.exists() else None
        line, good = row(program.stem, found, theirs)
        print(line, flush=True)
        rows.append(line)
        well = well and good
    if rows and not given.only:
        (ROOT / "docs" / "ecosystem.md").write_text(
            HEAD.format(version=TORCH.partition("==")[2]) + "\n".join(rows) + "\n"
        )
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
