"""TracedArray: a true array that tells a recorder what is done to it. See docs/notes/compile.md.

The array is an array of another kind (docs/notes/arrays.md) whose elements are on the host: ops ask the kind, and the
kind computes with what the array holds and notes the step. So a function that is recorded runs as it would run
anyhow, with the same results. Whoever looks at an element in any other way is answered too, and ends the recording.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from pullback._arrays.kinds import ForeignArray
from pullback._arrays.memory import data_ptr, memory_of
from pullback._device import CPU
from pullback._foreign import ForeignParameter, ForeignTensor, hold
from pullback._tensor import Parameter, Tensor, new
from pullback.compiler.program import Slot

AnyArray = Any
FACTS = {np.may_share_memory, np.shares_memory, np.ndim, np.shape, np.size, np.result_type, np.can_cast,
         np.iscomplexobj, np.isrealobj, np.broadcast_shapes, np.min_scalar_type}  # fmt: skip
"""Functions of NumPy that look at shapes, dtypes and addresses alone."""


class TracedArray(ForeignArray):
    """An array, its slot in a program, and who records."""

    __slots__ = ("recorder", "slot", "value")
    device = CPU

    recorder: Any
    slot: Slot
    value: AnyArray

    def __init__(self, recorder: Any, slot: Slot, value: AnyArray) -> None:
        self.recorder, self.slot, self.value = recorder, slot, value

    # ---------------------------------------------------------------- facts
    shape = property(attrgetter("value.shape"))  # asked for all the time, and each call of Python is watched
    strides = property(attrgetter("value.strides"))
    dtype = property(attrgetter("value.dtype"))
    ndim = property(attrgetter("value.ndim"))
    size = property(attrgetter("value.size"))
    itemsize = property(attrgetter("value.itemsize"))
    nbytes = property(attrgetter("value.nbytes"))
    flags = property(attrgetter("value.flags"))
    address = property(lambda self: data_ptr(self.value))

    @property
    def base(self) -> Any:
        """The array that owns the memory; None for one that does."""
        owner = memory_of(self.value)
        return None if owner is self.value else self.recorder.owner(self, owner)

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"TracedArray({self.slot}, {self.value!r})"

    # ---------------------------------------------------------------- elements
    def looked_at(self, how: str) -> AnyArray:
        """The array itself, for somebody whom the recorder cannot follow."""
        self.recorder.value_read(how)
        return self.value

    def followed(self, function: Any, how: str, *args: Any) -> Any:
        """A truth value or an integer that somebody reads: the program is for what it is."""
        value = function(self.value, *args)
        if type(value) not in (bool, int):
            self.recorder.value_read(how)
            return value
        return self.recorder.branch(function, (self, *args), value)

    def item(self, *index: Any) -> Any:
        """One element."""
        return self.followed(item_of, "item()", *index)

    def tolist(self) -> Any:
        """All elements."""
        return self.looked_at("tolist()").tolist()

    def tobytes(self, *args: Any) -> bytes:
        """All elements."""
        return self.looked_at("tobytes()").tobytes(*args)  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return self.followed(truth_of, "bool()")  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return self.followed(int_of, "int()")  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return float(self.looked_at("float()"))

    def __complex__(self) -> complex:
        return complex(self.looked_at("complex()"))

    def __index__(self) -> int:
        return self.followed(int_of, "an index")  # type: ignore[no-any-return]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        value = self.looked_at("a function of NumPy")
        return value if dtype is None else value.astype(dtype)

    def __reduce__(self) -> Any:
        return np.asarray, (self.looked_at("pickle"),)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy("K")

    # ---------------------------------------------------------------- what is done to it
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        written = tuple([a for a in (out if type(out) is tuple else (out,)) if a is not None])
        if method == "at":
            written = inputs[:1]
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return self.recorder.call(function, inputs, kwargs, written)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in FACTS:
            return function(*self.recorder.plain(args), **self.recorder.plain(kwargs))
        written = args[:1] if function in (np.copyto, np.put, np.place, np.putmask, np.put_along_axis) else ()
        out = kwargs.get("out")
        return self.recorder.call(function, args, kwargs, written if out is None else (out,))

    def __getitem__(self, key: Any) -> Any:
        return self.recorder.method("__getitem__", (self, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.recorder.method("__setitem__", (self, key, value), written=(self,))

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self.value))])

    @property
    def T(self) -> Any:
        """The dimensions in reverse."""
        return self.transpose()

    @property
    def real(self) -> Any:
        """The real parts."""
        return self.recorder.call(real_parts, (self,), {}) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return self.recorder.call(imaginary_parts, (self,), {})

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def seen_as(self, shape: Any, strides: Any, dtype: Any = None, skip: int = 0) -> Any:
        """Another window onto the same memory, `skip` bytes further on."""
        return self.recorder.call(window, (self, tuple(shape), tuple(strides), dtype, skip), {})

    def by(self, function: Any, *args: Any) -> Any:
        """What a function of arrays that plain backward calls makes of this array."""
        return self.recorder.call(function, (self, *args), {})

    def fill(self, value: Any) -> None:
        """Overwrite all elements."""
        self.recorder.method("fill", (self, value), written=(self,))

    def sort(self, *args: Any, **kwargs: Any) -> None:
        """Sort in place."""
        self.recorder.method("sort", (self, *args), kwargs, written=(self,))


def item_of(array: AnyArray, *index: Any) -> Any:
    """An element as a number of Python."""
    return array.item(*index)


def truth_of(array: AnyArray) -> bool:
    """Whether the only element is not zero."""
    return bool(array.item())


def int_of(array: AnyArray) -> int:
    """The only element as an integer."""
    return int(array.item())


def list_of(array: AnyArray) -> Any:
    """All elements as numbers of Python."""
    return array.tolist()


def real_parts(array: AnyArray) -> AnyArray:
    """The real parts of complex numbers, as a view."""
    return array.real


def imaginary_parts(array: AnyArray) -> AnyArray:
    """The imaginary parts."""
    return array.imag


def window(memory: AnyArray, shape: Any, strides: Any, dtype: Any, skip: int) -> AnyArray:
    """A window onto memory."""
    made: AnyArray = np.ndarray(shape, memory.dtype if dtype is None else dtype, memory, skip, strides)
    return made


def traced_method(name: str) -> Any:
    """A method of arrays that makes an array."""

    def method(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
        return self.recorder.method(name, (self, *args), kwargs)

    method.__name__ = name
    return method


for name in ("transpose", "swapaxes", "squeeze", "diagonal", "view", "reshape", "ravel", "flatten", "astype", "copy",
             "take", "sum", "mean", "min", "max", "prod", "any", "all", "argmax", "argmin", "argsort", "cumsum", "clip",
             "conj", "conjugate", "repeat", "round", "dot", "searchsorted", "trace", "var", "std", "nonzero",
             "byteswap", "newbyteorder", "compress", "choose"):  # fmt: skip
    setattr(TracedArray, name, traced_method(name))

OPERATORS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "pow": np.power,
             "floordiv": np.floor_divide, "mod": np.remainder, "matmul": np.matmul, "and": np.bitwise_and,
             "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift}  # fmt: skip
COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
               "ge": np.greater_equal}  # fmt: skip


def operator(ufunc: Any, way: str) -> Any:
    """A Python operator: forwards, reflected or in place."""
    if way == "i":
        return lambda self, other: ufunc(self, other, out=self)
    return (lambda self, other: ufunc(other, self)) if way == "r" else (lambda self, other: ufunc(self, other))


for name, ufunc in OPERATORS.items():
    for way in ("", "r", "i"):
        setattr(TracedArray, f"__{way}{name}__", operator(ufunc, way))
for name, ufunc in COMPARISONS.items():
    setattr(TracedArray, f"__{name}__", operator(ufunc, ""))
for name, ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}.items():
    setattr(TracedArray, f"__{name}__", lambda self, ufunc=ufunc: ufunc(self))
TracedArray.__hash__ = object.__hash__  # type: ignore[method-assign]

# ------------------------------------------------------------------ tensors


def alias(tensor: Any) -> Any:
    """A plain tensor in place of a traced one."""
    out = new(Parameter if isinstance(tensor, Parameter) else Tensor)
    for slot in ("_requires_grad", "_edge", "_grad", "_counter", "_view", "_extra", "_detached_at"):
        setattr(out, slot, getattr(tensor, slot))
    out._array = tensor._array.value
    return out


own_array, set_own_array = Tensor._array.__get__, Tensor._array.__set__  # type: ignore[attr-defined]
own_grad, set_own_grad = Tensor._grad.__get__, Tensor._grad.__set__  # type: ignore[attr-defined, union-attr]


def hold_array(tensor: Any, array: Any) -> None:
    """Give a tensor its array."""
    if type(array) is TracedArray:
        array.recorder.holders.append(tensor)
    set_own_array(tensor, array)


class TracedTensor(ForeignTensor):
    """A tensor in a function that is recorded. Whoever makes one, the recorder knows it, to make it plain again."""

    __slots__ = ()
    __hash__ = Tensor.__hash__
    _array = property(own_array, hold_array)  # type: ignore[assignment]

    @property
    def _grad(self) -> Any:  # type: ignore[override]
        array = own_array(self)
        if type(array) is TracedArray:
            array.recorder.ask_for_grad(self)
        return own_grad(self)

    @_grad.setter
    def _grad(self, grad: Any) -> None:
        set_own_grad(self, grad)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._array.address if self._array.size else 0  # type: ignore[attr-defined, no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return Tensor.__deepcopy__(self, memo)  # type: ignore[attr-defined]


FOLLOWED = {"item": item_of, "__bool__": truth_of, "__int__": int_of, "__index__": int_of, "tolist": list_of}
"""Methods of tensors that look at elements and may be followed, and the same for arrays."""
SHORT = 64
"""The longest list of integers that a program may be for."""


def reading(name: str) -> Any:
    """A method of tensors that looks at elements."""
    known, function = getattr(Tensor, name), FOLLOWED.get(name)
    how = f"{name}()" if not name.startswith("__") else name.strip("_") + "()"

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        array = self._array
        made = known(alias(self), *args, **kwargs)
        if function is not None and not args and not kwargs:
            if type(made) in (bool, int):
                return array.recorder.branch(function, (array,), made)
            if type(made) is list and array.dtype.kind in "biu" and array.size <= SHORT:
                array.recorder.branch(function, (array,), known(alias(self)))
                return made
            if type(made) is float and function is item_of:
                return array.recorder.number_made(item_of, (array,), made)
        array.recorder.value_read(how)
        return made

    method.__name__, method.__doc__ = name, known.__doc__
    return method


for name in ("item", "__bool__", "__float__", "__int__", "__complex__", "__index__", "tolist", "numpy", "__array__",
             "__repr__", "__str__", "__format__", "__reduce_ex__", "untyped_storage", "storage",
             "__dlpack__"):  # fmt: skip
    if hasattr(Tensor, name):
        setattr(TracedTensor, name, reading(name))


class TracedParameter(ForeignParameter, TracedTensor):
    """A parameter in a function that is recorded."""

    __slots__ = ()
    __hash__ = Tensor.__hash__

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        if not isinstance(data, TracedTensor):
            return Parameter(data, requires_grad)
        return Parameter.__new__(cls, data, requires_grad)


hold(TracedArray, TracedTensor, TracedParameter)
