"""What the tools that read programs know of this library: mypy, pyright and jedi."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SRC = HERE.parents[1] / "src"
HEAD = "import pullback as torch\nfrom pullback import nn, optim\nx = torch.ones(2, 3)\n"
WRONG = [
    number for number, line in enumerate((HERE / "wrong.py").read_text().splitlines(), 1) if line.endswith("# wrong")
]


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        cwd=HERE,
        env=os.environ | {"MYPYPATH": str(SRC), "PYTHONPATH": str(SRC)},
        timeout=600,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def found_by_mypy(name: str, cache: Path) -> list[str]:
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={cache}"]
    return [line for line in run("mypy", *options, name).splitlines() if line.startswith(name)]


def found_by_pyright(name: str, folder: Path) -> list[dict]:
    settings = {"extraPaths": [str(SRC)], "typeCheckingMode": "strict", "include": [str(HERE / name)]}
    (folder / "settings.json").write_text(json.dumps(settings))
    found = json.loads(run("basedpyright", "--outputjson", "-p", str(folder / "settings.json")))
    return [one for one in found["generalDiagnostics"] if one["severity"] == "error"]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mypy") is None, reason="the extra `dev` is not installed")
def test_mypy_understands_a_program_and_finds_what_is_wrong(tmp_path):
    assert found_by_mypy("training.py", tmp_path) == []
    assert sorted({int(line.split(":")[1]) for line in found_by_mypy("wrong.py", tmp_path)}) == WRONG


@pytest.mark.slow
@pytest.mark.skipif(find_spec("basedpyright") is None, reason="the extra `dev` is not installed")
def test_pyright_understands_a_program_and_finds_what_is_wrong(tmp_path):
    assert [one["message"] for one in found_by_pyright("training.py", tmp_path)] == []
    assert {one["range"]["start"]["line"] + 1 for one in found_by_pyright("wrong.py", tmp_path)} == {*WRONG}


@pytest.fixture(scope="module")
def jedi():
    found = pytest.importorskip("jedi")
    project = found.Project(str(HERE), added_sys_path=[str(SRC)], load_unsafe_extensions=False)
    return lambda code: found.Script(code, project=project)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begun", "completed"),
    [
        ("nn.Line", "Linear"),
        ("torch.nn.Line", "Linear"),
        ("optim.Ada", "Adam"),
        ("torch.optim.Ada", "AdamW"),
        ("x[0].backw", "backward"),
        ("x.ite", "item"),
        ("torch.linalg.nor", "norm"),
        ("nn.Linear(2, 3)(x).argm", "argmax"),
    ],
)
def test_an_editor_completes(jedi, begun, completed):
    assert completed in [one.name for one in jedi(HEAD + begun).complete()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "types"),
    [
        ("nn.Linear", ["Linear"]),
        ("optim.Adam", ["Adam"]),
        ("x[0]", ["Tensor"]),
        ("x.item()", ["bool", "float", "int"]),
        ("nn.Linear(2, 3)", ["Linear"]),
        ("nn.Linear(2, 3)(x)", ["Tensor"]),
        ("x.shape", ["Size"]),
        ("x * 2", ["Tensor"]),
    ],
)
def test_an_editor_knows_the_type(jedi, expression, types):
    assert sorted(one.name for one in jedi(f"{HEAD}y = {expression}\ny").infer()) == types
