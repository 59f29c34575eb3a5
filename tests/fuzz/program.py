"""A random program: leaves, lines of Python that use them, and what is asked of it. It can be written down and run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.conformance.compare import describe
from tests.conformance.library import TORCH, Library, dtype_name, tensors_in
from tests.fuzz.inputs import Leaf
from tests.fuzz.noise import Shaking

FLOATS = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16")
HESSIANS = {
    "rr": ("jacrev", "jacrev"),
    "fr": ("jacfwd", "jacrev"),
    "rf": ("jacrev", "jacfwd"),
    "ff": ("jacfwd", "jacfwd"),
}
"""The four orders of a second derivative: the outer transform, the inner one."""
LARGEST_HESSIAN = 12
ASSIGNED = re.compile(r"^(\w+) = ")
NAMES = re.compile(r"\b([a-z]\d*)\b")


@dataclass(frozen=True)
class Program:
    """Leaves by name, lines, and the mode: `eager` looks at every line, the others differentiate or batch the whole.

    With `noise` it shows what rounding errors of another seed would have made of it, on torch.
    """

    leaves: tuple[tuple[str, Leaf], ...]
    lines: tuple[str, ...]
    mode: str = "eager"
    noise: int = 0

    def __str__(self) -> str:
        made = [f"{name} = {leaf}" for name, leaf in self.leaves]
        return "\n".join([*made, *self.lines, f"# {self.mode}"])

    def without_line(self, at: int) -> Program:
        """The program without one line and what depends on it."""
        gone: set[str] = set()
        kept = []
        for i, line in enumerate(self.lines):
            if i == at or gone & set(NAMES.findall(line)):
                if assigned := ASSIGNED.match(line):
                    gone.add(assigned[1])
            else:
                kept.append(line)
        used = {name for line in kept for name in NAMES.findall(line)}
        return replace(self, leaves=tuple((n, leaf) for n, leaf in self.leaves if n in used), lines=tuple(kept))

    def runner(self) -> Callable[[str, dict[str, Any]], None]:
        """What runs its lines, from the first on."""
        return Shaking(self.noise).run if self.noise else exec

    @property
    def scale(self) -> float:
        """What cotangents and tangents are scaled by, derivatives with them: with noise, so that these round otherwise.

        A few sixteenths, so that it is no rounding error itself.
        """
        return 1 - self.noise * 5 % 8 / 16

    def with_leaf(self, name: str, leaf: Leaf) -> Program:
        """The program with another leaf in place of one."""
        return replace(self, leaves=tuple((n, leaf if n == name else old) for n, old in self.leaves))


class Raised:
    """An exception as an observation: only its class is compared."""

    def __init__(self, error: BaseException) -> None:
        self.kind, self.text = type(error).__name__.lstrip("_"), str(error)

    def __repr__(self) -> str:
        return f"{self.kind}: {self.text[:200]}"


Observation = tuple[str, Any]
"""Where something was seen, and what: plain data, or what was raised there."""


def observe(program: Program, library: Library) -> list[Observation]:
    """Run a program and say what it shows, up to the first exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.seed(program.leaves[0][1].seed if program.leaves else 0)
        try:
            leaves = {name: leaf.build(library.module, program.noise) for name, leaf in program.leaves}
            if program.mode == "eager":
                return line_by_line(program, library, leaves)
            return [(program.mode, MODES[program.mode](program, library, leaves))]
        except Exception as error:
            return [(program.mode, Raised(error))]


def observe_otherwise(program: Program) -> Iterator[list[Observation]]:
    """What torch shows of a program by its other ways: without transforms, from a graph of copies nobody writes to, and
    from one that sees what is written through `data`, which transforms keep from some of their levels."""
    torch = TORCH.module
    for mode in OTHERWISE.get(program.mode, (program.mode,)):
        way = replace(program, mode=mode)
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda tensor: tensor):
            seen = observe(way, TORCH)
        yield seen
        if mode == "hessian":
            yield observe(way, TORCH)


def line_by_line(program: Program, library: Library, leaves: dict[str, Any]) -> list[Observation]:
    """What each line makes, and what the leaves have become in the end."""
    names = {"torch": library.module, **leaves}
    seen: list[Observation] = []
    run = program.runner()
    for line in program.lines:
        try:
            run(line, names)
            seen.append((line, shown(line, names, library)))
        except Exception as error:  # of the line, or of a look at what it made: a size may have become negative
            return [*seen, (line, Raised(error))]
    for name in leaves:
        seen.append((f"{name} in the end", [looked_at(library, names[name]), ("version", names[name]._version)]))
    return seen


