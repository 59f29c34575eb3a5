"""Docstrings as Markdown."""

import inspect
import re

SECTIONS = {"Args": "Arguments", "Arguments": "Arguments", "Returns": "Returns", "Raises": "Raises", "Yields": "Yields"}


def first_sentence(text: str) -> str:
    """The first paragraph in one line."""
    return " ".join(text.strip().split("\n\n")[0].split()).replace("\n", " ")


def markdown(text: str) -> str:
    """A docstring with its sections as lists and its examples as blocks of code."""
    out: list[str] = []
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    for paragraph in paragraphs:
        head, _, rest = paragraph.partition("\n")
        if paragraph.lstrip().startswith(">>>"):
            out.append(f"```python\n{inspect.cleandoc(paragraph)}\n```")
        elif head.rstrip(":") in SECTIONS and head.endswith(":") and rest:
            out.append(f"**{SECTIONS[head.rstrip(':')]}**\n\n{items(rest)}")
        elif head in ("Example:", "Examples:") and rest:
            out.append(f"```python\n{inspect.cleandoc(rest)}\n```")
        elif paragraph.startswith("    "):
            out.append(f"```text\n{inspect.cleandoc(paragraph)}\n```")
        else:
            out.append(escaped(paragraph))
    return "\n\n".join(out) + "\n"


def items(text: str) -> str:
    """`name: what it is`, one to a line and perhaps going on below, as a list."""
    lines = inspect.cleandoc("\n" + text).split("\n")
    joined: list[str] = []
    for line in lines:
        if line.startswith(" ") and joined:
            joined[-1] += " " + line.strip()
        else:
            joined.append(line.strip())
    return "\n".join(re.sub(r"^([\w*., ]+?)(?: \([^)]*\))?: ", r"* `\1`: ", escaped(line)) for line in joined)


def escaped(text: str) -> str:
    """Angle brackets outside code would be read as HTML."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)
