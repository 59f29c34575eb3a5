"""Tests that run one program on torch and on pullback. Without torch 2.13 their files are skipped, not imported."""

import importlib
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest

SPECIFICATION = "2.13"


def why_not() -> str:
    """Why these tests cannot run here; empty if they can."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return f"needs torch {SPECIFICATION}, which is not installed: run `make conformance`"
    if version.split(".")[:2] != SPECIFICATION.split("."):
        return f"needs torch {SPECIFICATION}, but torch {version} is installed: run `make conformance`"
    return ""


REASON = why_not()
if not REASON:
    importlib.import_module("tests.conformance.oracle")


class SkippedFile(pytest.Module):
    """A test file that is reported as skipped without being imported, because it imports torch."""

    def collect(self) -> Iterator[pytest.Item]:
        pytest.skip(REASON, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return SkippedFile.from_parent(parent, path=module_path) if REASON else None
