"""From an op's declaration to source: its eager function and its node class. Runs once per op, on the first call.

The eager function is the fast path. One test sends every unusual call (a rare mode, a subclass, mixed dtypes, out=)
to the reference path in _op/apply.py, and so does any exception, since that path knows how to say what is wrong.
Otherwise it is straight-line code: compute the array, fill a Tensor and, if a gradient is wanted, a node.
`pullback.show(op)` prints what is generated; tests keep golden copies of five ops.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from pullback import _tensor
from pullback._arrays.memory import element_strides, geometry_of
from pullback._arrays.sizes import translated
from pullback._dtype import FROM_NUMPY
from pullback._modes import is_grad_enabled, modes
from pullback._op import apply, formerly, results, several
from pullback._op.constants import constant, in_formula, unrounded
from pullback._op.declare import DERIVE, REQUIRED, Op, names_of
from pullback._op.inline import chooses
from pullback._op.locations import detached, location_lines
from pullback._op.missing import MISSING
from pullback._op.named import return_type
from pullback._op.nodes import leaves_out, node_source, part_source
from pullback._op.readings import reread
from pullback._op.signatures import Rare, arguments, public_name, renamed, signature
from pullback._op.ufuncs import (
    ARITHMETIC,
    chosen_forward,
    is_traced,
    large_forward,
    laying_out,
    refused_kinds,
    ufunc_of,
)
from pullback._runtime.builtins import bare
from pullback._runtime.quiet import quiet
from pullback._tensor import Tensor
from pullback._thresholds import LARGE, MANY
from pullback.autograd import locations, numbering, saved, view
from pullback.autograd import node as nodes
from pullback.autograd.tracebacks import trim
from pullback.kernels.jit.pointwise.fused import Kernels
from pullback.kernels.jit.small.choose import Chooser, Variants, ufunc_chooser

BASE = {
    "__name__": "pullback.ops.generated",
    "FLOAT32": np.dtype("float32"),
    "CALLER": None,
    "FREED": saved.FREED,
    "LARGE": LARGE,
    "MANY": MANY,
    "Node": nodes.Node,
    "FROM_NUMPY": FROM_NUMPY,
    "MULTI_OUTPUT_NODE": view.MULTI_OUTPUT_NODE,
    "NOBODY": locations.NOBODY,
    "NOWHERE": locations.NOWHERE,
    "PRISTINE": _tensor.PRISTINE,
    "quiet": quiet,
    "translated": translated,
    "Parameter": _tensor.Parameter,
    "Tensor": Tensor,
    "USER": locations.USER,
    "apply": apply.apply,
    "asarray": np.asarray,
    "bare_tensor": _tensor.bare_tensor,
    "bare_view": view.bare_view,
    "call_of_once": formerly.call_of_once,
    "constant": constant,
    "detached_among": results.detached_among,
    "detached_here": locations.detached_here,
    "dtype_step": results.dtype_step,
    "element_strides": element_strides,
    "follow": view.follow,
    "find": locations.find,
    "flipped": results.flipped,
    "geometry_of": geometry_of,
    "getframe": locations.getframe,
    "here": locations.here,
    "is_grad_enabled": is_grad_enabled,
    "load_array": apply.load_array,
    "load_tensor": apply.load_tensor,
    "locate": locations.locate,
    "make_view": view.make_view,
    "modes": modes,
    "ndarray": np.ndarray,
    "own_stack": locations.own_stack,
    "new_tuple": tuple.__new__,
    "stale": saved.stale,
    "trim": trim,
    "wrap": _tensor.wrap,
}


# ------------------------------------------------------------------ the eager function


def eager_source(op: Op, ufunc: Any, known: Rare | None) -> Iterator[str]:
    """The fast path of an op, line by line."""
    once = bool(op.formerly) and known is not None
    yield f"def {op.key}({signature(op.params, known is not None, once)}):"
    if op.differentiable and not op.private:
        yield "    global CALLER"  # the last of the user's functions that called this one
    yield from trimmed(eager_lines(op, ufunc, known, once))


def trimmed(lines: Iterable[str]) -> Iterator[str]:
    """The body of a function of which no traceback speaks: see autograd/tracebacks.py."""
    yield "    try:"
    yield from ("    " + line for line in lines)
    yield "    except Exception as error: trim(error); raise"


def eager_lines(op: Op, ufunc: Any, known: Rare | None, once: bool) -> Iterator[str]:
    """The body of the fast path."""
    if once:
        given = ", ".join([public_name(p.name) for p in op.params if not p.keyword_only])
        keywords = "".join(f", {p.name}={p.name}" for p in op.params if p.keyword_only)
        yield f"    if more: return call_of_once(OP, ({given}, *more), dict(rare{keywords}))"
    if known is not None:
        yield "    if rare:"
        yield f"        {known.source()}"
        if known.out:
            yield f"        if out is not None: return apply(OP, {arguments(op)}, out)"
    slow = f"return apply(OP, {arguments(op)})"
    if op.layout == "sparse":
        yield f"    {slow}"
        return
    if op.flips:
        name = public_name(op.tensors[0])
        bare = f"type({name}) is Tensor and not {name}._requires_grad and {name}._view is None and not modes.active"
        yield f"    if {bare}: return flipped(OP, {name})"
        yield f"    {slow}"
        return
    rare = ["modes.active"]
    for t in op.tensors:
        if op.fast_kind(t) == "tensor":
            name = public_name(t)
            rare.append(f"(type({name}) is not Tensor and type({name}) is not Parameter)")
    yield f"    if {' or '.join(rare)}: {slow}"
    for t in sorted(op.tensors, key=lambda t: op.fast_kind(t) != "tensor"):
        yield from take(op, t, slow)
    yield from same_dtype(op, slow)
    refused = refused_kinds(op, ufunc) if ufunc is not None else ""
    if refused:
        first = f"{op.tensors[0]}_array.dtype"
        usual = "" if "f" in refused else f"{first} is not FLOAT32 and "
        yield f"    if {usual}{first}.kind in {refused!r}: {slow}"
    target = ", ".join(f"{o}_out" for o in op.outputs) if not op.variadic else "outs"
    # The reference path runs after the handler: what it raises is no consequence of what was raised here.
    yield "    try:"
    yield f"        {target} = {computation(op, ufunc)}"
    yield "    except Exception: pass"
    yield "    else:"
    if op.multiple:
        rest = several.lines(op, f"RECORD(({target},), {arguments(op)})", node_lines)
    else:
        rest = result_lines(op, ufunc, slow)
    yield from ("    " + line for line in rest)
    yield f"    {slow}"


def result_lines(op: Op, ufunc: Any, slow: str) -> Iterator[str]:
    """From the array an op has computed to the tensor its caller gets."""
    yield "    if type(result_out) is not ndarray: result_out = asarray(result_out)"
    if op.floats:
        first = next(t for t in op.tensors if op.fast_kind(t) in ("tensor", "list"))
        # A ufunc of float32 gives float32: then the second look is saved.
        plain = any(p.kind == "plain" for p in op.params)
        usual = "" if ufunc is None or plain else f"{first}_array.dtype is not FLOAT32 and "
        yield f"    if {usual}result_out.dtype is not {first}_array.dtype: {slow}"
    yield "    made = bare_tensor()"
    yield "    made._array = result_out"
    yield "    made._grad = made._extra = made._view = None"
    if op.view:
        yield from view_lines(op)
    elif "result" not in op.saved:
        yield "    made._counter = PRISTINE"
    if op.differentiable:
        wants = " or ".join(f"{t}_wants" for t in op.differentiable)
        yield f"    if ({wants}) and is_grad_enabled():"
        if "result" in op.saved and not op.view:
            yield "        made._counter = [0]"
        yield from ("        " + line for line in node_lines(op))
        yield "        made._requires_grad = True"
        yield "        made._edge = node"
        yield "        made._detached_at = None"
        yield "        return made"
    if "result" in op.saved and not op.view:
        yield "    made._counter = PRISTINE"
    yield "    made._requires_grad = False"
    yield "    made._edge = None"
    yield f"    made._detached_at = {detached(op)}"
    yield "    return made"


def computation(op: Op, ufunc: Any) -> str:
    """The expression that computes the arrays of the results."""
    plain = [p.name for p in op.params if p.kind == "plain"]
    given = [f"{p.name}_array" if p.kind != "plain" else public_name(p.name) for p in op.params if not p.keyword_only]
    call = f"({', '.join([*given, *(f'{p.name}={p.name}' for p in op.params if p.keyword_only)])})"
    first = next((t for t in op.tensors if op.fast_kind(t) == "tensor"), next(iter(op.tensors), None))
    limit = "LARGE" if ufunc is None else "MANY"
    large = f"KERNELS{call} if {first}_array.size >= {limit} else " if is_traced(op) else ""
    forward = f"FORWARD{call}" if op.view else f"quiet().run(FORWARD, {call[1:]}"
    if ufunc is None:
        chosen = chosen_forward(op)
        if type(chosen) is Chooser:  # looks at sizes itself
            return f"POINTWISE{call}"
        if type(chosen) is Variants:  # too, and takes everything by position
            return f"POINTWISE({', '.join([*given, *(p.name for p in op.params if p.keyword_only)])})"
        return f"{large}{forward}"
    arrays = ", ".join(f"{t}_array" for t in op.tensors)
    chosen = ufunc_chooser(ufunc) is not None
    bare = f"UFUNC({arrays})" if chosen else f"quiet().run(UFUNC, {arrays})"
    usual = " and ".join(f"{p} is DEFAULT_{p}" for p in plain)
    if not chosen:
        return f"{large}{bare} if {usual} else {forward}" if plain else f"{large}{bare}"
    return f"{bare} if {usual} else {large}{forward}" if plain else bare


def take(op: Op, t: str, slow: str) -> Iterator[str]:
    """Lines that read the array of one tensor argument and whether it wants a gradient."""
    name, kind, differentiable = public_name(t), op.fast_kind(t), t in op.differentiable
    if kind == "tensor":
        yield f"    {t}_array = {name}._array"
        if t == leading(op):
            yield f"    {t}_dtype = {t}_array.dtype"
        if differentiable:
            yield f"    {t}_wants = {name}._requires_grad if {name}._view is None else follow({name})"
    elif kind == "list":
        yield f"    if type({name}) is not list and type({name}) is not tuple: {slow}"
        yield f"    {t}_array = []"
        yield f"    {t}_wants = False"
        yield f"    for item in {name}:"
        if t in op.may_lack_items:
            yield f"        if item is None: {t}_array.append(None); continue"
        yield f"        if type(item) is not Tensor and type(item) is not Parameter: {slow}"
        if differentiable:
            yield f"        if item._requires_grad if item._view is None else follow(item): {t}_wants = True"
        yield f"        {t}_array.append(item._array)"
    else:
        counted = t in op.saved
        yield f"    if type({name}) is Tensor or type({name}) is Parameter:"
        yield f"        {t}_array = {name}._array"
        if counted:
            yield f"        {t}_counter = {name}._counter"
        if differentiable:
            yield f"        {t}_wants = {name}._requires_grad if {name}._view is None else follow({name})"
        if kind == "optional":
            absent = [f"{t}_array = None", *([f"{t}_wants = None"] if differentiable else [])]
            yield f"    elif {name} is None: {'; '.join([*absent, *([f'{t}_counter = PRISTINE'] if counted else [])])}"
            yield f"    else: {slow}"
        else:
            first = next((s for s in op.promote or op.tensors if op.fast_kind(s) == "tensor"), None)
            if first is None:
                yield f"    else: {slow}"
            else:
                yield f"    elif type({name}) is bool: {slow}" if op.check_operands else "    else:"
                if op.check_operands:
                    yield "    else:"
                dtype = f"{first}_dtype" if first == leading(op) else f"{first}_array.dtype"
                yield f"        {t}_array = constant({name}, {dtype})"
                yield f"        if {t}_array is None: {slow}"
                if differentiable:
                    yield f"        {t}_wants = None"
                if counted:
                    yield f"        {t}_counter = PRISTINE"


def view_lines(op: Op) -> Iterator[str]:
    """Lines that make the result a view of the first argument: `make_view`, without the call in the usual case."""
    name = public_name(op.tensors[0])
    if op.changes_dtype:
        yield f"    make_view(made, {name}, 0, dtype_step(OP, {arguments(op)}))"
        return
    yield f"    counter = {name}._counter"
    yield f"    parent = {name}._view"
    yield "    if type(counter) is list and (parent is None or not parent.steps) and is_grad_enabled():"
    yield "        made._counter = counter"
    yield "        made._view = view = bare_view()"
    yield f"        if parent is None: view.base = {name}; view.creation = 0"
    yield "        else: view.base = parent.base; view.creation = parent.creation"
    yield "        view.steps = ()"
    yield "        view.version = counter[0]"
    yield f"    else: make_view(made, {name})"


def same_dtype(op: Op, slow: str) -> Iterator[str]:
    """Lines that leave the fast path when dtypes have to be promoted."""
    if not op.promote:
        return
    first, *rest = op.promote
    if op.kinds[first] == "list":
        yield f"    for item in {first}_array:"
        yield f"        if item.dtype is not {first}_array[0].dtype: {slow}"
        return
    dtype = f"{first}_dtype" if first == leading(op) else f"{first}_array.dtype"
    for other in rest:
        yield f"    if {other}_array.dtype is not {dtype}: {slow}"


def leading(op: Op) -> str | None:
    """The tensor whose dtype others must have, where it is one that is always given: it is looked at once."""
    return op.promote[0] if len(op.promote) > 1 and op.fast_kind(op.promote[0]) == "tensor" else None


def keeps_dtype(op: Op) -> bool:
    """Whether what has a gradient has the dtype that its operands share."""
    ufunc = ufunc_of(op)
    if leading(op) is None or len(op.promote) < len(op.params) or ufunc is None:
        return False
    return all([loop[0] == loop[-1] for loop in ufunc.types if loop[0] == loop[1] and loop[0] in "efdFD"])


def node_lines(op: Op) -> Iterator[str]:
    """Lines that make the node of a call: edges, metadata and what the formulas will need."""
    yield "node = bare_node()"
    edges = []
    for t in op.differentiable:
        name, kind = public_name(t), op.fast_kind(t)
        if kind == "list":
            edges.append(f"*[item._edge or (item if item._requires_grad else None) for item in {name}]")
        elif kind == "tensor":
            edges.append(f"{name}._edge or ({name} if {name}._requires_grad else None)")
        else:
            edges.append(f"({name}._edge or ({name} if {name}._requires_grad else None) if {t}_wants else None)")
    yield f"node.edges = ({', '.join(edges)},)"
    yield "node.sequence_nr = next_sequence_nr()"
    yield from location_lines(op)
    if op.multiple:
        yield "node.shape = node.dtype = None"
        yield f"node.metas = {several.metas(op)}"
    else:
        yield "node.shape = result_out.shape"
        yield f"node.dtype = {leading(op)}_dtype" if keeps_dtype(op) else "node.dtype = result_out.dtype"
    yield "node.hooks = None"
    for s in op.saved:
        users = [t for t in op.differentiable if op.joint is not None or s in names_of(op.formulas[t])]
        if s in op.tensors and op.kinds[s] != "list" and len(op.differentiable) > len(users):
            yield f"if {' or '.join(t + '_wants' for t in users)}:"
            yield from ("    " + line for line in save_lines(op, s))
            yield f"else: node.{s}_ = None; node.{s}_version = 0"
        else:
            yield from save_lines(op, s)


def save_lines(op: Op, s: str) -> Iterator[str]:
    """Lines that store one saved value on `node`."""
    derived = op.derived_from(s)
    if s in op.outputs:
        yield f"node.{s}_ = {s}_out"
        yield f"node.{s}_counter = {f'{s}_made' if op.multiple else 'made'}._counter"
        yield f"node.{s}_version = 0"
    elif derived is not None:
        source, suffix = derived
        only = f" if {source}_wants else ()" if suffix == "_sym_strides" and source in op.differentiable else ""
        array = f"{source}_array" if source in op.kinds else f"{source}_out"
        yield f"node.{s}_ = " + DERIVE[suffix].format(array) + only
    elif s not in op.tensors:
        yield f"node.{s}_ = {public_name(s)}"
    else:
        name, kind = public_name(s), op.fast_kind(s)
        yield f"node.{s}_ = {f'list({name})' if kind == 'list' else name}"
        if kind == "tensor":
            yield f"node.{s}_version = {name}._counter[0]"
        elif kind == "list":
            absent = "0 if item is None else " if s in op.may_lack_items else ""
            yield f"node.{s}_version = [{absent}item._counter[0] for item in {name}]"
        else:
            yield f"node.{s}_version = {s}_counter[0]"


# ------------------------------------------------------------------ compiling


def compiled(source: str, namespace: dict[str, Any], label: str) -> None:
    """Compile source and register it, so that tracebacks and inspect.getsource show it."""
    filename = f"<pullback {label}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    numbering.hold(namespace)
    exec(compile(source, filename, "exec"), namespace)


def bind_choosers(namespace: dict[str, Any]) -> None:
    """Let the names of pointwise functions stand for builtins as soon as there are some."""
    for name, chooser in namespace["CHOOSERS"].items():
        if type(chooser) is Chooser:
            chooser.bind(namespace, name)


def make_node(op: Op) -> type[Any]:
    """The node class of an op."""
    if op.node is not None:
        return op.node  # type: ignore[no-any-return]
    namespace = dict(BASE)
    if op.unrounded:
        namespace["constant"] = in_formula
    choosers: dict[str, Chooser | None] = {}
    named = [*((f"_{t}", f) for t, f in op.formulas.items() if callable(f)), ("_joint", op.joint)]
    for suffix, formula in named:
        if formula is not None:
            namespace[f"tensor{suffix}"] = formula
            namespace[f"array{suffix}"] = array_formula = reread(formula)
            namespace[f"halves{suffix}"] = results.on_halves(formula)
            kernels = namespace[f"kernels{suffix}"] = Kernels(array_formula, op.node_name + suffix, shapes=True)
            if formula is not op.joint and chooses(op, suffix[1:]):
                choosers[f"pointwise{suffix}"] = Chooser(array_formula, kernels)
    op.node_source = "\n".join(node_source(op))
    namespace |= ARITHMETIC
    namespace["CHOOSERS"] = choosers | {name: ufunc_chooser(ufunc) for name, ufunc in ARITHMETIC.items()}
    bind_choosers(namespace)
    compiled(op.node_source, namespace, op.node_name)
    op.node = namespace[op.node_name]
    op.node.op = op
    op.node.__module__ = "builtins"
    if leaves_out(op):
        op.node.backward_for = step_in_part(op, namespace)
    for s in op.saved:
        if op.hides(s):
            continue
        setattr(op.node, f"_saved_{s}", property(partial(results.saved_attribute, name=s)))
        if s in op.tensors or s in op.outputs:
            setattr(op.node, f"_raw_saved_{s}", property(partial(results.raw_saved, name=s)))
    return op.node  # type: ignore[no-any-return]


def step_in_part(op: Op, namespace: dict[str, Any]) -> Callable[[Any, Any, tuple[bool, ...], bool], Any]:
    """`backward_for` of an op's nodes, generated when a pass through part of the graph first comes by."""
    made: dict[str, Any] = {}

    def backward_for(node: Any, grad: Any, wanted: tuple[bool, ...], on_tensors: bool) -> Any:
        if type(node) is not op.node:  # of another kind of array, which has steps of its own
            return node.backward_tensors(grad) if on_tensors else node.backward(grad)
        reading = "tensor" if on_tensors else "array"
        step = made.get(reading)
        if step is None:
            source, label = "\n".join(part_source(op, reading)), f"<pullback {op.node_name} in part, {reading}>"
            linecache.cache[label] = (len(source), None, source.splitlines(True), label)
            names: dict[str, Any] = {}
            exec(compile(source, label, "exec"), namespace, names)
            step = made[reading] = names["part"]
        return step(node, grad, wanted)

    return backward_for


