"""The page of benchmarks, from what `python -m benchmarks --json FILE` wrote; `make bench` does both.

Figures of a CUDA device alone, as `make gpu` leaves them, replace the page's last section and nothing else.
"""

import json
import math
import sys
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.__main__ import USUAL  # noqa: E402
from benchmarks.reasons import reason  # noqa: E402

Row = dict[str, Any]
TITLES = {
    "overhead": "What a call costs",
    "derivatives": "Whole derivatives",
    "import": "The import",
    "start-up": "Short programs, from the start of the process to its end",
    "scaling": "Deep and wide graphs",
    "memory": "Memory",
    "ops": "The basic operators, small tensors",
    "writes and draws": "Writes in place and random draws, small tensors",
    "composites": "Layers, losses, linalg and fft, small inputs",
    "products": "Matrix products and convolutions, large tensors",
    "rows, windows, attention": "Softmax, norms, pooling and attention, large tensors",
    "whole steps": "Training steps",
    "pointwise": "Pointwise ops and reductions, large tensors",
    "special": "Special functions, a million numbers",
    "random, scans, selection": "Random numbers, scans and selection",
    "compiled": "Compiled programs",
    "memory of steps": "The memory of training steps",
    "two ranks": "Two processes",
}
BARS = 24
"""A section with more rows than this is drawn as one curve."""
STYLE = (
    "<style>text{font:12px sans-serif;fill:#333}.axis{stroke:#999}.one{stroke:#333;stroke-dasharray:4 3}"
    ".faster{fill:#2b7bba}.slower{fill:#d9822b}.curve{fill:none;stroke:#2b7bba;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#ccc}.one{stroke:#ccc}}</style>"
)


def ratios(rows: list[Row]) -> list[tuple[str, float]]:
    """The rows that compare with torch, as parts of torch's figure."""
    return [(r["name"], r["peer"] / r["torch"]) for r in rows if r["torch"] and r["peer"] and not r["error"]]


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def svg(width: int, height: int, parts: list[str], label: str) -> str:
    """A picture."""
    size = f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>' + STYLE + "".join(parts) + "</svg>\n"


def scale(low: float, high: float, start: float, end: float) -> Any:
    """A logarithmic axis."""
    span = math.log(high / low)
    return lambda value: start + (end - start) * math.log(max(low, min(high, value)) / low) / span


def marks(low: float, high: float) -> list[float]:
    """Round numbers on the axis."""
    return [m for m in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if low <= m <= high]


def bars(title: str, values: list[tuple[str, float]]) -> str:
    """One bar for each row, from 1 to its ratio: to the left is faster."""
    low, high = min(0.5, *(v for _, v in values)) / 1.2, max(2.0, *(v for _, v in values)) * 1.2
    x = scale(low, high, 360, 740)
    bottom = 30 + 22 * len(values)
    parts = [f'<text x="{x(m):.0f}" y="{bottom + 16}" text-anchor="middle">{m:g}</text>' for m in marks(low, high)]
    for i, (name, value) in enumerate(values):
        y, left, right = 30 + 22 * i, min(x(value), x(1)), max(x(value), x(1))
        side = "faster" if value <= 1 else "slower"
        place = f'x="{left - 4:.0f}" text-anchor="end"' if value <= 1 else f'x="{right + 4:.0f}"'
        parts.append(f'<text x="0" y="{y + 12}">{escape(name[:54])}</text>')
        parts.append(
            f'<rect class="{side}" x="{left:.0f}" y="{y}" width="{max(right - left, 1):.0f}" height="15" rx="2"/>'
        )
        parts.append(f'<text {place} y="{y + 12}">{value:.2f}</text>')
    parts.append(f'<line class="one" x1="{x(1):.0f}" x2="{x(1):.0f}" y1="22" y2="{bottom}"/>')
    parts.append(f'<text x="{x(1):.0f}" y="14" text-anchor="middle">torch = 1</text>')
    return svg(800, bottom + 26, parts, title)


def curve(title: str, values: list[tuple[str, float]]) -> str:
    """All rows of a large section in order, from the fastest to the slowest beside torch."""
    ordered = sorted(value for _, value in values)
    low, high = min(0.2, ordered[0]) / 1.1, max(4.0, ordered[-1]) * 1.1
    y = scale(low, high, 250, 20)
    at = lambda i: 60 + 700 * i / max(len(ordered) - 1, 1)
    parts = [f'<text x="50" y="{y(m) + 4:.0f}" text-anchor="end">{m:g}</text>' for m in marks(low, high)]
    points = " ".join(f"{at(i):.1f},{y(v):.1f}" for i, v in enumerate(ordered))
    parts.append(f'<line class="axis" x1="60" x2="760" y1="250" y2="250"/><polyline class="curve" points="{points}"/>')
    parts.append(f'<line class="one" x1="60" x2="760" y1="{y(1):.0f}" y2="{y(1):.0f}"/>')
    faster = sum(v <= 1 for v in ordered)
    text = f"{faster} of {len(ordered)} take no more time than in torch; geometric mean {mean(ordered):.2f}"
    parts.append(
        f'<text x="60" y="272">{text}</text><text x="755" y="{y(1) - 5:.0f}" text-anchor="end">torch = 1</text>'
    )
    return svg(800, 284, parts, f"{title}: {text}")


