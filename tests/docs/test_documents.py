"""The documents: their code runs, what they quote is the source, what they link to and cite exists."""

import contextlib
import doctest
import fnmatch
import functools
import inspect
import io
import marshal
import re
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import derivatives, overhead, processes, startup, steps
from benchmarks.__main__ import SECTIONS
from docs.tools import quotes

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PAGES = [path for path in DOCUMENTS if path.is_relative_to(ROOT / "docs")]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some examples write files


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_examples_of_a_document_run(path):
    text = re.sub(r"^```\w*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)  # a fence is no output
    test = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0)
    report = io.StringIO()
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.write).failed == 0, report.getvalue()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_programs_of_a_page_run_in_order(path):
    text = quotes.QUOTE.sub("", path.read_text(encoding="utf-8"))
    names = {}
    for program in BLOCK.findall(text):
        if ">>>" not in program:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(program, str(path), "exec"), names)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_page_quotes_is_the_source(path):
    page = path.read_text(encoding="utf-8")
    assert quotes.refreshed(page) == page, "the source has changed: run `python docs/tools/quotes.py`"


def test_the_walkthrough_shows_the_source_of_every_room():
    text = (ROOT / "docs" / "walkthrough.md").read_text(encoding="utf-8")
    shown = {match[2].split()[0] for match in quotes.QUOTE.finditer(text)}
    assert {"mul", "ops/pointwise/arithmetic.py", "_op/apply.py", "autograd/engine.py", "autograd/view.py"} <= shown


def test_a_quote_that_is_not_the_source_is_seen():
    page = "<!-- source: autograd/fit.py sum_to -->\n```python\ndef sum_to(): ...\n```"
    assert "Undo broadcasting" in quotes.refreshed(page)
    with pytest.raises(LookupError):
        quotes.refreshed(page.replace("sum_to -->", "nothing -->"))


def test_the_readme_program_runs():
    (program,) = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))[:1]
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(program, "README.md", "exec"), {})


BENCH = "python -m benchmarks --only "
LISTED = {
    "overhead": [one.name for one in overhead.WORKLOADS],
    "derivatives": [one.name for one in derivatives.WORKLOADS],
    "steps": [*steps.STEPS],
    "memory": [f"per node of {what}" for what in processes.NODES],
    "start-up": [f"{what}, whole process, kernels cached" for what, _, _ in startup.STAGES.values()],
}
"""The rows of those sections that list their workloads. Those of others are written where they are measured."""


def is_printed(section, row):
    """Whether a section of the benchmarks has this row."""
    if section in LISTED:
        return row in LISTED[section]
    return f'"{row}"' in inspect.getsource(inspect.getmodule(SECTIONS[section]))


def test_what_stands_behind_the_readme_exists():
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What stands behind")[2].partition("\n## ")[0]
    held = [re.findall(r"`([^`]*)`", row.rpartition(" | ")[2]) for row in table.splitlines() if row.startswith("| ")]
    assert len(held) > 10 and all(held[1:])
    for names in held:
        section = ""
        for name in names:
            if name.startswith(BENCH):
                section = name.removeprefix(BENCH)
                assert section in SECTIONS, name
            elif section:
                assert is_printed(section, name), f"{section}: {name}"
            else:
                assert (ROOT / name).exists(), name


def test_the_steps_of_the_readme_are_those_of_the_page_of_benchmarks():
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    page = page.partition("## Training steps")[2].partition("\n## ")[0]
    measured = dict(re.findall(r"^\| (.+?) \| ms \| .* \| ([0-9.]+) \|$", page, re.MULTILINE))
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| step | | step | |")[2].partition("\n\n")[0]
    said = re.findall(r"\| ([^|]*[a-zA-Z][^|]*) \| ([0-9.]+) (?=\|)", table)
    assert {name for name, _ in said} == {*steps.STEPS}
    for name, ratio in said:
        assert abs(float(ratio) - float(measured[name])) < 0.1, f"{name}: {measured[name]} on the page of benchmarks"


