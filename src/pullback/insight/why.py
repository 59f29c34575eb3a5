"""`why_no_grad`: the one reason a tensor has no gradient, and the line it happened at. See note: insight."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pullback
from pullback import Tensor
from pullback.autograd import who
from pullback.autograd.api import key_of
from pullback.autograd.engine import as_hooks_see, deliver, needed_for, target_of
from pullback.autograd.function import BackwardCFunction
from pullback.autograd.node import Node, parts
from pullback.autograd.task import Target
from pullback.autograd.view import wants_grad
from pullback.insight.graph import Saved, graph_of, node_name, op_name, saved_of
from pullback.insight.locations import Location, location_of
from pullback.insight.names import Names
from pullback.insight.report import Report, Section, location_json, location_text
from pullback.insight.trace import Trace


def why_no_grad(tensor: Any, loss: Tensor | Callable[[], Tensor] | None = None, names: Any = None) -> Reason:
    """Say why `tensor.grad` is None (or zero) although a gradient of `loss` was expected, with the line.

    `loss` is the tensor backward starts from, or better a function that computes it: it is called once, and whatever is
    made of `tensor` in it is followed, so that a detach, a no_grad block or an integer op is found at its very line.
    Nothing is accumulated and no hook runs.

    >>> import pullback as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> print(torch.why_no_grad(w, lambda: (w * 2).detach().exp().sum()).code)
    detach
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"why_no_grad expects a Tensor, but got {type(tensor).__name__}")
    name = Names(names, sys._getframe(1)).of(tensor) or "the tensor"
    if loss is None or isinstance(loss, Tensor):
        return diagnose(name, tensor, loss, None)
    if not callable(loss):
        raise TypeError(f"loss must be a Tensor or a function that returns one, but got {type(loss).__name__}")
    with Trace(tensor) as trace:
        made = loss()
    if not isinstance(made, Tensor):
        raise TypeError(f"the function must return the loss, a Tensor, but it returned {type(made).__name__}")
    return diagnose(name, tensor, made, trace)


@dataclass(repr=False, eq=False)
class Reason(Report):
    """Why a tensor has no gradient."""

    code: str
    """One word for the reason: detach, no_grad, integer, op, number, unused, none, zero, ..."""
    text: str
    """The reason in words."""
    place: Location | None = None
    """The line of the program it happened at."""
    advice: str = ""

    def sections(self) -> Iterator[Section]:
        """Reason, line, advice."""
        rows = []
        if self.place is not None:
            rows.append(["at", location_text(self.place)])
            if self.place.module:
                rows.append(["in module", self.place.module])
        if self.advice:
            rows.append(["do", self.advice])
        yield self.text, rows

    def json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"code": self.code, "text": self.text, "place": location_json(self.place), "advice": self.advice}


# ------------------------------------------------------------------ the questions, in order


def diagnose(name: str, tensor: Tensor, loss: Tensor | None, trace: Trace | None) -> Reason:
    """The first thing that stands in the way."""
    if not wants_grad(tensor):
        return unwanted(name, tensor, loss)
    if loss is None:
        return of_its_own(name, tensor)
    nodes, leaves = graph_of(loss)
    target = key_of(tensor)[0]
    if target not in leaves and target not in nodes and tensor is not loss:
        return unreached(name, tensor, loss, nodes, trace)
    if not tensor.is_leaf and not tensor.retains_grad:
        return not_kept(name, tensor)
    return on_the_way(name, tensor, loss, nodes)


