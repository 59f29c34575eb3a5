"""The page of `make demo` and the charts of the examples."""

import importlib.util
import re
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest

import pullback as torch
from tests.explorer import programs


@pytest.fixture
def support(root):
    """What the examples share."""
    spec = importlib.util.spec_from_file_location("examples_support", root / "examples" / "support.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(picture):
    return [text.text for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def test_a_chart_names_its_axes_and_has_round_ticks(support):
    losses = [2.3 * 0.98**i for i in range(275)]
    shown = texts(support.side_by_side(support.lines("training loss", ("loss", losses), log=True)))
    assert shown[0] == "training loss" and "step" in shown and "loss (logarithmic)" in shown
    assert {"0", "50", "100", "250"} <= set(shown) and {"0.01", "0.1", "1"} <= set(shown)
    shown = texts(
        support.side_by_side(support.lines("<u>", ("a", [(0, 0.1), (1, 0.95)]), ("b", [(0, 0.2)]), x="x", y="u"))
    )
    assert shown[0] == "<u>" and {"x", "u", "a", "b", "0.2", "0.4", "0.6", "0.8"} <= set(shown)


@pytest.mark.parametrize("values", [[1.0], [3.0, 3.0], [1e-30, 1.0], [0.997, 0.999], [-5.0, 5000.0]])
@pytest.mark.parametrize("log", [False, True])
def test_a_chart_of_any_values_has_a_few_ticks(support, values, log):
    if min(values) <= 0 and log:
        pytest.skip("has no logarithm")
    content = support.lines("t", ("c", values), log=log).svg
    beside = re.findall(r'text-anchor="end">([^<]*)<', content)
    assert 1 <= len(beside) <= 9 and len(set(beside)) == len(beside)


def pictures(support):
    """One of each kind."""
    losses = [2.3 * 0.98**i for i in range(275)]
    spirals = ("truth", [(0, 0.1), (1, 0.95)]), ("learnt", [(0, 0.2), (1, 0.9)])
    return (
        support.lines("training loss", ("loss", losses), log=True),
        support.lines("the <spiral>", *spirals, x="time", y="x"),
        support.images("digits", np.linspace(0, 1, 3 * 16).reshape(3, 4, 4), columns=2),
    )


def test_matplotlib_draws_pictures_where_it_is_installed(support, tmp_path):
    pytest.importorskip("matplotlib", reason="without matplotlib the examples draw by themselves")
    for name in ("a.svg", "b.svg", "a.png"):
        support.write(tmp_path / name, *pictures(support))
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    shown = texts(drawn)
    assert {"training loss", "step", "loss (logarithmic)", "the <spiral>", "time", "x", "truth", "learnt"} <= set(shown)
    assert {"0", "50", "250", "0.2", "0.8"} <= set(shown) and "prefers-color-scheme:dark" in drawn
    assert (tmp_path / "b.svg").read_text(encoding="utf-8") == drawn


def test_without_matplotlib_the_same_call_draws_by_itself(support, tmp_path, monkeypatch):
    monkeypatch.setattr(support, "find_spec", lambda name: None)
    support.write(tmp_path / "a.svg", *pictures(support))
    assert (tmp_path / "a.svg").read_text() == support.side_by_side(*pictures(support))
    with pytest.raises(SystemExit, match="pip install matplotlib"):
        support.write(tmp_path / "a.png", *pictures(support))


def test_nobody_imports_matplotlib_before_a_picture_is_asked_for(root, run_python):
    said = run_python(
        f"import sys; sys.path.insert(0, {str(root / 'examples')!r}); import support, pullback, pullback.nn\n"
        "support.lines('t', ('c', [1.0, 2.0])); print([name for name in sys.modules if 'matplotlib' in name])"
    )
    assert said.strip() == "[]"


@pytest.mark.browser
def test_the_page_of_the_demo_is_dark_where_the_reader_is(chromium, root, support, tmp_path):
    shutil.copy(root / "examples" / "data" / "demo.html", tmp_path / "index.html")
    picture = support.side_by_side(support.lines("loss", ("loss", [3.0, 2.0, 1.0])))
    (tmp_path / "losses.svg").write_text(picture)
    torch.explore(programs.multilayer(), tmp_path / "graph.html")
    brightness = {}
    for dark in (False, True):
        chromium.open(tmp_path / "index.html", dark=dark)
        paper = "getComputedStyle(document.documentElement).backgroundColor"
        ink = "getComputedStyle(document.querySelector('p')).color"
        for name, colour in (("page", paper), ("ink", ink)):
            brightness[name, dark] = sum(map(int, re.findall(r"\d+", chromium.run(colour))))
        chromium.open(tmp_path / "losses.svg", dark=dark)
        colour = chromium.run("getComputedStyle(document.querySelector('.paper')).fill")
        brightness["chart", dark] = sum(map(int, re.findall(r"\d+", colour)))
    assert brightness["page", False] > 700 and brightness["chart", False] > 700 and brightness["ink", False] < 200
    assert brightness["page", True] < 150 and brightness["chart", True] < 150 and brightness["ink", True] > 500
