"""What the op machine asks of arrays of the device: creation, ops, steps of a backward pass, the order of memory.

See docs/notes/arrays.md. An op computes by a kernel of the device where there is one, and by way of the host otherwise.
"""

from __future__ import annotations

import mmap
from types import FunctionType
from typing import Any

import numpy as np

from pullback._arrays.memory import arrangement, is_non_overlapping_and_dense
from pullback._device import CPU, copies, device
from pullback._dtype import FROM_NUMPY
from pullback._foreign import ForeignParameter, ForeignTensor, hold
from pullback._lazy import signs, stored
from pullback._modes import grad_enabled
from pullback._op import apply
from pullback._op.declare import Op
from pullback._op.ufuncs import is_loss, is_traced, large_forward
from pullback._runtime import messages
from pullback._tensor import Tensor, new, preserve_format, wrap
from pullback.kernels.cuda import (
    answering,  # noqa: F401 (which gives the arrays their methods)
    carry,
    channels,  # noqa: F401 (these declare ops)
    conv,  # noqa: F401
    dlpack,
    index,  # noqa: F401
    moving,  # noqa: F401
    products,  # noqa: F401
    rows,  # noqa: F401
)
from pullback.kernels.cuda.array import DeviceArray, empty, reach
from pullback.kernels.cuda.carry import by_host, has_device_arrays, upload
from pullback.kernels.cuda.composed import attention, classes, ctc, floats, fourier, joined, reading, standing  # noqa: F401
from pullback.kernels.cuda.composed.forwards import composed
from pullback.kernels.cuda.device import placed
from pullback.kernels.cuda.images import pools  # noqa: F401
from pullback.kernels.cuda.making import read
from pullback.kernels.cuda.memory import pool_of
from pullback.kernels.cuda.native import BACKWARD, NATIVE, copied
from pullback.kernels.cuda.order import counting, extrema, scans, sorts  # noqa: F401
from pullback.kernels.cuda.pinned import pinned
from pullback.kernels.cuda.pointwise import loss, pointwise
from pullback.kernels.jit.pointwise.fused import Kernels
from pullback.kernels.jit.small.choose import Chooser

# ------------------------------------------------------------------ results


def adopted(made: Any, place: device | None = None) -> Any:
    """What a function made, on a device."""
    if type(made) is DeviceArray:
        return made if place is None or made.device is place else upload(made.on_host(), place)
    return upload(made if isinstance(made, np.ndarray) else np.asarray(made), placed() if place is None else place)


# ------------------------------------------------------------------ ops


def computed(op: Op, positional: list[Any], keywords: dict[str, Any]) -> Any:
    """What an op makes of arrays of the device."""
    if op.name == "_to_copy":
        return copied_to(op, *positional, **keywords)
    if op.view:
        seen = views(op, positional, keywords)
        if seen is not None:
            return seen
    if is_traced(op):
        if op.check is not None:
            op.check(*positional, **keywords)
        made = (loss if is_loss(op) else pointwise)(large_forward(op).function, positional, keywords)
        if made is not None:
            return made
    compute = NATIVE.get(op.key)
    if compute is not None:
        if op.check is not None:
            op.check(*positional, **keywords)
        made = compute(*positional, **keywords)
        if made is not None:
            return made
    names = [p.name for p in op.params if not p.keyword_only]
    bound = dict(zip(names, positional, strict=True)) | keywords
    writes = [bound[name] for name in WRITTEN.get(op.name, ()) if bound[name] is not None]
    if not writes and not op.view:
        if op.check is not None and compute is None:
            op.check(*positional, **keywords)
        made = composed(op, positional, keywords)
        if made is not None:
            return made
    made = by_host(op.name, on_arrays(op), positional, keywords, writes)
    place = carry.place_among((*positional, *keywords.values()))
    if op.multiple:
        return [None if out is None else adopted(out, place) for out in made]
    return adopted(made, place)


WRITTEN = {"native_batch_norm": ("running_mean", "running_var"), "rrelu_with_noise": ("noise",)}
"""Operands that a forward writes to, by the names of ops."""


def on_arrays(op: Op) -> Any:
    """An op as a function of arrays of the host."""

    def run(*args: Any, **kwargs: Any) -> Any:
        names = [p.name for p in op.params if not p.keyword_only]
        return apply.computed(op, dict(zip(names, args, strict=True)) | kwargs)

    return run


def copied_to(op: Op, self: Any, dtype: Any = None, memory_format: Any = None, device: Any = None) -> Any:
    """A copy in another dtype and order of memory, here, on the host, or on another device."""
    if device is None:
        source = self
        if self.dtype.kind == "c" and dtype is not None and dtype.numpy.kind not in "cb":
            on_arrays(op)(np.zeros(0, self.dtype), *(dtype, None, None)[: len(op.params) - 1])  # which warns
            source = self.real
        made = copied(source, None if dtype is None else dtype.numpy, memory_format)
        if made is not None:
            return made
        carry.count(op.name)
    if device is CPU and not copies.waited:
        same = dtype is None or dtype.numpy == self.dtype
        alike = same and memory_format in (None, preserve_format) and is_non_overlapping_and_dense(self)
        made = self if alike else copied(self, None if dtype is None else dtype.numpy, memory_format)
        if made is not None:
            low, nbytes = reach(made.shape, made.strides, made.itemsize)
            out: Any = np.ndarray(made.shape, made.dtype, pinned(nbytes), -low, made.strides)
            np.copyto(out, made, "unsafe")
            return out
    made = on_arrays(op)(self.on_host(), *(dtype, memory_format, None)[: len(op.params) - 1])
    return made if device is CPU else upload(made, self.device if device is None else device)


class Outlines:
    """Memory that is never touched, for views to be made of: pages of zeros that cost nothing."""

    memory: Any = np.frombuffer(bytes(1 << 12), np.uint8)

    def of(self, array: DeviceArray) -> Any:
        """An array of the host that has the shape, strides and dtype of one of the device, and no contents."""
        low, nbytes = reach(array.shape, array.strides, array.itemsize)
        if nbytes > self.memory.nbytes:
            self.memory = np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)
        return np.ndarray(array.shape, array.dtype, self.memory, -low, array.strides)


outlines = Outlines()


def views(op: Op, positional: list[Any], keywords: dict[str, Any]) -> Any:
    """The views an op makes, which look at shapes alone; None if it makes copies."""
    array = positional[0]
    if type(array) is not DeviceArray or any([has_device_arrays(v) for v in (*positional[1:], *keywords.values())]):
        return None
    outline = outlines.of(array)
    made = on_arrays(op)(outline, *positional[1:], **keywords)
    start, found = outline.__array_interface__["data"][0], []
    for window in made if op.multiple else [made]:
        if window.size and not np.may_share_memory(window, outline):
            return None
        skip = window.__array_interface__["data"][0] - start if window.size else 0
        found.append(array if window is outline else array.seen_as(window.shape, window.strides, window.dtype, skip))
    return found if op.multiple else found[0]


# ------------------------------------------------------------------ backward


class Formula:
    """A formula of a step that is pointwise: a kernel where one can compute it, else op by op."""

    __slots__ = ("otherwise", "traced")

    def __init__(self, otherwise: Any, traced: Any) -> None:
        self.otherwise, self.traced = otherwise, traced

    def __call__(self, *args: Any) -> Any:
        made = pointwise(self.traced, args, {})
        return self.otherwise(*args) if made is None else made


def forward_of_formula(kernels: Any) -> Any:
    """The function of arrays that becomes kernels on the host."""
    return kernels.function if isinstance(kernels, (Chooser, Kernels)) else kernels


class OnTensors:
    """A formula of a step that is more than pointwise: it runs on tensors, op by op, and nothing is recorded."""

    __slots__ = ("formula",)

    def __init__(self, formula: Any) -> None:
        self.formula = formula

    def __call__(self, *args: Any) -> Any:
        before = grad_enabled.set(False)
        try:
            made = self.formula(*[wrapped(value) for value in args])
        finally:
            grad_enabled.reset(before)
        return tuple([unwrapped(one) for one in made]) if isinstance(made, (tuple, list)) else unwrapped(made)


def wrapped(value: Any) -> Any:
    """Arrays as tensors, in lists too."""
    if type(value) is DeviceArray or type(value) is np.ndarray:
        return wrap(value)
    return [wrapped(item) for item in value] if type(value) is list else value


def unwrapped(value: Any) -> Any:
    """Tensors as arrays."""
    return value._array if isinstance(value, Tensor) else value


class AtOnce:
    """All gradients of an op by kernels of the device, where these take the case; else op by op."""

    __slots__ = ("compute", "otherwise")

    def __init__(self, compute: Any, otherwise: Any) -> None:
        self.compute, self.otherwise = compute, otherwise

    def __call__(self, *args: Any) -> Any:
        made = self.compute(*args)
        return self.otherwise(*args) if made is None else made


def formula_of(names: dict[str, Any], op: Op, part: str) -> Any:
    """A formula of a step that is more than pointwise."""
    value = OnTensors(names[f"tensor_{part}"])
    return AtOnce(BACKWARD[op.key], value) if part == "joint" and op.key in BACKWARD else value


class Generated(dict[str, Any]):
    """The globals of a generated step: its formulas, read; all else as it is."""

    def __init__(self, names: dict[str, Any], op: Op) -> None:
        super().__init__({"__name__": names["__name__"], "__builtins__": __builtins__})
        self.names, self.op = names, op

    def __missing__(self, name: str) -> Any:
        value = self.names[name]
        if name.startswith(FORMULAS):
            _, _, part = name.partition("_")
            value = formula_of(self.names, self.op, part)
            if part in self.op.formulas and is_traced(self.op, part) and not name.startswith("halves_"):
                value = Formula(value, forward_of_formula(self.names[f"kernels_{part}"]))
        self[name] = value
        return value


FORMULAS = ("array_", "halves_", "pointwise_", "kernels_")
"""How the names of formulas begin in the code of a step."""


class OnDevice:
    """A node of an op of which some operands or results are on the device: it knows where its inputs are.

    Its formulas run on arrays of the device. A gradient of an input that lies elsewhere, as before a copy between
    devices, is moved there.
    """

    __slots__ = ()
    places: tuple[device | None, ...]

    def backward(self, grad: Any) -> Any:
        """One step of a backward pass on arrays."""
        step = steps.get(type(self))
        if step is None:
            made: Any = super().backward  # type: ignore[misc]
            names = Generated(made.__func__.__globals__, self.op)  # type: ignore[attr-defined]
            step = steps[type(self)] = FunctionType(made.__func__.__code__, names, made.__func__.__name__)
        outs = step(self, grad)
        return tuple([None if out is None else moved(out, place) for out, place in zip(outs, self.places, strict=True)])

    def backward_tensors(self, grad: Any) -> Any:
        """The same on tensors, recorded."""
        outs = super().backward_tensors(grad)  # type: ignore[misc]
        return tuple(
            [
                out if out is None or place is None else out.to(place)
                for out, place in zip(outs, self.places, strict=True)
            ]
        )


def moved(made: Any, place: device | None) -> Any:
    """What a formula made, where it belongs."""
    if place is None or place is CPU:
        return made.on_host() if place is CPU and type(made) is DeviceArray else made
    return adopted(made, place)


steps: dict[type[Any], Any] = {}
"""The steps of nodes, read for the device."""
nodes: dict[type[Any], Any] = {}


def noted(node: type[Any], inputs: list[Any]) -> Any:
    """The node that records an op."""
    found = nodes.get(node)
    if found is None:
        names = {"__slots__": ("places",), "__module__": "builtins"}
        found = nodes[node] = type(node.__name__, (OnDevice, node), names)
    out = new(found)
    out.places = tuple([t.device if isinstance(t, Tensor) else None for t in inputs])
    return out


def stepped(node: Any, grad: Any) -> Any:
    """One step of a backward pass on tensors that nobody wants recorded."""
    several = type(grad) in (list, tuple)
    given = [None if g is None else g._array for g in grad] if several else grad._array
    if not isinstance(node, OnDevice):  # of an op on the host alone, which a gradient of the device has reached
        return node.backward_tensors(grad)
    return tuple([None if out is None else wrap(out) for out in node.backward(given)])


# ------------------------------------------------------------------ the order of memory


def arranged(self: DeviceArray, operands: Any) -> Any:
    """A pointwise result in the memory order torch gives it."""
    if self.flags.c_contiguous and all([a.flags.c_contiguous for a in operands if isinstance(a, np.ndarray)]):
        return self
    given = [outlines.of(a) if type(a) is DeviceArray else a for a in operands if isinstance(a, np.ndarray)]
    plan = arrangement(outlines.of(self), given)
    if plan is None:
        return self
    out = empty(plan[0], self.dtype, None, self.device).transpose(plan[1])
    out[...] = self
    return out


# ------------------------------------------------------------------ devices


def check_devices(op: Op, named: list[tuple[str, Any]]) -> None:
    """Raise for operands on different devices; one without dimensions may be the host's."""
    if op.name in MIXED:
        return
    places = [a.device if type(a) is DeviceArray else CPU for _, a in named]
    here = next(place for place in places if place is not CPU)
    if op.name in INDEXING:
        if places[0] is CPU:
            raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
        return
    first = places[0]
    if op.name in TYPED:
        check_types(named, places)
    for (name, a), place in zip(named, places, strict=True):
        if op.name == "masked_fill" and name == "mask" and place is not first:
            raise RuntimeError(
                f"expected self and mask to be on the same device, but got mask on {place} and self on {first}"
            )
        if (op.promote or is_traced(op)) and op.name not in WRAPPED:
            if place is not here and (place is not CPU or a.ndim):
                raise RuntimeError(messages.two_devices(here, place))
        elif place is not first and (a.ndim or place is not CPU):
            method, other = METHODS.get(op.name, (op.name, {}))
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but got {other.get(name, name)} is on {place}, "
                f"different from other tensors on {first} (when checking argument in method wrapper_CUDA_{method})"
            )


def check_types(named: list[tuple[str, Any]], places: list[device]) -> None:
    """Raise for parameters of a convolution that are elsewhere than its input, which torch says of their types."""
    (_, x), *parameters = named
    for (name, a), place in zip(parameters, places[1:], strict=True):
        if place is not places[0]:
            mine, its = (f"torch.{'' if p is CPU else 'cuda.'}{FROM_NUMPY[t.dtype].scalar_type}Tensor"
                         for t, p in ((x, places[0]), (a, place)))  # fmt: skip
            dense = places[0] is CPU and name == "weight"
            raise RuntimeError(
                f"Input type ({mine}) and {name} type ({its}) should be the same"
                + " or input should be a MKLDNN tensor and weight is a dense tensor" * dense
            )


TYPED = {"convolution"}
WRAPPED = {"mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "cat", "stack"}
"""Ops that promote here, or might, and whose operands torch checks by their names."""
METHODS: dict[str, tuple[str, dict[str, str]]] = {
    "embedding": ("_index_select", {"indices": "index"}),
    "nll_loss": ("nll_loss_forward", {}),
    "native_layer_norm": ("_native_layer_norm", {}),
    "stack": ("cat", {}),
}
"""What torch's checks call an op and its operands, where that is another name."""
INDEXING = {"index", "index_put", "_index_put_impl"}
MIXED = {"_to_copy", "copy"}
"""Ops whose operands may lie on several devices."""


def check_place(place: device) -> None:
    """Raise for a device that is not there."""
    placed(place.index)


TYPES_OF_INTERFACE = frozenset([np.dtype(code).str for code in "?bBhHiIlLqQefdFD"])


class DeviceTensor(ForeignTensor):
    """A tensor whose elements are on a CUDA device."""

    __slots__ = ()
    __hash__ = Tensor.__hash__

    def data_ptr(self) -> int:
        """The address of the first element, on the device."""
        return self._array.address  # type: ignore[attr-defined, no-any-return]

    def get_device(self) -> int:
        """The number of the device."""
        return self.device.index or 0

    def record_stream(self, stream: Any) -> None:
        """Say that a stream uses the memory, which is not given to others before that stream has done its work."""
        array: Any = self._array
        owner = array if array.base is None else array.base
        if owner.memory is not None:
            pool_of(self.get_device()).lend(owner.memory, stream.cuda_stream)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where the elements lie, for other libraries on the same device; they are not copied."""
        if self.requires_grad:
            raise RuntimeError(
                "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
                "var.detach() to get Variable that doesn't require grad."
            )
        array: Any = self._array
        if array.dtype.str not in TYPES_OF_INTERFACE:
            raise TypeError(
                f"{self.dtype} has no name in __cuda_array_interface__; use view() to give it another dtype"
            )
        strides = None if array.flags.c_contiguous else array.strides
        place = (array.address if array.size else 0, False)
        return {"typestr": array.dtype.str, "shape": array.shape, "strides": strides, "data": place, "version": 2}

    def __dlpack__(
        self, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """A DLPack capsule on the memory of this tensor, for another library that will use it on a stream."""
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if signs(self)[0]:
            raise BufferError("Can't export tensors with the conjugate bit set")
        if dl_device is not None and tuple(dl_device) != (dlpack.CUDA, self.get_device()):
            raise BufferError(f"Can't export a tensor on {self.device} to another device; move it there first")
        array: Any = stored(self)
        dlpack.prepared(self.get_device(), stream)
        return dlpack.capsule_of(array.copy("K") if copy else array, max_version)

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
        return wrap(self._array.on_host()).item()  # type: ignore[attr-defined]

    def tolist(self) -> Any:
        """The elements as lists of Python numbers."""
        return wrap(self._array.on_host()).tolist()  # type: ignore[attr-defined]

    def numpy(self, *, force: bool = False) -> Any:
        """The elements as an array of NumPy's: only if asked to copy them."""
        if force:
            return self.detach().cpu().numpy()  # type: ignore[attr-defined]
        raise TypeError(messages.not_on_host(self.device))


class DeviceParameter(ForeignParameter, DeviceTensor):
    """A parameter whose elements are on a CUDA device."""

    __slots__ = ()
    __hash__ = Tensor.__hash__


reading.computes.append(computed)
hold(DeviceArray, DeviceTensor, DeviceParameter)
for _name, _function in {
    "read": read,
    "adopted": adopted,
    "computed": computed,
    "stepped": stepped,
    "noted": noted,
    "check_devices": check_devices,
    "check_place": check_place,
}.items():
    setattr(DeviceArray, _name, staticmethod(_function))
DeviceArray.arranged = arranged  # type: ignore[method-assign]
