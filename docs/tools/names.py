"""The page about every public name of torch: which work here, which refuse and why, which are missing.

`python -m docs.tools.names` writes docs/names.md; with `--check` it only says whether the page is up to date, and with
`--json` it prints what the page is made of. Torch's names are read from the installed torch, in a process of its own,
because here `import torch` has to find pullback: a name is looked up as a package finds it that says `import torch`.
"""

from __future__ import annotations

import json
import pkgutil
import re
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from inspect import getattr_static
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "names.md"
CLASSES = (
    "torch.Tensor", "torch.Generator", "torch.Size", "torch.device", "torch.dtype", "torch.UntypedStorage",
    "torch.TypedStorage", "torch.nn.Module", "torch.nn.ModuleList", "torch.nn.ModuleDict",
    "torch.nn.ParameterList", "torch.nn.ParameterDict", "torch.nn.Sequential", "torch.optim.Optimizer",
    "torch.optim.lr_scheduler.LRScheduler", "torch.utils.data.DataLoader", "torch.utils.data.Dataset",
    "torch.autograd.Function", "torch.autograd.function.FunctionCtx", "torch.autograd.graph.Node",
    "torch.profiler.profile", "torch.amp.GradScaler", "torch.nn.utils.rnn.PackedSequence",
)  # fmt: skip
"""The classes whose members are names, too; those of torch.distributions are added."""
CONSTANTS = ("dtype", "layout", "memory_format", "qscheme")
"""Classes of torch whose instances are names of its modules: `torch.float32`."""

# ------------------------------------------------------------------ torch's names


def modules(package: Any) -> Iterator[ModuleType]:
    """The public modules below a package; those that need a package which is not installed are left out."""
    yield package
    for found in pkgutil.iter_modules(getattr(package, "__path__", None) or (), f"{package.__name__}."):
        if found.name.rpartition(".")[2].startswith("_") or found.name.endswith(".__main__"):
            continue
        try:
            module = import_module(found.name)
        except (ImportError, AssertionError, SystemExit):
            continue
        yield from modules(module)


def home(value: Any) -> str:
    """The public module something belongs to: `torch.testing` for what is written in `torch.testing._comparison`."""
    parts = (getattr(value, "__module__", None) or "").split(".")
    private = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[:private])


def public(module: ModuleType) -> list[str]:
    """The public names of a module: what it says, what is written in it, the constants it holds."""
    kinds = tuple(getattr(sys.modules["torch"], kind) for kind in CONSTANTS)
    said = set(getattr(module, "__all__", ()))
    for name, value in list(vars(module).items()):
        # What is compiled says no module; only the helpers that many modules import belong to torch._C itself.
        source = getattr(getattr(value, "__self__", None), "__name__", "") if type(value) is BuiltinFunctionType else ""
        compiled = source.startswith(("torch._C.", "_VariableFunctions"))
        owned = not isinstance(value, (ModuleType, TypeVar)) and home(value) == module.__name__
        if owned or compiled or isinstance(value, kinds):
            said.add(name)
    return sorted(name for name in said if not name.startswith("_") and hasattr(module, name))


def members(path: str) -> list[str]:
    """The public names of a class."""
    found: Any = reduce(getattr, path.split(".")[1:], sys.modules["torch"])
    return sorted(name for name in dir(found) if not name.startswith("_"))


def of_torch() -> dict[str, list[str]]:
    """The public names of every public module of torch, then those of its classes.

    What torch itself only raises for, a method that subclasses write, is marked with a `!`: refusing is what it does.
    """
    from pullback.compat.refusals import only_raises

    warnings.simplefilter("ignore")
    torch = import_module("torch")
    names = {module.__name__: public(module) for module in modules(torch)}
    distributions = import_module("torch.distributions")
    classes = [f"torch.distributions.{name}" for name in distributions.__all__]
    classes = [path for path in classes if isinstance(getattr(distributions, path.rpartition(".")[2]), type)]
    names |= {path: members(path) for path in (*CLASSES, *classes)}
    for path, found in names.items():
        own = sys.modules.get(path) or reduce(getattr, path.split(".")[1:], torch)
        found[:] = [f"{name}!" if only_raises(getattr_static(own, name, None)) is not None else name for name in found]
    return names


# ------------------------------------------------------------------ what they are here


def sort(names: dict[str, list[str]]) -> dict[str, dict[str, str | None]]:
    """Each name of each module: None if it works, the reason if it refuses, MISSING if it is not there."""
    from pullback.compat import install

    warnings.simplefilter("ignore")
    install()
    torch = import_module("torch")
    answer: dict[str, dict[str, str | None]] = {}
    for path, entries in names.items():
        try:
            own = import_module(path)
        except ModuleNotFoundError:
            own = reduce(lambda found, part: getattr(found, part, None), path.split(".")[1:], torch)
        found = {name: look(own, path, name.rstrip("!")) for name in entries}
        answer[path] = {
            name.rstrip("!"): None if name[-1] == "!" and why != MISSING else why for name, why in found.items()
        }
    return answer


MISSING = "missing"


