"""How the commands speak: mistakes without a traceback, colour on terminals only, progress on stderr."""

from __future__ import annotations

import json
import os
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import pullback

RED, GREEN, YELLOW, BOLD, DIM = "31", "32", "33", "1", "2"
DASHES = "\0--"
"""Stands for `--` while argparse reads, which drops it in some versions of Python and keeps it in others."""


class Mistake(Exception):
    """What the user asked for cannot be done: shown as one line, status 2."""


def paint(text: str, code: str, stream: TextIO | None = None) -> str:
    """Colour a text for a terminal; anywhere else, and where NO_COLOR is set, leave it plain."""
    stream = sys.stdout if stream is None else stream
    return f"\033[{code}m{text}\033[0m" if stream.isatty() and not os.environ.get("NO_COLOR") else text


def say(text: str) -> None:
    """A line about what the command does; what it answers goes to stdout, this does not."""
    print(f"pullback: {text}", file=sys.stderr, flush=True)


def say_if_not_compiled() -> None:
    """Say how to get compiled kernels where there are none: nobody should measure, or wait, without knowing."""
    if find_spec("llvmlite") is None:
        say(f"NumPy computes everything, more slowly: {pullback.config()['reason']}")


def print_json(value: Any) -> None:
    """The answer for machines."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def working(text: str) -> Iterator[None]:
    """Say on a terminal what takes a while, and take it back when it is done."""
    live = sys.stderr.isatty()
    if live:
        print(f"pullback: {text} ...", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def open_page(path: str) -> None:
    """Show a file in the browser where there is a display, and say where it lies."""
    address = Path(path).absolute().as_uri()
    display = sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    shown = bool(display) and webbrowser.open(address)
    say(f"{'opened' if shown else 'there is no display here; open'} {address}")
