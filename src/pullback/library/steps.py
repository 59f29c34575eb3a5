"""Steps of the backward pass that torch takes as one op, and formulas here as many: told to dispatch modes as that one.

What such a step computes is computed on arrays, of which nobody is told.
"""

from __future__ import annotations

from typing import Any

from pullback._op.results import saved_attribute
from pullback._tensor import wrap
from pullback.library.overloads import OpOverload, ops

WHOLE = {
    "_scaled_dot_product_flash_attention_for_cpu": "_scaled_dot_product_flash_attention_for_cpu_backward",
    "mkldnn_rnn_layer": "mkldnn_rnn_layer_backward",
    "native_batch_norm": "native_batch_norm_backward",
    "native_group_norm": "native_group_norm_backward",
    "native_layer_norm": "native_layer_norm_backward",
}
"""Ops by the name of the op that is their step back."""
SAVED_AS = {"mean": "result1", "rstd": "result2", "save_mean": "result1", "save_invstd": "result2"}
SAVED_AS |= {"train": "training", "out": "output"}
"""What a node calls an argument of the step."""


class Step:
    """One step back as it is told: the overload with its arguments."""

    def __init__(self, node: Any, grad: Any) -> None:
        self.node, self.several = node, type(grad) is list
        self.func: OpOverload = getattr(ops.aten, WHOLE[node.op.name]).default
        arguments = self.func._schema.arguments
        self.grads: dict[str, Any] = dict(
            zip(
                [a.name for a in arguments if a.name.startswith("grad")], grad if self.several else [grad], strict=False
            )
        )
        """The gradients that arrived, by the names of the arguments they are."""
        self.rest = list(grad)[len(self.grads) :] if self.several else []
        """Those the step does not ask for."""
        self.names = [argument.name for argument in arguments]
        values = {argument.name: self.value(argument.name) for argument in arguments}
        self.args = tuple([values[a.name] for a in arguments if not a.kwarg_only])
        self.kwargs = {a.name: values[a.name] for a in arguments if a.kwarg_only and values[a.name] is not None}

    def value(self, name: str) -> Any:
        """An argument: a gradient, which results are wanted, or what the node saved."""
        if name in self.grads:
            return self.grads[name]
        if name == "output_mask":
            return [edge is not None for edge in self.node.edges]
        name = SAVED_AS.get(name, name)
        return saved_attribute(self.node, name) if name in self.node.op.saved else None

    def again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step itself, from the gradients given."""
        given = {**dict(zip(self.names, args, strict=False)), **kwargs}
        grads = [*[given.get(name, grad) for name, grad in self.grads.items()], *self.rest]
        arrays = [None if grad is None else grad._array for grad in grads]
        made = self.node.backward(arrays if self.several else arrays[0])
        return tuple([None if array is None else wrap(array) for array in made])


def is_whole(node: Any) -> bool:
    """Whether torch takes this step as one op."""
    return hasattr(node, "op") and node.op.name in WHOLE
