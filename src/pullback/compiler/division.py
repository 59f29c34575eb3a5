"""A function that cannot be recorded as a whole, in parts: what ends a part runs as it is, the rest is compiled.

    def step(x):                                def step(x):
        y = model(x).tanh()                         (y,) = parts[0](x)
        print(y.mean().item())       becomes        print(inner(y.mean().item)())
        return (y * y).sum()                        return parts[1](y)

The statement that ends a part is known by its line. It runs as Python runs it each time, and so does everything
around it: the heads of loops, conditions. The statements before and after it become functions of the names they read,
which give the names that others read; each is compiled like any other function, with guards of its own. What such a
statement calls, a module or a function of the user's, is compiled as a function of its own.
"""

from __future__ import annotations

import ast
import builtins
import copy
import sys
import types
from collections.abc import Callable
from typing import Any

from pullback.compiler.guards import is_module
from pullback.compiler.source import (
    LAZY,
    SCOPES,
    built,
    defined,
    given_by,
    holds,
    is_followed,
    leaves,
    read_first,
    source_of,
    surely_given,
)
from pullback.compiler.watch import FOREIGN, Trail, is_standard, trail_of

MOST_BREAKS = 32
"""Lines that end parts: a function with more of them is hardly worth it."""
MOST_CALLED = 64
"""Functions and modules called from lines that end parts, which are compiled by themselves."""
LOOPS = (ast.For, ast.While)
MODES = {"no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast"}
"""Contexts that let errors pass: names that are given inside have their values afterwards."""
PARTS, INNER, MADE = "_pullback_parts", "_pullback_inner", "_pullback_made"