def compile_op(op: Op, with_out: bool = False, public: bool = False) -> Any:
    """The eager function of an op and its node class; a public one takes `out=` and NumPy's names."""
    keywords = Rare(op.name, op.params, with_out) if public and (with_out or renamed(op.params)) else None
    namespace = dict(BASE, OP=op, NAME=op.name, MISSING=MISSING, RARE=keywords, FORWARD=laying_out(op))
    if op.unrounded:
        namespace["constant"] = unrounded
    for p in op.params:
        if p.default is not REQUIRED:
            namespace[f"DEFAULT_{p.name}"] = p.default
    ufunc = ufunc_of(op)
    namespace["UFUNC"] = ufunc
    namespace["KERNELS"] = large_forward(op)
    namespace["POINTWISE"] = chosen_forward(op)
    namespace["CHOOSERS"] = {"UFUNC": ufunc_chooser(ufunc), "POINTWISE": chosen_forward(op)}
    bind_choosers(namespace)
    if op.differentiable:
        namespace["bare_node"] = bare(make_node(op))
    if op.multiple:
        namespace["RECORD"] = results.recorder(op)
        op.fields = op.fields or return_type(op.name, op.outputs[: op.visible])
        namespace["FIELDS"] = op.fields
    op.eager_source = "\n".join(eager_source(op, ufunc, keywords))
    compiled(op.eager_source, namespace, op.key)
    return namespace[op.key]
