"""`backward` and `grad`: the two ways to start the engine."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pullback import autograd
from pullback._arrays.kinds import is_foreign, made_on
from pullback._arrays.layout import strided
from pullback._arrays.memory import broadcast_view
from pullback._device import CPU, device
from pullback._dtype import FROM_NUMPY
from pullback._foreign import ForeignTensor
from pullback._modes import dispatch_modes, modes
from pullback._op.constants import constant
from pullback._op.overrides import decide, is_told, overriding_class
from pullback._runtime.warnings import warn_once
from pullback._tensor import Size, Tensor, wrap
from pullback.autograd import engine, who
from pullback.autograd.node import AccumulateGrad, Node, edge_to, leaf_of, parts
from pullback.autograd.tracebacks import trim
from pullback.autograd.view import edge_of, wants_grad
from pullback.ops.shape.slicing import select


class GradientEdge(NamedTuple):
    """A place in the graph: (node, output_nr), usable where backward and grad take tensors."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the gradients of the given tensors with respect to the leaves, and accumulate them into `.grad`."""
    try:
        if grad_variables is not None:
            warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
            if grad_tensors is not None:
                raise RuntimeError(
                    "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                    "Please only use `grad_tensors`."
                )
            grad_tensors = grad_variables
        if inputs is not None:
            inputs = inputs_tuple(inputs, "backward")
        roots = as_tuple(tensors)
        grads = starting_grads(roots, grads_tuple(grad_tensors, len(roots)))
        # Formulas run on tensors where gradients may move, and on arrays of other kinds than NumPy's.
        on_tensors = create_graph or is_watched() or any(is_elsewhere(tensor) for tensor in (*roots, *grads))
        if any(is_batched(tensor) for tensor in (*roots, *grads)):
            raise RuntimeError(
                "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
                "functorch.vjp instead or call backward() outside of functorch transforms."
            )
        starts = root_edges(roots, grads, on_tensors)
        if retain_graph is None:
            retain_graph = create_graph
        captures: dict[Any, Any] | None = None
        accumulate: set[Any] = set()
        if inputs is not None:
            captures = {}
            for tensor in inputs:
                if isinstance(tensor, Tensor):
                    tensor.retain_grad()
                accumulate.add(input_key(tensor)[0])
        if create_graph:
            warn_about_cycle()
        engine.execute(starts, retain_graph, on_tensors, captures, accumulate, record=create_graph)
    except Exception as error:
        trim(error)
        raise


