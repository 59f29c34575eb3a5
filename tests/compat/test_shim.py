"""`pullback shim`: a small torch in an environment, so that packages and pip find pullback under that name."""

import csv
import os
import subprocess
import sys
import venv
from pathlib import Path

import numpy
import pytest

SRC = Path(__file__).parents[2] / "src"
PACKAGES = Path(numpy.__file__).parents[1]
FOLDER = "torch-2.13.0+pullback.dist-info"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment of its own that has pullback and what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=sys.platform != "win32")
    python = next(folder.glob("bin/python")) if (folder / "bin").exists() else folder / "Scripts" / "python.exe"
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    for name in ("numpy", "numpy.libs", "scipy", "scipy.libs", "ml_dtypes"):
        if (PACKAGES / name).exists():
            (site / name).symlink_to(PACKAGES / name)
    (site / "pullback.pth").write_text(f"{SRC}\n")

    def run(*words):
        return subprocess.run([python, *words], capture_output=True, text=True, cwd=folder)

    return site, run


def shim(run, action, *more):
    done = run("-m", "pullback", "shim", action, *more)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_it_is_installed_found_and_removed_without_a_trace(environment):
    site, run = environment
    before = sorted(path.name for path in site.iterdir())
    assert shim(run, "status").returncode == 1
    done = shim(run, "install")
    assert done.returncode == 0 and done.stdout.startswith("installed: torch 2.13.0+pullback in "), done.stderr
    assert shim(run, "status").returncode == 0
    assert shim(run, "install").stdout.startswith("written again: ")
    program = (
        "import importlib.metadata as metadata, importlib.util as util\n"
        "print(util.find_spec('torch').origin.replace(chr(92), '/').endswith('torch/__init__.py'))\n"
        "print(metadata.version('torch'), metadata.metadata('torch')['Name'])\n"
        "import torch, torch.nn.functional, pullback\n"
        "print(torch.nn.Linear is pullback.nn.Linear, torch.__version__, metadata.version('torch'))\n"
        "print(torch.nn.functional.relu(torch.tensor([-1.0, 2.0])).tolist())\n"
    )
    done = run("-c", program)
    assert done.stdout.splitlines() == [
        "True",
        "2.13.0+pullback torch",
        "True 2.13.0+pullback 2.13.0+pullback",
        "[0.0, 2.0]",
    ], done.stderr
    done = shim(run, "remove")
    assert done.returncode == 0 and done.stdout.startswith("removed: ")
    assert sorted(path.name for path in site.iterdir()) == before
    assert run("-c", "import torch").returncode == 1
    done = shim(run, "remove")
    assert done.returncode == 1 and "nothing was removed" in done.stdout


def test_a_real_torch_is_not_touched(environment, tmp_path):
    _, run = environment
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("real = True\n")
    done = shim(run, "install", "--target", str(tmp_path))
    assert done.returncode == 2 and "there is a torch already" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["torch", "__init__.py"]
    assert shim(run, "remove", "--target", str(tmp_path)).returncode == 1
    assert (tmp_path / "torch" / "__init__.py").exists()


def test_functorch_is_found_too_whoever_is_imported_first(environment, tmp_path):
    _, run = environment
    assert shim(run, "install", "--target", str(tmp_path)).returncode == 0
    for first, second in (("functorch", "torch"), ("torch", "functorch")):
        program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {first}, {second}\n"
        done = run("-c", program + "print(functorch.jvp.__module__, functorch.__version__ == torch.__version__)")
        assert done.stdout == "pullback.compat.functorch.deprecated True\n", done.stderr
    assert shim(run, "remove", "--target", str(tmp_path)).returncode == 0
    assert not [path for path in tmp_path.rglob("*")]


def test_a_functorch_of_somebody_else_is_not_touched(environment, tmp_path):
    _, run = environment
    (tmp_path / "functorch").mkdir()
    (tmp_path / "functorch" / "__init__.py").write_text("real = True\n")
    done = shim(run, "install", "--target", str(tmp_path))
    assert done.returncode == 2 and "there is a torch already" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["functorch", "__init__.py"]


def test_the_record_names_every_file_so_that_pip_can_remove_them(environment, tmp_path):
    _, run = environment
    assert shim(run, "install", "--target", str(tmp_path)).returncode == 0
    rows = list(csv.reader((tmp_path / FOLDER / "RECORD").read_text().splitlines()))
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {name for name, _, _ in rows} == written
    for name, digest, size in rows[:-1]:
        assert digest.startswith("sha256=") and int(size) == (tmp_path / name).stat().st_size


def test_the_resolver_of_pip_is_content_with_it(environment, tmp_path):
    """A package that needs torch is installed without fetching one, as long as the shim is there."""
    pytest.importorskip("pip")
    site, run = environment
    (site / "pullback-1.dist-info").mkdir()  # what the shim needs in its turn
    (site / "pullback-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: pullback\nVersion: 1\n")
    python = run("-c", "import sys; print(sys.executable)").stdout.strip()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "needs-torch"\nversion = "1"\ndependencies = ["torch>=2.2,<3"]\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (tmp_path / "backend.py").write_text(BACKEND)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--dry-run",
        "--no-index",
        "--no-build-isolation",
    ]
    pip += ["--disable-pip-version-check", str(tmp_path)]

    def resolve():
        return subprocess.run(pip, capture_output=True, text=True, env=without_settings())

    assert shim(run, "install").returncode == 0
    with_it = resolve()
    assert shim(run, "remove").returncode == 0
    without = resolve()
    assert with_it.returncode == 0 and "Would install needs-torch-1" in with_it.stdout, with_it.stderr
    assert without.returncode != 0 and "No matching distribution found for torch" in without.stderr


BACKEND = """
from pathlib import Path

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    place = Path(folder, "needs_torch-1.dist-info")
    place.mkdir()
    lines = ["Metadata-Version: 2.1", "Name: needs-torch", "Version: 1", "Requires-Dist: torch<3,>=2.2", ""]
    (place / "METADATA").write_text("\\n".join(lines))
    (place / "WHEEL").write_text("Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    return place.name

def build_wheel(folder, config_settings=None, metadata_directory=None):
    raise NotImplementedError
"""


def without_settings():
    """The environment without what tells pip where to look."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {**kept, "PIP_CONFIG_FILE": os.devnull}


def test_run_answers_for_the_metadata_too(environment, tmp_path):
    _, run = environment
    (tmp_path / "program.py").write_text(
        "import importlib.metadata as metadata, importlib.util as util\n"
        "print(metadata.version('torch'), util.find_spec('torch') is not None)\n"
        "print([one.version for one in metadata.distributions() if one.metadata['Name'] == 'torch'])\n"
        "try: metadata.version('torchaudio')\n"
        "except metadata.PackageNotFoundError: print('no torchaudio')\n"
    )
    done = run("-m", "pullback", "run", str(tmp_path / "program.py"))
    assert done.stdout.splitlines() == ["2.13.0+pullback True", "['2.13.0+pullback']", "no torchaudio"], done.stderr


def test_an_installed_torchvision_is_used(environment, tmp_path):
    _, run = environment
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("import torch\nmine = torch.nn.Linear\n")
    (tmp_path / "program.py").write_text("import torchvision\nprint(torchvision.mine)\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['pullback', 'run', 'program.py']\n"
    done = run("-c", program + "import os; os.chdir(sys.path[0])\nfrom pullback.cli import main; main()")
    assert "Linear" in done.stdout, done.stderr
