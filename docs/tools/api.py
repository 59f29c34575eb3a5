"""The pages about every public name, made from the library: signatures, texts, derivatives, links to torch's pages."""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pullback
from docs.tools.texts import first_sentence, markdown
from pullback import ops
from pullback._op.declare import Op, spaces
from pullback.compat.missing import torch_names
from pullback.insight.explorer.formula import of_op

SRC = Path(pullback.__file__).parent
TORCH = "https://docs.pytorch.org/docs/stable"
SPACES = ("nn.functional", "linalg", "fft", "special", "signal.windows")
MODULES = {
    "nn": "layers, losses and containers",
    "nn.init": "how parameters begin",
    "nn.utils": "clipping, flattening, parametrizations, packed sequences",
    "optim": "optimizers",
    "optim.lr_scheduler": "learning rates over time",
    "autograd": "backward, grad, custom functions, grad modes, anomaly mode",
    "autograd.functional": "Jacobians, Hessians and products with them",
    "autograd.graph": "hooks on the graph and on what it saves",
    "autograd.forward_ad": "derivatives forwards",
    "autograd.profiler": "measuring a block",
    "func": "vmap, grad, jacrev, jacfwd and friends: functions of functions",
    "utils.data": "datasets and loaders",
    "utils.checkpoint": "computing again instead of saving",
    "distributions": "distributions, transforms and divergences",
    "profiler": "measuring a run",
    "random": "generators and their state",
    "serialization": "files of torch and safetensors",
    "masked": "tensors with elements that do not count",
    "models": "networks ready to train",
    "amp": "mixed precision",
    "compat": "programs that say `import torch`",
    "testing": "comparing tensors",
    "array_api": "the Python array API standard",
}
OWN = {"compat", "array_api", "models"}
"""Modules that torch has not, or has elsewhere."""
PAGE = 90
"""About so many functions make a page."""


class Stubs:
    """Signatures as the type stubs have them, because ops are functions made while the program runs."""

    def __init__(self) -> None:
        self.of = {path.stem: dict(self.read(path)) for path in sorted((SRC / "_stubs").glob("*.pyi"))}

    @staticmethod
    def read(path: Path) -> Iterator[tuple[str, str]]:
        """The name and the signatures of each function, methods of the one class included."""
        found: dict[str, list[str]] = {}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                text = f"{node.name}({ast.unparse(node.args)}){result}"
                found.setdefault(node.name, []).append(text.replace("builtins.", ""))
        for name, texts in found.items():
            yield name, "\n".join(dict.fromkeys(texts))


class Plain:
    """An annotation that prints without quotes."""

    def __new__(cls, annotation: Any) -> Any:
        return super().__new__(cls) if isinstance(annotation, str) else annotation

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def __repr__(self) -> str:
        return str(self.annotation)


def signature(name: str, value: Any, stubs: dict[str, str]) -> str:
    """How a name is called."""
    if name in stubs:
        return stubs[name]
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    parameters = [p.replace(annotation=Plain(p.annotation)) for p in found.parameters.values() if p.name != "self"]
    return name + str(found.replace(parameters=parameters, return_annotation=Plain(found.return_annotation)))


def home(value: Any) -> tuple[Path, int] | None:
    """The file and line of what runs."""
    declared = getattr(value, "op", None)
    function = getattr(declared, "declared", None) or getattr(declared, "body", None) or value
    try:
        path = Path(inspect.getsourcefile(inspect.unwrap(function)) or "")
        return (path, inspect.getsourcelines(function)[1]) if path.is_relative_to(SRC) else None
    except (TypeError, OSError):
        return None


def module_of(value: Any) -> str:
    """The module a public function was declared in."""
    declared = getattr(value, "op", None)
    if isinstance(declared, Op):
        return str(declared.module["__name__"])
    return str(getattr(getattr(declared, "body", value), "__module__", ""))


def public(value: Any) -> bool:
    """Whether a name deserves an entry: it does something."""
    return callable(value) and module_of(value) != "pullback.ops.out_of_scope"


def torch_page(full: str) -> str:
    """Where torch's documentation has a name; nowhere if it is no name of torch's."""
    space, _, name = full.rpartition(".")
    known = torch_names().get(space)
    if space.partition(".")[0] != "torch" or (known is not None and name not in known):
        return ""
    if space in ("torch.special", "torch.signal.windows", "torch.nn.init", "torch.distributions", "torch.utils.data"):
        page = space.removeprefix("torch.").replace("signal.windows", "signal").replace("utils.data", "data")
        return f"{TORCH}/{page}.html#{full}"
    return f"{TORCH}/generated/{full}.html"


def entry(full: str, value: Any, stubs: dict[str, str]) -> str:
    """One name: heading, signature, text, derivatives, links."""
    name = full.rpartition(".")[2]
    parts = [f"### `{full}` {{ #{full} }}\n", f"```python\n{signature(name, value, stubs)}\n```\n"]
    parts.append(markdown(inspect.getdoc(value) or ""))
    if inspect.isclass(value):
        parts.append(methods(value))
    declared = getattr(value, "op", None)
    if isinstance(declared, Op) and declared.differentiable:
        formulas = [(name, text) for name, text in of_op(declared) if "\n" not in text]
        node = f" by `{declared.node_name}`" if declared.node_name else ""
        if formulas:
            parts.append(f"Derivatives{node}:\n")
            parts.append("```python\n" + "\n".join(f"{name} = {text}" for name, text in formulas) + "\n```\n")
    where = home(value)
    links = [f"[in torch]({torch_page(full)})"] if torch_page(full) else []
    if where:
        links.append(f"<small>`{where[0].relative_to(SRC).as_posix()}`, line {where[1]}</small>")
    return "\n".join([*parts, " · ".join(links), ""])