def warn_about_cycle() -> None:
    """Say, once, that a `.grad` with a graph keeps its own leaf alive."""
    warn_once(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
        "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
        "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
        "after use to break the cycle and avoid the leak."
    )


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Compute and return the gradients of the outputs with respect to the inputs."""
    try:
        if materialize_grads and allow_unused is False:
            raise ValueError(
                "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                "allow_unused=False."
            )
        if allow_unused is None:
            allow_unused = materialize_grads
        if not only_inputs:
            warnings.warn(
                "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
                "other parts of the graph, please use torch.autograd.backward.",
                FutureWarning,
                stacklevel=2,
            )
        roots, wanted = as_tuple(outputs), inputs_tuple(inputs, "grad")
        kind = overriding_class((roots, wanted))
        if kind is not None and not hasattr(kind, "run_op"):
            options = dict(grad_outputs=grad_outputs, retain_graph=retain_graph, create_graph=create_graph)
            options |= dict(only_inputs=only_inputs, allow_unused=allow_unused, is_grads_batched=is_grads_batched)
            return decide(grad, (roots, wanted), options | dict(materialize_grads=materialize_grads), "grad")  # type: ignore[no-any-return]
        given = grads_tuple(grad_outputs, len(roots))
        if retain_graph is None:
            retain_graph = create_graph
        if is_grads_batched:
            results = batched_grad(roots, wanted, given, retain_graph, create_graph, allow_unused)
        else:
            grads = starting_grads(roots, given)
            # While a dual level is open gradients may move, and inside vmap they are batches: steps run on tensors.
            on_tensors = create_graph or is_watched()
            on_tensors = on_tensors or any(is_batched(tensor) or is_elsewhere(tensor) for tensor in (*roots, *grads))
            starts = root_edges(roots, grads, on_tensors)
            results = captured_grads(starts, wanted, retain_graph, create_graph, on_tensors, allow_unused)
        if materialize_grads:
            results = [zeros_like(t, create_graph) if r is None else r for t, r in zip(wanted, results, strict=True)]
        if type(inputs) is dict:  # whoever gives one knows that one comes back
            return dict(zip(inputs, results, strict=True))  # type: ignore[return-value]
        return tuple(results)
    except Exception as error:
        trim(error)
        raise


def captured_grads(
    starts: list[tuple[Node, int, Any]],
    wanted: tuple[Any, ...],
    retain_graph: bool,
    create_graph: bool,
    on_tensors: bool,
    allow_unused: bool,
) -> list[Any]:
    """Run the engine and collect the gradients that were asked for."""
    keys = [input_key(t) for t in wanted]
    captures: dict[Any, Any] = dict.fromkeys(keys)
    lost = engine.execute(starts, retain_graph, on_tensors, captures, record=create_graph, explain=not allow_unused)
    results = [captured(captures, key) for key in keys]
    check_used(results, allow_unused, lost)
    return results


def check_used(results: list[Any], allow_unused: bool, lost: str = "") -> None:
    """Raise for an input no gradient came to; `lost` says what is known of the reason."""
    for i, result in enumerate(results):
        if result is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior." + (lost or who.lost_nearby())
            )


def zeros_like(tensor: Any, requires_grad: bool) -> Tensor:
    """What materialize_grads puts where no gradient came."""
    if not isinstance(tensor, Tensor):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    zeros = wrap(np.zeros_like(tensor._array))
    zeros._requires_grad = requires_grad
    return zeros


def captured(captures: dict[Any, Any], key: Any) -> Any:
    """A captured gradient as a tensor; an input asked for twice gives the same tensor twice."""
    value = captures.get(key)
    if value is None or isinstance(value, Tensor):
        return value
    if is_foreign(value):
        out = captures[key] = wrap(value)
        return out
    value = np.asarray(value)
    if not value.flags.writeable:
        # A constant of the engine, perhaps stretched: its own memory, the same strides.
        one = tuple([slice(0, 1) if stride == 0 else slice(None) for stride in value.strides])
        value = broadcast_view(value[one].copy(), value.shape)
    captures[key] = wrap(value)
    return captures[key]


def batched_grad(
    roots: tuple[Any, ...],
    wanted: tuple[Any, ...],
    given: tuple[Any, ...],
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> list[Any]:
    """One gradient for every row of the batched gradients."""
    first = [None if g is None else select(g, 0, 0) for g in given]
    for i, (root, row) in enumerate(zip(roots, first, strict=False)):
        shape = shape_and_dtype(root)[0]
        if row is not None and row._array.shape != shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of {row.shape[1:]!r} and "
                f"output[{i}] "
                f"has a shape of {Size(shape)!r}. If you only want some tensors in `grad_output` to be considered "
                "batched, "
                "consider using vmap."
            )
    starting_grads(roots, tuple(first))
    results = autograd.batched_gradients(roots, wanted, given, retain_graph, create_graph)
    check_used(results, allow_unused)
    return results


# ------------------------------------------------------------------ arguments


def as_tuple(tensors: Any) -> tuple[Any, ...]:
    """One tensor or edge, or a sequence of them, as a tuple."""
    if isinstance(tensors, (Tensor, GradientEdge)):
        return (tensors,)
    return tuple(tensors)


def inputs_tuple(inputs: Any, caller: str) -> tuple[Any, ...]:
    """What gradients are wanted for: one tensor or edge, or a sequence or dict of them."""
    if type(inputs) is dict:
        inputs = inputs.values()
    elif isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{caller}()` must be a dict, not {type(inputs).__name__}. Other Mapping types are "
            "not supported."
        )
    wanted = as_tuple(inputs)
    if not wanted:
        raise RuntimeError(f"`inputs` argument to `{caller}()` cannot be empty.")
    return wanted


def grads_tuple(grads: Any, count: int) -> tuple[Any, ...]:
    """The gradients given for the outputs, one (or None) per output."""
    if grads is None:
        return (None,) * count
    return (grads,) if isinstance(grads, Tensor) else tuple(grads)


def key_of(tensor: Any) -> Any:
    """Where the gradient of a tensor or GradientEdge arrives: (node, output_nr), (leaf, 0), or (None, 0)."""
    edge = edge_to(tensor.node, tensor.output_nr) if isinstance(tensor, GradientEdge) else edge_of(tensor)
    leaf = leaf_of(edge)
    return parts(edge) if leaf is None else (leaf, 0)


def input_key(tensor: Any) -> Any:
    """Where the gradient of an input of `grad` is captured."""
    if isinstance(tensor, Tensor):
        if not wants_grad(tensor):
            raise RuntimeError("One of the differentiated Tensors does not require grad" + who.lost(tensor))
    elif not isinstance(tensor, GradientEdge):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(tensor).__name__}")
    return key_of(tensor)


def is_batched(tensor: Any) -> bool:
    """True for a tensor inside vmap, whose elements cannot be read (see note: batching)."""
    return type(tensor) is not Tensor and hasattr(type(tensor), "run_op")


def is_watched() -> bool:
    """True where gradients may move, or somebody wants to be told of every op: formulas run on tensors then."""
    return modes.dual_level >= 0 or bool(dispatch_modes.get())


def is_elsewhere(tensor: Any) -> bool:
    """True for a tensor whose elements are not the host's, or not its own: the formulas of such run on tensors."""
    if isinstance(tensor, ForeignTensor) and tensor.layout is strided:
        return not type(tensor._array).steps_on_arrays
    return is_told(type(tensor))