def target_of(function: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function of Python that a call runs, and what it is given first; None if nobody knows."""
    if is_module(function):
        function = None if function._has_hooks else function.forward
    if type(function) is types.MethodType and type(function.__func__) is types.FunctionType:
        return function.__func__, (function.__self__,)
    return (function if type(function) is types.FunctionType else None), ()


class Part:
    """Statements that are a function of their own."""

    def __init__(self, nodes: list[ast.stmt], compiled: Any) -> None:
        self.nodes, self.compiled = nodes, compiled
        self.lines = nodes[0].lineno, nodes[-1].end_lineno or nodes[-1].lineno


class Division:
    """A function in parts."""

    def __init__(self, function: types.FunctionType, compiled: Callable[[Any, Any], Any]) -> None:
        self.function, self.compiled = function, compiled
        node = source_of(function.__code__)
        self.node = node if node is not None and is_followed(node, function.__code__) else None
        """Its tree; None if it cannot be divided."""
        self.breaks: dict[int, str] = {}
        """Lines that end parts, and why."""
        self.made: dict[Any, Part] = {}
        self.parts: list[Part] = []
        """Those of the function as it is divided now."""
        self.callees: dict[Any, tuple[Any, Any]] = {}
        self.driver: Any = function
        if self.node is not None:
            given = self.node.args
            self.arguments = {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
            self.arguments |= {a.arg for a in (given.vararg, given.kwarg) if a is not None}
            self.locals = self.arguments | {name for one in self.node.body for name in given_by(one)}

    # ---------------------------------------------------------------- where parts end
    def add(self, code: Any, trails: list[tuple[Trail, str]]) -> bool:
        """Take in lines that end parts, by where the function was; False if none of them is new."""
        found: dict[int, str] = {}
        places = (code, code.co_filename)
        for trail, why in trails:
            for where, line in trail:
                if where in places and self.has(line) and line not in self.breaks:
                    found.setdefault(line, why)
        if not found or len(self.breaks) + len(found) > MOST_BREAKS:
            return False
        self.breaks |= found
        self.divide()
        return True

    def has(self, line: int) -> bool:
        """Whether a line belongs to a statement of the function."""
        return self.node is not None and any([covers(one, line) for one in self.node.body])

    def divide(self) -> None:
        """Make the function that runs parts and what is between them."""
        node = self.node
        assert node is not None
        self.parts = []
        called: list[Any] = []
        body = self.block(node.body, set(self.arguments), False, called)
        driver = defined(node.name, node.args, body or [ast.Pass()], node)
        made = built(driver, self.function, {PARTS: called, INNER: self.inner})
        made.__defaults__, made.__kwdefaults__ = self.function.__defaults__, self.function.__kwdefaults__
        self.driver = made

    # ---------------------------------------------------------------- statements
    def block(self, body: list[ast.stmt], known: set[str], loop: bool, called: list[Any]) -> list[ast.stmt]:
        """Statements, with parts for those that no break is in. `known` are names that have values before."""
        out: list[ast.stmt] = []
        run: list[ast.stmt] = []
        before = set(known)
        for node in [*body, None]:
            if node is not None and not self.ends(node):
                run.append(node)
            else:
                out += self.part(run, before, loop, called)
                run = []
                if node is not None:
                    out += self.plain(node, known, loop, called)
                before = known | (surely_given([node]) if node is not None else set())
            if node is not None:
                known = known | surely_given([node])
        return out

    def ends(self, node: ast.stmt) -> bool:
        """Whether a statement is no part of a part."""
        if any([covers(node, line) for line in self.breaks]):
            return True
        if isinstance(node, (ast.Import, ast.ImportFrom, *SCOPES)) or holds(node, (ast.Import, ast.ImportFrom)):
            return True
        return jumps(node)

    def plain(self, node: ast.stmt, known: set[str], loop: bool, called: list[Any]) -> list[ast.stmt]:
        """A statement that runs as it is: what it holds may be in parts, and so may be what it calls."""
        if isinstance(node, ast.If):
            ways = [self.block(way, set(known), loop, called) for way in (node.body, node.orelse)]
            made: ast.stmt = ast.If(self.calling(node.test), ways[0] or [ast.Pass()], ways[1])
        elif isinstance(node, ast.For):
            inside = self.block(node.body, known | given_by(node.target), True, called)
            after = self.block(node.orelse, set(known), loop, called)
            made = ast.For(copy.deepcopy(node.target), self.calling(node.iter), inside or [ast.Pass()], after)
        elif isinstance(node, ast.While):
            inside = self.block(node.body, set(known), True, called)
            made = ast.While(
                self.calling(node.test), inside or [ast.Pass()], self.block(node.orelse, set(known), loop, called)
            )
        elif isinstance(node, ast.With) and all([is_mode(item.context_expr) for item in node.items]):
            items = [copy.deepcopy(item) for item in node.items]
            made = ast.With(items, self.block(node.body, set(known), loop, called) or [ast.Pass()])
        else:
            made = self.calling(node)
        return [ast.fix_missing_locations(ast.copy_location(made, node))]

    def calling(self, node: Any) -> Any:
        """A statement or an expression in which functions and modules that are called run compiled."""
        return Calling(self.locals).visit(copy.deepcopy(node))

    def part(self, run: list[ast.stmt], known: set[str], loop: bool, called: list[Any]) -> list[ast.stmt]:
        """Statements as a function of their own; as they are, where that cannot be or is not worth it."""
        if not run:
            return []
        if not any([holds(node, (ast.Call, ast.BinOp)) for node in run]):
            return [copy.deepcopy(node) for node in run]
        given = set().union(*[given_by(node) for node in run])
        first = read_first(run, set()) & self.locals
        inside = {id(node) for one in run for node in ast.walk(one)}
        assert self.node is not None
        later = used_elsewhere(self.node.body, inside) | (first if loop else set())
        last = leaves(run)
        outs = set() if last and isinstance(run[-1], ast.Return) else given & later
        first |= outs - surely_given(run)
        if not first <= known:  # a name may have no value yet
            if len(run) == 1:
                return self.plain(run[0], known, loop, called)
            out = []
            for node in run:
                out += self.part([node], known, loop, called)
                known = known | surely_given([node])
            return out
        return self.call_of(run, sorted(first), sorted(outs), called)

    def call_of(self, run: list[ast.stmt], first: list[str], outs: list[str], called: list[Any]) -> list[ast.stmt]:
        """The call of a part in place of its statements."""
        returns = any([holds(node, ast.Return) for node in run])
        ending = isinstance(run[-1], ast.Return)
        key = (*[id(node) for node in run], *first, None, *outs)
        part = self.made.get(key)
        if part is None:
            body = [copy.deepcopy(node) for node in run]
            if not ending:
                if returns:
                    body = [Flagged().visit(node) for node in body]
                values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in outs]
                if returns:
                    values.insert(0, ast.Constant(False))
                body.append(ast.copy_location(ast.Return(ast.Tuple(values, ast.Load())), run[-1]))
            names = ast.arguments([], [ast.arg(name) for name in first], None, [], [], None, [])
            assert self.node is not None
            function = built(defined(self.node.name, names, body, run[0]), self.function, {})
            part = self.made[key] = Part(run, self.compiled(function, self))
        self.parts.append(part)
        called.append(part.compiled)
        place = ast.Subscript(ast.Name(PARTS, ast.Load()), ast.Constant(len(called) - 1), ast.Load())
        call = ast.Call(place, [ast.Name(name, ast.Load()) for name in first], [])
        made: list[ast.stmt]
        if ending:
            made = [ast.Return(call)]
        elif returns:
            result = ast.Name(MADE, ast.Load())
            made = [ast.Assign([ast.Name(MADE, ast.Store())], call)]
            at = ast.Subscript(result, ast.Constant(1), ast.Load())
            made.append(ast.If(ast.Subscript(result, ast.Constant(0), ast.Load()), [ast.Return(at)], []))
            rest = ast.Subscript(result, ast.Slice(ast.Constant(1)), ast.Load())
            made += [ast.Assign([target_for(outs)], rest)] if outs else []
        else:
            made = [ast.Assign([target_for(outs)], call) if outs else ast.Expr(call)]
        return [ast.fix_missing_locations(ast.copy_location(node, run[0])) for node in made]

    # ---------------------------------------------------------------- what is called between parts
    def inner(self, callee: Any) -> Any:
        """What runs where a function or a module is called that may be compiled by itself."""
        kind = type(callee)
        if kind is types.FunctionType:
            key: Any = callee
            function = callee
        elif kind is types.MethodType and type(callee.__func__) is types.FunctionType:
            key, function = (callee.__func__, id(callee.__self__)), callee.__func__
        elif is_module(callee) and not isinstance(callee, type):
            if callee._has_hooks or "_compiled" in vars(callee):
                return callee
            key, function = id(callee), None
        else:
            return callee
        if function is not None:
            code = function.__code__
            if code.co_filename.startswith(FOREIGN) or is_standard(code.co_filename) or code.co_flags & LAZY:
                return callee
            if hasattr(function, "_compiled") or hasattr(function, "_torchdynamo_disable"):
                return callee
        known = self.callees.get(key)
        if known is None:
            if len(self.callees) >= MOST_CALLED:
                return callee
            known = self.callees[key] = callee, self.compiled(callee, None)
        return known[1] if not known[1].hopeless else callee


def covers(node: ast.stmt, line: int) -> bool:
    """Whether a line belongs to a statement."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def jumps(node: ast.AST) -> bool:
    """Whether a statement leaves, or begins anew, a loop around it."""
    inside = node.orelse if isinstance(node, LOOPS) else ast.iter_child_nodes(node)
    return isinstance(node, (ast.Break, ast.Continue)) or any([jumps(c) for c in inside if not isinstance(c, SCOPES)])


def is_mode(node: ast.expr) -> bool:
    """Whether a context is one of this library's that only sets a mode."""
    function = node.func if isinstance(node, ast.Call) else node
    return getattr(function, "attr", getattr(function, "id", "")) in MODES


def target_for(names: list[str]) -> ast.expr:
    """Several names that are given values."""
    return ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())


