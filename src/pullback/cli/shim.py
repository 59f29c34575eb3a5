"""`pullback shim install`: packages that need torch find pullback in this environment, without `pullback run`."""

from __future__ import annotations

import argparse
import base64
import hashlib
import sysconfig
from importlib.metadata import Distribution, distributions
from pathlib import Path

from pullback.cli.output import Mistake
from pullback.compat.install import METADATA, TOP_LEVEL, TORCHS, VERSION

EXAMPLES = """
examples:
  pullback shim install     `import torch` finds pullback, and pip believes that torch is installed
  pullback shim status      is it there? status 1 if not
  pullback shim remove      take it away again; `pip uninstall torch` does the same

It writes the packages `torch` and `functorch`, of one file each, and the metadata of torch, version {VERSION},
beside the packages of this Python. A torch that was not put there by this command is never touched: where there is
one, nothing is written.
""".replace("{VERSION}", VERSION)
SOURCE = '''"""`import {name}` finds pullback (`pullback shim install`, `pullback shim remove`)."""

from pullback.compat.install import take_over

take_over(__name__)
'''
WHEEL = "Wheel-Version: 1.0\nGenerator: pullback\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
FOLDER = f"torch-{VERSION}.dist-info"
FILES = {
    **{f"{name}/__init__.py": SOURCE.format(name=name) for name in sorted(TORCHS)},
    f"{FOLDER}/METADATA": METADATA,
    f"{FOLDER}/WHEEL": WHEEL,
    f"{FOLDER}/INSTALLER": "pullback\n",
    f"{FOLDER}/top_level.txt": TOP_LEVEL,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("action", choices=("install", "remove", "status"), help="what to do")
    parser.add_argument("--target", metavar="DIR", help="the folder of packages; this Python's unless told")


def place_of(given: argparse.Namespace) -> Path:
    """The folder of packages."""
    return Path(given.target) if given.target else Path(sysconfig.get_path("purelib"))


def is_ours(place: Path) -> bool:
    """Whether the shim lies in a folder."""
    return (place / FOLDER / "METADATA").exists()


def is_others(package: Path, name: str) -> bool:
    """Whether there is a package of this name that is not of the shim."""
    file = package / "__init__.py"
    return package.exists() and not (file.exists() and file.read_text(encoding="utf-8") == SOURCE.format(name=name))


def other_torch(given: argparse.Namespace) -> str | None:
    """Where a torch lies that is not the shim; None if there is none."""
    place = place_of(given)
    for name in sorted(TORCHS):
        if is_others(place / name, name):
            return str(place / name)
    there = distributions(name="torch", path=[str(place)]) if given.target else distributions(name="torch")
    for one in there:
        if one.version != VERSION:
            return f"{one.version} in {folder_of(one)}"
    return None


def folder_of(one: Distribution) -> str:
    """The folder a distribution lies in."""
    return str(one.locate_file(""))


def record() -> str:
    """RECORD: the files with their digests, from which pip knows what to remove."""
    rows = []
    for name, text in FILES.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(text.encode())}\n")
    return "".join([*rows, f"{FOLDER}/RECORD,,\n"])


def install(given: argparse.Namespace) -> int:
    """Write the package and its metadata."""
    place, other = place_of(given), other_torch(given)
    if other is not None:
        raise Mistake(f"there is a torch already, {other}; nothing was written")
    again = is_ours(place)
    try:
        for name, text in {**FILES, f"{FOLDER}/RECORD": record()}.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Mistake(f"{place} cannot be written to: {error.strerror}") from None
    print(f"{'written again' if again else 'installed'}: torch {VERSION} in {place}; `import torch` finds pullback")
    return 0


def remove(given: argparse.Namespace) -> int:
    """Delete the package and its metadata, and nothing else."""
    place = place_of(given)
    if not is_ours(place):
        print(f"there is no shim in {place}; nothing was removed")
        return 1
    try:
        written = (place / FOLDER / "RECORD").read_text(encoding="utf-8")
        for name in [name for name in [*FILES, f"{FOLDER}/RECORD"] if f"{name}," in written]:
            (place / name).unlink(missing_ok=True)
        caches = [place / name / "__pycache__" for name in TORCHS]
        for compiled in [file for cache in caches for file in cache.glob("__init__.*.pyc")]:
            compiled.unlink()
        for folder in (*caches, *(place / name for name in TORCHS), place / FOLDER):
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()
    except OSError as error:
        raise Mistake(f"{place} cannot be written to: {error.strerror}") from None
    print(f"removed: torch {VERSION} from {place}")
    return 0


def status(given: argparse.Namespace) -> int:
    """Say what `import torch` finds."""
    place = place_of(given)
    if is_ours(place):
        print(f"torch {VERSION} in {place}: `import torch` finds pullback")
        return 0
    other = other_torch(given)
    print(f"there is no shim in {place}" + (f"; torch is {other}" if other else ""))
    return 1


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Install, remove or say."""
    return {"install": install, "remove": remove, "status": status}[given.action](given)
