"""The end of the fast path of an op with several outputs: a tensor for each, and one node for all.

max, sort, topk ... a fixed number of outputs, returned as a named tuple; integer outputs have no history
unbind, split ..... as many as the arguments say, returned as a tuple; views of one another's base
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pullback._op.declare import Op
from pullback._op.locations import detached


def lines(op: Op, record: str, node_lines: Callable[[Op], Iterator[str]]) -> Iterator[str]:
    """From the arrays the forward returned to what the caller gets; what is unusual goes to `record`."""
    if op.variadic:
        yield from variadic_lines(op, node_lines)
    elif op.view:
        yield f"    return {record}"
    else:
        yield from fixed_lines(op, record, node_lines)


def metas(op: Op) -> str:
    """The shape and dtype of every output, as source."""
    if op.variadic:
        return "[(array.shape, array.dtype) for array in outs]"
    return f"[{', '.join(f'({o}_out.shape, {o}_out.dtype)' for o in op.outputs)}]"


def fixed_lines(op: Op, record: str, node_lines: Callable[[Op], Iterator[str]]) -> Iterator[str]:
    """A fixed number of outputs, each with a name."""
    yield f"    if {' or '.join(f'{o}_out is None' for o in op.outputs)}: return {record}"
    for o in op.outputs:
        yield f"    if type({o}_out) is not ndarray: {o}_out = asarray({o}_out)"
        yield f"    {o}_made = bare_tensor()"
        yield f"    {o}_made._array = {o}_out"
        yield f"    {o}_made._grad = {o}_made._extra = {o}_made._view = {o}_made._edge = {o}_made._detached_at = None"
        yield f"    {o}_made._requires_grad = False"
        yield f"    {o}_made._counter = PRISTINE"
    if op.differentiable:
        yield f"    if ({' or '.join(f'{t}_wants' for t in op.differentiable)}) and is_grad_enabled():"
        yield from (f"        {o}_made._counter = [0]" for o in op.outputs if o in op.saved)
        yield from ("        " + line for line in node_lines(op))
        for nr, o in enumerate(op.outputs):
            if o in op.constants:
                continue
            yield f"        if FROM_NUMPY[{o}_out.dtype].category >= 2:"
            yield f"            {o}_made._requires_grad = True"
            yield f"            {o}_made._edge = {f'(node, {nr})' if nr else 'node'}"
            yield f"        else: {o}_made._detached_at = (NAME, node._code, node._offset, node._scope)"
        yield "    else:"
    indent = "        " if op.differentiable else "    "
    yield f"{indent}{' = '.join(f'{o}_made._detached_at' for o in op.outputs)} = {detached(op)}"
    shown = [f"{o}_made" for o in op.outputs[: op.visible]]
    if len(shown) == 1:
        yield f"    return {shown[0]}"
    elif isinstance(op.fields, type):
        yield f"    return new_tuple(FIELDS, ({', '.join(shown)}))"
    else:
        yield f"    return FIELDS({', '.join(shown)})"


def variadic_lines(op: Op, node_lines: Callable[[Op], Iterator[str]]) -> Iterator[str]:
    """A list of outputs, made in a loop."""
    yield "    node = None"
    if op.differentiable:
        yield f"    if ({' or '.join(f'{t}_wants' for t in op.differentiable)}) and is_grad_enabled():"
        yield from ("        " + line for line in node_lines(op))
    yield f"    detached = None if node is not None else {detached(op)}"
    yield "    made = []"
    if op.view:
        source = "input" if op.tensors[0] == "self" else op.tensors[0]
        yield f"    counter = {source}._counter"
        yield f"    usual = {source}._view is None and type(counter) is list"
    yield "    for array in outs:"
    yield "        tensor = bare_tensor()"
    yield "        tensor._array = array"
    yield "        tensor._grad = tensor._extra = tensor._view = None"
    yield "        tensor._detached_at = detached"
    if op.view:  # what make_view does, without the call in the usual case
        yield "        if usual:"
        yield "            tensor._counter = counter"
        yield "            tensor._view = view = bare_view()"
        yield f"            view.base = {source}"
        yield "            view.creation = MULTI_OUTPUT_NODE"
        yield "            view.steps = ()"
        yield "            view.version = counter[0]"
        yield f"        else: make_view(tensor, {source}, MULTI_OUTPUT_NODE)"
        yield "        if node is not None:"
    else:
        yield "        tensor._counter = PRISTINE"
        yield "        if node is not None and FROM_NUMPY[array.dtype].category >= 2:"
    yield "            tensor._requires_grad = True"
    yield "            tensor._edge = (node, len(made)) if made else node"
    yield "        else:"
    yield "            tensor._requires_grad = False"
    yield "            tensor._edge = None"
    yield "        made.append(tensor)"
    yield "    return tuple(made)"
