"""What verbose code says beside the program: where a line is from, and what is known of its tensor."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import pullback as torch
from pullback.fx.node import Node, dtype_abbrs

COLORS = {"blue": "\033[34m", "red": "\033[31m", "dim": "\033[2m"}
COLORS |= {"dim_blue": "\033[2m\033[34m", "dim_green": "\033[2m\033[32m"}
FRAME = re.compile(r"^File \"(.+)\", line (\d+), in (.+)$")


@dataclass(frozen=True)
class Style:
    """How code is written."""

    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    additional_meta: tuple[str, ...] = ()

    def paint(self, color: str, text: str) -> str:
        """A text in a color, if there are colors."""
        return f"{COLORS[color]}{text}\033[0m" if self.colored else text

    def shows(self, what: str) -> bool:
        """Whether strides or devices are shown: as asked, or as the environment says."""
        asked = self.include_stride if what == "STRIDE" else self.include_device
        return asked or os.environ.get(f"FX_GRAPH_SHOW_{what}", "0") == "1"


PLAIN = Style()


def shape_text(shape: Any) -> str:
    """Sizes in brackets."""
    return f"[{', '.join(map(str, shape))}]"


def annotation(node: Node, style: Style) -> str:
    """The dtype and shape of the example value of a node; nothing if there is none."""
    value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
    if isinstance(value, torch.Tensor):
        stride = shape_text(value.stride()) if style.shows("STRIDE") else ""
        device = f"{value.device}" if style.shows("DEVICE") else ""
        text = style.paint("red", dtype_abbrs[value.dtype]) + style.paint("blue", shape_text(value.shape))
        text += style.paint("dim_blue", stride) + style.paint("dim_green", device)
        return f': "{text}"' if type(value) is torch.Tensor else f': "{type(value).__name__}({text})"'
    if isinstance(value, tuple) and hasattr(value, "qparams"):  # a TensorMetadata of passes.shape_prop
        return f': "{dtype_abbrs[value.dtype]}{shape_text(value.shape)}"'
    return ""


def comment(node: Node, style: Style) -> str:
    """The line above a statement: where it was recorded."""
    if node.op in ("placeholder", "output"):
        return ""
    shown = [f"{key}: {node.meta[key]}" for key in style.additional_meta if key in node.meta]
    extra = f"# {', '.join(shown)} " if shown else ""
    notes = {key: cut(value) for key, value in node.meta.get("custom", {}).items()}
    noted = f" Annotation: {notes}" if notes else ""
    place = innermost(node.stack_trace) if node.stack_trace else ""
    text = f"{extra}#{noted} {place or 'No stacktrace found for following nodes'}"
    return f"\n{style.paint('dim', text)}\n"


def cut(value: Any) -> Any:
    """A value, or the beginning of its text where that is long."""
    return f"{str(value)[:40]}..." if len(str(value)) > 40 else value


def innermost(trace: str) -> str:
    """The last frame of a stack trace."""
    lines = [line.strip() for line in trace.strip().split("\n")]
    for i in range(len(lines) - 2, -1, -1):
        found = FRAME.match(lines[i])
        if found:
            file, number, name = found.groups()
            return f"File: {file}:{number} in {name}, code: {lines[i + 1]}"
    return ""
