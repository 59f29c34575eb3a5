"""Running the command as a shell would."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullback

SRC = str(Path(pullback.__file__).parents[1])


@pytest.fixture
def command(tmp_path):
    """`command("run", "script.py")` in an empty folder; `script(name, text)` puts a program there."""

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "pullback", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": SRC, **environment},
            timeout=600,
        )

    return run


@pytest.fixture
def script(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text)
        return name

    return write