def shown(line: str, names: dict[str, Any], library: Library) -> Any:
    """All that can be compared of what a line has made, or of what it names."""
    if assigned := ASSIGNED.match(line):
        return describe(library, names[assigned[1]], lambda tensor: looked_at(library, tensor))
    return [looked_at(library, names[name]) for name in NAMES.findall(line) if name in names]


def looked_at(library: Library, tensor: Any) -> dict[str, Any]:
    """All that can be compared of one tensor."""
    steps = [step for step, size in zip(tensor.stride(), tensor.shape) if size > 1] if tensor.numel() else []
    return {
        "dtype": dtype_name(tensor.dtype),
        "shape": tuple(tensor.shape),
        # Torch does not resize what NumPy has seen, and crashes where it copies complex numbers between two addresses.
        "value": library.array(tensor if tensor.is_complex() else tensor.detach().clone()),
        "requires_grad": tensor.requires_grad,
        "node": type(tensor.grad_fn).__name__ if tensor.grad_fn is not None else None,
        "strides": steps,
    }


def as_function(program: Program, library: Library, leaves: dict[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """The program as a function of its floating point leaves, and those leaves.

    It returns the floating point tensors of the last line.
    """
    moving = [name for name, leaf in program.leaves if leaf.dtype in FLOATS]
    fixed = {name: tensor for name, tensor in leaves.items() if name not in moving}

    def function(*tensors: Any) -> tuple[Any, ...]:
        names = {"torch": library.module, **fixed, **dict(zip(moving, tensors, strict=True))}
        run = program.runner()
        for line in program.lines:
            run(line, names)
        last = next(match[1] for line in reversed(program.lines) if (match := ASSIGNED.match(line)))
        return tuple([t for t in tensors_in(library, names[last]) if dtype_name(t.dtype) in FLOATS])

    return function, [leaves[name] for name in moving]


def fixed_random(library: Library, like: Any, seed: int, program: Program) -> Any:
    """Numbers for a cotangent or tangent: the same in both libraries. With noise they are moved as leaves are."""
    leaf = Leaf(tuple(like.shape), dtype_name(like.dtype), seed, -1.0, 1.0)
    made = leaf.build(library.module, program.noise)
    return made * program.scale if program.noise else made


def arrays(library: Library, tensors: Any, scale: float = 1.0) -> list[Any]:
    """The elements of tensors, divided by what they were scaled by."""
    seen = [None if tensor is None else library.array(tensor) for tensor in tensors]
    if scale == 1.0:
        return seen
    # A quotient of arrays without dimensions is none.
    return [None if array is None else np.asarray(array / array.dtype.type(scale)) for array in seen]


def recorded(program: Program, library: Library, leaves: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Outputs that want gradients, their cotangents, and the leaves that want one."""
    function, moving = as_function(program, library, leaves)
    outputs = [out for out in function(*moving) if out.requires_grad]
    cotangents = [fixed_random(library, out, 100 + i, program) for i, out in enumerate(outputs)]
    return outputs, cotangents, [tensor for tensor in moving if tensor.requires_grad]


def backward(program: Program, library: Library, leaves: dict[str, Any]) -> Any:
    outputs, cotangents, wanting = recorded(program, library, leaves)
    if not outputs:
        return []
    grads = library.require("autograd.grad")(outputs, wanting, cotangents, allow_unused=True)
    return arrays(library, grads, program.scale)


def double(program: Program, library: Library, leaves: dict[str, Any]) -> Any:
    outputs, cotangents, wanting = recorded(program, library, leaves)
    if not outputs:
        return []
    cotangents = [cotangent.requires_grad_() for cotangent in cotangents]
    grad = library.require("autograd.grad")
    firsts = grad(outputs, wanting, cotangents, allow_unused=True, create_graph=True)
    firsts = [first for first in firsts if first is not None and first.requires_grad]
    if not firsts:
        return []
    seconds = [fixed_random(library, first, 200 + i, program) for i, first in enumerate(firsts)]
    both = grad(firsts, [*wanting, *cotangents], seconds, allow_unused=True)
    by_inputs, by_cotangents = both[: len(wanting)], both[len(wanting) :]
    return arrays(library, by_inputs, program.scale**2) + arrays(library, by_cotangents, program.scale)


def detached(tensors: list[Any]) -> list[Any]:
    return [tensor.detach() for tensor in tensors]


def jvp(program: Program, library: Library, leaves: dict[str, Any]) -> Any:
    function, moving = as_function(program, library, leaves)
    tangents = tuple([fixed_random(library, tensor, 300 + i, program) for i, tensor in enumerate(moving)])
    if program.mode == "dual":
        outputs, pushed = as_dual(function, detached(moving), tangents, library)
    elif program.mode == "twice":
        twice = library.require("autograd.functional.jvp")
        outputs, pushed = twice(lambda *x: function(*[t.clone() for t in x]), tuple(detached(moving)), tangents)
    else:
        outputs, pushed = library.require("func.jvp")(function, tuple(detached(moving)), tangents)
    return [arrays(library, outputs), arrays(library, pushed, program.scale)]


def as_dual(function: Callable[..., Any], moving: list[Any], tangents: Any, library: Library) -> tuple[Any, Any]:
    """What a function makes of tensors that carry a tangent, and its tangents, without a transform around it."""
    forward = library.require("autograd.forward_ad")
    with forward.dual_level():
        made = function(*[forward.make_dual(tensor, by) for tensor, by in zip(moving, tangents, strict=True)])
        parts = [forward.unpack_dual(out) for out in made]
        zeros = library.require("zeros_like")
        return zip(*[(one, zeros(one) if by is None else by) for one, by in parts], strict=True) if parts else ([], [])


def vmap(program: Program, library: Library, leaves: dict[str, Any]) -> Any:
    function, moving = as_function(program, library, leaves)
    others = [replace(leaf, seed=leaf.seed + 1) for _, leaf in program.leaves if leaf.dtype in FLOATS]
    pairs = [
        library.require("stack")([tensor, other.build(library.module, program.noise)])
        for tensor, other in zip(detached(moving), others, strict=True)
    ]
    if program.mode != "vmap":
        entries = [function(*[pair[i].clone() for pair in pairs]) for i in range(2)]
        return arrays(library, [library.require("stack")(outs) for outs in zip(*entries, strict=True)])
    return arrays(library, library.require("func.vmap")(function, randomness="different")(*pairs))


def hessian(program: Program, library: Library, leaves: dict[str, Any]) -> Any:
    """The second derivative by the first floating point leaf, of the outputs weighted with random numbers."""
    function, moving = as_function(program, library, leaves)
    first, rest = moving[0].detach(), detached(moving[1:])

    def scalar(tensor: Any) -> Any:
        total: Any = None  # not 0.0: torch's tangent of a number and a half is a double
        for i, out in enumerate(function(tensor, *rest)):
            product = (out * fixed_random(library, out, 100 + i, program)).sum()
            product = product.real if product.is_complex() else product
            total = product if total is None else total + product
        return total

    if program.mode not in HESSIANS:  # a leaf may be written to only as a copy
        return arrays(
            library, [library.require("autograd.functional.hessian")(lambda x: scalar(x.clone()), first)], program.scale
        )
    outer, inner = (library.require(f"func.{name}") for name in HESSIANS[program.mode])
    return arrays(library, [outer(inner(scalar))(first)], program.scale)


MODES: dict[str, Callable[[Program, Library, dict[str, Any]], Any]] = {
    "backward": backward, "double": double, "jvp": jvp, "vmap": vmap, "hessian": hessian, "loop": vmap, "twice": jvp,
    "dual": jvp,
    **dict.fromkeys(HESSIANS, hessian),
}  # fmt: skip


OTHERWISE = {"vmap": ("loop",), "jvp": ("twice", "dual"), **dict.fromkeys(HESSIANS, ("hessian",))}
"""The modes that give the numbers of a transform without one."""


def fits(program: Program, mode: str) -> bool:
    """Whether a mode can be asked of a program."""
    moving = [leaf for _, leaf in program.leaves if leaf.dtype in FLOATS]
    if mode == "eager":
        return True
    if not moving or not any(ASSIGNED.match(line) for line in program.lines):
        return False
    if mode in HESSIANS:
        return moving[0].dtype in ("float64", "float32") and int(np.prod(moving[0].shape)) <= LARGEST_HESSIAN
    return mode in ("jvp", "vmap") or any(leaf.wants_grad for leaf in moving)
