"""What the examples share: arguments, a progress bar, pictures as SVG, and the data; nothing about tensors."""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


def arguments(about, steps, picture):
    """The command line every example has."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--steps", type=int, default=steps, help=f"how many steps to train ({steps})")
    parser.add_argument("--picture", default=picture, help=f"where the picture goes ({picture})")
    parser.add_argument("--losses", help="a file that receives the losses, as JSON")
    return parser.parse_args()


def finish(given, losses, *pictures):
    """Write the picture, and the losses if a file was named."""
    Path(given.picture).write_text(side_by_side(*pictures))
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


def lines(title, *curves, log=False, width=420, height=280):
    """A chart of curves, each a name and its points: values, or (x, y) pairs."""
    points = [[p if isinstance(p, (tuple, list)) else (i, p) for i, p in enumerate(values)] for _, values in curves]
    points = [[(x, np.log10(max(y, 1e-12)) if log else y) for x, y in curve] for curve in points]
    xs, ys = [x for c in points for x, _ in c], [y for c in points for _, y in c]
    (x0, x1), (y0, y1) = (min(xs), max(xs)), (min(ys), max(ys))
    left, top, right, bottom = 60, 34, width - 14, height - 28

    def at(x, y):
        across = (x - x0) / ((x1 - x0) or 1)
        up = (y - y0) / ((y1 - y0) or 1)
        return f"{left + across * (right - left):.1f},{bottom - up * (bottom - top):.1f}"

    def label(y):
        return f"{10**y:.2g}" if log else f"{y:.3g}"

    parts = [f'<text x="{width / 2}" y="18" text-anchor="middle" font-weight="bold">{title}</text>']
    parts.append(
        f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" fill="none" stroke="#999"/>'
    )
    for share in (0, 0.5, 1):
        y, x = y0 + share * (y1 - y0), x0 + share * (x1 - x0)
        height_of = bottom - share * (bottom - top)
        parts.append(f'<text x="{left - 6}" y="{height_of + 4}" text-anchor="end">{label(y)}</text>')
        parts.append(f'<text x="{left + share * (right - left)}" y="{bottom + 16}" text-anchor="middle">{x:.3g}</text>')
    for number, ((name, _), curve) in enumerate(zip(curves, points)):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(at(x, y) for x, y in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(
            f'<text x="{right - 6}" y="{top + 16 + 14 * number}" text-anchor="end" fill="{colour}">{name}</text>'
        )
    return width, height, "".join(parts)


def images(title, pictures, columns=8, scale=5):
    """Grey images in rows."""
    pictures = np.clip(np.asarray(pictures, dtype=float), 0, 1)
    count, rows, width = pictures.shape
    step = (width + 1) * scale
    parts = [f'<text x="{columns * step / 2}" y="18" text-anchor="middle" font-weight="bold">{title}</text>']
    for number, picture in enumerate(pictures):
        x0, y0 = number % columns * step, 34 + number // columns * step
        for y in range(rows):
            for x in range(width):
                grey = int(255 * (1 - picture[y, x]))
                place = f'x="{x0 + x * scale}" y="{y0 + y * scale}" width="{scale}" height="{scale}"'
                parts.append(f'<rect {place} fill="rgb({grey},{grey},{grey})"/>')
    return columns * step, 40 + -(-count // columns) * step, "".join(parts)


def side_by_side(*pictures):
    """Several pictures in a row, as one SVG."""
    width, height = sum(p[0] for p in pictures), max(p[1] for p in pictures)
    parts, x = [], 0
    for own_width, _, content in pictures:
        parts.append(f'<g transform="translate({x},0)">{content}</g>')
        x += own_width
    style = 'font-family="sans-serif" font-size="11"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {style}>'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )
