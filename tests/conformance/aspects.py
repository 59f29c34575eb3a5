"""What is compared: each aspect observes one library and answers with plain data, so that two answers can be compared.

An observation may raise `NotApplicable` where the question makes no sense for a sample.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, UnaryUfuncInfo

from tests.conformance.compare import describe, structure
from tests.conformance.library import Conversion, Library, Unconvertible, dtype_name, tensors_in
from tests.conformance.samples import Sample

# Their values are whatever the memory held.
UNDEFINED_VALUES = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_",
}  # fmt: skip


NOT_RESIZABLE = "Trying to resize storage that is not resizable"


class NotApplicable(Exception):
    """The aspect has no meaning for this op and sample."""


class Call:
    """One call of an op by one library, run once and looked at from several sides."""

    def __init__(self, library: Library, info: OpInfo, sample: Sample):
        self.library, self.info, self.sample = library, info, sample

    def convert(self, **options: Any) -> tuple[Conversion, Any, tuple, dict[str, Any]]:
        """The sample's values as this library's own, fresh at every call."""
        conversion = Conversion(self.library, **options)
        return conversion, *(conversion(part) for part in (self.sample.input, self.sample.args, self.sample.kwargs))

    @functools.cached_property
    def converted(self) -> tuple[Conversion, Any, tuple, dict[str, Any]]:
        return self.convert()

    @functools.cached_property
    def function(self) -> Callable:
        return op_function(self.library, self.info)

    @functools.cached_property
    def outputs(self) -> Any:
        _, first, args, kwargs = self.converted
        self.library.seed()
        return self.function(first, *args, **kwargs)

    def tensors(self) -> list[Any]:
        return list(tensors_in(self.library, self.outputs))

    def describe(self, of_tensor: Callable[[Any], Any]) -> Any:
        return describe(self.library, self.outputs, of_tensor)

    def processed(self, outputs: Any) -> Any:
        """The outputs made comparable where they are only determined up to a sign or phase."""
        return outputs if self.sample.process is None else self.library.counterpart(self.sample.process)(outputs)


def op_path(info: OpInfo) -> str:
    """The dotted path that must exist in a library for it to have the op."""
    if info.op is _below_torch(info.name):
        return info.name
    if hasattr(torch.Tensor, info.name):
        return f"Tensor.{info.name}"
    return info.name if _below_torch(info.name) is not None else f"Tensor.{info.name}_"


def op_function(library: Library, info: OpInfo) -> Callable:
    """The library's own callable for an op."""
    direct = info.op in (_below_torch(info.name), getattr(torch.Tensor, info.name, None))
    return library.require(op_path(info)) if direct else library.counterpart(info.op)


def _below_torch(path: str) -> Any:
    found: Any = torch
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


# ---- what a call returns


def value(call: Call) -> Any:
    if call.info.name in UNDEFINED_VALUES:
        raise NotApplicable
    return call.describe(call.library.array)


def processed_value(call: Call) -> Any:
    """Second look at a value that differs: only up to the freedom the op leaves."""
    return describe(call.library, call.processed(call.outputs), call.library.array)


def dtype(call: Call) -> Any:
    return call.describe(lambda tensor: dtype_name(tensor.dtype))


def shape(call: Call) -> Any:
    return call.describe(lambda tensor: tuple(tensor.shape))


def output_structure(call: Call) -> str:
    return structure(call.library, call.outputs)


def view(call: Call) -> Any:
    """For each output, whether it is an input itself, a view of an input, another view or a tensor of its own."""
    inputs = call.converted[0].inputs

    def relation(tensor: Any) -> str:
        if any(tensor is given for given in inputs):
            return "the input itself"
        if not tensor._is_view():
            return "not a view"
        return "a view of an input" if any(tensor._base is given for given in inputs) else "a view of something else"

    return call.describe(relation)


def strides(call: Call) -> Any:
    """The strides torch promises: those of views, and of elementwise results whose operands all lie alike in memory."""
    operands = [tensor for tensor in call.converted[0].inputs if tensor.ndim]
    elementwise = isinstance(call.info, (UnaryUfuncInfo, BinaryUfuncInfo)) and _lie_alike(operands)

    def promised(tensor: Any) -> list[int] | None:
        is_view = tensor._is_view() and not tensor.is_conj()
        if not tensor.numel() or not (elementwise or is_view):
            return None
        return [step for step, size in zip(tensor.stride(), tensor.shape) if size > 1]

    return call.describe(promised)


