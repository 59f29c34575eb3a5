"""What mkdocs calls while it builds the site: the generated pages and their place in the navigation."""

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from docs.tools import api, pictures  # noqa: E402

PAGES: dict[str, tuple[str, str]] = {}


def on_config(config: Any) -> Any:
    """Make the generated pages, and list them and the notes in the navigation."""
    PAGES.update(api.pages())
    notes = [{title_of(path): f"notes/{path.name}"} for path in sorted((ROOT / "docs" / "notes").glob("*.md"))]
    config.nav += [{"Notes": notes}, {"Reference": [{title: path} for path, (title, _) in PAGES.items()]}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages, and for each picture of a graph the page in which it can be explored."""
    from mkdocs.structure.files import File

    for path, (_, text) in PAGES.items():
        files.append(File.generated(config, path, content=text))
    for page in sorted((ROOT / "docs").glob("*.md")):
        for path, graph in pictures.explored(page):
            if files.get_file_from_path(live := f"explore/{path.stem}.html") is None:
                files.append(File.generated(config, live, content=graph.html()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Give pictures of graphs a link to the explorer.

    Links that leave docs/ lead to files of the repository, which the site does not hold: only their names stay.
    """
    word = "在浏览器中探索" if page.file.src_uri.endswith(".zh.md") else "Explore it"
    link = lambda found: f"{found[0]}\n\n[{word}](explore/{Path(found[2]).stem}.html){{ target=_blank }}"
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"`\1`", pictures.PICTURE.sub(link, markdown))


def title_of(path: Path) -> str:
    """The first heading of a page."""
    return path.read_text(encoding="utf-8").lstrip().split("\n")[0].lstrip("# ").replace("`", "")
