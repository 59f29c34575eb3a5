"""Tensor: an array, its place in the graph, and the counter of writes to its memory. No mathematics.

Every operation, `backward`, hooks and printing are attached to the class by the modules that define them.

    _array ........ the elements (a NumPy array, any strides)
    _edge ......... (node, output_nr) that made this tensor, None for a leaf
    _counter ...... [number of writes, code and offset of the last], shared by everything that looks at the same memory
    _detached_at .......... where a tensor without history lost the one its inputs had: see autograd/locations.py
    _view ......... whose memory this is, when it is a differentiable view (see note: views)
    _extra ........ what few tensors have: tangent, hooks, flags
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING, Any, overload
from weakref import ref

import numpy as np

from pullback._arrays.layout import Size as Size
from pullback._arrays.layout import channels_last as channels_last
from pullback._arrays.layout import channels_last_3d as channels_last_3d
from pullback._arrays.layout import contiguous_format as contiguous_format
from pullback._arrays.layout import layout as layout
from pullback._arrays.layout import memory_format as memory_format
from pullback._arrays.layout import preserve_format as preserve_format
from pullback._arrays.layout import strided as strided
from pullback._arrays.memory import data_ptr, element_strides, storage_offset
from pullback._device import CPU, device
from pullback._dtype import FROM_NUMPY, dtype
from pullback._modes import is_grad_enabled, is_inference_mode_enabled, modes
from pullback._runtime import messages
from pullback._runtime.builtins import bare
from pullback._runtime.warnings import warn_once
from pullback._versions import DETACHED as DETACHED
from pullback._versions import INFERENCE as INFERENCE
from pullback._versions import PRISTINE as PRISTINE
from pullback._versions import DetachedCounter as DetachedCounter
from pullback._versions import about_to_write as about_to_write
from pullback._versions import bump_version as bump_version
from pullback._versions import counter_of as counter_of
from pullback.autograd.locations import detached_here, own_stack
from pullback.autograd.tracebacks import trim

if TYPE_CHECKING:
    from pullback._stubs.tensor import OpMethods
    from pullback.autograd.locations import Detached
    from pullback.autograd.node import AccumulateGrad
    from pullback.autograd.view import View
else:
    OpMethods = object  # what type checkers see of the methods that ops attach

new = object.__new__
ndarray = np.ndarray

OWN_DTYPE: Any = "own"
"""Stands for: the gradient has the dtype of the tensor. None means any dtype."""


class Extra:
    """What few tensors have: a tangent, hooks, the wish to keep its gradient."""

    __slots__ = (
        "accumulator",
        "epoch",
        "former",
        "grad_dtype",
        "hooks",
        "name",
        "post_accumulate",
        "retains_grad",
        "tangent",
    )

    def __init__(self) -> None:
        self.accumulator: ref[AccumulateGrad] | None = None
        self.tangent: Tensor | None = None
        self.epoch = -1
        self.former: tuple[tuple[int, ...], ...] = ()
        self.hooks: Any = None
        self.post_accumulate: Any = None
        self.retains_grad = False
        self.name: str | None = None
        self.grad_dtype: Any = OWN_DTYPE


class Tensor(OpMethods):
    """A multi-dimensional array that records how it was computed."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_array",
        "_counter",
        "_detached_at",
        "_edge",
        "_extra",
        "_grad",
        "_requires_grad",
        "_view",
    )
    __array_priority__ = 1000

    _array: np.ndarray[Any, Any]
    _requires_grad: bool
    _edge: Any  # Node | (Node, output_nr) | None: see autograd/node.py
    _grad: Tensor | None
    _counter: list[Any]
    _detached_at: Detached | None
    _view: View | None
    _extra: Extra | None

    # ---------------------------------------------------------------- place in the graph
    # requires_grad, grad_fn, is_leaf, output_nr, _base are attached by autograd/view.py, which knows views;
    # grad and grad_dtype by autograd/leaf.py.

    @property
    def retains_grad(self) -> bool:
        """True if this is not a leaf and `retain_grad` was called on it."""
        return self._extra is not None and self._extra.retains_grad

    @property
    def _tangent(self) -> Tensor | None:
        """The direction this tensor moves in, while the dual level it was made in is open."""
        extra = self._extra
        return None if extra is None or extra.epoch != modes.dual_epoch else extra.tangent

    @_tangent.setter
    def _tangent(self, tangent: Tensor | None) -> None:
        if tangent is not None or self._extra is not None:
            extra = extra_of(self)
            extra.tangent, extra.epoch = tangent, modes.dual_epoch

    @property
    def _version(self) -> int:
        if self._counter is INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        return int(self._counter[0] % DETACHED)

    def is_inference(self) -> bool:
        """True if this tensor was made in inference mode."""
        return self._counter is INFERENCE

    def _is_view(self) -> bool:
        return self._view is not None

    @property
    def data(self) -> Tensor:
        """The same memory without history; writes through it are not counted."""
        out = wrap(self._array)
        if self._counter is INFERENCE:
            out._counter = INFERENCE
        if self._requires_grad:
            out._detached_at = detached_here(".data")
        return out

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._requires_grad and value._array.dtype.kind not in "fcV":
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if self.device is not value.device or self.layout is not value.layout:
            kind = class_on(self, value)
            if kind is None:
                both = "`variable` and `tensor` have incompatible tensor type."
                raise RuntimeError(f"Attempted to call `variable.set_data(tensor)`, but {both}")
            self.__class__ = kind
        self._array = value._array
        if self._extra is not None:
            self._extra.accumulator = None

    @property
    def name(self) -> str | None:
        """Always None unless set; kept for old programs."""
        return None if self._extra is None else self._extra.name

    # ---------------------------------------------------------------- shape and memory
    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return Size(self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        return FROM_NUMPY[self._array.dtype]

    @property
    def device(self) -> device:
        """Where the elements are."""
        return CPU

    @property
    def layout(self) -> layout:
        """How the elements lie in memory: always strided."""
        return strided

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._array.dtype.itemsize  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.size * self._array.dtype.itemsize  # type: ignore[no-any-return]

    def dim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    ndimension = dim

    @overload
    def size(self, dim: None = None) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Size | int:
        """The shape, or the size of one dimension."""
        if dim is None:
            return Size(self._array.shape)
        return self._array.shape[present_dim(dim, self._array.ndim)]  # type: ignore[no-any-return]

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """The step in elements along each dimension, or along one."""
        strides = element_strides(self._array)
        return strides if dim is None else strides[present_dim(dim, self._array.ndim)]

    def numel(self) -> int:
        """The number of elements."""
        return self._array.size

    nelement = numel

    def element_size(self) -> int:
        """Bytes per element."""
        return self._array.dtype.itemsize  # type: ignore[no-any-return]

    def data_ptr(self) -> int:
        """The address of the first element."""
        return data_ptr(self._array) if self._array.size else 0

    def storage_offset(self) -> int:
        """How many elements lie between the start of the memory and the first element."""
        return storage_offset(self._array)

    def is_contiguous(self, memory_format: memory_format = contiguous_format) -> bool:
        """True if the elements are contiguous without gaps."""
        if memory_format is channels_last:
            return self._array.ndim == 4 and self._array.transpose(0, 2, 3, 1).flags.c_contiguous
        if memory_format is channels_last_3d:
            return self._array.ndim == 5 and self._array.transpose(0, 2, 3, 4, 1).flags.c_contiguous
        return self._array.flags.c_contiguous

    def is_floating_point(self) -> bool:
        """True for real floating types."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """True for complex types."""
        return self._array.dtype.kind == "c"  # type: ignore[no-any-return]

    def is_signed(self) -> bool:
        """True for types that hold negative numbers."""
        return self.dtype.is_signed

    def is_same_size(self, other: Tensor) -> bool:
        """True if both have the same shape."""
        return self._array.shape == other._array.shape  # type: ignore[no-any-return]

    def get_device(self) -> int:
        """-1: the CPU."""
        return -1

    # ---------------------------------------------------------------- Python's own protocols
    __hash__ = object.__hash__

    def __len__(self) -> int:
        try:
            if self._array.ndim == 0:
                raise TypeError("len() of a 0-d tensor")
            return self._array.shape[0]  # type: ignore[no-any-return]
        except Exception as error:
            trim(error)
            raise

    def __bool__(self) -> bool:
        try:
            if self._array.size != 1:
                many = "no values" if self._array.size == 0 else "more than one value"
                raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
            return bool(self._array.item())
        except Exception as error:
            trim(error)
            raise

    def item(self) -> bool | int | float:
        """The only element, as a Python number."""
        try:
            if self._array.size != 1:
                raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
            if self._requires_grad:
                own_stack().left = detached_here(".item()")
            return self._array.item()  # type: ignore[no-any-return]
        except Exception as error:
            trim(error)
            raise

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        if self._requires_grad:
            own_stack().left = detached_here(".tolist()")
        return self._array.tolist()

    def __int__(self) -> int:
        try:
            return int(real_element(self, "int64_t"))
        except Exception as error:
            trim(error)
            raise

    def __float__(self) -> float:
        try:
            if self._requires_grad and is_grad_enabled():
                warn_once(SCALAR_OF_GRAPH)
            return float(real_element(self, "double"))
        except Exception as error:
            trim(error)
            raise

    def __complex__(self) -> complex:
        if self._requires_grad and is_grad_enabled():
            warn_once(SCALAR_OF_GRAPH)
        return complex(only_element(self))

    def __index__(self) -> int:
        try:
            if self._array.size != 1 or self._array.dtype.kind not in "iub":
                raise TypeError("only integer tensors of a single element can be converted to an index")
            return int(self._array.item())
        except Exception as error:
            trim(error)
            raise

    def __dir__(self) -> Iterable[str]:
        return sorted(set(object.__dir__(self)))


class ParameterMeta(type):
    """A tensor of another class that was made a parameter counts as one."""

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=ParameterMeta):
    """A tensor that modules register as something to learn."""

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = wrap(np.empty(0, np.float32))
        if type(data) is not Tensor and type(data) is not Parameter and cls is Parameter:
            return marked_parameter(data, requires_grad)  # type: ignore[return-value]
        if requires_grad and data._array.dtype.kind not in "fcVW":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        out = new(cls)
        adopt(out, data._array)
        out._requires_grad = bool(requires_grad)
        return out

    __hash__ = Tensor.__hash__


def marked_parameter(data: Tensor, requires_grad: bool) -> Tensor:
    """A parameter that keeps the class of its data, and carries a mark."""
    if hasattr(data, "_stored"):  # a lazy conjugate: see _lazy.py
        return Parameter(wrap(data._array), requires_grad)
    if hasattr(data, "parameter_class"):  # on another device: see _foreign.py
        return data.parameter_class(data, requires_grad)  # type: ignore[no-any-return]
    out = data.detach().requires_grad_(requires_grad)
    if type(out) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
            f"instance of the same type, but return type {type(out).__name__} was found instead. To use the type as a "
            "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    out._is_param = True  # type: ignore[attr-defined]
    return out


SCALAR_OF_GRAPH = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using "
    "tensor.detach() first."
)


def adopt(tensor: Tensor, array: np.ndarray[Any, Any]) -> None:
    """Fill the slots of a new tensor: this array, no history, memory of its own."""
    tensor._array = array
    tensor._requires_grad = False
    tensor._edge = tensor._grad = tensor._view = tensor._extra = tensor._detached_at = None
    tensor._counter = PRISTINE


bare_tensor: Any = bare(Tensor)
"""A tensor whose slots are all still empty."""


def wrap(array: Any) -> Tensor:
    """A fresh tensor around an array: no history, a version counter of its own."""
    if type(array) is not ndarray:
        if hasattr(array, "tensor"):  # the stand-in of a batched tensor: see batching/tensor.py
            return array.tensor()  # type: ignore[no-any-return]
        array = np.asarray(array)
    out = bare_tensor()
    out._array = array
    out._requires_grad = False
    out._edge = out._grad = out._view = out._extra = out._detached_at = None
    out._counter = PRISTINE
    return out  # type: ignore[no-any-return]


def class_on(self: Tensor, value: Tensor) -> Any:
    """What a tensor is when it gets the elements of one on another device; None if it cannot be."""
    if {self.device.type, value.device.type} - {"cpu", "cuda"} or not self.layout is value.layout is strided:
        return None
    mine, other = (type(wrap(t._array)) for t in (self, value))
    own = {kind: getattr(kind, "parameter_class", Parameter) for kind in (mine, other)}
    return other if type(self) is mine else own[other] if type(self) is own[mine] else None


def fresh(array: Any) -> Tensor:
    """`wrap`, for results of ops and creation functions on the reference path: knows inference mode."""
    out = wrap(array)
    if is_inference_mode_enabled():
        out._counter = INFERENCE
    return out


def extra_of(tensor: Tensor) -> Extra:
    """The rare state of a tensor, made on first need."""
    if tensor._extra is None:
        tensor._extra = Extra()
    return tensor._extra


def only_element(tensor: Tensor) -> Any:
    """The element of a one-element tensor, for int(), float() and complex()."""
    if tensor._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return tensor._array.item()


def real_element(tensor: Tensor, kind: str) -> Any:
    """The element of a one-element tensor, if it is real."""
    value = only_element(tensor)
    if type(value) is not complex:
        return value
    if value.imag:
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
    return value.real


def normal_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front, or torch's IndexError."""
    limit = ndim or 1
    if not -limit <= dim < limit:
        if type(dim) is not int and -limit <= index(dim) < limit:  # unsigned ones know no negative limit
            return index(dim)
        raise IndexError(messages.dim_out_of_range(dim, ndim))
    return dim + limit if dim < 0 else dim


def present_dim(dim: int, ndim: int) -> int:
    """`normal_dim` where a tensor without dimensions does not count as having one."""
    if ndim == 0:
        raise IndexError(messages.no_dimensions(dim))
    return normal_dim(dim, ndim)
