"""What ops, derivatives and leaves ask the kind of traced arrays: each answer is a step of the program."""

from __future__ import annotations

from threading import get_ident
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.kinds import as_array
from pullback._arrays.memory import laid_out
from pullback._modes import modes
from pullback._op.apply import load_array
from pullback._op.declare import Op, names_of
from pullback._op.inline import formula_call
from pullback._op.ufuncs import chosen_forward, is_pointwise, large_forward, ufunc_of
from pullback._tensor import Tensor, wrap
from pullback._thresholds import LARGE, MANY
from pullback.autograd.accumulate import accumulate_array
from pullback.batching.tensor import Logical
from pullback.compiler.arrays import TracedArray, TracedTensor
from pullback.compiler.capture import Recorder, raised
from pullback.compiler.effects import arrived_at, forget_grad, grad_of
from pullback.compiler.program import CALL, FORMULA, OP
from pullback.compiler.watch import unwatched
from pullback.kernels.jit.small.choose import Chooser, Variants


def recorder_of(values: Any) -> Recorder:
    """Who records arrays, of which one is traced."""
    for value in values:
        if type(value) is TracedArray:
            return value.recorder  # type: ignore[no-any-return]
        if type(value) in (list, tuple):
            for item in value:
                if type(item) is TracedArray:
                    return item.recorder  # type: ignore[no-any-return]
    raise AssertionError("one of the arrays is traced")


def computed(op: Op, positional: list[Any], keywords: dict[str, Any]) -> Any:
    """The results of an op."""
    recorder = recorder_of((*positional, *keywords.values()))
    args, kwargs = recorder.plain(positional), recorder.plain(keywords)
    if op.check is not None:
        op.check(*args, **kwargs)
    if is_dynamic(op, args):
        recorder.fail(f"the shape of what {op.name} gives depends on elements")
    limit = LARGE if ufunc_of(op) is None else MANY
    large = type(args[0]) is np.ndarray and args[0].size >= limit if args else False
    checks = op.check is not None and not is_pointwise(op) and recorder.looks(op.check, positional, keywords)
    function = forward_called(op, large, checks)
    step = recorder.step(OP, function, tuple(positional), keywords)
    step.op = op
    step.writes = tuple(
        [
            v.slot
            for p, v in zip(op.params, positional, strict=False)
            if p.name.startswith("running_") and type(v) is TracedArray
        ]
    )
    made = recorder.run(unwatched, op, function, *args, **kwargs)
    return recorder.finish(step, made, op.multiple)


def is_dynamic(op: Op, args: list[Any]) -> bool:
    """Whether the shape of a result depends on elements."""
    if op.dynamic:
        return True
    if op.name == "index":
        return any([a is not None and a.dtype.kind in "bu" for a in args[1]])
    return False


forwards: dict[Any, Any] = {}


def forward_called(op: Op, large: bool, checks: bool) -> Any:
    """What the reference path calls to compute an op, as one function of its operands that gives arrays.

    With `checks` the op's check comes first: it looks at elements. Others were satisfied by the shapes.
    """
    key = op, large, checks
    if key not in forwards:
        forwards[key] = make_forward(op, large, checks)
    return forwards[key]


def make_forward(op: Op, large: bool, checks: bool) -> Any:
    """The same, made now."""
    forward = large_forward(op) if large else chosen_forward(op)
    checked = op.check if checks else None

    def run(*positional: Any, **keywords: Any) -> Any:
        if checked is not None:
            checked(*positional, **keywords)
        if type(forward) is Variants:
            outs = forward(*positional, *keywords.values())
        else:
            outs = (forward.head if type(forward) is Chooser else forward)(*positional, **keywords)
        if op.multiple:
            return [None if a is None else as_array(a) for a in outs]
        if op.unrounded and is_half(dtype := positional[0].dtype):
            return np.asarray(outs, dtype)
        return as_array(outs)

    run.__name__ = op.name
    run.forward = forward  # type: ignore[attr-defined]
    run.plain = checked is None and not op.multiple and not op.unrounded and not large  # type: ignore[attr-defined]
    return run


def arranged(self: TracedArray, operands: Any) -> Any:
    """A pointwise result in the memory order torch gives it."""
    recorder = self.recorder
    plain = recorder.plain(list(operands))
    if laid_out(self.value, plain) is self.value:
        return self
    return recorder.call(laid_out, (self, list(operands)), {})


def read(function: Any) -> Any:
    """A function of arrays that is noted as one call. What writes by itself writes to its first argument."""
    if not callable(function):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        recorder = modes.recorders.get(get_ident()) or recorder_of(given)
        return recorder.call(function, args, kwargs, given[:1] if type(given[0]) is TracedArray else ())

    return call


def formula(op: Op, part: str) -> Any:
    """The derivative of an op by an input, as the generated step of backward computes it: a function of arrays."""
    key = op, part
    if key not in forwards:
        space = op.node.backward.__globals__  # type: ignore[union-attr]
        if part:
            names = list(dict.fromkeys(names_of(op.formulas[part])))
            source = f"def formula(node, {', '.join(names)}): return {formula_call(op, part, 'array')}"
        else:
            names = list(dict.fromkeys(names_of(op.joint)))
            source = f"def formula(node, {', '.join(names)}): return array_joint({', '.join(names)})"
        made: dict[str, Any] = {}
        # Builtins replace names in the space of the node as they are made: it must be that one.
        exec(compile(source, f"<pullback {op.node_name}>", "exec"), space, made)
        forwards[key] = made["formula"], names
    return forwards[key]


