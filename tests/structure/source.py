"""Reading the project's source as syntax trees: which file imports what, and where."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"


@dataclass(frozen=True)
class Import:
    """One imported name: `from target import name`, or `import target` with no name."""

    target: str
    name: str | None
    line: int
    function: str | None  # the innermost function the statement stands in
    typing_only: bool  # under `if TYPE_CHECKING:`, so it never runs

    @property
    def top(self) -> str:
        return self.target.partition(".")[0]


def python_files(*folders: str) -> list[Path]:
    """Every Python file below these folders of the project, in order."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    """The dotted name of a file in src: a package is named without `__init__`."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> list[Import]:
    """Every import of a file, also those made by calling `import_module` or `__import__`."""
    package = ""
    if SRC in path.parents:
        name = module_name(path)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return list(_walk(ast.parse(path.read_text(encoding="utf-8"), str(path)), package, None, False))


def _walk(node: ast.AST, package: str, function: str | None, typing_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, None, child.lineno, function, typing_only)
        elif isinstance(child, ast.ImportFrom):
            target = _absolute(child, package)
            for alias in child.names:
                yield Import(target, alias.name, child.lineno, function, typing_only)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _walk(child, package, child.name, typing_only)
        elif isinstance(child, ast.Lambda):
            yield from _walk(child, package, "<lambda>", typing_only)
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            yield from _walk(ast.Module(child.body, []), package, function, True)
            yield from _walk(ast.Module(child.orelse, []), package, function, typing_only)
        else:
            if isinstance(child, ast.Call) and _called_name(child.func) in ("import_module", "__import__"):
                yield Import(_literal_or_source(child), None, child.lineno, function, typing_only)
            yield from _walk(child, package, function, typing_only)


def _absolute(statement: ast.ImportFrom, package: str) -> str:
    if statement.level == 0:
        return statement.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - statement.level + 1]
    return ".".join([*base, statement.module] if statement.module else base)


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _called_name(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]


def _literal_or_source(call: ast.Call) -> str:
    if call.args and isinstance(call.args[0], ast.Constant):
        return str(call.args[0].value)
    return ast.unparse(call)