def shape_and_dtype(root: Any) -> tuple[Any, Any]:
    """What the gradient of a tensor or edge must look like."""
    if isinstance(root, GradientEdge):
        return root.node.output_meta(root.output_nr)
    if not isinstance(root, Tensor):
        raise AssertionError("Expected output to be a torch.Tensor")
    return root._array.shape, root._array.dtype


def starting_grads(roots: tuple[Any, ...], grads: tuple[Any, ...]) -> list[Any]:
    """The gradient each root starts with: given and checked, or one for a scalar."""
    out: list[Any] = []
    for i, (root, given) in enumerate(zip(roots, grads, strict=False)):
        shape, dtype = shape_and_dtype(root)
        if given is None:
            requires = isinstance(root, GradientEdge) or wants_grad(root)
            out.append(implicit_grad(shape, dtype, getattr(root, "device", CPU)) if requires else None)
        elif isinstance(given, Tensor):
            out.append(on_device_of(root, checked_grad(given, shape, dtype, i), i))
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
    if len(out) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(out)} gradients")
    return out


def implicit_grad(shape: tuple[int, ...], dtype: Any, place: device = CPU) -> Tensor:
    """The gradient of a scalar with respect to itself."""
    if int(np.prod(shape)) != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if dtype.kind in "c":
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {FROM_NUMPY[dtype]!r}")
    return wrap(made_on(place, np.ones, shape, dtype))


def checked_grad(given: Tensor, shape: tuple[int, ...], dtype: Any, i: int) -> Tensor:
    """A given gradient, if it fits its output."""
    if given._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {given.shape!r} and output[{i}] has a shape of "
            f"{Size(shape)!r}."
        )
    if (dtype.kind == "c") != (given._array.dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {given.dtype!r} and output[{i}] has a dtype of {FROM_NUMPY[dtype]!r}."
        )
    return given


def on_device_of(root: Any, given: Tensor, i: int) -> Tensor:
    """A given gradient, if it is where its output is; one without dimensions is moved there."""
    place = getattr(root, "device", given.device)
    if given.device is place:
        return given
    if given._array.ndim:
        raise RuntimeError(f"invalid gradient at index {i} - expected device {place} but got {given.device}")
    return given.to(place)


def root_edges(roots: tuple[Any, ...], grads: list[Any], create_graph: bool) -> list[tuple[Any, int, Any]]:
    """Where the engine starts, with the gradients as it carries them."""
    out = []
    for i, (root, start) in enumerate(zip(roots, grads, strict=True)):
        node, nr = key_of(root)
        if node is None:
            text = f"element {i} of tensors does not require grad and does not have a grad_fn"
            raise RuntimeError(text + who.lost(root))
        dtype = node._array.dtype if isinstance(node, Tensor) else node.output_meta(nr)[1]
        if start._array.dtype != dtype:
            start = start.to(FROM_NUMPY[dtype])
        out.append((node, nr, start if create_graph else start._array))
    return out


def tensor_backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradient of this tensor with respect to the leaves of its graph."""
    try:
        edge, array = self._edge, self._array
        if (
            isinstance(edge, Node)
            and array.ndim == 0
            and gradient is None
            and inputs is None
            and not create_graph
            and not modes.active
            and self._view is None
            and array.dtype.kind == "f"
            and not isinstance(edge, AccumulateGrad)
        ):
            engine.execute([(edge, 0, constant(1.0, array.dtype))], bool(retain_graph), False)
            return
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)
    except Exception as error:
        trim(error)
        raise


def foreign_backward(self: Tensor, *args: Any, **kwargs: Any) -> None:
    """The same for a tensor on another device, whose formulas run on tensors."""
    names = ("gradient", "retain_graph", "create_graph", "inputs")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    backward(self, given.pop("gradient", None), **given)


ForeignTensor.backward = foreign_backward


tensor_backward.__name__ = "backward"
Tensor.backward = tensor_backward
