"""What functions and classes of pullback are called in torch: the names that graphs print and that their code uses.

A graph made here prints as torch's does, so a function has to be known by the place where torch defines it:
`torch.relu`, `torch.nn.functional.relu`, `torch._C._nn.gelu`, `torch._C._linalg.linalg_norm`. The same names lead from
`pullback` to the function, so that the generated code runs.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
import types
from functools import cache
from types import ModuleType
from typing import Any

import pullback
from pullback import fft, functional, linalg, overrides, special
from pullback.nn import functional as nn_functional

PACKAGE = "pullback"
TENSOR = pullback.Tensor
# Functions of nn.functional that torch defines in torch._C._nn, and one that has another name there.
IN_C_NN = (
    "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear one_hot scaled_dot_product_attention softplus "
    "softshrink"
)
# Functions that have one object under two names, and are mostly called by that in nn.functional.
RATHER_NN = "layer_norm rms_norm selu max_pool1d max_pool2d max_pool3d"
IN_FUNCTIONAL = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul "
    "einsum lu meshgrid norm split stft tensordot unique unique_consecutive unravel_index"
)
CLASSES = {kind: f"torch.{kind.__name__}" for kind in (TENSOR, pullback.Size, pullback.device, pullback.dtype)}
CLASSES |= {pullback.Generator: "torch.Generator", pullback.nn.Parameter: "torch.nn.parameter.Parameter"}
OURS = re.compile(r"\bpullback\._tensor\.(?=Tensor\b)|\bpullback\._(?:layout|device|dtype)\.|\bpullback\.")


@cache
def names() -> dict[Any, str]:
    """The functions torch publishes, and the names by which torch prints them."""
    overrides.get_overridable_functions()  # loads all ops
    found: dict[Any, str] = {}

    def say(module: ModuleType, name: str, printed: str) -> None:
        function = getattr(module, name, None)
        if function is not None:
            found.setdefault(function, printed)

    for name in RATHER_NN.split():
        say(nn_functional, name, f"torch.nn.functional.{name}")
    for name in IN_FUNCTIONAL.split():
        say(functional, name, f"torch.functional.{name}")
    for name in public(pullback):
        say(pullback, name, f"torch.{name}")
    say(pullback, "_assert", "torch._assert")
    for name in IN_C_NN.split():
        say(nn_functional, name, f"torch._C._nn.{name}")
    say(nn_functional, "logsigmoid", "torch._C._nn.log_sigmoid")
    say(nn_functional, "threshold", "torch.nn.functional._threshold")
    for name in public(nn_functional):
        if getattr(pullback, name, None) is getattr(nn_functional, name):
            say(pullback, name, f"torch.{name}")
        say(nn_functional, name, f"torch.nn.functional.{name}")
    for module, short in ((linalg, "linalg"), (fft, "fft"), (special, "special")):
        for name in public(module):
            say(module, name, f"torch._C._{short}.{short}_{name}")
    return found


def public(module: ModuleType) -> list[str]:
    """The functions of a module that are no private names; those of two names by that of their definition."""
    functions = [(name, value) for name, value in vars(module).items() if isinstance(value, types.FunctionType)]
    own = [(name, value.__name__ != name) for name, value in functions if not name.startswith("_")]
    return [name for name, _ in sorted(own, key=lambda pair: pair[1])]


def module_of(thing: Any) -> str:
    """The module in which torch defines it; other modules under their own names."""
    module: str = getattr(thing, "__module__", None) or "builtins"
    return "torch" + module.removeprefix(PACKAGE) if module.partition(".")[0] == PACKAGE else module


def name_of(function: Any) -> str:
    """The `__name__` torch gives a function, from which nodes get their names."""
    known = names().get(function) if isinstance(function, types.FunctionType) else None
    return known.rpartition(".")[2] if known is not None else function.__name__


def qualified_name(function: Any) -> str:
    """A function by its module and name."""
    name = function.__name__
    if getattr(builtins, name, None) is function:
        return str(name)
    if isinstance(function, type) and function in CLASSES:
        return CLASSES[function]
    if isinstance(function, types.FunctionType):
        known = names().get(function)
        if known is not None:
            return known
        if getattr(TENSOR, name, None) is function:
            return f"torch.Tensor.{name}"
    if name == "<lambda>":
        try:
            name = inspect.getsource(function).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    if getattr(function, "__module__", None) is None:
        raise RuntimeError(f"cannot find module for {function}")
    return f"{module_of(function)}.{name}"


def leads_to(name: str) -> Any:
    """What a name that begins with torch means here; None if nothing."""
    first, *rest = name.split(".")
    found: Any = sys.modules[PACKAGE] if first == "torch" else None
    for part in rest:
        found = getattr(found, part, None)
    return found


def is_from_torch(thing: Any) -> bool:
    """Whether generated code reaches it through the name `torch`."""
    module = getattr(thing, "__module__", None)
    if module is None or module.partition(".")[0] not in (PACKAGE, "torch") or not hasattr(thing, "__name__"):
        return False
    return leads_to(qualified_name(thing)) is thing


def type_repr(thing: Any) -> str:
    """A type as torch writes it."""
    if isinstance(thing, type) and not isinstance(thing, types.GenericAlias):
        if thing in CLASSES:
            return CLASSES[thing]
        return thing.__qualname__ if thing.__module__ == "builtins" else f"{module_of(thing)}.{thing.__qualname__}"
    if thing is ...:
        return "..."
    if isinstance(thing, types.FunctionType):
        return thing.__name__
    return OURS.sub("torch.", repr(thing))