def methods(cls: type) -> str:
    """The methods a class defines itself."""
    skip = {"forward", "extra_repr", "reset_parameters"}
    lines = []
    for name, value in vars(cls).items():
        target = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        text = first_sentence(inspect.getdoc(target) or "")
        if (
            not name.startswith("_")
            and name not in skip
            and text
            and (callable(target) or isinstance(target, property))
        ):
            call = name if isinstance(target, property) else signature(name, target, {})
            lines.append(f"* `{call}`: {text}")
    return "\n".join([*lines, ""])


def named(module: ModuleType) -> dict[str, Any]:
    """The public names of a module."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and str(getattr(value, "__module__", "")).startswith(module.__name__)
    ]
    values = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {
        name: value for name, value in sorted(values.items()) if public(value) and not isinstance(value, ModuleType)
    }


def torch_chunks(names: Iterable[str]) -> Iterator[list[str]]:
    """The names of torch's own namespace in portions that end between letters."""
    chunk: list[str] = []
    for name in sorted(names, key=str.lower):
        if len(chunk) >= PAGE and name[0].lower() != chunk[-1][0].lower():
            yield chunk
            chunk = []
        chunk.append(name)
    yield chunk


def page(title: str, text: str, full: str, values: dict[str, Any], stubs: dict[str, str]) -> str:
    """A page of entries."""
    entries = [entry(f"{full}.{name}", value, stubs) for name, value in values.items()]
    return "\n".join([f"# {title}\n", text + "\n", *entries])


def tensor_page(stubs: dict[str, str], functions: set[str]) -> str:
    """The methods and attributes of Tensor, each with a line, those that are functions too linked to them."""
    lines = ["# `torch.Tensor`\n", markdown(inspect.getdoc(pullback.Tensor) or ""), "| | |\n|---|---|"]
    for name in sorted(name for name in dir(pullback.Tensor) if not name.startswith("_")):
        value = getattr(pullback.Tensor, name)
        text = first_sentence(inspect.getdoc(value) or "").replace("|", "\\|")
        if callable(value) and not public(value):
            continue
        call = signature(name, value, stubs).split("\n")[0] if callable(value) else name
        call = call.replace("(self, ", "(").replace("(self)", "()").replace("|", "\\|")
        see = f"{functions_page[name]}#torch.{name}" if name in functions else torch_page(f"torch.Tensor.{name}")
        lines.append(f"| `{call}` | {text} [{'function' if name in functions else 'in torch'}]({see}) |")
    return "\n".join(lines) + "\n"


functions_page: dict[str, str] = {}


def pages() -> dict[str, tuple[str, str]]:
    """Every page: its path, its title and its text."""
    ops.load_all()
    stubs = Stubs().of
    out: dict[str, tuple[str, str]] = {}
    values = vars(pullback) | spaces["torch"]
    values = {name: value for name, value in values.items() if not name.startswith("_") and public(value)}
    values = {name: value for name, value in values.items() if not inspect.ismodule(value) and name != "Tensor"}
    values |= {name: getattr(pullback, name) for name in pullback._LAZY_NAMES if not name.startswith("_")}
    known, torchs = torch_names()["torch"], ("torch", "pullback.ops")
    own = [name for name in sorted(values) if name not in known and not module_of(values[name]).startswith(torchs)]
    text = "What torch has not: looking into graphs, gradients and memory."
    out["api/own.md"] = (
        "pullback's own",
        page("pullback's own", text, "pullback", {name: values.pop(name) for name in own}, {}),
    )
    for chunk in torch_chunks(values):
        first, last = chunk[0][0].lower(), chunk[-1][0].lower()
        path, title = (
            f"api/torch-{first}-{last}.md",
            f"torch: {first} to {last}" if first != last else f"torch: {first}",
        )
        functions_page.update({name: path.removeprefix("api/") for name in chunk})
        text = "Functions and classes of `torch` itself, which `import pullback as torch` gives."
        out[path] = title, page(title, text, "torch", {name: values[name] for name in chunk}, stubs["torch"])
    out["api/tensor.md"] = "torch.Tensor", tensor_page(stubs["tensor"], set(values))
    for space in SPACES:
        found = {n: v for n, v in sorted(spaces[space].items()) if not n.startswith("_") and public(v)}
        text = f"The functions of `torch.{space}`."
        out[f"api/{space}.md"] = (
            f"torch.{space}",
            page(f"`torch.{space}`", text, f"torch.{space}", found, stubs[space.replace(".", "_")]),
        )
    for name, text in MODULES.items():
        module = import_module(f"pullback.{name}")
        full = f"pullback.{name}" if name in OWN else f"torch.{name}"
        text = f"{text[0].upper()}{text[1:]}.\n\n{markdown(inspect.getdoc(module) or '')}"
        out[f"api/{name}.md"] = full, page(f"`{full}`", text, full, named(module), {})
    out["api/topics.md"] = "Ops by topic", topics(values)
    return out


def topics(values: dict[str, Any]) -> str:
    """The functions of torch by the file that declares them."""
    lines = [
        "# Ops by topic\n",
        "Each file of `src/pullback/ops` holds one topic.\n",
        "| file | functions |\n|---|---|",
    ]
    found: dict[str, list[str]] = {}
    for name in sorted(values):
        if (module := module_of(values[name])).startswith("pullback.ops."):
            found.setdefault(module, []).append(name)
    for module, names in sorted(found.items()):
        text = first_sentence(sys.modules[module].__doc__ or "").replace("|", "\\|")
        links = " ".join(f"[{name}]({functions_page[name]}#torch.{name})" for name in names)
        lines.append(f"| `{module.removeprefix('pullback.ops.').replace('.', '/')}`<br>{text} | {links} |")
    return "\n".join(lines) + "\n"