def _lie_alike(tensors: list[Any]) -> bool:
    """Whether all have one shape and one layout, without gaps and without elements that share memory."""
    layouts = {(tuple(tensor.shape), tuple(tensor.stride())) for tensor in tensors}
    if len(layouts) != 1:
        return False
    shape, steps = layouts.pop()
    dense = 1
    for step, size in sorted(zip(steps, shape)):
        if size > 1 and step != dense:
            return False
        dense *= size
    return True


# ---- what it records


def _of_nodes(call: Call, of_node: Callable[[Any], Any]) -> Any:
    if not any(tensor.requires_grad for tensor in call.tensors()) and not call.converted[0].leaves:
        raise NotApplicable
    return call.describe(lambda tensor: None if tensor.grad_fn is None else of_node(tensor.grad_fn))


def node(call: Call) -> Any:
    return _of_nodes(call, lambda grad_fn: type(grad_fn).__name__)


def next_functions(call: Call) -> Any:
    def names(grad_fn: Any) -> list[str | None]:
        return [None if after is None else type(after).__name__ for after, _ in grad_fn.next_functions]

    return _of_nodes(call, names)


def saved(call: Call) -> Any:
    return _of_nodes(call, lambda grad_fn: sorted(name for name in dir(grad_fn) if name.startswith("_saved_")))


# ---- derivatives


def _fixed_random(library: Library, like: Any, seed: int, requires_grad: bool = False) -> Any:
    """A tensor of the shape and dtype of another; the same numbers in every library."""
    name, generator = dtype_name(like.dtype), np.random.default_rng(seed)
    array = np.asarray(generator.uniform(0.5, 1.5, tuple(like.shape)))
    if name.startswith("complex"):
        array = array + 1j * generator.uniform(0.5, 1.5, tuple(like.shape))
    return library.tensor(array, name, requires_grad)


def _differentiable(call: Call, outputs: Any) -> list[Any]:
    found = [tensor for tensor in tensors_in(call.library, call.processed(outputs)) if tensor.requires_grad]
    if not found or not call.converted[0].leaves:
        raise NotApplicable
    return found


def _arrays(library: Library, tensors: Any) -> list[Any]:
    return [None if tensor is None else library.array(tensor) for tensor in tensors]


def grad(call: Call) -> list[Any]:
    """The gradient of every input that wants one, for fixed random cotangents."""
    call = Call(call.library, call.info, call.sample)
    outputs = _differentiable(call, call.outputs)
    cotangents = [_fixed_random(call.library, output, 100 + i) for i, output in enumerate(outputs)]
    leaves = call.converted[0].leaves
    return _arrays(call.library, call.library.require("autograd.grad")(outputs, leaves, cotangents, allow_unused=True))


def gradgrad(call: Call) -> list[Any]:
    """The gradient of the gradient, with respect to the inputs and to the cotangents."""
    if not call.info.supports_gradgrad:
        raise NotApplicable
    call = Call(call.library, call.info, call.sample)
    library, differentiate = call.library, call.library.require("autograd.grad")
    outputs = _differentiable(call, call.outputs)
    cotangents = [_fixed_random(library, output, 100 + i, requires_grad=True) for i, output in enumerate(outputs)]
    leaves = call.converted[0].leaves
    grads = differentiate(outputs, leaves, cotangents, create_graph=True, allow_unused=True)
    grads = [part for part in grads if part is not None and part.requires_grad]
    if not grads:
        raise NotApplicable
    seconds = [_fixed_random(library, part, 200 + i) for i, part in enumerate(grads)]
    return _arrays(library, differentiate(grads, [*leaves, *cotangents], seconds, allow_unused=True))


def forward(call: Call) -> Any:
    """The tangents of all outputs, for fixed random tangents of the inputs that want a gradient."""
    if not call.info.supports_forward_ad:
        raise NotApplicable
    library, forward_ad = call.library, call.library.require("autograd.forward_ad")

    def tangent(tensor: Any) -> np.ndarray | None:
        found = forward_ad.unpack_dual(tensor).tangent
        return None if found is None else library.array(found)

    with forward_ad.dual_level():
        conversion, first, args, kwargs = call.convert(
            leaf=lambda made, i: forward_ad.make_dual(made, _fixed_random(library, made, 300 + i))
        )
        if not conversion.leaves:
            raise NotApplicable
        library.seed()
        outputs = call.processed(call.function(first, *args, **kwargs))
        return describe(library, outputs, tangent)


