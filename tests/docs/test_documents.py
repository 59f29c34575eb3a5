"""The documents: their examples run, and the notes the code cites exist."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_examples_of_a_document_run(path):
    result = doctest.testfile(str(path), module_relative=False, optionflags=OPTIONS)
    assert result.failed == 0


def test_the_readme_program_runs():
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[:1]
    exec(compile(program, "README.md", "exec"), {})


def test_every_note_the_code_cites_exists():
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        cited |= set(re.findall(r"[Ss]ee note: (\w+)", path.read_text()))
    assert cited, "no note is cited"
    missing = sorted(name for name in cited if not (ROOT / "docs" / "notes" / f"{name}.md").is_file())
    assert not missing, f"cited, but not in docs/notes: {missing}"


def test_every_link_between_documents_leads_somewhere():
    broken = []
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            if not (path.parent / target).exists():
                broken.append(f"{path.name}: {target}")
    assert not broken
