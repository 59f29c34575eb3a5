"""Importing pullback loads little: what it costs is counted here, and timed by `python -m benchmarks --only import`."""

MODULES = 263
SOURCE = 1_860_000
"""What `import pullback` may load: more modules or more source (in bytes) is a decision, not an accident."""

SLOW = {"ast", "asyncio", "doctest", "email", "hashlib", "html", "http", "importlib.metadata", "json"}
SLOW |= {"llvmlite", "logging", "ml_dtypes", "multiprocessing", "pickle", "pydoc", "random", "scipy", "sqlite3", "ssl"}
SLOW |= {"socket", "subprocess", "tempfile", "unittest", "urllib.request", "xml", "zipfile"}
"""Modules that take milliseconds, for what only some programs do."""

LOADED = """
import sys, numpy
before = set(sys.modules)
import pullback; pullback.Tensor  # an empty package is no import
print(*sorted(set(sys.modules) - before))
"""


def test_importing_loads_no_slow_module_that_numpy_has_not_loaded(run_python):
    assert SLOW & {*run_python(LOADED).split()} == set()


def test_importing_loads_few_modules_and_little_source(run_python, root):
    own = [name for name in run_python(LOADED).split() if name.partition(".")[0] == "pullback"]
    files = [root.joinpath("src", *name.split(".")) for name in own]
    size = sum((f / "__init__.py" if f.is_dir() else f.with_suffix(".py")).stat().st_size for f in files)
    assert 100 < len(own) <= MODULES, f"{len(own)} modules"
    assert size <= SOURCE, f"{size} bytes of source"


def test_modules_loaded_on_demand_add_no_method(run_python):
    code = (
        "import pullback, pullback.ops\n"
        "before = set(vars(pullback.Tensor))\n"
        "pullback.ops.load_all()\n"
        "print(*sorted(set(vars(pullback.Tensor)) - before))\n"
    )
    assert run_python(code).split() == []


def test_names_of_modules_loaded_on_demand_are_found(run_python):
    code = "import pullback; from pullback import conv2d; print(conv2d.__name__, hasattr(pullback, 'nothing'))"
    assert run_python(code).split() == ["conv2d", "False"]
