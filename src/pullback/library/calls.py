"""A call of an op of `torch.ops`: batches, gradients, modes, then what was registered for the device of the tensors.

__torch_function__ -> vmap -> autograd -> __torch_dispatch__ -> the kernel of the device
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import Any

from pullback._arrays.memory import memory_of
from pullback._modes import grad_enabled, is_grad_enabled
from pullback._op.overrides import decide, function_modes, overriding_class
from pullback._tensor import Tensor, bump_version
from pullback.autograd.view import wants_grad
from pullback.library import aten, overloads
from pullback.library.binding import bind
from pullback.library.dispatch import anybody, ask, tensors_in
from pullback.library.generated import function_of
from pullback.library.names import telling
from pullback.library.overloads import Definition, OpOverload, OpOverloadPacket
from pullback.library.schema import FunctionSchema
from pullback.library.types import ListType, TensorType

below_autograd: ContextVar[bool] = ContextVar("below_autograd", default=False)
"""Whether the running code asked to be below autograd: then nothing is recorded."""


def call_overload(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an op."""
    told = telling.get()
    if told is not None and told.func is overload:  # a handler computes what it was told of
        return aten.as_torch_returns(overload, told.again(args, kwargs))
    positional, kwargs = bind(overload._schema, args, kwargs)
    args = tuple(positional)
    if is_overridden(args, kwargs):
        return decide(overload, args, kwargs, f"torch.ops.{overload}")
    if overload._namespace == "aten" and not overload._definition.kernels:
        return aten.run(overload, args, kwargs)
    return run(overload, args, kwargs)


