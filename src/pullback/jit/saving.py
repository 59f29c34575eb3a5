"""Scripted modules in files: the Python module is kept and restored. TorchScript's own files are not read."""

from __future__ import annotations

import builtins
import os
import zipfile
from typing import Any

import pullback
from pullback.jit import scripting
from pullback.jit.scripting import RecursiveScriptModule, deprecated, refuse
from pullback.jit.tracing import TopLevelTracedModule

FORMAT = "pullback.jit 1"
OTHER = "Please switch to `torch.export`."


def save_module(module: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write the Python module of a scripted one, and other files, to a file."""
    original = module._original if builtins.isinstance(module, RecursiveScriptModule) else module
    traced = builtins.isinstance(module, TopLevelTracedModule)
    content = {"format": FORMAT, "module": original, "traced": traced, "extra_files": dict(_extra_files or {})}
    pullback.save(content, f)


scripting.save_module = save_module


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a scripted module to a file, by path or open for writing. `torch.jit.load` of pullback reads it."""
    deprecated("save", OTHER)
    m.save(f, _extra_files=_extra_files)


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False
) -> Any:
    """Read a module that `save` of pullback wrote. Its classes must be importable, as for any pickle.

    The file is a pickle, which can run anything: load files only that you trust.
    """
    deprecated("load", OTHER)
    if builtins.isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    if is_torchscript(f):
        refuse(
            "reading a TorchScript archive",
            "in torch, save the state_dict with torch.save, and load it into the module in Python",
        )
    content = pullback.load(f, map_location=map_location, weights_only=False)
    if not builtins.isinstance(content, dict) or content.get("format") != FORMAT:
        raise RuntimeError("the file was not written by torch.jit.save of pullback; use torch.load")
    for name in list(_extra_files or ()):
        if name in content["extra_files"]:
            _extra_files[name] = content["extra_files"][name]  # type: ignore[index]
    return (TopLevelTracedModule if content["traced"] else RecursiveScriptModule)(content["module"])


def is_torchscript(f: Any) -> bool:
    """Whether a file is one that torch.jit.save of torch wrote."""
    at = None if builtins.isinstance(f, (str, os.PathLike)) else f.tell()
    names = []
    if zipfile.is_zipfile(f):
        with zipfile.ZipFile(f) as archive:
            names = archive.namelist()
    if at is not None:
        f.seek(at)
    return any(["/code/" in name or name.endswith("/constants.pkl") for name in names])


def jit_module_from_flatbuffer(f: Any) -> Any:
    """Not available: it reads TorchScript's code."""
    refuse("torch.jit.jit_module_from_flatbuffer", "use torch.jit.save and torch.jit.load")


def save_jit_module_to_flatbuffer(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Not available: it writes TorchScript's code."""
    refuse("torch.jit.save_jit_module_to_flatbuffer", "use torch.jit.save and torch.jit.load")
