"""`pullback check script.py`: which names of torch a program uses, without running it."""

from __future__ import annotations

import argparse
import ast
import importlib
from pathlib import Path
from typing import Any

from pullback.cli.output import BOLD, GREEN, RED, Mistake, paint, print_json, working
from pullback.compat.install import exists, own_name
from pullback.compat.standin import QUESTIONS

ROOTS = ("torch", "torchvision")


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


def found(name: str) -> bool:
    """Whether pullback has what a dotted name of torch stands for; attributes of values are not followed."""
    parts = name.split(".")
    if parts[-1] in QUESTIONS:
        return True  # of a part that is missing, the answer is no
    for count in range(len(parts), 0, -1):
        module = ".".join(parts[:count])
        own = own_name(module)
        if own and exists(own):
            value: Any = importlib.import_module(own)
            for part in parts[count:]:
                if not hasattr(value, part):
                    return False
                value = getattr(value, part)
                if not isinstance(value, type(ast)):
                    return True
            return True
    return False


EXAMPLES = """
examples:
  pullback check train.py            the names it uses; status 1 if one is missing
  pullback check --quiet src/        every Python file of a folder, only what is missing
  pullback check --json train.py     the same for machines

Nothing is run: names are read from the source. What stands in a missing part of torch but is only asked for, as in
`torch.distributed.is_available()`, is not counted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--quiet", action="store_true", help="say nothing of the names that are there")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    parser.add_argument("scripts", nargs="+", help="programs, or folders of programs")


def files_of(name: str) -> list[Path]:
    """The programs a word of the command line stands for."""
    path = Path(name)
    if not path.exists():
        raise Mistake(f"there is no file {name}")
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def names_of(path: Path) -> dict[str, int]:
    """The names of torch in a program, and the line of each."""
    names = Names()
    try:
        names.visit(ast.parse(path.read_bytes(), str(path)))
    except SyntaxError as error:
        raise Mistake(f"{path}, line {error.lineno}, is no Python: {error.msg}") from None
    except (OSError, ValueError) as error:
        raise Mistake(f"{path} cannot be read: {error}") from None
    return names.used


def report_on(path: Path) -> dict[str, Any]:
    """What of a program is here and what is not."""
    used = names_of(path)
    missing = [{"name": name, "line": line} for name, line in used.items() if not found(name)]
    absent = {entry["name"] for entry in missing}
    return {"file": str(path), "missing": missing, "found": sorted(used.keys() - absent)}


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Print the names of torch in each program, the missing ones first; 1 if any is missing."""
    paths = [path for name in given.scripts for path in files_of(name)]
    with working(f"reading {len(paths)} files"):
        reports = [report_on(path) for path in paths]
    if given.json:
        print_json(reports)
    else:
        for report in reports:
            show(report, given.quiet)
    return int(any(report["missing"] for report in reports))


def show(report: dict[str, Any], quiet: bool) -> None:
    """One program's names, in words."""
    missing, there = sorted(report["missing"], key=lambda entry: entry["line"]), report["found"]
    if quiet and not missing:
        return
    verdict = paint(f"{len(missing)} missing", RED if missing else GREEN)
    print(f"{report['file']}: {len(missing) + len(there)} names of torch, {verdict}")
    for entry in missing:
        print(f"  line {entry['line']}: {paint(entry['name'], BOLD)} is missing")
    for name in () if quiet else there:
        print(f"  {name}")
