"""The traceback of a mistake: the user's own lines, torch's text, and what we add. Nothing of this library.

After a change that is meant, write the copies anew and read the difference:

    PULLBACK_WRITE_GOLDEN=1 python -m pytest tests/errors/test_tracebacks.py
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pullback
from tests.errors.mistakes import MISTAKES, traceback_of

GOLDEN = Path(__file__).parent / "tracebacks.txt"
FULL = os.environ.get("PULLBACK_TRACEBACK") == "full"
SRC = Path(pullback.__file__).parent.parent

SCRIPT = """
import pullback as torch

class Net(torch.nn.Module):
    def forward(self, x):
        return x @ torch.ones(4)

Net()(torch.ones(3))
"""


def recorded():
    """The golden tracebacks by the names of the mistakes."""
    parts = re.split(r"^# (.+)\n\n", GOLDEN.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.rstrip("\n") + "\n" for name, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.skipif("PULLBACK_WRITE_GOLDEN" not in os.environ, reason="only on demand")
def test_write_golden():
    texts = [f"# {name}\n\n{traceback_of(pullback, name)[0]}" for name in MISTAKES]
    GOLDEN.write_text("\n".join(texts), encoding="utf-8")


@pytest.mark.skipif(FULL, reason="tracebacks are shown in full")
@pytest.mark.parametrize("name", MISTAKES)
def test_traceback_of_a_mistake(name):
    text, _ = traceback_of(pullback, name)
    assert text == recorded()[name]


@pytest.mark.skipif(FULL, reason="tracebacks are shown in full")
@pytest.mark.parametrize("name", MISTAKES)
def test_no_traceback_shows_a_line_of_the_library(name):
    text, _ = traceback_of(pullback, name)
    assert str(SRC) not in text
    assert "<pullback" not in text


def run(text, folder, *command, **environment):
    """Run a program in a process of its own: (exit code, everything it wrote)."""
    path = folder / "test_program.py"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *command, str(path)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SRC), "PULLBACK_TRACEBACK": "", **environment},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_script_ends_with_the_lines_of_the_script(tmp_path):
    code, text = run(SCRIPT, tmp_path)
    assert code == 1
    assert text.count("File ") == 2
    assert "in forward" in text
    assert "RuntimeError: " in text


def test_full_traceback_shows_the_library(tmp_path):
    _, text = run(SCRIPT, tmp_path, PULLBACK_TRACEBACK="full")
    assert text.count("File ") > 4
    assert "During handling" not in text


def test_pytest_shows_the_line_of_the_test(tmp_path):
    program = "import pullback as torch\n\ndef test_it():\n    torch.ones(2) @ torch.ones(3)\n"
    _, text = run(program, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "test_program.py:4: RuntimeError" in text
    assert str(SRC) not in text


def test_library_lines_between_those_of_the_user_are_left_out():
    def hook(module, args):
        raise KeyError("mine")

    layer = pullback.nn.Linear(2, 2)
    layer.register_forward_pre_hook(hook)
    with pytest.raises(KeyError) as caught:
        pullback.nn.Sequential(layer)(pullback.ones(1, 2))
    if not FULL:
        assert [entry.name for entry in caught.traceback] == [
            "test_library_lines_between_those_of_the_user_are_left_out",
            "hook",
        ]


def test_lines_of_numpy_stay_where_the_user_called_it():
    import numpy as np

    class Solve(pullback.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return pullback.from_numpy(np.linalg.inv(x.numpy()))

    with pytest.raises(np.linalg.LinAlgError) as caught:
        Solve.apply(pullback.zeros(2, 2))
    names = [entry.name for entry in caught.traceback]
    assert names[-1] == "_raise_linalgerror_singular"
    assert "forward" in names


def test_reference_path_does_not_run_inside_a_handler():
    seen = []

    class Loud(pullback.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(sys.exc_info()[1])
            return super().__torch_function__(function, types, args, kwargs or {})

    with pytest.raises(RuntimeError) as caught:
        pullback.ones(2) + pullback.ones(3)
    assert caught.value.__context__ is None
    with pytest.raises(RuntimeError) as caught:
        pullback.ones(2).as_subclass(Loud) + pullback.ones(3)
    assert seen == [None]
    assert caught.value.__context__ is None