class NodeFacts:
    """What the source of a formula asks a node for."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"{self.dtype}"


class Hidden(Exception):
    """A node saved a tensor inside vmap, whose array is a stand-in."""


def stepped(node: Any, grad: Any) -> Any:
    """One step of a backward pass: each derivative is a step of the program."""
    op: Op = node.op
    first = next(g for g in grad if g is not None) if type(grad) is list else grad
    recorder: Recorder = first._array.recorder
    if node.sequence_nr < recorder.began:
        recorder.fail("backward went on into a graph that was there before")
    facts = NodeFacts(node.dtype)
    given: dict[str, Any] = {}

    def value_of(name: str) -> Any:
        if name in given:
            return given[name]
        if name == "grads":
            value = tuple([None if g is None else g._array for g in grad])
        elif name == "grad":
            value = (None if grad[0] is None else grad[0]._array) if op.multiple else grad._array
        elif name == "wants":
            value = tuple([edge is not None for edge in node.edges])
        elif name.startswith("grad_") and name not in op.kinds:
            item = grad[op.outputs.index(name[5:])] if op.multiple else grad
            value = None if item is None else item._array
        elif name in op.tensors and op.kinds[name] == "list":
            value = [load_array(node, name, i) for i in range(len(getattr(node, name + "_")))]
        elif name in op.outputs or name in op.tensors:
            value = load_array(node, name)
        else:
            value = getattr(node, name + "_")
        if type(value) is Logical:
            raise Hidden
        given[name] = value
        return value

    def derivative(part: str, several: bool) -> Any:
        function, names = formula(op, part)
        args = (facts, *[value_of(name) for name in names])
        step = recorder.step(FORMULA, function, args, {})
        step.op, step.part = op, part
        return recorder.finish(step, recorder.run(unwatched, op, function, *recorder.plain(args)), several)

    try:
        if op.joint is not None:
            outs = derivative("", True)
        else:
            outs = []
            edges = list(node.edges)
            for part in op.differentiable:
                if op.kinds[part] == "list":
                    many = derivative(part, True)
                    outs += many
                    del edges[: len(many)]
                else:
                    wanted = edges.pop(0) is not None or len(op.differentiable) == 1
                    outs.append(derivative(part, False) if wanted else None)
    except Hidden:  # a gradient that is the same for a whole batch reached a node inside vmap: tensors know the batch
        return node.backward_tensors(grad)
    return tuple([None if out is None else wrap(out) for out in outs])


# ------------------------------------------------------------------ leaves


def accumulated(variable: Any, grad: Any) -> bool:
    """A gradient arrives at its leaf: what eager backward does there, as an effect."""
    array = variable._array if type(variable._array) is TracedArray else grad._array
    recorder: Recorder = array.recorder
    arriving = grad._array
    if id(variable) not in recorder.facts:
        if type(variable._array) is not np.ndarray:
            return False
        recorder.fail("a gradient arrives at a tensor that the function does not reach")
        recorder.keep_grad(variable)
        value = arriving.value if type(arriving) is TracedArray else arriving
        accumulate_array(variable, {variable: value.copy()}, variable)
        return True
    leaf = recorder.leaf(variable)
    recorder.keep_grad(variable)
    recorder.effect(arrived_at, (leaf, arriving))
    value = arriving.value if type(arriving) is TracedArray else arriving
    involved = (variable, variable._grad)
    recorder.aside(lambda: accumulate_array(variable, {variable: value.copy()}, variable), involved)
    made = variable._grad
    if type(made) is Tensor:  # it is new
        recorder.finish(recorder.step(CALL, grad_of, (leaf,), {}), made._array, False)
        raised(made, recorder.by_id[id(made._array)])
        recorder.grads[id(variable)] = made
    return True


def set_grad(self: Any, value: Any) -> None:
    """`tensor.grad = value` in a function that is recorded."""
    recorder = self._array.recorder
    if value is None and id(self) in recorder.facts:
        recorder.effect(forget_grad, (recorder.leaf(self),))
        recorder.forgotten.add(id(self))
        recorder.grads[id(self)] = None
    plain_grad.fset(self, value)


plain_grad: Any = Tensor.grad
TracedTensor.grad = property(plain_grad.fget, set_grad, lambda self: set_grad(self, None))  # type: ignore[attr-defined]
TracedArray.computed = staticmethod(computed)  # type: ignore[method-assign]
TracedArray.arranged = arranged  # type: ignore[method-assign]
TracedArray.read = staticmethod(read)  # type: ignore[method-assign]
TracedArray.stepped = staticmethod(stepped)  # type: ignore[method-assign]
TracedArray.accumulated = staticmethod(accumulated)  # type: ignore[attr-defined]
TracedArray.adopted = staticmethod(lambda array: array)  # type: ignore[method-assign]
