"""A file holds one idea, so none is long."""

from tests.structure.source import ROOT, python_files

LONGEST = 500


def test_no_source_file_is_over_500_lines():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files("src")}
    long = [f"{path.relative_to(ROOT)}: {lines} lines" for path, lines in lengths.items() if lines > LONGEST]
    assert not long, f"files over {LONGEST} lines; give each idea its own:\n" + "\n".join(long)
