"""What the examples share: arguments, a progress bar, pictures, and the data; nothing about tensors.

Pictures are drawn by matplotlib where it is installed, in any format it knows, and else as SVG right here.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DATA = Path(__file__).parent / "data"
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
STYLE = (
    ".paper{fill:#fff}text{fill:#333}.grid{stroke:#8883;fill:none}.axis{stroke:#888;fill:none}"
    "@media(prefers-color-scheme:dark){.paper{fill:#12161c}text{fill:#d5dbe3}}"
)
DARK = "@media(prefers-color-scheme:dark){#paper path{fill:#12161c!important}text{fill:#d5dbe3!important}}"
"""Pictures are dark where the page around them is."""


def arguments(about, steps, picture):
    """The command line every example has."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--steps", type=int, default=steps, help=f"how many steps to train ({steps})")
    parser.add_argument("--picture", default=picture, help=f"where the picture goes ({picture})")
    parser.add_argument("--losses", help="a file that receives the losses, as JSON")
    parser.add_argument("--device", default="cpu", help="where it trains: cpu or cuda (cpu)")
    return parser.parse_args()


def finish(given, losses, *pictures):
    """Write the picture, and the losses if a file was named."""
    write(given.picture, *pictures)
    print(f"picture: {given.picture}")
    if given.losses:
        Path(given.losses).write_text(json.dumps(losses))


def progress(count, text=lambda: ""):
    """Numbers from 0, with a bar that says how far we are and what `text()` says."""
    start = time.monotonic()
    shown = 0.0
    for i in range(count):
        yield i
        now = time.monotonic()
        if (now - shown > 0.1 and sys.stderr.isatty()) or i == count - 1:
            shown = now
            done = (i + 1) / count
            bar = "#" * int(30 * done)
            left = (now - start) * (1 - done) / done
            sys.stderr.write(f"\r[{bar:<30}] {i + 1}/{count}  {text()}  {left:4.0f} s left ")
            sys.stderr.flush()
    sys.stderr.write("\n")


def digits():
    """Images in [0, 1] of shape (n, 1, 8, 8) and labels: those to train with, and every fifth to test with."""
    with np.load(DATA / "digits.npz") as file:
        images, labels = file["images"], file["labels"]
    images = (images / 16).astype(np.float32)[:, None]
    labels = labels.astype(np.int64)
    test = np.arange(len(images)) % 5 == 4
    return (images[~test], labels[~test]), (images[test], labels[test])


def sonnets():
    """A text to learn."""
    return (DATA / "sonnets.txt").read_text()


# ------------------------------------------------------------------ pictures


class Picture(NamedTuple):
    """One picture: its size in pixels, and two ways to draw it."""

    width: int
    height: int
    svg: str
    plot: Callable[[Any], None]
    """Draws it into axes of matplotlib."""


def write(path, *pictures):
    """Several pictures in a row, as one file."""
    path = Path(path)
    if find_spec("matplotlib") is not None:
        plotted(path, *pictures)
    elif path.suffix == ".svg":
        path.write_text(side_by_side(*pictures))
    else:
        sys.exit(f"{path}: without matplotlib pictures are .svg files; `pip install matplotlib` for others")


def plotted(path, *pictures):
    """The same by matplotlib: of its own accord it asks for no window."""
    matplotlib, figures = import_module("matplotlib"), import_module("matplotlib.figure")
    settings = {"svg.fonttype": "none", "svg.hashsalt": "examples", "font.family": "sans-serif", "font.size": 9}
    settings |= dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color", "grid.color"), "#888888")
    settings |= dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), "#333333")
    with matplotlib.rc_context(settings):
        size = sum(p.width for p in pictures) / 96, max(p.height for p in pictures) / 96
        figure = figures.Figure(size, dpi=96, layout="constrained")
        figure.patch.set_gid("paper")
        widths = [p.width for p in pictures]
        for axes, picture in zip(figure.subplots(1, len(pictures), squeeze=False, width_ratios=widths)[0], pictures):
            axes.patch.set_alpha(0)
            picture.plot(axes)
        figure.savefig(path, **({"metadata": {"Date": None}} if path.suffix == ".svg" else {}))
    if path.suffix == ".svg":
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("<defs>", f"<style>{DARK}</style>\n <defs>", 1), encoding="utf-8")


def lines(title, *curves, log=False, x="step", y="", width=420, height=300):
    """A chart of curves, each a name and its points: values, or (x, y) pairs; `x` and `y` say what the axes mean."""
    names, below, beside = [name for name, _ in curves], x, (y or curves[0][0]) + " (logarithmic)" * log
    points = [[p if isinstance(p, (tuple, list)) else (i, p) for i, p in enumerate(values)] for _, values in curves]
    points = [[(x, max(y, 1e-12) if log else y) for x, y in curve] for curve in points]

    def plot(axes):
        for number, (name, curve) in enumerate(zip(names, points)):
            axes.plot(*zip(*curve), label=name, color=COLOURS[number % len(COLOURS)], linewidth=1.5)
        axes.set(title=title, xlabel=below, ylabel=beside, yscale="log" if log else "linear")
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)
        if len(names) > 1:
            axes.legend(frameon=False)

    return Picture(width, height, chart(title, names, points, log, below, beside, width, height), plot)


