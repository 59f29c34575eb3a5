"""What notebooks show: tensors with a heat map, nodes with their graph, modules as a tree that opens."""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from html import escape
from typing import Any

from pullback import Tensor
from pullback.autograd.node import Node
from pullback.insight.explorer.collect import collect, roots_of
from pullback.insight.explorer.numbers import describe
from pullback.insight.explorer.svg import svg
from pullback.insight.locations import location_of, place_text
from pullback.insight.names import Names
from pullback.insight.report import counted, size_text

MONOSPACE = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
"""Columns of numbers stand below each other, whatever the notebook does with <pre>."""
SCALE = "rgb(30,90,200),#fff,rgb(200,40,30)"
DRAWN = 80
"""Larger graphs are only counted."""


def _html_of(value: Any) -> str:
    """A tensor, a node or a module as HTML."""
    if isinstance(value, Tensor):
        return tensor_html(value)
    return node_html(value) if isinstance(value, Node) else module_html(value)


def tensor_html(tensor: Any) -> str:
    """The printed tensor, its heat map and range, and the graph behind it."""
    parts = [f'<pre style="{MONOSPACE}">{escape(repr(tensor))}</pre>']
    array = getattr(tensor, "_array", None)
    if array is not None and array.size > 1 and array.dtype.kind != "b":
        about = describe(array)
        words = [f"{about['dtype']} {about['shape']}, {size_text(about['bytes'])}"]
        if "range" in about:
            low, high, mean, std = about["range"]
            words.append(f"from {low} to {high}, mean {mean}, std {std}")
        if "bad" in about:
            words.append(f"<b>{about['bad']} not finite</b>")
        picture = heat_image(about["map"], about["range"], "complex" in about) if "map" in about else ""
        parts.append(f"<div style='overflow:hidden'>{picture}<small>{'<br>'.join(words)}</small></div>")
    node = tensor.grad_fn
    if node is not None:
        place = location_of(node)
        where = "" if place is None else f" at {escape(place_text(place.file, place.line))}"
        head = f"<summary><small>made by {node.name()}{where}</small></summary>"
        parts.append(f'<details style="clear:both">{head}{node_html(node)}</details>')
    return "".join(parts)


def node_html(node: Any) -> str:
    """The graph below a node: a picture if it is small, else what it consists of."""
    graph, _ = collect(roots_of(node), Names({}, None), node.name(), cells=0)
    graph.keeping.close()
    if len(graph.entries) <= DRAWN:
        return f'<div style="overflow:auto;background:#fff">{svg(graph)}</div>'
    names = Counter(entry.name for entry in graph.entries).most_common(12)
    rows = "".join(f"<tr><td style='text-align:left'>{name}</td><td>{count}</td></tr>" for name, count in names)
    note = f"{counted(len(graph.entries), 'step')}: pullback.explore(...) shows them all"
    return f"<p>{note}</p><table>{rows}</table>"


def module_html(module: Any, name: str = "") -> str:
    """A module and what is in it; parts open on a click."""
    own = list(module.named_parameters(recurse=False))
    total = sum(p.numel() for p in module.parameters())
    extra = escape(module.extra_repr())
    label = f"({escape(name)}): " if name else ""
    head = f"{label}<b>{escape(type(module).__name__)}</b>({extra}) <small>{counted(total, 'parameter')}</small>"
    inner = [f"<div><small>{escape(key)} {list(p.shape)} {p.dtype!s}</small></div>" for key, p in own]
    inner += [module_html(child, key) for key, child in module.named_children()]
    if not inner:
        return f"<div>{head}</div>"
    opened = "" if name else " open"
    return f'<details{opened}><summary>{head}</summary><div style="margin-left:1.5em">{"".join(inner)}</div></details>'


def heat_image(heat: list[Any], values: list[Any], sizes: bool = False) -> str:
    """A heat map as an image, red above zero, blue below, as strong as the number is large; and what that means."""
    width, height, data = heat
    rows = bytearray()
    for i, level in enumerate(base64.b64decode(data)):
        if i % width == 0:
            rows.append(0)
        colour = (255, 0, 255, 255) if level == 255 else (200, 40, 30) if level > 127 else (30, 90, 200)
        rows += bytes((*colour, min(255, abs(level - 127) * 2)) if level != 255 else colour)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))]
    chunks += [(b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    size = max(2, min(12, 120 // max(width, height)))
    style = "image-rendering:pixelated;display:block;margin:0;border:1px solid #ccc;background:#fff"
    source = base64.b64encode(png).decode()
    top = max(map(abs, values[:2]))
    colours, marks = ("#fff,rgb(200,40,30)", [0, top]) if sizes else (SCALE, [-top, 0, top])
    ends = "".join(f"<small>{mark:g}</small>" for mark in marks)
    return (
        f'<div style="float:left;margin-right:12px"><img alt="heat map" width="{width * size}" '
        f'height="{height * size}" style="{style}" src="data:image/png;base64,{source}">'
        f'<div style="width:120px;margin-top:4px"><div style="height:8px;border:1px solid #ccc;'
        f'background:linear-gradient(to right,{colours})"></div>'
        f'<div style="display:flex;justify-content:space-between">{ends}</div></div></div>'
    )
