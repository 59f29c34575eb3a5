"""How quickly the explorer's page shows 20,000 nodes, in a real browser: `python -m benchmarks.explorer`."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import pullback  # noqa: E402
from tests.explorer import programs  # noqa: E402
from tests.explorer.browser import CHROMIUM, DRIVER, MISSING, Browser  # noqa: E402

FRAMES = """new Promise(done => {
  let left = 90, begun;
  const tick = time => {
    begun = begun || time;
    if (!left--) { done(90000 / (time - begun)); return; }
    explorer.seek(explorer.state().at + 1);
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
})"""
"""Ninety steps of the player, one in each frame: the frames per second."""


def main() -> int:
    """Print a line for each graph."""
    if CHROMIUM is None or DRIVER is None:
        print(MISSING)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Path(folder))
        for program in (programs.deep, programs.wide):
            path = Path(folder) / "graph.html"
            pullback.explore(program(), path)
            browser.open(path)
            browser.wait("window.explorer && explorer.perf.firstPaint")
            painted, folded = browser.run("explorer.perf.firstPaint"), browser.run(FRAMES)
            browser.run("explorer.setMode('all')")
            arranged, unfolded = browser.run("explorer.perf.layout"), browser.run(FRAMES)
            print(
                f"{program.__name__:<6} painted after {painted:.0f} ms (budget 2000), arranged in {arranged:.0f} ms "
                f"(budget 2000), stepped at {folded:.0f} and {unfolded:.0f} frames per second (budget 30)"
            )
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
