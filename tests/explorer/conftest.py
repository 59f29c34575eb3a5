"""A browser for the tests of the page; without Chromium they are skipped and say what is missing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import pullback
from tests.explorer.browser import CHROMIUM, DRIVER, MISSING, Browser


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a worker."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip(MISSING)
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def page(chromium: Browser, tmp_path: Path):
    """A function that explores a tensor and opens the page; in the end nothing may stand in the console."""

    def show(loss, width: int = 1280, height: int = 800, dark: bool = False, **options) -> Browser:
        path = tmp_path / "graph.html"
        pullback.explore(loss, path, **options)
        chromium.complaints()
        chromium.open(path, width, height, dark)
        chromium.wait("window.explorer && explorer.perf.firstPaint")
        return chromium

    yield show
    assert chromium.complaints() == []
