"""Nothing is made of bytecode, which each version of Python writes differently."""

import ast
import re

from tests.structure.source import SRC, imports_of, python_files

MAY_ASK = [("pullback/compiler/guards.py", "dis")]
"""Who asks which names are globals, and takes all for globals that it does not know."""


def test_no_module_reads_bytecode():
    found = []
    for path in python_files("src"):
        text = path.read_text(encoding="utf-8")
        if re.search(r"\b(co_code|dis|opcode)\b", text) is None:
            continue
        attributes = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
        modules = {name for i in imports_of(path) for name in (i.target, i.name)}
        names = (attributes & {"co_code"}) | (modules & {"dis", "opcode"})
        found += [(path.relative_to(SRC).as_posix(), name) for name in names]
    assert found == MAY_ASK
