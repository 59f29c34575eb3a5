"""Running the graph backwards.

A node is always newer than the nodes its gradients flow to, so "newest first" is a topological order: collect the
reachable nodes, sort by sequence number, one loop. Leaves do not wait for their turn: an AccumulateGrad fires the
moment its last gradient has arrived.

    for each node:   tensor hooks -> retain_grad -> pre-hooks -> capture? -> backward -> post-hooks -> release
                     -> each gradient is fitted to its edge and added to what has arrived there

Gradients travel as raw arrays, or as tensors when the backward pass itself is to be differentiated (create_graph).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from operator import attrgetter
from typing import Any

from pullback._arrays.kinds import is_sparse
from pullback._arrays.sizes import translated
from pullback._foreign import ForeignTensor
from pullback._modes import current_task, grad_enabled, is_grad_enabled, modes
from pullback._runtime.quiet import SILENT, errors, heard
from pullback._tensor import OWN_DTYPE, Extra, Parameter, Tensor, ndarray, new, wrap
from pullback._thresholds import LARGE
from pullback.autograd import anomaly_check, run_hooks, who
from pullback.autograd.accumulate import accumulate_array, accumulate_tensor, in_grad_dtype
from pullback.autograd.collector import collector
from pullback.autograd.fit import fit, fit_leaf, summed
from pullback.autograd.locations import USER, call_of, caller_at, getframe, own_stack
from pullback.autograd.node import AccumulateGrad, Node, accumulator_of
from pullback.autograd.node import target_of as target_of
from pullback.autograd.saved import Freed
from pullback.autograd.task import Key, Target, Task
from pullback.kernels.jit.small.choose import ADD

by_age = attrgetter("sequence_nr")

DEPTH_LIMIT = 20
"""A backward inside a backward inside ... moves to a fresh stack after this many levels."""


def execute(
    roots: list[tuple[Target, int, Any]],
    keep_graph: bool,
    create_graph: bool,
    captures: dict[Key, Any] | None = None,
    accumulate: set[Target] | None = None,
    record: bool = True,
    explain: bool = False,
) -> str:
    """Run backward from the roots: (node, output_nr, gradient as an array or, with create_graph, a tensor).

    With create_graph the steps run on tensors; they are recorded in turn unless `record` is False. With `captures`
    only what lies on the way to them runs, and their gradients are stored there; nodes and leaves named in `accumulate`
    run as well. With `explain`, returns what is known of why a leaf asked for is not reached.
    """
    task = Task(keep_graph, create_graph, captures, record, "" if explain else None)
    if task.depth and task.depth % DEPTH_LIMIT == 0:
        run_on_fresh_stack(lambda: run(task, roots, accumulate))
    else:
        run(task, roots, accumulate)
    return task.lost or ""


def run(task: Task, roots: list[tuple[Target, int, Any]], accumulate: set[Target] | None) -> None:
    """Set the scene for one backward pass."""
    mode, task.loudness = is_grad_enabled(), errors.get()
    scope, stack = None, None
    if task.record:
        stack = own_stack()
        scope, stack.scope = stack.scope, call_of(getframe(2))
    try:  # one `finally` for each: see _runtime/interrupts.py
        try:
            try:
                try:
                    grad_enabled.set(task.record)
                    errors.set(SILENT)
                    current_task.set(task)
                    propagate(task, roots, accumulate)
                    if task.callbacks is not None:
                        for callback in task.callbacks:
                            heard(callback)
                except MemoryError as error:
                    raise translated(error) from None
                finally:
                    if stack is not None:
                        stack.scope = scope
                    current_task.set(task.outer)
            finally:
                grad_enabled.set(mode)
        finally:
            errors.set(task.loudness)
    finally:
        if collector.frozen:
            collector.thaw()


def run_on_fresh_stack(work: Callable[[], None]) -> None:
    """Run in a new thread and wait: it starts with the whole recursion limit to itself."""
    failure: list[BaseException] = []
    context = copy_context()

    def guarded() -> None:
        try:
            context.run(work)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        thread.join()
    except BaseException:  # an interrupt: nobody must find the graph in the middle of a pass
        thread.join()
        raise
    if failure:
        raise failure[0]


# ------------------------------------------------------------------ order


def schedule(roots: list[tuple[Target, int, Any]]) -> tuple[list[Node], dict[Tensor, int]]:
    """Every node reachable from the roots, newest first, and how many gradients each leaf waits for."""
    order: list[Node] = []
    waiting: dict[Tensor, int] = {}
    for root, _, _ in roots:
        if isinstance(root, Tensor):
            waiting[root] = waiting.get(root, 0) + 1
        else:
            order.append(root)
    seen = set(order)
    if len(seen) < len(order):
        order = list(seen)
    found = order.append
    for node in order:  # a list that grows meanwhile
        for edge in node.edges:
            kind = type(edge)
            if kind is Tensor or kind is Parameter:
                waiting[edge] = waiting.get(edge, 0) + 1
                continue
            if edge is None or edge in seen:
                continue
            if kind is tuple:
                edge = edge[0]
                if edge in seen:
                    continue
            elif kind is AccumulateGrad:
                edge = edge.variable
                waiting[edge] = waiting.get(edge, 0) + 1
                continue
            if isinstance(edge, Node):
                seen.add(edge)
                found(edge)
            else:
                waiting[edge] = waiting.get(edge, 0) + 1
    order.sort(key=by_age, reverse=True)
    return order, waiting


def needed_for(order: list[Node], targets: set[Target]) -> tuple[set[Target], set[Node]]:
    """The nodes that lie on a way to one of the targets, targets included, and those from which others lead, too."""
    needed, partial = set(targets), set()
    for node in reversed(order):
        leads = astray = False
        for edge in node.edges:
            if edge is None:
                continue
            if type(edge) is tuple:
                edge = edge[0]
            elif type(edge) is AccumulateGrad:
                edge = edge.variable
            if edge in needed:
                leads = True
            else:
                astray = True
        if leads:
            needed.add(node)
            if astray:
                partial.add(node)
    return needed, partial


# ------------------------------------------------------------------ the loop


def propagate(task: Task, roots: list[tuple[Target, int, Any]], accumulate: set[Target] | None) -> None:
    """Carry gradients from the roots to the leaves."""
    task.order, task.waiting = order, waiting = schedule(roots)
    part = task.captures is not None
    if part:
        keep_to_captures(task, accumulate)
    keep_graph, create_graph, partial = task.keep_graph, task.create_graph, task.partial
    arrived = task.arrived = {}
    owned: set[Target] = set()
    freed = None if keep_graph else freed_here()
    if task.lanes is not None and task.lanes.run(task, roots, freed):
        return
    begin(task, roots)
    careful = create_graph or modes.anomaly or modes.profiler is not None
    plain = not part and not create_graph and modes.profiler is None
    outs: Any
    for node in order:
        grad = arrived.pop(node, None)
        if part and ends_at(task, node, grad):
            continue
        task.node = node
        if grad is None or careful or node.hooks is not None:
            outs = run_node(task, node, grad)
        else:
            try:
                outs = step_for(task, node, grad) if partial and node in partial else node.backward(grad)
            except NotImplementedError:
                outs = stepped_on_tensors(node, grad)
        if not keep_graph:
            node.release(freed)
        grad = None
        # Each gradient travels along its edge. Not in a function of its own: the call would be 5 % of a small node.
        i = -1
        for edge in node.edges:
            i += 1
            if edge is None:
                continue
            nr = 0
            if type(edge) is tuple:
                edge, nr = edge
            elif type(edge) is AccumulateGrad:
                edge = edge.variable
            out = outs[i]
            missing = waiting.get(edge)
            if missing is None:
                if out is None:
                    arrived.setdefault(edge, None)
                    continue
                array = out._array if create_graph else out
                if array.shape != edge.shape or array.dtype is not edge.dtype:
                    out = fit(out, edge, nr, node, i)
                if edge.multiple:
                    deliver(edge, nr, out, arrived)
                    continue
                before = arrived.get(edge)
                if before is None:
                    arrived[edge] = out
                else:
                    join(edge, before, out, arrived, owned)
                continue
            if out is not None:
                array, like = out._array if create_graph else out, edge._array
                if array.shape != like.shape or array.dtype is not like.dtype:
                    out = fit_leaf(out, edge, node, i)
                before = arrived.get(edge)
                if before is None:
                    arrived[edge] = out
                else:
                    join(edge, before, out, arrived, owned)
            waiting[edge] = missing - 1
            if missing == 1:
                out = array = before = None  # else the loop's own names would hold what the leaf may take over
                if plain and edge._extra is None:
                    accumulate_array(edge, arrived, edge)
                else:
                    settle(task, edge)
        outs = out = array = before = None


def keep_to_captures(task: Task, accumulate: set[Target] | None) -> None:
    """Say which nodes run where only those on the way to the captures do."""
    order, captures = task.order, task.captures
    assert captures is not None
    targets = {target for target, _ in captures} | (accumulate or set())
    task.needed, task.partial = needed, _ = needed_for(order, targets)
    # A captured target goes on only if the way to another one leads through it.
    task.stops = {t for t in targets if not leads_on(t, needed)} - (accumulate or set())
    if task.lost is not None and any(isinstance(t, Tensor) and t not in task.waiting for t in targets):
        task.lost = who.lost_in(order)


def begin(task: Task, roots: list[tuple[Target, int, Any]]) -> None:
    """Let the gradients arrive that the pass was given."""
    arrived, waiting = task.arrived, task.waiting
    for root, nr, grad in roots:
        if len(roots) == 1 and not nr and root.shape is not None:
            arrived[root] = grad
        else:
            deliver(root, nr, grad, arrived)
        if root in waiting:
            waiting[root] -= 1
            if waiting[root] == 0:
                settle(task, root)


def ends_at(task: Task, node: Node, grad: Any) -> bool:
    """Where only part of the graph runs: capture what was asked for; True if the way does not lead on from here."""
    assert task.needed is not None and task.captures is not None
    if node not in task.needed:
        return True
    task.node = node
    stops = node in task.stops
    if stops and node.hooks is not None:
        grad = run_hooks.before_capture(node, grad, task.create_graph)
    capture(node, grad, task.captures)
    return stops


def run_node(task: Task, node: Node, grad: Any) -> Any:
    """What a node makes of what arrived there, on arrays or on tensors, with its hooks and under every mode."""
    create_graph = task.create_graph
    if node.hooks is not None:
        grad = run_hooks.before(node, grad, create_graph)
    outs: Any
    if grad is None and not node.takes_none:
        outs = (None,) * len(node.edges)
    elif modes.anomaly or modes.profiler is not None:
        outs = anomaly_check.run_node(node, grad, lambda: step_for(task, node, grad))
    elif create_graph:
        outs = step_for(task, node, grad) if task.record else unrecorded(node, grad)
    else:
        try:
            outs = step_for(task, node, grad)
        except NotImplementedError:
            outs = stepped_on_tensors(node, grad)
    if node.hooks is not None and node.hooks.post:
        outs = as_hooks_see(node, outs, task.needed)
        outs = run_hooks.after(node, outs, grad, create_graph)
    return outs


def step_for(task: Task, node: Node, grad: Any) -> Any:
    """The gradients of a node's inputs; only those that lead to what the pass is for."""
    if node not in task.partial:
        return node.backward_tensors(grad) if task.create_graph else node.backward(grad)
    assert task.needed is not None
    wanted = tuple([edge is not None and target_of(edge) in task.needed for edge in node.edges])
    return node.backward_for(grad, wanted, task.create_graph)


