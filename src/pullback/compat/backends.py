"""`torch.compile(f, backend=function)`: the function is given a torch.fx graph and what it returns runs in its place.

The graph is that of `torch.fx.symbolic_trace`: modules of torch.nn are its calls, and whatever it cannot follow (an
`if` on a value, a backward pass inside) runs as it is written. What the code that was traced read is guarded, as it
is for programs of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import Tensor
from pullback.compiler.function import Untraced
from pullback.fx import symbolic_trace
from pullback.fx.graph_module import GraphModule
from pullback.nn.modules.module import Module
from pullback.utils._pytree import tree_flatten, tree_unflatten

Backend = Callable[[GraphModule, list[Tensor]], Callable[..., Any]]


def graph_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[GraphModule, list[int]]:
    """A function as a graph of its arguments that are tensors, and their places among all of them."""
    leaves, spec = tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    names = names_of(function, args, len(places))

    def call(*tensors: Any) -> Any:
        for place, tensor in zip(places, tensors, strict=True):
            leaves[place] = tensor
        positional, named = tree_unflatten(leaves, spec)
        return function(*positional, **named)

    space: dict[str, Any] = {"call": call}
    given = ", ".join(names)
    if isinstance(function, Module):
        exec(compile(f"def forward(self, {given}): return call({given})", "<pullback backend>", "exec"), space)
        root = type("Compiled", (Module,), {"forward": space["forward"]})()
        root.model = function
        return symbolic_trace(root), places
    exec(compile(f"def {name_of(function)}({given}): return call({given})", "<pullback backend>", "exec"), space)
    return symbolic_trace(space[name_of(function)]), places


def name_of(function: Any) -> str:
    """A name the graph may have."""
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() and name != "call" else "function"


def names_of(function: Any, args: tuple[Any, ...], count: int) -> list[str]:
    """Names for tensors: those of the parameters, if all positional arguments are tensors and nothing else is."""
    code = getattr(getattr(function, "forward", function), "__code__", None)
    if code is not None and len(args) == count and all([isinstance(value, Tensor) for value in args]):
        skipped = hasattr(getattr(function, "forward", function), "__self__")
        known = code.co_varnames[skipped : code.co_argcount]
        if len(known) >= count and "call" not in known:
            return list(known[:count])
    return [f"arg{i}" for i in range(count)]


def by_backend(backend: Backend) -> Callable[..., Callable[..., Any]]:
    """What makes, of a function and the arguments of a call, what runs in its place."""

    def made(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
        try:
            graph, places = graph_of(function, args, kwargs)
        except Exception as error:  # whatever the user's code makes of proxies
            raise Untraced(f"torch.fx cannot trace it: {type(error).__name__}: {error}") from error
        leaves = tree_flatten((args, kwargs))[0]
        ready = backend(graph, [leaves[place] for place in places])
        if not callable(ready):
            raise TypeError(f"the backend returned a {type(ready).__name__}, not a function")

        def run(*args: Any, **kwargs: Any) -> Any:
            leaves = tree_flatten((args, kwargs))[0]
            return ready(*[leaves[place] for place in places])

        return run

    return made
