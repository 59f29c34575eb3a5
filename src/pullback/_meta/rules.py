"""What NumPy's functions make of arrays without elements: shapes, dtypes and the order of memory.

`numpy` below stands for NumPy where code is read for such arrays (see _meta/reading.py): it makes arrays without
elements, answers by the rules of this package, and is NumPy itself in everything else. NumPy's own protocols lead
here, too. A function without a rule says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.memory import common_order, order_of_result
from pullback._meta import array as arrays
from pullback._meta.array import MetaArray, NoValues, empty_in, new_like

RULES: dict[str, Callable[..., Any]] = {}
"""The rules by the names of NumPy's functions; those of its packages with a dot."""
SMALL = 1 << 16
"""Numbers counted or listed up to here are made in truth: kernels count with them."""


MAKING = {"empty", "zeros", "ones", "full", "arange", "linspace", "eye", "empty_like", "zeros_like", "ones_like",
          "full_like"}  # fmt: skip
"""What makes arrays without elements of anything; all other functions are NumPy's own for arrays that have some."""


def rule(*names: str) -> Callable[[Any], Any]:
    """Declare what a function of NumPy makes of arrays without elements."""

    def declare(function: Any) -> Any:
        for name in names or (function.__name__,):
            RULES[name] = function
        return function

    return declare


def is_meta(value: Any) -> bool:
    """True for an array without elements, and for a list with one among its items."""
    if type(value) in (list, tuple):
        return any([is_meta(item) for item in value])
    return type(value) is MetaArray


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of anything NumPy takes."""
    return value.shape if isinstance(value, (np.ndarray, np.generic)) else np.shape(value)


def facts(value: Any) -> Any:
    """An array of either kind as it is; anything else as an array."""
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def unanswered(name: str) -> NotImplementedError:
    """The error of a function without a rule."""
    return NotImplementedError(f"np.{name} has no rule for arrays without elements (device='meta')")


# ------------------------------------------------------------------ ufuncs


def weak(value: Any) -> Any:
    """What a ufunc chooses its types by: the dtype of an array, the type of a Python number."""
    if type(value) in (int, float, complex):
        return type(value)
    return facts(value).dtype


def resolved(ufunc: Any, inputs: tuple[Any, ...], dtype: Any, casting: str = "same_kind") -> tuple[Any, ...]:
    """The dtypes a ufunc computes in and gives."""
    given = tuple([weak(value) for value in inputs])
    if all([type(kind) is type for kind in given]):  # Python numbers alone
        given = tuple([np.asarray(value).dtype for value in inputs])
    outs = (None,) * ufunc.nout
    options = {} if dtype is None else {"signature": (*(None,) * ufunc.nin, *(np.dtype(dtype),) * ufunc.nout)}
    kinds = ufunc.resolve_dtypes((*given, *outs), casting=casting, **options)
    return tuple([np.dtype(kind) for kind in kinds])


def forwards(array: Any) -> Any:
    """An array whose steps all go forwards: in which direction it is read does not matter to the order of memory."""
    if all([step >= 0 for step in array.strides]):
        return array
    return MetaArray(array.shape, array.dtype, [abs(step) for step in array.strides])


def laid_out(shape: tuple[int, ...], inputs: Any, dtype: Any) -> MetaArray:
    """A new pointwise result, in the memory order torch gives it: see _arrays/memory.py."""
    given = [forwards(value) for value in inputs if isinstance(value, np.ndarray)]
    if not shape or 0 in shape:
        return MetaArray(shape, dtype)
    order = common_order(given, shape) or order_of_result(given, shape)
    return MetaArray(shape, dtype) if order is None else empty_in(shape, list(order), dtype)


def called(ufunc: Any, *inputs: Any, out: Any = None, dtype: Any = None, where: Any = True, casting: Any = "same_kind",
           order: str = "K", subok: bool = True, signature: Any = None, axes: Any = None) -> Any:  # fmt: skip
    """A ufunc, called."""
    if len(inputs) > ufunc.nin:
        inputs, out = inputs[: ufunc.nin], inputs[ufunc.nin :]
    targets = out if isinstance(out, tuple) else (out,) * 1
    if ufunc.signature is not None:
        shape = core_shape(ufunc, inputs)
        lies = lambda kind: MetaArray(shape, kind)
    else:
        shape = np.broadcast_shapes(*[shape_of(value) for value in (*inputs, *([] if where is True else [where]))])
        lies = lambda kind: laid_out(shape, inputs, kind)
    kinds = resolved(ufunc, inputs, dtype, casting)[ufunc.nin :]
    made = []
    for kind, target in zip(kinds, (*targets, *(None,) * ufunc.nout)[: ufunc.nout], strict=True):
        if target is not None:
            target[...] = MetaArray(shape, kind) if type(target) is MetaArray else refuse_host()
        made.append(lies(kind) if target is None else target)
    return made[0] if ufunc.nout == 1 else tuple(made)


def refuse_host() -> Any:
    """Nothing can be written to an array of the host."""
    raise NoValues(arrays.NO_META_VALUES)


def core_shape(ufunc: Any, inputs: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of a product: the batch broadcasts, what is summed over must agree."""
    a, b = [shape_of(value) for value in inputs]
    if ufunc is np.vecdot:
        return np.broadcast_shapes(a, b)[:-1]
    if ufunc is not np.matmul:
        raise unanswered(ufunc.__name__)
    if not a or not b:
        raise ValueError("matmul: Input operand does not have enough dimensions (has 0, requires at least 1)")
    left, right = (a if len(a) > 1 else (1, *a)), (b if len(b) > 1 else (*b, 1))
    if left[-1] != right[-2]:
        raise ValueError(
            "matmul: Input operand 1 has a mismatch in its core dimension 0 "
            f"(size {right[-2]} is different from {left[-1]})"
        )
    core = (*(() if len(a) == 1 else left[-2:-1]), *(() if len(b) == 1 else right[-1:]))
    return (*np.broadcast_shapes(left[:-2], right[:-2]), *core)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions an argument `axis` names, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    found = tuple([int(a) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))])
    if not ndim and found in ((0,), (-1,)):
        return ()  # as NumPy has it
    for a in found:
        if not -ndim <= a < ndim:
            raise np.exceptions.AxisError(a, ndim)
    found = tuple([a % ndim for a in found])
    if len({*found}) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return found