def stepped_on_tensors(node: Node, grad: Any) -> Any:
    """A step that failed on arrays, because a sparse gradient is none that a kernel could read: tensors know its rules.

    Called while the error is handled, which is raised again if the gradient is not sparse.
    """
    given = grad if type(grad) is list else [grad]
    if not any([is_sparse(one) for one in given]):
        raise
    wrapped = [None if one is None else wrap(one) for one in given]
    outs = node.backward_tensors(wrapped if type(grad) is list else wrapped[0])
    return tuple([None if out is None else out._array for out in outs])


def unrecorded(node: Node, grad: Any) -> Any:
    """A step on tensors that nobody wants recorded: on another device its formula is read for the arrays there."""
    first = next((g for g in grad if g is not None), None) if type(grad) is list else grad
    if isinstance(first, ForeignTensor) and hasattr(node, "op"):
        return type(first._array).stepped(node, grad)
    if modes.dispatch is not None:
        return modes.dispatch.step(node, grad)
    return node.backward_tensors(grad)


def join(target: Target, before: Any, grad: Any, arrived: dict[Target, Any], owned: set[Target]) -> None:
    """Add a gradient to one that has arrived: in place once the sum is an array of the engine's own."""
    if target in owned:
        if before.size < LARGE or type(grad) is not ndarray:
            before += grad
        else:
            ADD.into(before, before, grad)
        return
    arrived[target] = out = ADD.head(before, grad) if type(before) is type(grad) is ndarray else summed(before, grad)
    if type(out) is ndarray:
        owned.add(target)


