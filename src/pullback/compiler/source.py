"""The source of a function of Python, as a tree: which names its statements read and give, and functions made of them.

Only source that gives the very code of the function counts: a file that was edited meanwhile does not.
"""

from __future__ import annotations

import ast
import functools
import linecache
import types
from collections.abc import Iterable
from typing import Any

NESTED = 0x10
"""The flag of code that was written inside of a function."""
LAZY = 0x2A0
"""The flags of generators and coroutines."""
FUTURE = 0x1FF0000
"""The flags by which a file asks for what later versions of Python do."""
ASKING = {"locals", "globals", "eval", "exec", "vars", "dir", "super", "_getframe", "currentframe"}
"""Names of what looks at the function from outside."""
OUT_OF_REACH = (ast.Global, ast.Nonlocal, ast.Delete, ast.ClassDef, ast.Match, ast.AsyncFunctionDef, ast.Await)
"""Statements whose names are followed by nobody here."""
SCOPES = (ast.FunctionDef, ast.Lambda, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
CONSUMERS = {"sum", "any", "all", "max", "min", "list", "tuple", "sorted", "set", "dict"}
"""Builtins that are through with a generator when they return."""
Names = frozenset[str]


@functools.lru_cache(8)
def tree_of(text: str) -> ast.Module | None:
    """The tree of a file."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def source_of(code: Any) -> ast.FunctionDef | None:
    """The function that gave some code; None if its source is not known."""
    tree = tree_of("".join(linecache.getlines(code.co_filename)))
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
            if first == code.co_firstlineno and code in codes_in(node, code, imports_of(tree)):
                return bare(node, node.name, node.body)
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            if code in codes_in(ast.copy_location(ast.Expr(node), node), code, imports_of(tree)):
                return bare(node, "<lambda>", [ast.copy_location(ast.Return(node.body), node.body)])
    return None


def bare(node: ast.FunctionDef | ast.Lambda, name: str, body: list[ast.stmt]) -> ast.FunctionDef:
    """A function without decorators, defaults and annotations: those were read when it was made."""
    given = node.args
    plain = ast.arguments(
        [ast.arg(a.arg) for a in given.posonlyargs],
        [ast.arg(a.arg) for a in given.args],
        None if given.vararg is None else ast.arg(given.vararg.arg),
        [ast.arg(a.arg) for a in given.kwonlyargs],
        [None] * len(given.kwonlyargs),
        None if given.kwarg is None else ast.arg(given.kwarg.arg),
        [],
    )
    return defined(name, plain, body, node)


def defined(name: str, arguments: ast.arguments, body: list[ast.stmt], where: Any) -> ast.FunctionDef:
    """The definition of a function that stands where another one does."""
    made = ast.FunctionDef(name if name.isidentifier() else "made", arguments, body, [])
    return ast.fix_missing_locations(ast.copy_location(made, where))


def imports_of(node: Any) -> list[ast.stmt]:
    """The imports of a file: Python compiles calls of what is imported in a way of their own."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [node] if getattr(node, "module", "") != "__future__" else []
    return [one for child in ast.iter_child_nodes(node) if not isinstance(child, SCOPES) for one in imports_of(child)]


def codes_in(node: ast.stmt, code: Any, imports: list[ast.stmt]) -> list[Any]:
    """The code that a statement gives where a function stood."""
    body: list[ast.stmt] = [node]
    if code.co_flags & NESTED:
        names = ast.arguments([], [ast.arg(name) for name in code.co_freevars], None, [], [], None, [])
        body = [defined("around", names, body, node)]
    module = ast.Module([*imports, *body], [])
    try:
        made = compile(module, code.co_filename, "exec", code.co_flags & FUTURE, True)
    except (SyntaxError, ValueError):
        return []
    return all_codes(made)


def all_codes(code: Any) -> list[Any]:
    """Some code and all that is written inside of it."""
    return [code, *[c for value in code.co_consts if isinstance(value, types.CodeType) for c in all_codes(value)]]


def built(node: ast.FunctionDef, like: types.FunctionType, cells: dict[str, Any]) -> types.FunctionType:
    """A function made of a tree, with the globals and the closure of another one and some cells more."""
    free = dict(zip(like.__code__.co_freevars, like.__closure__ or (), strict=True))
    free |= {name: types.CellType(value) for name, value in cells.items()}
    names = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    module = ast.Module([defined("around", names, [node], node)], [])
    code = compile(module, like.__code__.co_filename, "exec", like.__code__.co_flags & FUTURE, True)
    found = all_codes(code)[2]  # of the module, of `around`, of the function
    made = types.FunctionType(
        found, like.__globals__, like.__name__, closure=tuple([free[name] for name in found.co_freevars])
    )
    made.__qualname__ = like.__qualname__
    return made


# ------------------------------------------------------------------ names


def is_followed(node: ast.FunctionDef, code: Any) -> bool:
    """Whether the names of a function are what its statements say, and nobody else holds on to them."""
    if code.co_flags & LAZY or ASKING & {*code.co_names, *code.co_freevars} or "__class__" in code.co_freevars:
        return False
    held = set(code.co_cellvars)
    consumed = {
        id(call.args[0])
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in CONSUMERS and call.args
    }
    for inner in ast.walk(node):
        if isinstance(inner, OUT_OF_REACH):
            return False
        if inner is not node and isinstance(inner, (*SCOPES, ast.GeneratorExp)) and id(inner) not in consumed:
            if held & {name.id for name in ast.walk(inner) if isinstance(name, ast.Name)}:
                return False
    return True


def read_by(node: ast.AST) -> set[str]:
    """The names that a statement or an expression reads; those of a comprehension's own are nobody else's."""
    if isinstance(node, COMPREHENSIONS):
        own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        inside = [*node.generators, *([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])]
        return read_by(node.generators[0].iter) | (set().union(*[read_by(part) for part in inside]) - own)
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    found = {node.target.id} if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) else set()
    return found.union(*[read_by(child) for child in ast.iter_child_nodes(node)])