def reduced(value: Any, axis: Any, keepdims: Any, dtype: Any, out: Any = None) -> Any:
    """The array that is left when dimensions are reduced, in the order of memory the others had."""
    value = facts(value)
    gone = axes_of(axis, value.ndim)
    if out is not None:
        return out[0] if isinstance(out, tuple) else out
    if keepdims:
        return MetaArray([1 if d in gone else n for d, n in enumerate(value.shape)], dtype)
    return MetaArray([n for d, n in enumerate(value.shape) if d not in gone], dtype)


WIDE = {"b": np.int64, "i": np.int64, "u": np.uint64}
SUMS = ("add", "multiply")


def reduce(ufunc: Any, value: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
           initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    """A ufunc's reduction."""
    value = facts(value)
    if dtype is None:
        own = value.dtype
        wide = ufunc.__name__ in SUMS and own.kind in WIDE and own.itemsize < 8
        dtype = np.dtype(WIDE[own.kind]) if wide else resolved(ufunc, (value, value), None)[-1]
    if initial is None and ufunc.identity is None:
        gone = axes_of(axis, value.ndim)
        if 0 in [value.shape[d] for d in gone]:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    made = reduced(value, axis, keepdims, dtype, out)
    made.expected = ufunc is np.logical_and
    return made


def accumulate(ufunc: Any, value: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """A ufunc's running results."""
    value = facts(value)
    axes_of(axis, value.ndim)
    target = out[0] if isinstance(out, tuple) else out
    return new_like(value, reduce(ufunc, value, axis, dtype).dtype) if target is None else target


def outer(ufunc: Any, one: Any, other: Any, **kwargs: Any) -> Any:
    """A ufunc of all pairs."""
    return MetaArray((*shape_of(one), *shape_of(other)), resolved(ufunc, (one, other), None)[-1])


def reduceat(ufunc: Any, value: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """A ufunc's reductions of slices."""
    shape = list(value.shape)
    shape[axis] = len(indices)
    return MetaArray(shape, reduce(ufunc, value, axis, dtype).dtype) if out is None else out


def at(ufunc: Any, value: Any, indices: Any, *rest: Any) -> None:
    """Writes nothing."""


METHODS: dict[str, Any] = {
    "__call__": called, "reduce": reduce, "accumulate": accumulate, "outer": outer, "reduceat": reduceat, "at": at,
}  # fmt: skip


class Ufunc:
    """A ufunc of NumPy, answered by the rules where arrays without elements come."""

    def __init__(self, ufunc: Any) -> None:
        self.ufunc, self.__name__ = ufunc, ufunc.__name__
        for name in METHODS:
            setattr(self, name, self.method(name))

    def method(self, name: str) -> Any:
        """One of its methods."""
        ufunc, own, answer = self.ufunc, getattr(self.ufunc, name), METHODS[name]

        def ask(*args: Any, **kwargs: Any) -> Any:
            meta = any([is_meta(value) for value in args]) or (kwargs and any(map(is_meta, kwargs.values())))
            return answer(ufunc, *args, **kwargs) if meta else own(*args, **kwargs)

        return ask

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["__call__"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ufunc, name)

    def __eq__(self, other: object) -> bool:
        return other is self.ufunc or self is other

    def __hash__(self) -> int:
        return hash(self.ufunc)


def answer_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy's protocol for ufuncs asks."""
    return METHODS[method](ufunc, *inputs, **kwargs)


# ------------------------------------------------------------------ the stand-in for NumPy


class Namespace:
    """NumPy, or one of its packages, for arrays without elements."""

    def __init__(self, real: Any, prefix: str = "") -> None:
        self.real, self.prefix = real, prefix

    def __getattr__(self, name: str) -> Any:
        found = self.answer(name, getattr(self.real, name))
        setattr(self, name, found)
        return found

    def answer(self, name: str, own: Any) -> Any:
        """What a name of NumPy's stands for."""
        if isinstance(own, np.ufunc):
            return Ufunc(own)
        answer = RULES.get(self.prefix + name)
        if answer is not None and (name in MAKING or isinstance(answer, type)):
            return answer
        if answer is None and name in ("linalg", "fft", "lib", "stride_tricks"):
            return Namespace(own, f"{self.prefix}{name}.")
        if not callable(own) or isinstance(own, type):
            return own

        def ask(*args: Any, **kwargs: Any) -> Any:
            if not any([is_meta(value) for value in (*args, *kwargs.values())]):
                return own(*args, **kwargs)
            if answer is None:
                raise unanswered(self.prefix + name)
            return answer(*args, **kwargs)

        return ask


numpy = Namespace(np)


def answer_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy's protocol for functions asks."""
    home = (function.__module__ or "").removeprefix("numpy").lstrip(".")
    answer = RULES.get(f"{home}.{function.__name__}" if home else function.__name__) or RULES.get(function.__name__)
    if answer is None:
        raise unanswered(function.__name__)
    return answer(*args, **kwargs)


arrays.answer_ufunc, arrays.answer_function = answer_ufunc, answer_function


def operator(ufunc: Any, reflected: bool = False) -> Any:
    """A Python operator of MetaArray."""
    if ufunc.nin == 1:
        return lambda self: called(ufunc, self)
    if reflected:
        return lambda self, other: called(ufunc, other, self)
    return lambda self, other: called(ufunc, self, other)


def written(ufunc: Any) -> Any:
    """A Python operator that writes into MetaArray."""
    return lambda self, other: called(ufunc, self, other, out=(self,))


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift, "matmul": np.matmul,
}  # fmt: skip
for _name, _ufunc in BINARY.items():
    setattr(MetaArray, f"__{_name}__", operator(_ufunc))
    setattr(MetaArray, f"__r{_name}__", operator(_ufunc, reflected=True))
    setattr(MetaArray, f"__i{_name}__", written(_ufunc))
COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
for _name, _ufunc in COMPARISONS.items():
    setattr(MetaArray, f"__{_name}__", operator(_ufunc))
for _name, _ufunc in {"neg": np.negative, "pos": np.positive, "invert": np.invert, "abs": np.absolute}.items():
    setattr(MetaArray, f"__{_name}__", operator(_ufunc))
MetaArray.__hash__ = None  # type: ignore[assignment]


def arranged(self: MetaArray, operands: Any) -> MetaArray:
    """A pointwise result in the memory order torch gives it: what `laid_out` of _arrays/memory.py does."""
    given = [a for a in operands if isinstance(a, np.ndarray)]
    if not self.size or not given or np.broadcast_shapes(*[a.shape for a in given]) != self.shape:
        return self
    return laid_out(self.shape, given, self.dtype)


MetaArray.arranged = arranged  # type: ignore[method-assign]