def on_disk(sizes):
    """Megabytes of files of these sizes, which take whole blocks."""
    return sum(-(-size // 4096) * 4096 for size in sizes) / 2**20


def test_the_readme_says_what_is_found_on_disk():
    sources = [path for path in (ROOT / "src/pullback").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    code = [compile(path.read_bytes(), str(path), "exec") for path in sources if path.suffix == ".py"]
    own = on_disk([path.stat().st_size for path in sources] + [len(marshal.dumps(one)) + 16 for one in code])
    said = re.search(
        r"on disk with its bytecode.*?\| (\d+) MB; with llvmlite (\d+) MB", (ROOT / "README.md").read_text()
    )
    assert said is not None and abs(own / int(said[1]) - 1) < 0.15, f"{own:.0f} MB"
    if find_spec("llvmlite") is not None and sys.platform == "linux":
        files = [file.locate() for file in metadata.files("llvmlite") or ()]
        whole = own + on_disk([Path(file).stat().st_size for file in files if Path(file).exists()])
        assert abs(whole / int(said[2]) - 1) < 0.3, f"{whole:.0f} MB"


def test_the_two_tours_run_the_same_programs():
    english, chinese = (
        re.findall(r"^(?:>>>|\.\.\.) .*$", (ROOT / "docs" / name).read_text(encoding="utf-8"), re.MULTILINE)
        for name in ("tour.md", "tour.zh.md")
    )
    assert english == chinese


def test_every_note_the_code_cites_exists():
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        cited |= set(re.findall(r"[Ss]ee note: (\w+)", path.read_text(encoding="utf-8")))
    assert cited, "no note is cited"
    missing = sorted(name for name in cited if not (ROOT / "docs" / "notes" / f"{name}.md").is_file())
    assert not missing, f"cited, but not in docs/notes: {missing}"


def test_every_link_between_documents_leads_somewhere():
    broken = []
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            if not (path.parent / target).exists() and not target.startswith("api/"):
                broken.append(f"{path.name}: {target}")
    assert not broken


FOLDERS = ("src", "tests", "benchmarks", "docs", "examples", ".ci")
A_FILE = re.compile(r"\.(py|pyi|md|txt|toml|yml|json|js)$")


@functools.cache
def known_paths():
    """Every path of the repository, and what is left of it where a text leaves out its first or last folders."""
    found = set()
    for path in [*ROOT.iterdir(), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]:
        if "__pycache__" not in path.parts:
            parts = path.relative_to(ROOT).parts
            found |= {"/".join(parts[start:]) for start in range(len(parts))}
    return found


def paths_named(text):
    """What stands in backticks and looks like a path: a file's name, or names with slashes that begin with a folder."""
    for name in re.findall(r"`([\w.*<>/-]+)`", text):
        if A_FILE.search(name) or ("/" in name and name.split("/")[0] in known_paths()):
            yield name


def exists(name):
    """Whether there is such a path; `<topic>` and `*` stand for any name."""
    pattern = re.sub(r"<\w+>", "*", name.rstrip("/"))
    return pattern in known_paths() or ("*" in pattern and bool(fnmatch.filter(known_paths(), pattern)))


def test_every_path_that_a_document_names_exists():
    pages = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]  # which tells of files as they were
    named = {(path.name, name) for path in pages for name in paths_named(path.read_text(encoding="utf-8"))}
    assert len(named) > 100
    assert not sorted(pair for pair in named if not exists(pair[1]))


def test_a_path_that_moved_is_seen():
    text = "`kernels/jit/small/choose.py`, `language/expression.py`, `ops/<topic>/` and `kernels/choose.py`, `ops/no/`"
    assert [name for name in paths_named(text) if not exists(name)] == ["kernels/choose.py", "ops/no/"]


def test_the_demo_installs_the_compiler():
    recipes = (ROOT / "Makefile").read_text(encoding="utf-8")
    (needs,) = re.findall(r"^demo: (.*?) ##", recipes, re.MULTILINE)
    recipe = recipes[recipes.index(f"\n{needs}:") :]
    assert "install --editable '.[fast]'" in recipe[: recipe.index("\n\n")]