def chart(title, names, points, log, below, beside, width, height):
    """The curves as SVG."""
    points = [[(x, np.log10(y) if log else y) for x, y in curve] for curve in points]
    xs, ys = [x for c in points for x, _ in c], [y for c in points for _, y in c]
    (x0, x1), (y0, y1) = (min(xs), max(xs)), (min(ys), max(ys))
    x1, y1 = x1 + (x1 == x0), y1 + (y1 == y0)
    left, top, right, bottom = 70, 34, width - 18, height - 46
    across = lambda x: left + (x - x0) / (x1 - x0) * (right - left)
    up = lambda y: bottom - (y - y0) / (y1 - y0) * (bottom - top)
    parts = [f'<text x="{(left + right) / 2}" y="20" text-anchor="middle" font-weight="bold">{escape(title)}</text>']
    for value in ticks(x0, x1):
        at = f"{across(value):.1f}"
        parts.append(f'<path class="grid" d="M{at} {top}V{bottom}"/>')
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
    for value, text in powers(y0, y1) if log else [(value, f"{value:g}") for value in ticks(y0, y1)]:
        at = f"{up(value):.1f}"
        parts.append(f'<path class="grid" d="M{left} {at}H{right}"/>')
        parts.append(f'<text x="{left - 6}" y="{float(at) + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>')
    parts.append(f'<text x="{(left + right) / 2}" y="{bottom + 36}" text-anchor="middle">{escape(below)}</text>')
    name = escape(beside)
    parts.append(f'<text transform="translate(16,{(top + bottom) / 2}) rotate(-90)" text-anchor="middle">{name}</text>')
    for number, (name, curve) in enumerate(zip(names, points)):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        place = f'x="{right - 6}" y="{top + 16 + 14 * number}" text-anchor="end"'
        if len(names) > 1:
            parts.append(f'<text {place} style="fill:{colour}">{escape(name)}</text>')
    return "".join(parts)


def ticks(low, high, most=6):
    """Round numbers from low to high: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
    return [round(k * step, 12) for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def powers(low, high):
    """(logarithm, text) of powers of ten, and of 2 and 5 times these where there are few."""
    for factors in ((1,), (1, 2, 5), range(1, 10)):
        exponents = range(math.floor(low), math.ceil(high) + 1)
        numbers = [(math.log10(factor) + n, f"{factor * 10.0**n:g}") for n in exponents for factor in factors]
        found = [(value, text) for value, text in numbers if low <= value <= high]
        if len(found) > 2:
            return found[:: -(-len(found) // 8)]
    return [(math.log10(value), f"{value:g}") for value in ticks(10**low, 10**high)]


def images(title, pictures, columns=8, scale=5):
    """Grey images in rows."""
    pictures = np.clip(np.asarray(pictures, dtype=float), 0, 1)
    count, rows, width = pictures.shape
    step = (width + 1) * scale
    parts = [f'<text x="{columns * step / 2}" y="20" text-anchor="middle" font-weight="bold">{escape(title)}</text>']
    for number, picture in enumerate(pictures):
        x0, y0 = number % columns * step, 34 + number // columns * step
        for y in range(rows):
            for x in range(width):
                grey = int(255 * (1 - picture[y, x]))
                place = f'x="{x0 + x * scale}" y="{y0 + y * scale}" width="{scale}" height="{scale}"'
                parts.append(f'<rect {place} fill="rgb({grey},{grey},{grey})"/>')

    def plot(axes):
        board = np.zeros((-(-count // columns) * (rows + 1), columns * (width + 1)))
        for number, picture in enumerate(pictures):
            y, x = number // columns * (rows + 1), number % columns * (width + 1)
            board[y : y + rows, x : x + width] = picture
        axes.imshow(board, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
        axes.set(title=title)
        axes.set_axis_off()

    return Picture(columns * step, 40 + -(-count // columns) * step, "".join(parts), plot)


def side_by_side(*pictures):
    """Several pictures in a row, as one SVG."""
    width, height = sum(p.width for p in pictures), max(p.height for p in pictures)
    parts, x = [], 0
    for picture in pictures:
        parts.append(f'<g transform="translate({x},0)">{picture.svg}</g>')
        x += picture.width
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12"><style>{STYLE}</style>'
        f'<rect class="paper" width="100%" height="100%"/>{"".join(parts)}</svg>\n'
    )
