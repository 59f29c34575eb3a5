"""The class of an op's nodes, as source: how backward reads what was saved and calls the formulas."""

from __future__ import annotations

from collections.abc import Iterator

from pullback._op.declare import Op, names_of
from pullback._op.inline import formula_call


def slots(op: Op) -> Iterator[str]:
    """The slots of the node: `x_` a saved value, `x_version` the version it had, `x_counter` an output's counter."""
    for s in op.saved:
        yield f"{s}_"
        if s in op.tensors or s in op.outputs:
            yield f"{s}_version"
        if s in op.outputs:
            yield f"{s}_counter"
    if op.multiple:
        yield "metas"


def node_source(op: Op) -> Iterator[str]:
    """The node class of an op: backward on arrays and on tensors, and release."""
    yield f"class {op.node_name}(Node):"
    yield f"    __slots__ = {tuple(slots(op))!r}"
    outputs = {s: op.outputs.index(s) for s in op.saved if s in op.outputs}
    yield f"    saved_outputs = {outputs!r}"
    if op.multiple:
        yield "    multiple = True"
        yield "    def output_meta(node, nr): return node.metas[nr]"
    for reading, method in (("array", "backward"), ("tensor", "backward_tensors")):
        yield f"    def {method}(node, {'grads' if op.multiple else 'grad'}):"
        yield from ("        " + line for line in backward_lines(op, reading))
    kept = [s for s in op.saved if s in op.tensors or s in op.outputs]
    if kept:
        yield "    def release(node, freed=FREED):"
        yield f"        {' = '.join(f'node.{s}_' for s in kept)} = freed"


def leaves_out(op: Op) -> bool:
    """Whether a step can leave out the gradients that a pass through part of the graph does not want."""
    if op.joint is not None:
        return "wants" in names_of(op.joint)
    return len(op.differentiable) > 1 and not any(op.kinds[t] == "list" for t in op.differentiable)


def part_source(op: Op, reading: str) -> Iterator[str]:
    """The same step for the gradients in `wanted` alone. It reads all that was saved, as torch does: what has been
    written over is told even where only a gradient that nobody asked for needs it."""
    yield f"def part(node, {'grads' if op.multiple else 'grad'}, wanted):"
    if op.joint is None:
        yield f"    {', '.join('wants_' + t for t in op.differentiable)} = wanted"
    yield from ("    " + line for line in backward_lines(op, reading, part=True))


def backward_lines(op: Op, reading: str, part: bool = False) -> Iterator[str]:
    """The body of backward in one reading; `part`: of the gradients that are wanted."""
    used = {n for f in (*op.formulas.values(), op.joint) if callable(f) for n in names_of(f)}
    if op.multiple:
        for i, o in enumerate(op.outputs):
            if f"grad_{o}" in used:
                yield f"grad_{o} = grads[{i}]"
        if "grad" in used:
            yield "grad = grads[0]"
    if op.joint is not None:
        if "wants" in names_of(op.joint):
            yield "wants = wanted" if part else "wants = tuple([edge is not None for edge in node.edges])"
        for s in names_of(op.joint):
            yield from load_lines(op, s, reading)
        yield f"return {reading}_joint({', '.join(names_of(op.joint))})"
        return
    single = len(op.differentiable) == 1
    if not single and not any(op.kinds[t] == "list" for t in op.differentiable):
        yield f"{', '.join('to_' + t for t in op.differentiable)} = node.edges"
    uses = [s for t in op.differentiable for s in dict.fromkeys(names_of(op.formulas[t]))]
    shared = [s for s in dict.fromkeys(uses) if uses.count(s) > 1]
    for s in shared:  # read once, as unpack hooks can see
        yield from load_lines(op, s, reading)
    for t in op.differentiable:
        pad = ""
        if not single and op.kinds[t] != "list":
            yield f"if to_{t} is None: d_{t} = None"
            yield "else:"
            pad = "    "
        for s in names_of(op.formulas[t]):
            for line in () if s in shared else load_lines(op, s, reading):
                yield pad + line
        call = formula_call(op, t, reading)
        yield pad + f"d_{t} = " + (f"({call}) if wants_{t} else None" if part else call)
    yield f"return ({', '.join(('*' if op.kinds[t] == 'list' else '') + 'd_' + t for t in op.differentiable)},)"


def load_lines(op: Op, s: str, reading: str) -> Iterator[str]:
    """Lines that read one saved value back, checking that nobody has written over it."""
    if s in ("grad", "grads", "wants") or (s.startswith("grad_") and s not in op.kinds):
        return
    if s in op.outputs:
        yield f"{s} = node.{s}_"
        if reading == "array":
            stale = f"type({s}) is not ndarray or node.{s}_counter[0] != node.{s}_version"
            yield f"if {stale}: {s} = load_array(node, '{s}')"
        else:
            yield f"{s} = load_tensor(node, '{s}')"
    elif s in op.tensors and op.kinds[s] == "list":
        yield f"{s} = [load_{reading}(node, '{s}', i) for i in range(len(node.{s}_))]"
    elif s in op.tensors:
        yield f"{s} = node.{s}_"
        yield f"if type({s}) is Tensor or type({s}) is Parameter:"
        yield f"    if {s}._counter[0] != node.{s}_version: stale(node, {s}, node.{s}_version)"
        if reading == "array":
            yield f"    {s} = {s}._array"
            if op.kinds[s] == "number" and not op.multiple:
                yield f"elif type({s}) is float: {s} = constant({s}, node.dtype)"
        yield f"else: {s} = load_{reading}(node, '{s}')"
    else:
        yield f"{s} = node.{s}_"
