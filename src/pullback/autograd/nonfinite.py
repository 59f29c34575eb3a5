"""Where do the NaNs come from? The first op, forward or backward, that made a NaN or an infinity of what had none.

    print(find_nonfinite(lambda: model(x).log().sum()))
    # log made 1 inf in 4 elements, called at train.py:12: print(find_nonfinite(lambda: model(x).log().sum()))
    #   self: float32 [4], 0 .. 2.5

Anomaly mode finds NaNs in gradients; they often began in forward, in an infinity that nobody noticed. Infinities that
the program put there itself, such as `masked_fill(mask, -inf)`, are not blamed on anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback._modes import modes
from pullback._runtime.interrupts import Block
from pullback._tensor import Tensor, wrap
from pullback.autograd.api import grad as gradients
from pullback.autograd.api import key_of
from pullback.autograd.engine import schedule
from pullback.autograd.function import BackwardCFunction
from pullback.autograd.locations import Location, location_of, mark
from pullback.autograd.node import AccumulateGrad
from pullback.autograd.profiler.events import caller_stack
from pullback.autograd.view import wants_grad


class Range:
    """A tensor in a few numbers: shape, dtype, the smallest and largest finite element, how many are not finite."""

    __slots__ = ("dtype", "high", "inf", "low", "name", "nan", "numel", "shape")

    def __init__(self, name: str, array: Any) -> None:
        self.name, self.shape, self.dtype = name, list(array.shape), str(array.dtype.name)
        self.numel, self.nan, self.inf = int(array.size), *bad_elements(array)
        self.low = self.high = None
        if array.dtype.kind not in "cb":
            finite = array[np.isfinite(array)] if self.nan or self.inf else array
            if finite.size:
                self.low, self.high = finite.min().item(), finite.max().item()

    def __str__(self) -> str:
        span = "" if self.low is None else f", {self.low:.4g} .. {self.high:.4g}"
        bad = "".join(f", {n} {what}" for n, what in ((self.nan, "nan"), (self.inf, "inf")) if n)
        return f"{self.name}: {self.dtype} {self.shape}{span}{bad}"


class Finding:
    """One op that made a NaN or an infinity."""

    __slots__ = ("_code", "_offset", "_scope", "backward", "inputs", "kind", "node", "op", "result", "stack")

    def __init__(self, kind: str, op: str, result: Range, inputs: list[Range], node: Any = None) -> None:
        self.kind = kind
        """"nan" or "inf"."""
        self.op = op
        """The op; in backward, the node."""
        self.result, self.inputs, self.node = result, inputs, node
        self.backward = node is not None
        self.stack: list[str] = [] if self.backward else caller_stack(4)
        """Where the op was called, innermost first."""
        mark(self)

    @property
    def place(self) -> Location | None:
        """The program's line at which the op was called; in backward, at which the node was made."""
        return location_of(self if self.node is None else self.node)

    def __str__(self) -> str:
        result, spot = self.result, self.place
        what = " and ".join(f"{n} {kind}" for n, kind in ((result.nan, "nan"), (result.inf, "inf")) if n)
        where = "" if spot is None else f", {'of the op' if self.backward else 'called'} at {spot}"
        inside = "" if spot is None or spot.module is None else f", in {spot.module}"
        made = f"{self.op} made {what} in {result.numel} elements{where}{inside}"
        return "\n".join([made, *(f"  {given}" for given in self.inputs)])

    def json(self) -> dict[str, Any]:
        """The finding as plain data."""
        ranges = [{name: getattr(r, name) for name in Range.__slots__} for r in (self.result, *self.inputs)]
        spot = self.place
        return {
            "kind": self.kind,
            "op": self.op,
            "backward": self.backward,
            "place": spot and {n: getattr(spot, n) for n in ("file", "line", "function", "text", "module")},
            "result": ranges[0],
            "inputs": ranges[1:],
        }