def given_by(node: ast.AST) -> set[str]:
    """The names that a statement may give values."""
    if isinstance(node, COMPREHENSIONS):
        inside = [*node.generators, *([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])]
        return {n.target.id for part in inside for n in ast.walk(part) if isinstance(n, ast.NamedExpr)}
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store) else set()
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, SCOPES):
        return {node.name} if not isinstance(node, ast.Lambda) else set()
    found = {node.name} if isinstance(node, ast.ExceptHandler) and node.name else set()
    return found.union(*[given_by(child) for child in ast.iter_child_nodes(node)])


def surely_given(body: Iterable[ast.stmt]) -> set[str]:
    """The names that have values once statements have run to their end."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            if not isinstance(node, ast.AnnAssign) or node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found = found.union(*[given_by(target) for target in targets])
        elif isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef)):
            found |= given_by(node)
        elif isinstance(node, ast.If):
            ways = [surely_given(way) for way in (node.body, node.orelse) if not leaves(way)]
            found |= set.intersection(*ways) if ways else set()
    return found


def leaves(body: list[ast.stmt]) -> bool:
    """Whether nothing comes after statements."""
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def read_first(body: Iterable[ast.stmt], known: set[str]) -> set[str]:
    """The names that statements may read before they give them values."""
    known, found = set(known), set()
    for node in body:
        if isinstance(node, ast.If):
            found |= read_by(node.test) - known
            found |= read_first(node.body, known) | read_first(node.orelse, known)
        elif isinstance(node, ast.For):
            found |= (read_by(node.iter) | read_by(node.target)) - known
            found |= read_first(node.body, known | given_by(node.target)) | read_first(node.orelse, known)
        elif isinstance(node, ast.While):
            found |= read_by(node.test) - known
            found |= read_first(node.body, known) | read_first(node.orelse, known)
        elif isinstance(node, ast.With):
            found = found.union(*[read_by(item) - known for item in node.items])
            targets = [given_by(i.optional_vars) for i in node.items if i.optional_vars is not None]
            found |= read_first(node.body, known.union(*targets))
        else:
            found |= read_by(node) - known
        known |= surely_given([node])
    return found


def holds(node: ast.AST, kinds: Any, beyond: Any = SCOPES) -> bool:
    """Whether a statement holds another of some kinds, other than in what is written inside of `beyond`."""
    if isinstance(node, kinds):
        return True
    return any([holds(child, kinds, beyond) for child in ast.iter_child_nodes(node) if not isinstance(child, beyond)])
