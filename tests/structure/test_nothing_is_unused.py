"""What nobody names is deleted: functions, classes and constants of the rooms that hold none of torch's names."""

import ast
import re
from collections import Counter
from pathlib import Path

from tests.structure.source import ROOT, SRC, python_files

ROOMS = ("_op", "_meta", "_sparse", "batching", "cli", "func", "insight", "kernels", "library", "models", "ops")
LIBRARY = SRC / "pullback"


def defined_in(path: Path) -> list[str]:
    """The names a module gives to what it holds; what is decorated is used by its decorator."""
    names = []
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names += [] if node.decorator_list else [node.name]
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return [name for name in names if not name.startswith("__")]


def is_inside(path: Path) -> bool:
    """Whether a module is private, or of a room whose names are the library's own."""
    return (path.parent == LIBRARY and path.name.startswith("_")) or path.relative_to(LIBRARY).parts[0] in ROOMS


def test_every_name_is_used_somewhere():
    texts = [path.read_text("utf-8") for path in python_files("src", "tests", "docs", "benchmarks", "examples")]
    texts += [path.read_text("utf-8") for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))]
    words = Counter(word for text in texts for word in re.findall(r"\w+", text))
    names = [(path, name) for path in python_files("src") if is_inside(path) for name in defined_in(path)]
    assert len(names) > 3000
    assert [f"{path.relative_to(ROOT)}: {name}" for path, name in names if words[name] == 1] == []