def used_elsewhere(body: list[ast.stmt], inside: set[int]) -> set[str]:
    """The names of statements other than some, which are known by their nodes: read, or given values, which another
    part then has to be given first."""
    found: set[str] = set()
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if id(node) in inside:
            continue
        if isinstance(node, ast.Name):
            found.add(node.id)
        stack.extend(ast.iter_child_nodes(node))
    return found


class Flagged(ast.NodeTransformer):
    """`return x` as `return (True, x)`: the function ends, and not just the part."""

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """The statement."""
        value = node.value or ast.copy_location(ast.Constant(None), node)
        made = ast.Return(ast.Tuple([ast.Constant(True), value], ast.Load()))
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function inside has returns of its own."""
        return node

    visit_Lambda = visit_FunctionDef  # type: ignore[assignment]


class Calling(ast.NodeTransformer):
    """`f(x)` as `inner(f)(x)`."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call; those of builtins stay as they are."""
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Name) and function.id not in self.names and hasattr(builtins, function.id):
            return node
        asked = ast.Call(ast.Name(INNER, ast.Load()), [function], [])
        node.func = ast.fix_missing_locations(ast.copy_location(asked, function))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function inside runs as it is."""
        return node

    visit_Lambda = visit_FunctionDef  # type: ignore[assignment]


# ------------------------------------------------------------------ who changed something


def located(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], note: Any) -> tuple[Any, Trail]:
    """Run a function, and find out which line changes what a note tells of."""
    found: Trail = []
    before: list[Any] = [None, 0]

    def look(frame: Any, event: str, _: Any) -> Any:
        if found or frame.f_code.co_filename.startswith(FOREIGN):
            return None
        if not note.holds():
            found.extend(trail_of(frame.f_back if event == "call" else frame))
            if event == "line" and before[0] is frame:
                found[0] = frame.f_code, before[1]
            return None
        where = frame.f_back if event == "return" and frame.f_back is not None else frame
        before[:] = where, where.f_lineno
        return look

    if sys.gettrace() is not None:  # somebody else is looking
        return function(*args, **kwargs), []
    sys.settrace(look)
    try:
        return function(*args, **kwargs), found
    finally:
        sys.settrace(None)
