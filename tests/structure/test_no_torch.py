"""The library runs without torch; only the comparisons with torch, and programs written for it, import it."""

from pathlib import Path

from tests.structure.source import ROOT, imports_of, python_files


def importers_of_torch(files: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{found.line}" for path in files for found in imports_of(path) if found.top == "torch"
    ]


def test_no_source_file_imports_torch():
    """The examples do: they are programs for torch, which `pullback run` runs as they are."""
    assert not importers_of_torch([*python_files("src"), ROOT / "examples" / "tour.py"])


def test_only_comparisons_with_torch_import_it():
    comparing = {ROOT / "tests" / name for name in ("conformance", "fuzz", "ecosystem")}
    assert not importers_of_torch([path for path in python_files("tests") if not comparing & {*path.parents}])


def test_importing_pullback_loads_neither_torch_nor_a_lazy_package(run_python):
    unwanted = ("torch", "scipy", "ml_dtypes", "llvmlite")
    loaded = run_python(
        f"import sys, pullback; pullback.Tensor; print(*[name for name in {unwanted} if name in sys.modules])"
    ).split()
    assert not loaded, f"import pullback also imports {loaded}"