def unwanted(name: str, tensor: Tensor, loss: Tensor | None) -> Reason:
    """The tensor does not require gradients."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        kind = str(tensor.dtype).removeprefix("torch.")
        text = f"{name} has dtype {kind}: only floating point and complex tensors have gradients"
        return Reason("integer", text, None, "convert it before it is used: .float().requires_grad_()")
    if loss is not None and tensor in graph_of(loss)[1]:
        text = f"requires_grad of {name} was switched off after it was used: backward passes it by"
        return Reason("switched_off", text, None, "requires_grad_(True) before backward")
    if tensor.is_inference():
        return Reason("inference", f"{name} was made in inference mode", None, "clone() it outside of inference mode")
    if tensor._view is not None and tensor._view.base.requires_grad:
        return Reason("no_grad", f"{name} is a view that was made where grad mode was off")
    if tensor._detached_at is not None:
        return cut_off(f"{name} has no history", tensor)
    text = f"{name} has requires_grad=False: nobody asked for gradients of it"
    return Reason("requires_grad", text, None, "requires_grad_() before it is used")


def of_its_own(name: str, tensor: Tensor) -> Reason:
    """No loss was given: what the tensor itself tells."""
    if tensor._grad is not None:
        return Reason("has_grad", f"{name} has a gradient")
    if not tensor.is_leaf and not tensor.retains_grad:
        return not_kept(name, tensor)
    text = f"{name} can have a gradient, but none has arrived since .grad was last None"
    return Reason("not_called", text, None, "give the loss, or a function that computes it, to learn more")


def not_kept(name: str, tensor: Tensor) -> Reason:
    """A computed tensor: its gradient passes through."""
    assert tensor.grad_fn is not None
    made = op_name(tensor.grad_fn)
    leaves = f"{name} is no leaf (it is the result of {made}): its gradient passes through and is not kept"
    return Reason("not_retained", leaves, location_of(tensor.grad_fn), f"{name}.retain_grad() before backward")


# ------------------------------------------------------------------ the way from the loss does not reach it

WORDS = {
    "detach": "{how} cut it off",
    "no_grad": "{how} ran where grad mode was off (no_grad, inference_mode or set_grad_enabled(False))",
    "integer": "the result of {how} is not floating point and has no derivative",
    "op": "{how} has no derivative",
    "number": "{how} made a plain number or array of it, which autograd does not follow",
}
ADVICE = {
    "detach": "leave the detach out, or use the tensor itself",
    "no_grad": "run that line with grad mode on",
    "integer": "keep values floating point, or use a smooth stand-in: softmax for argmax, sigmoid for a comparison",
    "op": "use an op that is differentiable",
    "number": "keep it a tensor",
}


def cut_off(text: str, tensor: Tensor) -> Reason:
    """What cut the history of a tensor, as it was noted there."""
    what, place = who.detached_at(tensor) or ("", None)
    code = "no_grad" if what.endswith((" block", "(False)")) else "integer"
    if what.startswith((".", "detach", "torch.tensor")):
        code = "detach"
    return Reason(code, f"{text}: cut off by {what.rstrip(',')}", place, ADVICE[code])


def unreached(name: str, tensor: Tensor, loss: Tensor, nodes: list[Node], trace: Trace | None) -> Reason:
    """Where the way from the loss to the tensor was cut."""
    if trace is not None:
        cuts = [*(trace.cuts_before(loss) or trace.left)]
        if cuts:
            cut = cuts[0]
            text = f"the loss does not lead back to {name}: " + WORDS[cut.kind].format(how=cut.how)
            more = f" ({len(cuts)} such places in all)" if len(cuts) > 1 else ""
            return Reason(cut.kind, text + more, cut.place, ADVICE[cut.kind])
        use = "nothing was computed from it" if not trace.calls else "what was computed from it did not enter the loss"
        return Reason("unused", f"the loss does not depend on {name}: {use}", None, "use it in the forward")
    mine = Saved("", tensor._array).memory
    for node in nodes:
        for saved in saved_of(node):
            if saved.memory is mine and saved.tensor is not None and saved.tensor is not tensor:
                if saved.tensor._detached_at is not None:
                    return cut_off(f"{op_name(node)} was given an alias of {name}", saved.tensor)
                text = f"{op_name(node)} was given an alias of {name} without history, from NumPy perhaps"
                return Reason("detach", text, location_of(node), ADVICE["detach"])
    if loss._detached_at is not None and not wants_grad(loss):
        return cut_off("the loss has no graph", loss)
    ask = "give why_no_grad a function that computes the loss to be sure"
    if not wants_grad(loss):
        return Reason("no_graph", "the loss has no graph: nothing it was computed from requires gradients", None, ask)
    for node in nodes:
        for saved in saved_of(node):
            if saved.tensor is not None and saved.tensor._detached_at is not None:
                found = cut_off(
                    f"the loss does not lead to {name}; {op_name(node)} was given a tensor without history",
                    saved.tensor,
                )
                found.advice = ask
                return found
    text = f"the graph of the loss does not lead to {name}: it was not used, or was cut off on the way"
    return Reason("unused", text, None, ask)


# ------------------------------------------------------------------ the way is there


def on_the_way(name: str, tensor: Tensor, loss: Tensor, nodes: list[Node]) -> Reason:
    """The graph leads to the tensor: what becomes of the gradient on its way."""
    grad = tensor._grad
    if grad is not None and grad._array.any():
        return Reason("has_grad", f"{name} has a gradient")
    freed = next((saved for node in nodes for saved in saved_of(node) if saved.freed), None)
    if freed is not None:
        if grad is not None:
            return Reason("zero", f"{name} has a gradient; it is zero everywhere", None, RUN_AGAIN)
        if not tensor.is_leaf:
            text = f"backward had run before {name}.retain_grad() was called"
            return Reason("not_retained", text, None, "call retain_grad() before backward")
        text = (
            f"backward has run and {name}.grad is None since: zero_grad() or .grad = None came after it, or the "
            "gradient went elsewhere (autograd.grad, backward(inputs=...))"
        )
        return Reason("cleared", text, freed.freed_at, "read .grad between backward() and zero_grad()")
    try:
        flow = Flow(loss, key_of(tensor), nodes)
    except RuntimeError as error:
        first = str(error).splitlines()[0].split(". ")[0]
        written = next((s.written_at for node in nodes for s in saved_of(node) if s.stale), None)
        return Reason("fails", f"backward fails before it reaches {name}: {first}", written, "see explain(loss)")
    if flow.grad is None or not flow.grad.any():
        return flow.stopped(name)
    if grad is not None:
        return Reason("zero", f"{name} has a gradient; it is zero, though this loss would add another to it")
    text = f"nothing stands in the way: backward has not run on this loss, or {name}.grad was set to None since"
    return Reason("not_called", text, None, "call backward() on the loss")


RUN_AGAIN = "call why_no_grad before backward, or backward(retain_graph=True), to find the op that made it zero"


class Flow:
    """A backward pass towards one target, to see where the gradient ends: no hooks, nothing is stored or freed."""

    def __init__(self, loss: Tensor, key: tuple[Target, int], nodes: list[Node]) -> None:
        self.lost: list[tuple[Node, str]] = []
        """Nodes that got a gradient and sent none on, or only zeros."""
        target, nr = key
        needed, _ = needed_for(nodes, {target})
        arrived: dict[Target, Any] = {}
        with pullback.no_grad():
            start, output = key_of(loss)
            deliver(start, output, pullback.ones_like(loss)._array, arrived)
            for node in nodes:
                if node in needed and node is not target:
                    self.pass_on(node, arrived, needed)
        grad = arrived.get(target)
        self.grad = grad[nr] if isinstance(grad, list) else grad

    def pass_on(self, node: Any, arrived: dict[Target, Any], needed: set[Target]) -> None:
        """One node: what comes in, and what goes on towards the target."""
        grad = arrived.pop(node, None)
        if grad is None and not node.takes_none:
            return
        outs = as_hooks_see(node, node.backward(grad), None)
        sent = []
        for edge, out in zip(node.edges, outs, strict=True):
            if edge is not None and target_of(edge) in needed:
                sent.append(out)
                if out is not None:
                    deliver(target_of(edge), parts(edge)[1], out, arrived)
        if not some(grad if node.multiple else [grad]):
            return
        if all(out is None for out in sent):
            self.lost.append((node, "none"))
        elif not some(sent):
            self.lost.append((node, "zero"))

    def stopped(self, name: str) -> Reason:
        """Where the gradient ended."""
        if not self.lost:
            if self.grad is None:
                return Reason("none", f"no gradient arrives at {name}")
            return Reason("zero", f"the gradients that arrive at {name} add up to zero")
        node, kind = (
            next(((n, k) for n, k in self.lost if k == "none"), self.lost[-1]) if self.grad is None else self.lost[-1]
        )
        if kind == "none" and isinstance(node, BackwardCFunction):
            text = f"{name} gets nothing: backward of {op_name(node)} returned None for it"
            return Reason("none", text, location_of(node), f"return a gradient from {op_name(node)}.backward")
        what = "sends no gradient on" if kind == "none" else "multiplies it by zero everywhere"
        return Reason(kind, f"the gradient of {name} ends at {node_name(node)}, which {what}", location_of(node))


def some(grads: Any) -> bool:
    """True if a gradient is not zero everywhere."""
    return any(grad is not None and grad.any() for grad in grads or ())
