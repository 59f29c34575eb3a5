"""`pullback check script.py`: which names of torch a program uses, without running it."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

from pullback.compat.install import exists, own_name
from pullback.compat.missing import QUESTIONS

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


def check(scripts: list[str]) -> int:
    """Print the names of torch in each script, the missing ones first; 1 if any is missing."""
    status = 0
    for script in scripts:
        names = Names()
        names.visit(ast.parse(Path(script).read_text(), script))
        missing = {name: line for name, line in names.used.items() if not found(name)}
        status |= bool(missing)
        print(f"{script}: {len(names.used)} names of torch, {len(missing)} missing")
        for name, line in sorted(missing.items(), key=lambda item: item[1]):
            print(f"  line {line}: {name} is missing")
        for name in sorted(names.used.keys() - missing.keys()):
            print(f"  {name}")
    return status
