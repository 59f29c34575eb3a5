"""Nothing looks at bytecode, which each version of Python writes differently."""

import ast

from tests.structure.source import SRC, imports_of, python_files


def test_no_module_reads_bytecode():
    found = []
    for path in python_files("src"):
        attributes = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        modules = {name for i in imports_of(path) for name in (i.target, i.name)}
        found += [
            (path.relative_to(SRC).as_posix(), name)
            for name in (attributes & {"co_code"}) | (modules & {"dis", "opcode"})
        ]
    assert found == []
