"""The page of `make demo` and the charts of the examples."""

import importlib.util
import re
import shutil
from xml.etree import ElementTree

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
    _, _, content = support.lines("t", ("c", values), log=log)
    beside = re.findall(r'text-anchor="end">([^<]*)<', content)
    assert 1 <= len(beside) <= 9 and len(set(beside)) == len(beside)


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
