"""Source is compiled before it is run.

CPython notes an interrupt that leaves `exec` or `eval` of a text as one that nobody handled: the process ends by
SIGINT though the program has caught it and gone on.
"""

import ast

from tests.structure.source import python_files


def test_no_text_is_given_to_exec_or_eval():
    found = []
    for path in python_files("src"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "eval"):
                given = node.args[0]
                compiled = isinstance(given, ast.Call) and ast.unparse(given.func) == "compile"
                if not compiled and ast.unparse(given) not in ("code", "step"):  # made by `compile` before
                    found.append(f"{path.name}:{node.lineno}")
    assert not found
