"""Graph modules written to files: their code with the imports it needs.

Files name torch, as those torch writes do; reading them, its names mean ours.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pullback as torch
from pullback.fx.namespace import _custom_builtins
from pullback.fx.naming import leads_to, module_of

PRINTABLE = ("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
"""Modules of torch.nn that are made anew from what they print."""


def _format_import_statement(name: str, obj: Any) -> str:
    """The statement that makes a global name."""
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    if leads_to(name) is not None:
        return "import torch"
    attribute = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or getattr(obj, "_name", None)
    module = {"_operator": "operator"}.get(module_of(obj), module_of(obj))
    return f"from {module} import {attribute} as {name}"


def _format_import_block(globals: dict[str, Any]) -> str:
    """The statements that make all global names of generated code."""
    return "\n".join(sorted({_format_import_statement(name, obj) for name, obj in globals.items()}))


def in_our_names(imports: str) -> str:
    """The same statements, where torch means pullback."""
    imports = re.sub(r"^import torch$", "import pullback as torch", imports, flags=re.MULTILINE)
    return re.sub(r"^(from|import) torch\b", r"\1 pullback", imports, flags=re.MULTILINE)


def file_of_module(module: Any, folder: Path, name: str) -> tuple[str, list[str]]:
    """The code of a module that makes and loads a graph module, and the children that are in pickles beside it."""
    imports = "\n".join([known.import_str for known in _custom_builtins.values()])
    lines = [
        "import torch",
        imports,
        "from torch.nn import *",
        f"class {name}(torch.nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
    ]
    pickled = []
    for child_name, child in module.named_children():
        made, told = repr(child), ""
        if type(child) not in [getattr(torch.nn, kind) for kind in PRINTABLE]:
            torch.save(child, folder / f"{child_name}.pt")
            pickled.append(child_name)
            told = " # " + made.replace("\r", " ").replace("\n", " ")
            made = f"torch.load(r'{folder / child_name}.pt', weights_only=False)"
        lines.append(f"        setattr(self, '{child_name}', {made}){told}")
    for buffer_name, buffer in module._buffers.items():
        if buffer is not None:
            made = f"torch.empty({list(buffer.shape)}, dtype={buffer.dtype})"
            lines.append(f"        self.register_buffer('{buffer_name}', {made})")
    for param_name, param in module._parameters.items():
        if param is not None:
            made = f"torch.nn.Parameter(torch.empty({list(param.shape)}, dtype={param.dtype}))"
            lines.append(f"        setattr(self, '{param_name}', {made})")
    lines.append(f"        self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
    code = module.code.replace("\n", "\n    ")
    return "\n" + in_our_names("\n".join(lines)) + f"\n{code}\n", pickled
