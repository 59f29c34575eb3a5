"""`pullback check script.py`: which names of torch a program uses, without running it."""

from __future__ import annotations

import argparse
import ast
import importlib
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from pullback.cli.output import BOLD, GREEN, RED, Mistake, paint, print_json, working
from pullback.compat import install, uninstall
from pullback.compat.refusals import is_missing, refusal
from pullback.compat.standin import QUESTIONS

ROOTS = ("torch", "torchvision")
WRONG = {"missing": "is missing", "refuses": "raises when it is called", "unknown": "is no name of torch"}
"""What is counted, and how it is said."""


class Names(ast.NodeVisitor):
    """Collects the dotted names below torch, with the line each is first used on."""

    def __init__(self) -> None:
        self.meaning: dict[str, str] = {}
        self.used: dict[str, int] = {}

    def note(self, name: str, line: int) -> None:
        """A name is used."""
        self.used.setdefault(name, line)

    def visit_Import(self, node: ast.Import) -> None:
        """`import torch.nn as nn`."""
        for alias in node.names:
            if alias.name.partition(".")[0] in ROOTS:
                self.meaning[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                self.note(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from torch.nn import Linear`."""
        if node.module and not node.level and node.module.partition(".")[0] in ROOTS:
            for alias in node.names:
                if alias.name != "*":
                    self.meaning[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    self.note(f"{node.module}.{alias.name}", node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """`torch.nn.functional.relu`."""
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.meaning:
            self.note(".".join([self.meaning[inner.id], *reversed(parts)]), node.lineno)
        else:
            self.generic_visit(node)


def verdict(name: str) -> tuple[str, str]:
    """What a dotted name of torch is here: found, missing, refuses or unknown; and why it does not work.

    It is looked up as the program would find it; attributes of values are not followed.
    """
    parts = name.split(".")
    if parts[-1] in QUESTIONS:
        return "found", ""  # of a part that is missing, the answer is no
    if PathFinder.find_spec(parts[0]) is not None and parts[0] != "torch":
        return "found", ""  # that package itself is used, and knows its names
    value: Any = importlib.import_module(parts[0])
    rest = parts[1:]
    while rest:
        try:
            value = getattr(value, rest.pop(0))
        except AttributeError:
            return "unknown", f"{parts[0]} has no such name"
        if not isinstance(value, ModuleType):
            break
    why = refusal(value, name)
    if is_missing(value):
        return "missing", why or ""
    return ("found", "") if why is None or rest else ("refuses", why)


EXAMPLES = """
examples:
  pullback check train.py            the names it and the files it imports use; status 1 if one does not work
  pullback check --quiet src/        every Python file of a folder, only what does not work
  pullback check --json train.py     the same for machines

Nothing is run: names are read from the source. Counted is what is missing, what is there but raises when it is called,
and what torch itself does not have. What stands in a missing part of torch but is only asked for, as in
`torch.distributed.is_available()`, is not.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--quiet", action="store_true", help="say nothing of the names that are there")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    parser.add_argument("scripts", nargs="+", help="programs, or folders of programs")


def files_of(name: str) -> list[Path]:
    """The programs a word of the command line stands for: those of a folder, or one and the files it imports."""
    path = Path(name)
    if not path.exists():
        raise Mistake(f"there is no file {name}")
    if not path.is_dir():
        return followed(path)
    if not (found := sorted(path.rglob("*.py"))):
        raise Mistake(f"there is no Python file in {name}: nothing to check")
    return found


def followed(start: Path) -> list[Path]:
    """A program and the files of its own that it imports, and that those import."""
    found = [start]
    for path in found:  # which grows
        found += [own for own in own_files(path, start.parent) if own not in found]
    return found


def own_files(path: Path, root: Path) -> Iterator[Path]:
    """The files that a program imports which lie beside it."""
    for node in ast.walk(source_of(path)):
        if isinstance(node, ast.Import):
            wanted = [(root, alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if node.level else root
            module = (node.module or "").split(".") if node.module else []
            wanted = [(base, module), *[(base, [*module, alias.name]) for alias in node.names]]
        else:
            continue
        for base, parts in wanted:
            for count in range(1, len(parts) + 1):
                place = base.joinpath(*parts[:count])
                yield from [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]


def source_of(path: Path) -> ast.Module:
    """A program as Python reads it."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise Mistake(f"{path}, line {error.lineno}, is no Python: {error.msg}") from None
    except (OSError, ValueError) as error:
        raise Mistake(f"{path} cannot be read: {error}") from None


def names_of(path: Path) -> dict[str, int]:
    """The names of torch in a program, and the line of each."""
    names = Names()
    names.visit(source_of(path))
    return names.used


def report_on(path: Path) -> dict[str, Any]:
    """What of a program is here and what is not."""
    report: dict[str, Any] = {"file": str(path), **{kind: [] for kind in WRONG}, "found": []}
    for name, line in names_of(path).items():
        kind, why = verdict(name)
        report[kind].append(name if kind == "found" else {"name": name, "line": line, "why": why})
    report["found"].sort()
    return report


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Print the names of torch in each program, those that do not work first; 1 if there is one."""
    paths = list(dict.fromkeys([path for name in given.scripts for path in files_of(name)]))
    install()
    try:
        with working(f"reading {len(paths)} files"):
            reports = [report_on(path) for path in paths]
    finally:
        uninstall()
    if given.json:
        print_json(reports)
    else:
        for report in reports:
            show(report, given.quiet)
    return int(any(report[kind] for report in reports for kind in WRONG))


def show(report: dict[str, Any], quiet: bool) -> None:
    """One program's names, in words."""
    wrong = sorted([(entry["line"], kind, entry) for kind in WRONG for entry in report[kind]], key=lambda one: one[0])
    if quiet and not wrong:
        return
    count = len(wrong) + len(report["found"])
    if not count:
        print(f"{report['file']}: no names of torch, nothing to check")
        return
    said = {"missing": "missing", "refuses": "refusing", "unknown": "unknown to torch"}
    counts = [f"{len(report[kind])} {said[kind]}" for kind in WRONG if report[kind] or kind == "missing"]
    print(f"{report['file']}: {count} names of torch, {paint(', '.join(counts), RED if wrong else GREEN)}")
    for line, kind, entry in wrong:
        why = f": {entry['why']}" if entry["why"] and kind != "unknown" else ""
        print(f"  line {line}: {paint(entry['name'], BOLD)} {WRONG[kind]}{why}")
    for name in () if quiet else report["found"]:
        print(f"  {name}")