class find_nonfinite(Block):
    """Find the first op that makes a NaN or an infinity: in a function that is called, or in a with block.

    `find_nonfinite(fn)` calls `fn()` and, where it returns tensors with a graph, walks their backward too, without
    changing any `.grad`. As a context manager it watches everything inside, backward passes included. The object is
    true if something was found; `findings` holds the first infinity and the first NaN. With `raise_error` the first
    one raises at once.

    >>> import pullback as torch
    >>> x = torch.tensor([1.0, 0.0, 4.0], requires_grad=True)
    >>> found = torch.find_nonfinite(lambda: x.sqrt().sum())
    >>> found.op, found.first.backward, found.inf
    ('SqrtBackward0', True, 1)
    """

    def __init__(self, fn: Callable[[], Any] | None = None, *, raise_error: bool = False) -> None:
        self.raise_error = raise_error
        self.findings: list[Finding] = []
        self.result: Any = None
        """What `fn` returned."""
        self.outer: Any = None
        self.went_back = False
        if fn is not None:
            try:
                with self:
                    self.result = fn()
                    if not self.went_back:
                        walk_back(self.result)
            except Exception as error:
                if self.findings:
                    error.add_note(str(self))
                raise

    # ---------------------------------------------------------------- the answer

    @property
    def first(self) -> Finding | None:
        """The first op that made one; None as long as everything is finite."""
        return self.findings[0] if self.findings else None

    @property
    def op(self) -> str | None:
        """The name of that op."""
        return self.first.op if self.first else None

    @property
    def stack(self) -> list[str]:
        """Where it was called, innermost first."""
        return self.first.stack if self.first else []

    @property
    def nan(self) -> int:
        """How many NaNs it made."""
        return self.first.result.nan if self.first else 0

    @property
    def inf(self) -> int:
        """How many infinities it made."""
        return self.first.result.inf if self.first else 0

    @property
    def numel(self) -> int:
        """How many elements its result has."""
        return self.first.result.numel if self.first else 0

    @property
    def input_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of what it was given."""
        return [tuple(given.shape) for given in self.first.inputs] if self.first else []

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __str__(self) -> str:
        return "\nthen ".join(map(str, self.findings)) or "everything is finite"

    __repr__ = __str__

    def json(self) -> dict[str, Any]:
        """The findings as plain data."""
        return {"findings": [finding.json() for finding in self.findings]}

    # ---------------------------------------------------------------- called by the op machine and the engine

    def _before(self) -> Any:
        """Who watched until now."""
        return object(), modes.profiler

    def _begin(self, before: Any) -> find_nonfinite:
        """Watch."""
        modes.hold(before[0])
        self.outer = modes.profiler
        modes.profiler = self
        return self

    def _end(self, before: Any) -> None:
        """Watch no more."""
        modes.profiler = before[1]
        modes.drop(before[0])

    def call(self, op: Any, bound: dict[str, Any], out: Any, action: Callable[..., Any]) -> Any:
        """An op."""
        given = Given(bound.items())
        result = action(op, bound, out) if self.outer is None else self.outer.call(op, bound, out, action)
        self.look(op.name, given, result)
        return result

    def call_inplace(self, op: Any, self_: Any, args: tuple[Any, ...], action: Callable[..., Any]) -> Any:
        """The in-place twin of an op."""
        given = Given(zip(op.param_names, (self_, *args), strict=False), copy=True)
        result = action(op, self_, args) if self.outer is None else self.outer.call_inplace(op, self_, args, action)
        self.look(f"{op.name}_", given, result)
        return result

    def run_node(self, node: Any, action: Callable[[], Any], grad: Any = None) -> Any:
        """A backward step: the node is looked at, and the ops of a custom Function's backward one by one."""
        self.went_back, count = True, len(self.findings)
        if not isinstance(node, (AccumulateGrad, BackwardCFunction)):
            modes.profiler = self.outer
        try:
            result = action() if self.outer is None else self.outer.run_node(node, action, grad)
        finally:
            modes.profiler = self
        if len(self.findings) == count and not isinstance(node, AccumulateGrad):
            grads = grad if isinstance(grad, (list, tuple)) else [grad]
            given = Given([*((f"grad[{i}]" if i else "grad", g) for i, g in enumerate(grads)), *saved_by(node)])
            self.look(node.name(), given, tuple(result), node)
        return result

    def look(self, name: str, given: Given, result: Any, node: Any = None) -> None:
        """Note an op whose result has what its inputs had not."""
        if len(self.findings) == 2:
            return
        for array in arrays_of(result if isinstance(result, tuple) else (result,)):
            nan, inf = bad_elements(array)
            kind = "nan" if nan and not given.nan else "inf" if inf and not given.nan and not given.inf else None
            if kind is None or any(finding.kind == kind for finding in self.findings):
                continue
            finding = Finding(kind, name, Range("result", array), given.ranges(), node)
            self.findings.append(finding)
            if self.raise_error:
                raise RuntimeError(f"the first result that is not finite: {self}")
            return


def walk_back(result: Any) -> None:
    """Run the backward of what a function returned; the gradients are thrown away."""
    values = result if isinstance(result, (list, tuple)) else [result]
    roots = [value for value in values if isinstance(value, Tensor) and wants_grad(value)]
    _, leaves = schedule([(*key_of(root), None) for root in roots])
    if leaves:
        ones = [wrap(np.ones_like(root._array)) for root in roots]
        gradients(roots, [*leaves], ones, retain_graph=True, allow_unused=True)


class Given:
    """What an op was given: its arrays, and whether there were NaNs or infinities among them or among its numbers."""

    def __init__(self, named: Any, copy: bool = False) -> None:
        self.named: list[tuple[str, Any]] = []
        self.nan = self.inf = False
        for name, value in named:
            if isinstance(value, float):
                self.nan, self.inf = self.nan or value != value, self.inf or abs(value) == float("inf")
            for array in arrays_of([value]):
                nan, inf = bad_elements(array)
                self.nan, self.inf = self.nan or nan > 0, self.inf or inf > 0
                self.named.append((name, array.copy() if copy else array))

    def ranges(self) -> list[Range]:
        """What is told about them."""
        return [Range(name, array) for name, array in self.named]


def arrays_of(values: Any) -> Iterator[Any]:
    """The arrays of the tensors among arguments."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from arrays_of(value)
        elif isinstance(value, (Tensor, np.ndarray, np.generic)):
            yield value._array if isinstance(value, Tensor) else value


def saved_by(node: Any) -> Iterator[tuple[str, Any]]:
    """What the formulas of a node may read, besides the gradient."""
    declared: Any = getattr(node, "op", None)
    for name in declared.saved if declared is not None else ():
        if name in declared.tensors or name in declared.outputs:
            yield name, getattr(node, name + "_", None)


def bad_elements(array: Any) -> tuple[int, int]:
    """How many elements are NaN, and how many infinite."""
    if array.dtype.kind not in "fcV" or np.isfinite(array).all():
        return 0, 0
    return int(np.isnan(array).sum()), int(np.isinf(array).sum())