def look(own: Any, path: str, name: str) -> str | None:
    """What one name is here."""
    from pullback.compat.refusals import refusal

    try:
        value = getattr_static(own, name) if isinstance(own, type) else getattr(own, name)
    except AttributeError:
        return MISSING if not hasattr(own, name) else None
    return refusal(value, f"{path}.{name}")


# ------------------------------------------------------------------ the page

HEAD = """# Every public name of torch
Made by `python -m docs.tools.names` from the installed torch {version}; a test checks that it is up to date. For every
public module: what its `__all__` lists, the functions and classes written in it, its constants; then the members of the
classes that programs use and derive from. A name is looked up as a package finds it that says `import torch`, with
`pullback.compat.install` or `pullback run`.

* **works**: it is here. Whether it does what it does in torch is compared elsewhere: see [coverage](coverage.md).
* **refuses**: it can be named, imported, derived from and annotated with; using it raises `NotImplementedError`, or
  torch's own error, with the reason.
* **missing**: `AttributeError`.
"""


def table(title: str, rows: list[tuple[str, list[str | None]]]) -> str:
    """Counts, a row each and their sum."""
    lines = [f"| {title} | names | works | refuses | missing |", "|---|--:|--:|--:|--:|"]
    for name, found in [*rows, ("**all**", [answer for _, answers in rows for answer in answers])]:
        works, missing = found.count(None), found.count(MISSING)
        lines.append(f"| {name} | {len(found)} | {works} | {len(found) - works - missing or ''} | {missing or ''} |")
    return "\n".join(lines) + "\n"


def grouped(answers: dict[str, dict[str, str | None]]) -> dict[str, list[str]]:
    """The names that refuse, by reason; where everything below a module refuses for one reason, that module."""
    groups: dict[str, list[str]] = {}
    below: dict[str, list[str | None]] = {}
    for path, found in answers.items():
        parts = path.split(".")
        for count in range(1, len(parts) + 1):
            below.setdefault(".".join(parts[:count]), []).extend(found.values())
    whole = {path for path, found in below.items() if len(found) > 1 and len(set(found)) == 1}
    for path, found in answers.items():
        parts = path.split(".")
        above = next((top for count in range(1, len(parts)) if (top := ".".join(parts[: count + 1])) in whole), None)
        if above is not None and found and (why := below[above][0]) not in (None, MISSING):
            entry = f"{above}.* ({len(below[above])})"
            if entry not in groups.setdefault(str(why), []):
                groups[str(why)].append(entry)
            continue
        for name, answer in found.items():
            if answer is not None and answer != MISSING:
                groups.setdefault(of_any(answer, name), []).append(f"{path}.{name}")
    return groups


def of_any(reason: str, name: str) -> str:
    """A reason as several names can share it."""
    said = " ".join(reason.replace(f"Tensor.{name}: ", "").replace(f"{name}: ", "").split())
    return re.sub(rf"\b{name}\b", "...", said)


def page(answers: dict[str, dict[str, str | None]], version: str) -> str:
    """The whole page."""
    classes = [path for path in answers if path.rpartition(".")[2][:1].isupper() or path in CLASSES]
    spaces: dict[str, list[str | None]] = {}
    for path, found in answers.items():
        if path not in classes:
            spaces.setdefault(".".join(path.split(".")[:2]), []).extend(found.values())
    text = [HEAD.format(version=version), "## Modules\nEach with the modules below it.\n"]
    text.append(table("module", [(name, found) for name, found in sorted(spaces.items()) if found]))
    text.append("\n## Members of classes\n")
    rows: dict[str, list[str | None]] = {}
    for path in classes:
        several = "the classes of torch.distributions" if path.startswith("torch.distributions.") else path
        rows.setdefault(several, []).extend(answers[path].values())
    text.append(table("class", list(rows.items())))
    missing = [f"{path}.{name}" for path, found in answers.items() for name in found if found[name] == MISSING]
    text.append("\n## Missing\n" + ("\n".join(f"* `{name}`" for name in missing) or "None.") + "\n")
    text.append("\n## What refuses, by reason\n")
    for why, names in sorted(grouped(answers).items(), key=lambda item: (-len(item[1]), item[0])):
        listed = ", ".join(f"`{name.removeprefix('torch.')}`" for name in names)
        text.append(f"**{why}**\n\n{textwrap.fill(listed, 140, break_long_words=False, break_on_hyphens=False)}\n")
    return "\n".join(text).rstrip("\n") + "\n"


def main(words: list[str]) -> int:
    """Write the page, or say whether it is up to date."""
    sys.path.insert(0, str(ROOT / "src"))
    if words == ["--torch"]:
        print(json.dumps(of_torch()), file=sys.__stdout__)
        return 0
    listing = [sys.executable, "-m", "docs.tools.names", "--torch"]
    said = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8").stdout
    answers = sort(json.loads(said.strip().split("\n")[-1]))
    if words == ["--json"]:
        print(json.dumps(answers))
        return 0
    made = page(answers, "2.13")
    if words == ["--check"]:
        return int(made != PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
