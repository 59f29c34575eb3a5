"""`pullback graph script.py`: run a program and draw the graph of one of its backward passes."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pullback
from pullback.cli.output import Mistake, open_page, print_json, say, working
from pullback.cli.program import add_program, execute, own_options

KINDS = (".html", ".svg", ".dot")
EXAMPLES = """
examples:
  pullback graph train.py                             writes graph.html: a page to open in a browser
  pullback graph --output net.svg train.py --lr 0.1   a picture for a paper; --lr goes to train.py
  pullback graph --which 3 --stop train.py            the third backward pass, and no further
  pullback graph --json train.py                      what was drawn, as JSON; the program prints to stderr

The program runs as it is. Before `backward()` or `autograd.grad()` begins, its graph is counted, and the one that was
asked for is drawn: by default the largest, the first among equals. Gradients and the program's results do not change.
Options may also stand right behind the script; write `--` before an option of the program that has the same name.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.options = [  # type: ignore[attr-defined]
        parser.add_argument(
            "--output", metavar="FILE", default="graph.html", help="a .html, .svg or .dot file (%(default)s)"
        ),
        parser.add_argument(
            "--which", default="largest", help="largest, last, or the number of a backward pass, from 1"
        ),
        parser.add_argument("--stop", action="store_true", help="end the program once the graph is drawn"),
        parser.add_argument("--open", action="store_true", help="show the page in a browser"),
        parser.add_argument("--json", action="store_true", help="say what was drawn as JSON"),
    ]
    add_program(parser)


class Watcher:
    """Counts the backward passes of a program and draws the one asked for."""

    def __init__(self, output: str, which: str, stop: bool) -> None:
        self.output, self.which, self.stop = output, which, stop
        self.passes = 0
        self.drawn: dict[str, Any] | None = None
        self.lock = threading.Lock()
        self.drawing = threading.local()

    def wants(self, nodes: int) -> bool:
        """Whether this pass is to be drawn, as far as can be known now."""
        if self.which == "largest":
            return self.drawn is None or nodes > self.drawn["nodes"]
        return self.which == "last" or self.passes == int(self.which)

    def see(self, roots: Any, gradients: Any) -> None:
        """A pass is about to begin from these tensors."""
        tensors = as_list(roots)
        starts = as_list(gradients) or [None] * len(tensors)
        pairs = [(t, g) for t, g in zip(tensors, starts) if isinstance(t, pullback.Tensor) and t.grad_fn is not None]
        if not pairs or getattr(self.drawing, "now", False):
            return
        with self.lock:  # threads draw one after the other
            self.count(*map(list, zip(*pairs)))

    def count(self, tensors: list[Any], starts: list[Any]) -> None:
        """Count a pass, and draw it if it is the one."""
        self.passes += 1
        nodes = count_nodes(tensors)
        if not self.wants(nodes):
            return
        self.drawing.now = True  # the explorer runs a pass of its own
        try:
            with working(f"drawing {nodes} nodes"):
                root, start = (tensors[0], starts[0]) if len(tensors) == 1 else (tensors, starts)
                pullback.explore(root, path=self.output, gradient=start)
        finally:
            self.drawing.now = False
        self.drawn = {"output": self.output, "nodes": nodes, "pass": self.passes}
        if self.stop:
            raise SystemExit(0)

    def watching(self, function: Callable[..., Any], *names: str) -> Callable[..., Any]:
        """The same function, which shows what it starts from, and the gradients it gets, before it runs."""

        @wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            given = dict(zip(names, args)) | kwargs
            self.see(given.get(names[0]), given.get(names[-1]))
            return function(*args, **kwargs)

        return watched


def as_list(values: Any) -> list[Any]:
    """One tensor, several, or none, as a list."""
    return [] if values is None else [values] if isinstance(values, pullback.Tensor) else list(values)


def count_nodes(tensors: list[Any]) -> int:
    """How many nodes a backward pass from these tensors will visit, leaves not counted."""
    waiting = [tensor.grad_fn for tensor in tensors]
    seen = set(waiting)
    while waiting:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node not in seen and not hasattr(node, "variable"):
                seen.add(node)
                waiting.append(node)
    return len(seen)


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Run a program, draw a graph, say where it is."""
    own_options(parser, given, parser.options)  # type: ignore[attr-defined]
    if Path(given.output).suffix not in KINDS:
        raise Mistake(f"--output {given.output}: a graph is written as one of {', '.join(KINDS)}")
    if not Path(given.output).absolute().parent.is_dir():
        raise Mistake(f"--output {given.output}: there is no such folder")
    if given.which not in ("largest", "last") and not (given.which.isdecimal() and int(given.which)):
        raise Mistake(f"--which {given.which}: say largest, last, or a number from 1")
    watcher = Watcher(str(Path(given.output).absolute()), given.which, given.stop)
    autograd: Any = pullback.autograd
    autograd.backward = watcher.watching(autograd.backward, "tensors", "grad_tensors")
    autograd.grad = watcher.watching(autograd.grad, "outputs", "inputs", "grad_outputs")
    tensor: Any = pullback.Tensor
    tensor.backward = watcher.watching(tensor.backward, "self", "gradient")
    status = execute(given, quiet=given.json)
    drawn = watcher.drawn
    if drawn is None:
        many = {0: "no backward pass", 1: "one backward pass"}.get(watcher.passes, f"{watcher.passes} backward passes")
        say(f"nothing was drawn: the program ran {many}")
        return status or 1
    drawn |= {"passes": watcher.passes, "status": status}
    if given.json:
        print_json(drawn)
    else:
        of = f"backward pass {drawn['pass']} of {drawn['passes']}"
        print(f"{drawn['nodes']} nodes of {of} are in {given.output}")
    if given.open:
        open_page(drawn["output"])
    return status
