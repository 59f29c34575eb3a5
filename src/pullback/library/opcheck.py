"""`opcheck`: whether an op does what its schema and its registrations say, on example arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback._op.declare import spaces
from pullback._pytree import tree_leaves, tree_map
from pullback._tensor import Tensor
from pullback.autograd.grad_mode import enable_grad, no_grad
from pullback.library.calls import memories
from pullback.library.custom_ops import CustomOpDef
from pullback.library.dispatch import tensors_in
from pullback.library.overloads import OpOverload, OpOverloadPacket

TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """An op failed one of its checks."""


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Check an op on example arguments; what it returns says how each check went.

    "test_aot_dispatch_dynamic" asks whether compiled code agrees with the op: there is no compiler here, so it is
    skipped, and its entry says so.
    """
    if isinstance(op, CustomOpDef):
        op = op._opoverload
    if isinstance(op, OpOverloadPacket):
        op = op._overload(op.overloads()[0])
    if not isinstance(op, OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got "
            f"{type(op)}"
        )
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(wanted) <= set(TESTS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={wanted}), expected test_utils to be subset of {TESTS} but it was not"
        )
    results = {}
    for name in wanted:
        try:
            results[name] = CHECKS[name](op, args, kwargs or {}) or "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
    return results


def copied(tree: Any) -> Any:
    """The same arguments with tensors of their own."""

    def copy(value: Any) -> Any:
        return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value

    return tree_map(copy, tree)


def check_schema(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Nothing is written, and no memory shared, that the schema does not say."""
    args, kwargs = copied((args, kwargs))
    before = copied((args, kwargs))
    with no_grad():
        result = op(*args, **kwargs)
    names = [argument.name for argument in op._schema.arguments]
    given, earlier = ({**dict(zip(names, a, strict=False)), **k} for a, k in ((args, kwargs), before))
    for argument in op._schema.arguments:
        name, alias = argument.name, argument.alias_info
        pairs = zip(tensors_in([given.get(name)]), tensors_in([earlier.get(name)]), strict=True)
        changed = any([not spaces["torch"]["equal"](a.detach(), b.detach()) for a, b in pairs])
        if changed and (alias is None or not alias.is_write):
            raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
        made = result if isinstance(result, (tuple, list)) else (result,)
        if alias is None and set(memories([given.get(name)])) & set(memories(made)):
            raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")


def check_autograd(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A gradient that is wanted is computed by a derivative that was registered, not by what the kernel records."""
    args, kwargs = copied((args, kwargs))
    if not any([tensor.requires_grad for tensor in tensors_in((*args, *kwargs.values()))]):
        return
    definition = op._definition
    registered = definition.autograd is not None or any(["Autograd" in key for key in definition.kernels])
    if op.namespace == "aten" or registered:
        return
    with enable_grad():
        made = op(*args, **kwargs)
    if any([tensor.requires_grad for tensor in tree_leaves(made) if isinstance(tensor, Tensor)]):
        raise AssertionError(
            f"{op.name()}: at least one output of this operator has requires_grad=True but the operator does not have "
            "an autograd kernel defined at an autograd key (e.g. DispatchKey::Autograd). This could mean that you have "
            "incorrectly registered an autograd kernel to a non-Autograd DispatchKey, which may lead to silently "
            "incorrect results. If your operator consists of regular PyTorch operations, consider not using an "
            "operator at all or registering your operator as CompositeImplicitAutograd. If you have an "
            "autograd.Function inside a backend (CPU/CUDA) kernel, please register it to DispatchKey::Autograd instead."
        )


def check_fake(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """What it says of tensors without elements is true of those with: shapes, strides and dtypes."""
    args, kwargs = copied((args, kwargs))

    def without_elements(value: Any) -> Any:
        return value.detach().to("meta") if isinstance(value, Tensor) else value

    fake = op(*tree_map(without_elements, args), **tree_map(without_elements, kwargs))
    with no_grad():
        real = op(*args, **kwargs)
    said, found = ([t for t in tree_leaves(made) if isinstance(t, Tensor)] for made in (fake, real))
    if len(said) != len(found):
        raise AssertionError(f"the fake impl returned {len(said)} tensors, the op {len(found)}")
    for a, b in zip(said, found, strict=True):
        for fact, of_fake, of_real in (
            ("shape", tuple(a.shape), tuple(b.shape)),
            ("dtype", a.dtype, b.dtype),
            ("stride", a.stride(), b.stride()),
        ):
            if of_fake != of_real:
                raise AssertionError(f"{fact} mismatch: the fake impl says {of_fake}, the op gives {of_real}")


def skip(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Nothing is compiled here."""
    return "SKIPPED: pullback has no compiler"


CHECKS: dict[str, Callable[..., Any]] = {
    "test_schema": check_schema,
    "test_autograd_registration": check_autograd,
    "test_faketensor": check_fake,
    "test_aot_dispatch_dynamic": skip,
}