def freed_here() -> Freed:
    """What stands where this backward frees saved tensors: it knows the line that called it."""
    freed = new(Freed)
    try:
        frame = getframe(5)  # of who called the function of autograd/api.py that called execute
    except ValueError:
        frame = getframe(1)
    code = frame.f_code
    freed.code, freed.offset = (code, frame.f_lasti) if code.co_filename in USER else caller_at(frame)
    return freed


def as_hooks_see(node: Node, outs: Any, needed: set[Target] | None) -> list[Any]:
    """What a node made, fitted to its edges; nothing where the pass does not go on."""
    seen = []
    for i, (out, edge) in enumerate(zip(outs, node.edges, strict=True)):
        target = target_of(edge)
        if out is None or edge is None or (needed is not None and target not in needed and not node.takes_none):
            seen.append(None if edge is not None or not node.takes_none else out)
        else:
            to = accumulator_of(target) if isinstance(target, Tensor) else target
            seen.append(fit(out, to, edge[1] if type(edge) is tuple else 0, node, i))
    return seen


def leads_on(target: Target, needed: set[Target]) -> bool:
    """True if some other target lies beyond this one."""
    if isinstance(target, Tensor):
        return False
    return any(target_of(edge) in needed for edge in target.edges if edge is not None)


def width(node: Any) -> int:
    """How many outputs a node's op had."""
    return len(node.metas) if node.multiple else 1