# ---- the other ways to call the op


def inplace(call: Call) -> Any:
    """The in-place twin: its values, that it returns what it was given, the version counter and the recorded node."""
    variant = call.info.inplace_variant
    if variant is None or not isinstance(call.sample.input, torch.Tensor):
        raise NotApplicable
    function = call.library.counterpart(variant)
    _, first, args, kwargs = call.convert()
    target = first.clone() if first.requires_grad else first
    before = target._version
    call.library.seed()
    try:
        result = function(target, *args, **kwargs)
    except (Unconvertible, AttributeError):
        raise
    except Exception as error:
        if NOT_RESIZABLE in str(error):
            raise NotApplicable from None  # the sample lies in an array of NumPy's, which torch does not resize
        return ["raises", type(error).__name__]
    returned = "the given tensor" if result is target else structure(call.library, result)
    recorded = None if target.grad_fn is None else type(target.grad_fn).__name__
    values = [] if call.info.name in UNDEFINED_VALUES else call.library.array(target)
    return ["returns", returned, values, f"version {target._version - before}", recorded]


def out(call: Call, processed: bool = False) -> Any:
    """`out=`: the values written, and that the very tensors given come back."""
    if not call.info.supports_out or call.info.name in UNDEFINED_VALUES:
        raise NotApplicable
    plain, args, kwargs = call.convert(requires_grad=False)[1:]
    call.library.seed()
    expected = call.function(plain, *args, **kwargs)
    given = [_blank(call.library, tensor) for tensor in tensors_in(call.library, expected)]
    single = call.library.is_tensor(expected)
    call.library.seed()
    plain, args, kwargs = call.convert(requires_grad=False)[1:]
    result = call.function(plain, *args, **kwargs, out=given[0] if single else tuple(given))
    returned = list(tensors_in(call.library, result))
    same = len(returned) == len(given) and all(one is other for one, other in zip(returned, given))
    if processed:
        written = describe(call.library, call.processed(result), call.library.array)
    else:
        written = _arrays(call.library, given)
    return ["returns the given tensors" if same else "returns others", written]


def _blank(library: Library, like: Any) -> Any:
    return library.tensor(np.zeros(tuple(like.shape)), dtype_name(like.dtype))


def method(call: Call, processed: bool = False) -> Any:
    """The method of the same name gives the same values."""
    if call.info.method_variant is None or not isinstance(call.sample.input, torch.Tensor):
        raise NotApplicable
    if call.info.name in UNDEFINED_VALUES:
        raise NotApplicable
    function = call.library.counterpart(call.info.method_variant)
    _, first, args, kwargs = call.convert(requires_grad=False)
    call.library.seed()
    result = function(first, *args, **kwargs)
    return describe(call.library, call.processed(result) if processed else result, call.library.array)


def alias(call: Call) -> Any:
    """Every other name of the op gives the same values."""
    if not call.info.aliases:
        raise NotApplicable
    observed = []
    for other in call.info.aliases:
        _, first, args, kwargs = call.convert(requires_grad=False)
        result = call.library.require(other.name.removeprefix("torch."))(first, *args, **kwargs)
        observed.append([other.name, describe(call.library, result, call.library.array)])
    return observed


RESULT = {
    "value": value,
    "dtype": dtype,
    "shape": shape,
    "structure": output_structure,
    "view": view,
    "strides": strides,
}
RECORDED = {"node": node, "next": next_functions, "saved": saved}
DERIVATIVES = {"grad": grad, "gradgrad": gradgrad, "forward": forward}
COMPLEX_DERIVATIVES = {"grad_complex": grad}
VARIANTS = {"inplace": inplace, "out": out, "method": method, "alias": alias}
ERRORS = ("error_type", "error_text")
ALL = (*RESULT, *DERIVATIVES, *COMPLEX_DERIVATIVES, *RECORDED, *VARIANTS, *ERRORS)
