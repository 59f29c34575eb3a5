"""The autograd Function of an op that a program defined: its node, its derivative and what it does on a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._pytree import TreeSpec, tree_flatten, tree_unflatten
from pullback._tensor import Tensor
from pullback.autograd.function import Function
from pullback.library.binding import with_defaults
from pullback.library.overloads import OpOverload

Below = Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], Any]
"""The call below autograd."""


class Metadata:
    """One call: how its arguments and its results are grouped. It is the last argument of the Function."""

    def __init__(self, kwargs: dict[str, Any], inputs: TreeSpec) -> None:
        self.kwargs, self.inputs = kwargs, inputs
        self.outputs: TreeSpec | None = None
        self.alone = True
        """Whether there is one result, and no tuple."""

    def arguments(self, flat: Any) -> tuple[Any, ...]:
        """The arguments again; among them this one counts as the last."""
        return tree_unflatten(list(flat), self.inputs)[:-1]  # type: ignore[no-any-return]

    def flattened(self, result: Any) -> tuple[Any, ...]:
        """The results in a row."""
        self.alone = not isinstance(result, tuple)
        flat, self.outputs = tree_flatten((result,) if self.alone else result, no_tensors)
        return tuple(flat)

    def results(self, flat: Any) -> tuple[Any, ...]:
        """The results again, in a tuple."""
        assert self.outputs is not None
        return tree_unflatten(list(flat), self.outputs)  # type: ignore[no-any-return]


def no_tensors(tree: Any) -> bool:
    """Whether something is one thing: all but tuples, and lists of tensors."""
    if isinstance(tree, tuple):
        return False
    return not isinstance(tree, list) or any([not isinstance(item, Tensor) for item in tree])


def no_gradients(tree: Any) -> bool:
    """The same of what a backward returns, where a gradient may be absent."""
    if isinstance(tree, tuple):
        return False
    return not isinstance(tree, list) or any([item is not None and not isinstance(item, Tensor) for item in tree])


class Generated(Function):  # type: ignore[misc]
    """The Function of an op; each op has a subclass, named after it."""

    op: OpOverload
    below: Below

    @classmethod
    def apply_to(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the op and record it."""
        flat, spec = tree_flatten((*args, None), no_tensors)
        metadata = Metadata(kwargs, spec)
        made = cls.apply(*flat[:-1], metadata)
        results = metadata.results(made if isinstance(made, tuple) else (made,))
        return results[0] if metadata.alone else results

    @classmethod
    def compute(cls, *flat: Any) -> Any:
        """The call below autograd."""
        metadata = flat[-1]
        return metadata.flattened(cls.below(cls.op, metadata.arguments(flat), metadata.kwargs))

    @classmethod
    def set_up(cls, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Let the program save what its backward needs."""
        metadata = ctx._pt_metadata = inputs[-1]
        info = cls.op._definition.autograd
        if info is None or info._setup_context_fn is None:
            return
        schema = cls.op._schema
        args, kwargs = with_defaults(schema, metadata.arguments(inputs), metadata.kwargs)
        results = metadata.results(output if isinstance(output, tuple) else (output,))
        given = results[0] if metadata.alone else results
        if any([argument.kwarg_only for argument in schema.arguments]):
            info._setup_context_fn(ctx=ctx, inputs=args, keyword_only_inputs=kwargs, output=given)
        else:
            info._setup_context_fn(ctx=ctx, inputs=args, output=given)

    @classmethod
    def differentiate(cls, ctx: Any, *grads: Any) -> Any:
        """The gradients of the arguments, as the program's backward says."""
        info, metadata = cls.op._definition.autograd, ctx._pt_metadata
        if info is None or info._backward_fn is None:
            raise RuntimeError(
                f"Trying to backward through {cls.op} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        needed = ctx.needs_input_grad
        try:
            ctx.needs_input_grad = metadata.arguments(needed)
            result = info._backward_fn(ctx, *metadata.results(grads))
        finally:
            ctx.needs_input_grad = needed
        result = result if isinstance(result, tuple) else (result,)
        if not has_lists(cls.op):
            return (*result, None)
        flat, spec = tree_flatten((*result, None), no_gradients)
        if spec != metadata.inputs:
            raise RuntimeError(
                "Expected the return from backward to be of the same structure as the inputs. Got: "
                f"{spec} (return from backward), {metadata.inputs} (inputs)"
            )
        return tuple(flat)

    @classmethod
    def on_batch(cls, info: Any, in_dims: tuple[Any, ...], *flat: Any) -> Any:
        """What the program says of a batch."""
        metadata = flat[-1]
        rule = cls.op._definition.vmap
        assert rule is not None
        result, dims = rule(info, metadata.arguments(in_dims), *metadata.arguments(flat), **metadata.kwargs)
        made = metadata.flattened(result)
        places = tree_flatten(dims)[0] if isinstance(dims, (tuple, list)) else [dims] * len(made)
        return made, tuple(places)


def has_lists(op: OpOverload) -> bool:
    """Whether lists of tensors are among the arguments or the results."""
    return any(
        ["List" in str(a.type) and "Tensor" in str(a.type) for a in (*op._schema.arguments, *op._schema.returns)]
    )


def function_of(op: OpOverload, below: Below) -> Any:
    """The Function of an op, made when it is first needed, and again when it learns about batches."""
    definition = op._definition
    found = definition.function
    if found is not None and found.generate_vmap_rule is (definition.vmap is None):
        return found
    name = f"GeneratedBackwardFor_{op._namespace}_{op._opname}_{op._overloadname}"
    made: Any = type(name, (Generated,), {"op": op, "below": staticmethod(below)})
    made.forward = staticmethod(made.compute)
    made.setup_context = staticmethod(made.set_up)
    made.backward = staticmethod(made.differentiate)
    made.generate_vmap_rule = definition.vmap is None
    if definition.vmap is not None:
        made.vmap = staticmethod(made.on_batch)
    definition.function = made
    return made