def deliver(target: Target, nr: int, grad: Any, arrived: dict[Target, Any]) -> None:
    """Add a gradient to what has arrived at output `nr` of a node."""
    if isinstance(target, Tensor) or not target.multiple:
        before = arrived.get(target)
        arrived[target] = grad if before is None else before if grad is None else summed(before, grad)
        return
    slots = arrived.get(target)
    if slots is None:
        slots = arrived[target] = [None] * width(target)
    if grad is not None:
        slots[nr] = grad if slots[nr] is None else summed(slots[nr], grad)


def capture(node: Node, grad: Any, captures: dict[Key, Any]) -> None:
    """Store gradients somebody asked for."""
    if not node.multiple:
        if (node, 0) in captures:
            captures[node, 0] = grad
    elif grad is not None:
        for nr, part in enumerate(grad):
            if (node, nr) in captures:
                captures[node, nr] = part


# ------------------------------------------------------------------ leaves


def settle(task: Task, leaf: Tensor) -> None:
    """All gradients of a leaf have arrived: its hooks, then `.grad`."""
    if modes.profiler is None:
        settle_leaf(task, leaf)
    else:
        modes.profiler.run_node(accumulator_of(leaf), lambda: settle_leaf(task, leaf))


def settle_leaf(task: Task, leaf: Tensor) -> None:
    """What happens at a leaf."""
    create_graph, arrived, needed, extra = task.create_graph, task.arrived, task.needed, leaf._extra
    if needed is None and (extra is None or takes_any(extra)):
        if create_graph:
            accumulate_tensor(leaf, arrived.pop(leaf, None))
        else:
            accumulate_array(leaf, arrived, leaf)
        if extra is not None and extra.post_accumulate:
            task.node = accumulator_of(leaf)
            run_hooks.after_accumulation(leaf)
        return
    if needed is not None and leaf not in needed:
        arrived.pop(leaf, None)
        return
    node = accumulator_of(leaf)
    task.node = node
    grad = run_hooks.before_leaf(node, in_grad_dtype(leaf, arrived.pop(leaf, None)), create_graph, leaf in task.stops)
    if task.captures is not None and (leaf, 0) in task.captures:
        task.captures[leaf, 0] = grad
    if leaf in task.stops:
        return
    if grad is not None:
        if create_graph:
            accumulate_tensor(leaf, grad)
        else:
            accumulate_array(leaf, {leaf: grad}, leaf)
    run_hooks.after_leaf(node, grad, create_graph)


def takes_any(extra: Extra) -> bool:
    """True if a leaf takes gradients as they come: nobody sees them before, none is wanted in another dtype."""
    node = None if extra.accumulator is None else extra.accumulator()
    return not extra.hooks and extra.grad_dtype is OWN_DTYPE and (node is None or node.hooks is None)
