"""Running small programs as users write them, and finding the lines their errors name."""

import linecache
import re
import warnings
from contextvars import Context

import pullback
from pullback import nn

KINDS = {"script": "/home/user/train.py", "cell": "<ipython-input-3-5f2a1c>"}


def run(source: str, filename: str = KINDS["script"]) -> dict:
    """Run a program from a file with this name, as `import` or a notebook would: linecache knows its lines."""
    source = source.strip("\n") + "\n"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names = {"__name__": "__main__", "torch": pullback, "nn": nn, "F": nn.functional}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Context().run(exec, compile(source, filename, "exec"), names)  # knows nothing of what ran before
    return names


def error_of(source: str, filename: str = KINDS["script"]) -> str:
    """The text of the error a program ends with."""
    try:
        run(source, filename)
    except Exception as error:
        return str(error)
    raise AssertionError("the program raised nothing")


def line_of(source: str, mark: str) -> int:
    """The number of the line that carries the comment `# mark`."""
    lines = [nr for nr, line in enumerate(source.strip("\n").splitlines(), 1) if line.endswith(f"# {mark}")]
    assert len(lines) == 1, f"{len(lines)} lines are marked {mark}"
    return lines[0]


def named(text: str, what: str) -> tuple[str, int]:
    """The file and line an error names after `what`."""
    found = re.search(re.escape(what) + r".*? at (.+?)(?::|, line )(\d+)", text)
    assert found, f"nothing about {what!r} in:\n{text}"
    file = KINDS["cell"] if found.group(1) == "In[3]" else found.group(1)  # a cell is named by its number
    return file, int(found.group(2))


def nodes_of(tensor) -> list:
    """Every node of a graph, newest first."""
    found, stack = [], [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found.append(node)
            stack += [following for following, _ in node.next_functions]
    return found
