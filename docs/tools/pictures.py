"""The pictures of graphs on the pages: `python docs/tools/pictures.py` draws them anew.

A picture belongs to the examples above it. A comment names the variable whose graph it shows:

    <!-- graph: F -->
    ![what it shows](pictures/tour-1.svg)
"""

import contextlib
import doctest
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PICTURE = re.compile(r"<!-- graph: (\w+) -->\n!\[[^\]]*\]\(([^)]+)\)")


def graphs(page: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Each picture of a page: the name of its tensor, its file, and the names there are at that place."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    done = 0
    for found in PICTURE.finditer(text):
        above = re.sub(r"^```\w*$", "", text[done : found.start()], flags=re.MULTILINE)
        for example in doctest.DocTestParser().get_examples(above):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(RuntimeError):
                exec(compile(example.source, page.name, "single"), names)  # an example may show an error
        done = found.end()
        yield found[1], page.parent / found[2], names


def explored(page: Path) -> Iterator[tuple[Path, Any]]:
    """Each picture's file, and the explorer's view of its graph."""
    sys.path.insert(0, str(ROOT / "src"))
    import pullback

    for name, path, names in graphs(page):
        tensors = {key: value for key, value in names.items() if isinstance(value, pullback.Tensor)}
        yield path, pullback.explore(names[name], path=None, names=tensors, title=name)


def main() -> None:
    """Draw every picture of every page."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for path, graph in explored(page):
            path.write_text(graph.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
