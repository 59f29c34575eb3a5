"""Every folder can be surveyed: `ls` shows it on one screen of 80 columns and 24 lines."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.structure.source import SRC

COLUMNS, LINES = 80, 24
SAME_ORDER = {**os.environ, "LC_ALL": "C"}
FREE = LINES - 2
"""The command above the names and the next prompt below them are on the screen, too."""


def lines_of_ls(names: list[str], columns: int = COLUMNS) -> int:
    """How many lines `ls` needs: as few as let its columns, two spaces apart, stand side by side."""
    for lines in range(1, len(names)):
        side_by_side = [names[start : start + lines] for start in range(0, len(names), lines)]
        if sum(max(map(len, column)) + 2 for column in side_by_side) - 2 < columns:
            return lines
    return len(names)


def folders() -> dict[Path, list[str]]:
    """The folders of the source, with the names in each."""
    inside = [path for path in SRC.rglob("*") if "__pycache__" not in path.parts]
    return {
        folder: sorted(path.name for path in inside if path.parent == folder)
        for folder in (SRC, *(path for path in inside if path.is_dir()))
    }


def test_every_folder_fits_one_screen():
    large = {str(folder.relative_to(SRC)): lines_of_ls(names) for folder, names in folders().items()}
    assert len(large) > 50
    large = {folder: lines for folder, lines in large.items() if lines > FREE}
    assert not large, f"more than {FREE} lines of `ls` in {COLUMNS} columns; give each topic its own folder: {large}"


MOST = 32
"""Names in one folder: what the largest of them has."""
FACADE = SRC / "pullback"
"""Half of its names are those of torch's modules, which cannot be elsewhere."""


def test_no_folder_holds_more_names_than_one_takes_in():
    many = {str(folder.relative_to(SRC)): len(names) for folder, names in folders().items() if folder != FACADE}
    assert not {folder: count for folder, count in many.items() if count > MOST}


FILES = 30
"""Modules in one folder, the facade's own included."""


def test_no_folder_holds_more_modules_than_one_takes_in():
    many = {str(folder): sum(name.endswith(".py") for name in names) for folder, names in folders().items()}
    assert not {folder: count for folder, count in many.items() if count > FILES}


def test_a_folder_that_grew_flat_does_not_fit():
    assert lines_of_ls([f"a_kernel_of_row_{nr}.py" for nr in range(66)]) <= FREE
    assert lines_of_ls([f"a_kernel_of_row_{nr}.py" for nr in range(90)]) > FREE


@pytest.mark.skipif(shutil.which("ls") is None, reason="there is no ls")
def test_the_lines_are_those_of_ls(tmp_path):
    for folder, names in folders().items():
        room = tmp_path / folder.relative_to(SRC)
        room.mkdir(parents=True, exist_ok=True)
        for name in names:
            (room / name).mkdir(exist_ok=True)
        shown = subprocess.run(
            ["ls", "-C", "-w", str(COLUMNS), room], capture_output=True, text=True, check=False, env=SAME_ORDER
        )
        if shown.returncode:
            pytest.skip("this ls does not take a width")
        assert len(shown.stdout.splitlines()) == lines_of_ls(names), folder
