"""The source that pages quote: `python docs/tools/quotes.py` writes what src/pullback says now into the pages.

A quote is a block of Python right behind a comment that says where it is from:

    <!-- source: ops/pointwise/arithmetic.py mul -->               a function, class or method
    <!-- source: autograd/engine.py propagate | for node in order: | i = -1 -->     from one of its lines up to another
    <!-- generated: mul eager -->                        what was generated for an op: its eager function, or its node

The end may be END, the end of what is quoted.
"""

import ast
import re
import sys
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "pullback"
QUOTE = re.compile(r"<!-- (source|generated): (.+?) -->\n```python\n(.*?)```", re.DOTALL)


def definition(file: str, name: str) -> str:
    """The source of a function, class or method, with its decorators."""
    text = (SRC / file).read_text(encoding="utf-8")
    body: list[ast.stmt] = ast.parse(text).body
    for part in name.split("."):
        found = [node for node in body if getattr(node, "name", None) == part]
        if not found:
            raise LookupError(f"{file} has no {name}")
        node = found[-1]
        body = getattr(node, "body", [])
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
    return dedent("\n".join(text.splitlines()[first - 1 : node.end_lineno])) + "\n"


def between(text: str, start: str, end: str) -> str:
    """The lines from one that reads `start` up to, and without, one that reads `end`."""
    lines = text.splitlines()
    stripped = [line.strip() for line in lines]
    first = stripped.index(start)
    last = len(lines) if end == "END" else stripped.index(end, first + 1)
    return dedent("\n".join(lines[first:last])).rstrip() + "\n"


def generated(name: str, part: str) -> str:
    """What was generated for an op."""
    sys.path.insert(0, str(SRC.parent))
    import pullback

    op = getattr(pullback, name).op
    op.eager_source or op.compile()
    return (op.eager_source if part == "eager" else op.node_source).strip() + "\n"


def quote(kind: str, words: str) -> str:
    """The text a comment asks for."""
    place, *cut = [part.strip() for part in words.split(" | ")]
    text = generated(*place.split()) if kind == "generated" else definition(*place.split())
    return between(text, *cut) if cut else text


def refreshed(page: str) -> str:
    """A page with its quotes as they should be."""
    return QUOTE.sub(lambda m: f"<!-- {m[1]}: {m[2]} -->\n```python\n{quote(m[1], m[2])}```", page)


def main() -> None:
    """Write every page anew whose quotes are out of date."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        if (new := refreshed(page)) != page:
            path.write_text(new, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: quotes brought up to date")


if __name__ == "__main__":
    main()
