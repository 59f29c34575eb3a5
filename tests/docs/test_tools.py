"""What builds the pages: pictures of graphs, the page of benchmarks, and the site itself."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.tools import benchmark_page, pictures

ROOT = Path(__file__).parents[2]
TOURS = [ROOT / "docs" / name for name in ("tour.md", "tour.zh.md")]


@pytest.mark.parametrize("page", TOURS, ids=lambda page: page.name)
def test_the_pictures_of_a_tour_show_the_graphs_of_its_examples(page):
    drawn = list(pictures.explored(page))
    assert len(drawn) == 3
    for path, graph in drawn:
        names = {entry.name for entry in graph.graph.entries if entry.kind != "leaf"}
        text = path.read_text(encoding="utf-8")
        assert names and all(name in text for name in names), f"draw {path.name} anew: python docs/tools/pictures.py"


def row(section, name, torch, peer):
    return {"section": section, "name": name, "unit": "us", "torch": torch, "peer": peer, "value": None, "error": ""}


def figures(quick=False, sections=tuple(benchmark_page.USUAL)):
    rows = [row(section, f"{section} {i}", 2.0, 0.5 + i / 20) for section in sections for i in range(3)]
    rows += [row("ops", f"op {i}", 1.0, 0.2 + i / 20) for i in range(40)]
    rows.append(row("ops", "geometric mean of the ratios", None, None) | {"unit": "", "value": 0.5})
    return {"torch": "2.13.0", "python": "3.11.0", "quick": quick, "rows": rows}


def test_the_page_of_benchmarks_has_a_table_and_a_picture_for_each_section(tmp_path):
    page = benchmark_page.page(figures(), tmp_path)
    assert "| overhead 0 | us | 2 | 0.5 | 0.25 |" in page
    for section in benchmark_page.USUAL:
        assert f"(pictures/bench-{section}.svg)" in page
        assert (tmp_path / f"bench-{section}.svg").read_text().count("<text") > 3
    assert "| geometric mean of the ratios |  |  |  | 0.50 |" in page
    assert "20 of 43 take no more time" in (tmp_path / "bench-ops.svg").read_text()


def test_a_full_run_without_a_gpu_writes_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark_page, "ROOT", tmp_path)
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    (tmp_path / "figures.json").write_text(json.dumps(figures()))
    benchmark_page.main(str(tmp_path / "figures.json"))
    assert "is written" in capsys.readouterr().out and (tmp_path / "docs" / "benchmarks.md").exists()


@pytest.mark.parametrize("partial", [figures(quick=True), figures(sections=("overhead",))])
def test_only_a_full_run_writes_the_page(partial, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark_page, "ROOT", tmp_path)
    (tmp_path / "figures.json").write_text(json.dumps(partial))
    benchmark_page.main(str(tmp_path / "figures.json"))
    assert "left as it was" in capsys.readouterr().out and not (tmp_path / "docs").exists()


def on_a_device(ratio):
    rows = [row("cuda", "mm of 1024", 2.0, 2.0 * ratio), row("cuda", "first use", 0.1, 0.3) | {"value": 0.3}]
    rows = [r | {"budget": 1.0, "measured": ratio, "within": ratio <= 1.0, "value_unit": "ms"} for r in rows]
    rows[0]["value_unit"] = ""
    return {"torch": "2.11.0 on a device", "python": "3.12.3", "quick": False, "rows": rows}


def test_figures_of_a_device_replace_the_section_of_the_device_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark_page, "ROOT", tmp_path)
    monkeypatch.setattr(benchmark_page, "reason", lambda name: "tiles are few" if name.startswith("mm") else "")
    page = tmp_path / "docs" / "benchmarks.md"
    (tmp_path / "docs" / "pictures").mkdir(parents=True)
    for ratio, why in ((0.9, ""), (1.5, "tiles are few")):
        for given in (figures(), on_a_device(ratio)):
            (tmp_path / "figures.json").write_text(json.dumps(given))
            benchmark_page.main(str(tmp_path / "figures.json"))
        text = page.read_text()
        assert "| overhead 0 | us | 2 | 0.5 | 0.25 |" in text and text.count(benchmark_page.DEVICE) == 1
        assert f"| mm of 1024 | us | 2 | {2 * ratio:.3g} | {ratio:.2f} | 1 | {why} |" in text
        assert "| first use | us | 0.1 | 0.3 |  | 1 ms |  |" in text
    (tmp_path / "figures.json").write_text(json.dumps({**figures(), "torch": "2.14"}))
    benchmark_page.main(str(tmp_path / "figures.json"))
    assert "beside torch 2.14 in" in page.read_text() and page.read_text().endswith(text.partition("## On a")[2])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the extra `docs` is not installed")
def test_the_site_builds_without_a_warning_and_asks_nothing_of_the_network(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 40 and (tmp_path / "explore" / "tour-1.html").exists()
    for page in pages:
        loaded = re.findall(
            r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:[^"]+)"', page.read_text(encoding="utf-8")
        )
        assert not loaded, f"{page.name} loads {loaded}"
