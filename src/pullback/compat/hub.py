"""`torch.hub`: where downloaded weights lie, and loading them. Models themselves are not fetched from repositories."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import pullback

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
DEFAULT_CACHE_DIR = "~/.cache"
chosen: list[str] = []
"""The folder `set_dir` was given, if any."""


def _get_torch_home() -> str:
    """The folder of everything torch keeps for a user."""
    fallback = os.path.join(os.getenv("XDG_CACHE_HOME", DEFAULT_CACHE_DIR), "torch")
    return os.path.expanduser(os.getenv("TORCH_HOME", fallback))


def get_dir() -> str:
    """The folder of downloaded models and weights."""
    return chosen[-1] if chosen else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Use another folder."""
    chosen[:] = [os.path.expanduser(d)]


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch a file, which is there as a whole or not at all.

    Args:
        url: where it is.
        dst: where it goes.
        hash_prefix: how its SHA-256 has to begin.
        progress: not shown here.
    """
    digest = hashlib.sha256()
    folder = os.path.dirname(os.path.abspath(os.path.expanduser(dst)))
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        try:
            with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as answer:
                while block := answer.read(1 << 17):
                    file.write(block)
                    digest.update(block)
            file.close()
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            shutil.move(file.name, dst)
        finally:
            if os.path.exists(file.name):
                os.remove(file.name)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """The weights at an address, fetched once and kept in `get_dir()`."""
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stdout.write(f'Downloading: "{url}" to {path}\n')
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match[1] if match else None, progress)
    return pullback.load(path, map_location=map_location, weights_only=weights_only)