def call_packet(packet: OpOverloadPacket, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the first overload of an op that the arguments fit."""
    if is_overridden(args, kwargs):
        return decide(packet, args, kwargs, f"torch.ops.{packet}")
    return call_overload(packet._matching(args, kwargs)[0], args, kwargs)


def is_overridden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether `__torch_function__` of a mode, or of a class among the arguments, decides about a call."""
    if function_modes.get():
        return True
    kind = overriding_class((*args, *kwargs.values()))
    return kind is not None and not hasattr(kind, "run_op")  # a batch is not asked: see batching


def run(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an op that a program defined."""
    definition = overload._definition
    kernels = definition.kernels
    given = tensors_in((*args, *kwargs.values()))
    key = key_of(given)
    if key not in kernels and not (key == "Meta" and definition.fake is not None):
        composite = kernels.get("CompositeImplicitAutograd")
        if composite is not None:
            return composite(*args, **kwargs)
    if any([hasattr(type(tensor), "run_function") for tensor in given]):
        return function_of(overload, below).apply_to(args, kwargs)
    if below_autograd.get():
        return unrecorded(overload, args, kwargs)
    own = kernels.get(f"Autograd{key}", kernels.get("Autograd"))
    if own is not None:
        return returned(definition.schema, own(*args, **kwargs))
    if definition.autograd is None:
        return below(overload, args, kwargs)
    if not is_grad_enabled() or not any([wants_grad(t) for t in given]):
        return unrecorded(overload, args, kwargs)
    return function_of(overload, below).apply_to(args, kwargs)


def unrecorded(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call below autograd: the op stands for all that happens inside."""
    before = grad_enabled.get()
    try:
        grad_enabled.set(False)
        return below(overload, args, kwargs)
    finally:
        grad_enabled.set(before)


def below(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a mode or a class makes of it, or the kernel."""
    if anybody((*args, *kwargs.values())):
        return ask(overload, args, kwargs)
    return computed(overload, args, kwargs)


# ------------------------------------------------------------------ kernels


def key_of(tensors: list[Any]) -> str:
    """Torch's dispatch key of the device of tensors."""
    return "Meta" if any([tensor.device.type == "meta" for tensor in tensors]) else "CPU"


def computed(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the kernel of the device."""
    definition = overload._definition
    given = tensors_in((*args, *kwargs.values()))
    key = key_of(given)
    if not given and definition.custom is not None:
        definition.custom._check_device(args)
    kernel = kernel_of(overload, key)
    result = kernel(*args, **kwargs)
    if definition.custom is not None:
        if key != "Meta":
            check_aliasing(definition, kernel, args, kwargs, result)
        count_writes(definition.schema, args, kwargs)
    return returned(definition.schema, result)


def kernel_of(overload: OpOverload, key: str) -> Any:
    """What computes it for a dispatch key."""
    definition = overload._definition
    kernels = definition.kernels
    if key in kernels:
        return kernels[key]
    if key == "Meta" and definition.fake is not None:
        return without_context(overload, definition.fake)
    if "CompositeExplicitAutograd" in kernels and not (key == "Meta" and definition.custom is not None):
        return kernels["CompositeExplicitAutograd"]
    name = overload.name()
    if key == "Meta":
        raise NotImplementedError(
            f"{name}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
            "registered. You may have run into this message while using an operator with PT2 compilation APIs "
            "(torch.compile/torch.export); in order to use this operator with those APIs you'll need to add a fake "
            "impl. Please see the following for next steps:  "
            "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
        )
    raise NotImplementedError(
        f"Could not run '{name}' with arguments from the '{key}' backend. This could be because the operator doesn't "
        "exist for this backend, or was omitted during the selective/custom build process (if using custom build). If "
        "you are a Facebook employee using PyTorch on mobile, please visit https://fburl.com/ptmfixes for possible "
        f"resolutions. '{name}' is only available for these backends: [{', '.join(kernels)}]."
    )


fake_for: ContextVar[OpOverload | None] = ContextVar("fake_for", default=None)
"""The op whose fake implementation is running."""


def without_context(overload: OpOverload, fake: Any) -> Any:
    """A fake implementation on meta tensors, which has no sizes to ask for."""

    def run_fake(*args: Any, **kwargs: Any) -> Any:
        before = fake_for.get()
        try:
            fake_for.set(overload)
            return fake(*args, **kwargs)
        finally:
            fake_for.set(before)

    return run_fake


def get_ctx() -> Any:
    """What a fake implementation asks for sizes that depend on data; None outside of one."""
    running = fake_for.get()
    if running is None:
        return None
    raise RuntimeError(
        f"{running.name()} ({running._definition.place}): You're trying to run this operator with meta Tensors (as "
        "opposed to FakeTensors), but this operator may return an output Tensor with data-dependent shape. Meta "
        "Tensors don't support operators with outputs that have data-dependent shapes but FakeTensors do. If your "
        "operator does not return an output with data-dependent shape, make sure the FakeTensor and/or meta kernel "
        "does not call torch.library.get_ctx(). Otherwise, please use FakeTensors."
    )


# ------------------------------------------------------------------ results

ALIASED = (
    "The output of this custom operator (1) must not also be an input to this custom operator and (2) may not alias "
    "any inputs to this custom operator or other returns. The most common way to trigger this error is if we have y = "
    "custom_op(x) and y and x are the same Tensor. Please instead return a clone of the offending output tensor(s) "
    "(e.g. return x.clone()) or refactor the custom operator to not return y."
)


def memories(values: Any) -> list[Any]:
    """The memory of every tensor among values, by its address; nothing of those without elements."""
    owners = [memory_of(tensor._array) for tensor in tensors_in(values) if tensor._array.size]
    return [owner.__array_interface__["data"][0] for owner in owners]


def check_aliasing(definition: Definition, kernel: Any, args: Any, kwargs: Any, result: Any) -> None:
    """Raise if a result shares memory with an argument or with another result."""
    if definition.schema._is_view_op() or definition.custom._returns_arguments:
        return
    seen = set(memories((*args, *kwargs.values())))
    for place in memories(result if isinstance(result, (tuple, list)) else (result,)):
        if place in seen:
            name = definition.schema.name.partition("::")[2]
            raise RuntimeError(f"{name} (with implementation in {inspect.getmodule(kernel)}): {ALIASED}")
        seen.add(place)


def count_writes(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a write to each argument that the op says it changes."""
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name) if argument.kwarg_only else args[position : position + 1]
            for tensor in tensors_in([value]):
                bump_version(tensor)


def returned(schema: FunctionSchema, result: Any) -> Any:
    """What a kernel returned, as the schema says it."""
    if not schema.returns:
        return None
    if len(schema.returns) == 1:
        return single(result, schema.returns[0].type)
    if not isinstance(result, (tuple, list)):
        raise TypeError(f"Object of type '{type(result).__name__}' is not an instance of 'sequence'")
    if len(result) != len(schema.returns):
        raise RuntimeError(f"Expected {len(schema.returns)} return(s) but got {len(result)}: {schema}")
    return tuple([single(item, argument.type) for item, argument in zip(result, schema.returns, strict=True)])


def single(value: Any, kind: Any) -> Any:
    """One result."""
    if isinstance(kind, TensorType) and value is not None and not isinstance(value, Tensor):
        raise RuntimeError(f"Unable to cast {value} to Tensor")
    return list(value) if isinstance(kind, ListType) and isinstance(value, tuple) else value


overloads.call_overload = call_overload
overloads.call_packet = call_packet
