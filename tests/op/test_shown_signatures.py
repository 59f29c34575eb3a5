"""What `inspect.signature` and `help` show of ops: torch's parameters, whether or not they were ever called."""

import ast
import copy
import inspect
import pickle
import pydoc
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import pullback
from pullback import Tensor
from pullback._op.declare import registry, spaces
from pullback._op.shown import Shown
from pullback._op.stubs import EITHER

pullback.ops.load_all()
STUBS = Path(pullback.__file__).parent / "_stubs"
GENERATED = sorted(
    {
        f"{space}.{name}": function
        for space, names in {**spaces, "Tensor": vars(Tensor)}.items()
        for name, function in names.items()
        if isinstance(getattr(function, "__dict__", {}).get("__signature__"), Shown)
    }.items()
)
BEFORE = """
import inspect, sys
import pullback
pullback.ops.load_all()
from pullback._op.declare import spaces
from pullback._op.patch import stub
for space, names in {**spaces, "Tensor": vars(pullback.Tensor)}.items():
    for name, function in sorted(names.items()):
        if "__signature__" in getattr(function, "__dict__", {}):
            print(f"{space}.{name}", function.__code__ is stub.__code__, inspect.signature(function), sep="|")
"""


@pytest.fixture(scope="module")
def before():
    """The signatures in a process that has called nothing: whether the code was still to be generated, and the text."""
    ran = subprocess.run([sys.executable, "-c", BEFORE], capture_output=True, text=True, check=True)
    return {line.split("|")[0]: line.split("|")[1:] for line in ran.stdout.splitlines()}


def test_every_op_is_looked_at():
    shown = {function for _, function in GENERATED}
    published = {function for names in spaces.values() for function in names.values() if callable(function)}
    assert {op.call for op in registry.values()} & published <= shown
    assert len(GENERATED) > 900


def test_a_signature_is_the_same_before_the_first_call_and_after_it(before):
    assert sum(fresh == "True" for fresh, _ in before.values()) > 400
    for name, function in GENERATED:
        if "COMPILE" in function.__globals__:
            function.__globals__["COMPILE"]()  # what the first call does
        assert str(Shown(function)) == str(inspect.signature(function)) == before[name][1], name


@pytest.mark.parametrize(("name", "function"), GENERATED, ids=[name for name, _ in GENERATED])
def test_a_signature_names_every_parameter(name, function):
    kinds = {p.kind for p in inspect.signature(function).parameters.values()}
    declared = function.op.params
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    names = ["input" if p.name == "self" else p.name for p in declared]
    assert [n for n in inspect.signature(function).parameters if n not in ("axis", "keepdims", "out")] == [
        n for n in names if n not in ("axis", "keepdims", "out")
    ]


@cache
def stub_parameters(file):
    """The names of the parameters of each function in a stub that has one form of it."""
    found = {}
    for node in ast.walk(ast.parse((STUBS / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and not any(
            isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list
        ):
            a = node.args
            found[node.name] = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return found


def test_a_signature_has_the_parameters_of_the_type_stub():
    files = {space: f"{space.replace('.', '_')}.pyi" for space in spaces} | {"Tensor": "tensor.pyi"}
    compared = 0
    for name, function in GENERATED:
        space, _, own = name.rpartition(".")
        wanted = stub_parameters(files[space]).get(own) if (STUBS / files[space]).exists() else None
        if wanted is not None and own not in EITHER and not own.startswith("__"):  # operators are shown as methods
            shown = list(inspect.signature(function).parameters)
            assert (shown[1:] if space == "Tensor" else shown) == (wanted[1:] if space == "Tensor" else wanted), name
            compared += 1
    assert compared > 600


def test_help_shows_the_parameters():
    assert "erfinv(input, *, out=None)" in pydoc.plain(pydoc.render_doc(pullback.erfinv))
    assert "cumsum(dim" in pydoc.plain(pydoc.render_doc(pullback.ones(2).cumsum))


def test_a_signature_is_one_like_others():
    shown = inspect.signature(pullback.lerp)
    assert shown == inspect.Signature(list(shown.parameters.values())) and shown.return_annotation is shown.empty
    assert shown.bind(1, 2, weight=3).arguments == {"input": 1, "end": 2, "weight": 3}
    assert str(inspect.signature(pullback.ones(2).lerp)) == "(end, weight, *, out=None)"
    assert str(shown.replace(parameters=[])) == "()"
    assert pickle.loads(pickle.dumps(shown)) == copy.deepcopy(shown) == shown
