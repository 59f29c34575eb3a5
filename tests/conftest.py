"""What all tests share. Warnings are errors and markers are strict: see [tool.pytest.ini_options] in pyproject.toml."""

import importlib.util
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Examples are timed on whatever machine runs them, often a busy one: no deadline, nor a complaint that making them is
# slow. Derandomized, a failure repeats.
settings.register_profile("pullback", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pullback")

# Every kernel is written anew, and compared with what other processes wrote by the same recipe.
if importlib.util.find_spec("llvmlite") is not None:
    importlib.import_module("pullback.kernels.jit.compiler.engine").writes_all = True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything under tests/conformance, so that `-m conformance` finds it."""
    conformance = ROOT / "tests" / "conformance"
    for item in items:
        if conformance in item.path.parents:
            item.add_marker("conformance")


@pytest.fixture(autouse=True)
def _own_arithmetic_may_overflow() -> None:
    """What tests compute with NumPy themselves may divide by zero; where pullback does, NumPy is not to be heard."""
    warnings.filterwarnings("ignore", ".* encountered in ", RuntimeWarning, module=r"(?!pullback\b)")


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder that holds src, tests, examples and benchmarks."""
    return ROOT


@pytest.fixture(scope="session")
def run_python() -> Callable[[str], str]:
    """A function that runs source in a fresh interpreter that can import pullback, and returns what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT / "src")

    def run(source: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", source],
            capture_output=True,
            text=True,
            env=environment,
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == 0, f"a fresh Python failed:\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(autouse=True)
def numpys_error_state_is_left_alone():
    """No test leaves NumPy's error state changed, and so the library does not."""
    before = np.geterr()
    yield
    after = np.geterr()
    np.seterr(**before)
    assert after == before