def figure(value: float | None) -> str:
    """Three digits."""
    return "" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def section(name: str, rows: list[Row], pictures: Path) -> list[str]:
    """One section of the page, and its picture."""
    title = TITLES.get(name, name)
    values = ratios(rows)
    lines = [f"## {title}", ""]
    if len(values) > 1:
        path = pictures / f"bench-{name.split(',')[0].replace(' ', '-')}.svg"
        path.write_text((curve if len(values) > BARS else bars)(title, values), encoding="utf-8")
        lines += [f"![{title}, as parts of torch's figures](pictures/{path.name})", ""]
    shown = rows
    if len(rows) > BARS:
        ordered = sorted((r for r in rows if r["torch"] and r["peer"]), key=lambda r: r["peer"] / r["torch"])
        shown = ordered[:10] + ordered[-10:] + [r for r in rows if not r["unit"]]
        lines += ["The ten fastest and the ten slowest beside torch:", ""]
    lines += ["| | unit | torch | pullback | ratio |", "|---|---|--:|--:|--:|"]
    for row in shown:
        compared = row["peer"] / row["torch"] if row["torch"] and row["peer"] is not None else None
        if compared is None and not row["torch"] and not row["unit"]:
            compared = row["value"]  # a mean of ratios
        ratio = "" if compared is None else f"{compared:.2f}"
        cells = (row["name"].replace("|", "\\|"), row["unit"], figure(row["torch"]), figure(row["peer"]), ratio)
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


BEYOND = (
    "Not in the tables, as they are other people's code on both sides: LAPACK's factorisations (SciPy's and NumPy's",
    "OpenBLAS here, MKL in torch) and the functions that SciPy computes. On a CPU of AMD `svd`, `eigh` and `qr` of",
    "matrices of 800 x 800 took 0.1 to 0.3 of torch's CPU time, `inv` and `solve` 0.7 to 1.7, `cholesky` 2, of which",
    "all is spent in OpenBLAS itself; MKL likes Intel's. `bessel_j0` to `bessel_y1` take 1.2 to 1.7 of torch's time,",
    "`igamma` 1.2 to 1.9, `igammac` 1.7 to 3, `airy_ai` 2 to 4, `zeta` of float64 1.2: SciPy computes more digits in",
    "float32, and all four Airy functions where one is wanted. They run on as many threads as torch's do.",
    "Small slices of several dimensions with a gradient (`x[:, 1:3]`, `x[0, 1:3]`) take 1.2 to 1.45 of torch's time:",
    "an op for each dimension, as in torch, and each a call of Python.",
)


def page(figures: dict[str, Any], pictures: Path) -> str:
    """The page; its pictures are written beside."""
    rows = figures["rows"]
    lines = [
        "<!-- Written by `make bench`; do not edit. -->",
        "",
        "# Benchmarks",
        "",
        f"pullback beside torch {figures['torch']} in the same run, CPython {figures['python']}, two threads,",
        "the best of rounds that take turns.",
        "A ratio below 1 means less time, or less memory, than torch. `make bench` measures on your machine and writes",
        "this page; `pullback bench` gives ten rows in ten seconds.",
        "",
        *BEYOND,
        "",
    ]
    for name in dict.fromkeys(row["section"] for row in rows):
        lines += section(name, [row for row in rows if row["section"] == name], pictures)
    return "\n".join(lines).rstrip() + "\n"


DEVICE = "\n## On a CUDA device\n"


def device_section(figures: dict[str, Any]) -> str:
    """What a CUDA device takes, with the reasons of what is over its budget."""
    rows, peer = figures["rows"], figures["torch"]
    kept = sum(row["within"] is True for row in rows)
    lines = [
        DEVICE,
        f"Beside torch {peer}, CPython {figures['python']}, a process each, every figure waited for, the least",
        "of five series. Memory is the most that arrays have at once in a step. `make gpu` measures, and writes this",
        f"section. {kept} of {sum(row['within'] is not None for row in rows)} budgets are kept.",
        "",
        "| | unit | torch | pullback | ratio | budget | over it because |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        ratio = "" if row["value"] is not None or not row["measured"] else f"{row['measured']:.2f}"
        budget = "" if row["budget"] is None else f"{row['budget']:g} {row['value_unit']}".rstrip()
        why = row["error"] or (reason(row["name"]) if row["within"] is False else "")
        cells = (row["name"], row["unit"], figure(row["torch"]), figure(row["peer"]), ratio, budget, why)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(path: str) -> None:
    """Write the page and its pictures."""
    target, figures = ROOT / "docs" / "benchmarks.md", json.loads(Path(path).read_text())
    before, _, device = (target.read_text(encoding="utf-8") if target.exists() else "").partition(DEVICE)
    if {row["section"] for row in figures["rows"]} == {"cuda"}:
        target.write_text(before + device_section(figures), encoding="utf-8")
        print("docs/benchmarks.md: the section of the CUDA device is written")
        return
    if figures["quick"] or len({row["section"] for row in figures["rows"]}) < len(USUAL):
        print("docs/benchmarks.md is left as it was: only a full run writes it")
        return
    kept = DEVICE + device if device else ""
    target.write_text(page(figures, ROOT / "docs" / "pictures") + kept, encoding="utf-8")
    print("docs/benchmarks.md is written")


if __name__ == "__main__":
    main(sys.argv[1])
