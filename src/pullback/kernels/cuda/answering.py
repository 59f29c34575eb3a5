"""What NumPy's functions, operators and methods make of arrays of the device."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pullback._arrays.memory import is_non_overlapping_and_dense
from pullback.kernels.compiled import room
from pullback.kernels.cuda import array as arrays
from pullback.kernels.cuda.array import DeviceArray, reach
from pullback.kernels.cuda.carry import (
    Refused,
    attempts,
    by_host,
    download,
    download_into,
    numbers_too,
    place_among,
    store,
    upload,
)
from pullback.kernels.cuda.composed import keys, words
from pullback.kernels.cuda.device import required, stream_on
from pullback.kernels.cuda.launch import BLOCK, launch
from pullback.kernels.cuda.launch import function as loading
from pullback.kernels.cuda.pointwise import copy_into, pointwise
from pullback.kernels.cuda.recording import current

WRITERS = {"copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal"}
"""Functions that write to their first argument."""
LOOKS = {"transpose", "swapaxes", "moveaxis", "rollaxis", "broadcast_to", "expand_dims", "squeeze", "diagonal", "real",
         "flip", "fliplr", "flipud", "rot90", "atleast_1d", "atleast_2d", "atleast_3d", "split",
         "array_split"}  # fmt: skip
"""Functions that make views of their first argument, and look at nothing but its shape."""
FACTS = {"shape", "ndim", "size", "iscomplexobj", "isrealobj", "result_type", "can_cast", "min_scalar_type",
         "common_type"}  # fmt: skip
"""Functions that ask for nothing but shape and dtype."""


def ufunc(function: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a ufunc makes of arrays of which some are on the device; what came before, native code does again."""
    if method != "__call__":
        return computed(function, method, inputs, kwargs)
    if not kwargs:
        return arrays.answers.call(function, *[plain(value, inputs) for value in inputs])
    first, outs = inputs[0], kwargs.get("out", ())
    if len(kwargs) == len(outs) == 1 and outs[0] is first and type(first) is DeviceArray:
        arrays.answers.into(function, *[plain(value, inputs) for value in inputs])
        return first
    return computed(function, method, inputs, kwargs)


def plain(value: Any, inputs: tuple[Any, ...]) -> Any:
    """A number of NumPy's in the dtype of the array beside it as Python's, which stand for that dtype."""
    if type(value) is np.float32 or type(value) is np.float64:
        if all([one is value or (type(one) is DeviceArray and one.dtype == value.dtype) for one in inputs]):
            return float(value)
    return value


def computed(function: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same in full."""
    outs = kwargs.pop("out", ())
    target = inputs[0] if method == "at" else None
    writes = [out for out in outs if out is not None] if target is None else [target]
    for out in writes:
        if type(out) is not DeviceArray:
            raise TypeError(
                f"np.{function.__name__}: arrays of a CUDA device cannot be written into an array of the host"
            )
    if method == "__call__" and any([type(a) is np.ndarray and a.ndim for a in inputs]):
        place = place_among(inputs)
        inputs = tuple([keys.numbers_there(a, place) if type(a) is np.ndarray and a.ndim else a for a in inputs])
    rows = kwargs.get("order") == "C" and not outs
    plain = (
        not kwargs.keys() - ({"dtype", "order"} if rows else {"dtype"})
        and len(outs) < 2
        and not any([o is None for o in outs])
    )
    if method == "__call__" and plain:
        said = {name: value for name, value in kwargs.items() if name != "order"} if rows else kwargs
        made = pointwise(function, inputs, said, outs[0] if outs else None)
        if made is not None:
            return made if not rows or made.flags.c_contiguous else made.copy("C")
        made = pointwise(function, inputs, said) if outs else None  # in another dtype than that of the result
        if made is not None and made.shape == outs[0].shape and np.can_cast(made.dtype, outs[0].dtype, "same_kind"):
            write(outs[0], made)
            return outs[0]
    if method == "__call__" and [*kwargs] == ["where"] and len(outs) == 1 and type(kwargs["where"]) is DeviceArray:
        made = pointwise(function, inputs, {})
        if made is not None and pointwise(np.where, (kwargs["where"], made, outs[0]), {}, outs[0]) is not None:
            return outs[0]
    if method == "at" and len(inputs) == 3 and keys.join_at(function.__name__, *inputs):
        return None
    if not outs:
        plain_call = method == "__call__" and not kwargs  # matmul, vecdot: ufuncs of more than elements
        made = words.answer(function.__name__, inputs, {}) if plain_call and function.signature else None
        made = words.of_ufunc(function.__name__, method, inputs, kwargs) if made is None else made
        if made is not None:
            return made
        if attempts.depth and method in ("reduce", "accumulate", "reduceat"):
            return Refused()
    call = getattr(function, method)
    if outs:
        kwargs["out"] = tuple(outs)
    made = by_host(f"np.{function.__name__}", call, inputs, kwargs, writes)
    if target is not None:
        return None
    if outs:
        return outs[0] if len(outs) == 1 else outs
    return numbers_too(made, place_among(inputs))


def function(called: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What another function of NumPy makes of them."""
    name = called.__name__
    if name in ("may_share_memory", "shares_memory"):
        return shares(*args[:2])
    if name == "copyto":
        return copyto(*args, **kwargs)
    if name in FACTS:
        return called(*[outlined(a) for a in args], **kwargs)
    if name in LOOKS and type(args[0]) is DeviceArray:
        return looked(called, args, kwargs)
    if name == "reshape":
        return args[0].reshape(*args[1:], **kwargs)
    if name == "ravel":
        return args[0].ravel(*args[1:], **kwargs)
    if name == "imag":
        return args[0].imag
    if name == "where" and len(args) == 3 and not kwargs:
        made = pointwise(np.where, args, {})
        if made is not None:
            return made
    if name in ("empty_like", "zeros_like", "ones_like", "full_like"):
        return made_like(name, *args, **kwargs)
    if name == "ascontiguousarray":
        return args[0] if args[0].flags.c_contiguous and args[0].ndim else args[0].copy("C")
    if name == "copy":
        return args[0].copy(*args[1:], **kwargs) if len(args) > 1 or kwargs else args[0].copy("K")
    made = words.answer(name, args, kwargs)
    if made is not None:
        return made
    writes = [args[0]] if name in WRITERS else []
    if writes and keys.written(name, args, kwargs):
        return None
    out = kwargs.get("out")
    writes += [o for o in (out if type(out) is tuple else (out,)) if type(o) is DeviceArray]
    made = by_host(f"np.{name}", called, args, kwargs, writes)
    return out if out is not None else numbers_too(made, place_among((*args, *kwargs.values())))


def outlined(value: Any) -> Any:
    """What has the shape, strides and dtype of an array and no elements; any other value as it is."""
    return value.outline() if type(value) is DeviceArray else value


def looked(called: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The windows a function that makes views makes."""
    array, outline = args[0], args[0].outline()
    start = outline.__array_interface__["data"][0]
    made = called(outline, *args[1:], **kwargs)
    windows = []
    for window in made if isinstance(made, (list, tuple)) else [made]:
        skip = window.__array_interface__["data"][0] - start if window.size else 0
        windows.append(array.seen_as(window.shape, window.strides, window.dtype, skip))
    return windows if isinstance(made, (list, tuple)) else windows[0]


def made_like(name: str, prototype: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.zeros_like` and its kin."""
    given = list(args)
    value = (given.pop(0) if given else kwargs.pop("fill_value")) if name == "full_like" else None
    for key, content in zip(("dtype", "order", "subok", "shape"), given, strict=False):
        kwargs[key] = content
    dtype = np.dtype(kwargs.get("dtype") or prototype.dtype)
    shape = kwargs.get("shape")
    place = place_among((prototype, value))
    if shape is not None:
        out = arrays.empty(np.atleast_1d(shape) if np.ndim(shape) == 0 else shape, dtype, None, place)
    elif type(prototype) is DeviceArray:
        out = arrays.like(prototype, dtype, kwargs.get("order") or "K")
    else:
        out = arrays.empty(np.shape(prototype), dtype, None, place)
    if name != "empty_like":
        write(out, {"zeros_like": 0, "ones_like": 1}.get(name, value))
    return out


def shares(one: Any, other: Any) -> bool:
    """True if two arrays lie in the same memory and their ranges meet."""
    if type(one) is not DeviceArray or type(other) is not DeviceArray:
        return False
    spans = []
    for array in (one, other):
        low, nbytes = reach(array.shape, array.strides, array.itemsize)
        spans.append((array.address + low, array.address + low + nbytes))
    (a, b), (c, d) = spans
    return a < d and c < b


# ------------------------------------------------------------------ writing


def copyto(target: Any, source: Any, casting: str = "same_kind", where: Any = True) -> None:
    """np.copyto."""
    if type(target) is not DeviceArray:
        if type(source) is DeviceArray:
            if where is True and lies_alike(target, source):
                download_into(target, source)
                return
            source = download(source)
        np.copyto(target, source, casting, where=where)  # type: ignore[arg-type]
    elif where is True and casting == "unsafe":
        write(target, source)
    else:
        by_host("np.copyto", np.copyto, (target, source, casting), {"where": where}, [target])


def write(target: DeviceArray, value: Any) -> None:
    """target[...] = value, for a value of the device, of the host, or a number."""
    if not target.size:
        np.broadcast_to(
            np.empty(np.shape(value) if type(value) is not DeviceArray else value.shape, bool), target.shape
        )
        return
    if type(value) is DeviceArray:
        if value.device is target.device and lies_alike(target, value):
            index = target.device.index or 0
            if current and copy_into(target, value):  # what is launched can be launched again
                return
            if value.address != target.address:
                low, nbytes = reach(value.shape, value.strides, value.itemsize)
                required().copy(index, target.address + low, value.address + low, nbytes, stream_on(index))
            return
        if shares(target, value):
            value = value.copy("K")
        if not copy_into(target, value):
            by_host("copy", assign, (target, value), {}, [target])
        return
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    if value.ndim == 0 and not value.astype(target.dtype).tobytes().strip(b"\0"):
        if is_non_overlapping_and_dense(target):  # type: ignore[arg-type]
            index = target.device.index or 0
            low, nbytes = reach(target.shape, target.strides, target.itemsize)
            if current:  # what is launched can be launched again
                zeroed(index, target.address + low, nbytes)
            else:
                required().fill(index, target.address + low, 0, nbytes, stream_on(index))
            return
    if lies_alike(target, value):
        store(target, value)
        return
    if value.ndim == 0 and target.size > 1:
        if copy_into(target, upload(value.astype(target.dtype), target.device)):
            return
    if is_non_overlapping_and_dense(target):  # type: ignore[arg-type]
        host = np.empty(0, np.uint8)
        low, nbytes = reach(target.shape, target.strides, target.itemsize)
        host = np.ndarray(target.shape, target.dtype, np.empty(nbytes, np.uint8), -low, target.strides)
    else:
        host = download(target)
    assign(host, value)
    store(target, host)


def zeroed(index: int, address: int, nbytes: int) -> None:
    """Zero so many bytes by a kernel."""
    kernels: Any = room("cuda.index")
    element, size = ("i8", 1) if address % 4 or nbytes % 4 else ("i32", 4)
    ready = loading(index, kernels.zeros_name(element), lambda: kernels.zeros_text(element))
    launch(index, ready, (-(-nbytes // (size * BLOCK)), 1, 1), "Qq", address, nbytes // size)


def lies_alike(one: Any, other: Any) -> bool:
    """True if two arrays, here or there, lie alike and without gaps, so that their bytes can be copied as they are."""
    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and one.strides == other.strides
        and is_non_overlapping_and_dense(one)  # type: ignore[arg-type]
    )


def assign(target: Any, value: Any) -> None:
    """target[...] = value, in whatever dtype the target has."""
    while np.ndim(value) > target.ndim and value.shape[0] == 1:
        value = value[0]
    np.copyto(target, value, "unsafe")


def write_at(array: DeviceArray, key: Any, value: Any) -> None:
    """array[key] = value, for a key with arrays in it."""
    if keys.write_to(array, key, value):
        return
    by_host("index_put", operator.setitem, (array, key, value), {}, [array])


def indexed(array: DeviceArray, key: Any) -> Any:
    """array[key], for a key with arrays in it."""
    made = keys.look_up(array, key)
    if made is not None:
        return made
    return numbers_too(by_host("index", operator.getitem, (array, key), {}), array.device)


# ------------------------------------------------------------------ methods and operators

METHODS = ("all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "compress", "conj",
           "conjugate", "cumprod", "cumsum", "dot", "max", "mean", "min", "nonzero", "prod", "ptp", "repeat", "round",
           "searchsorted", "std", "sum", "take", "trace", "var")  # fmt: skip
"""Methods that make new arrays."""
CHANGES = ("partition", "put", "sort", "byteswap")
"""Methods that change the array."""
OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift, "matmul": np.matmul,
}  # fmt: skip
COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
               "ge": np.greater_equal}  # fmt: skip
SIGNS = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def method(name: str, changes: bool = False) -> Any:
    """A method of arrays: by kernels that answer to the word, or by way of the host."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        known = None if changes else words.answer(name, (self, *args), kwargs)
        if known is not None:
            return known
        out = kwargs.get("out")
        writes = [self] if changes else [out] if out is not None else []
        made = by_host(f"ndarray.{name}", getattr(np.ndarray, name), (self, *args), kwargs, writes)
        return out if out is not None else numbers_too(made, self.device)

    return run


def operation(ufunc: Any, reflected: bool = False, inplace: bool = False, single: bool = False) -> Any:
    """A Python operator."""
    if single:
        return lambda self: ufunc(self)
    if inplace:
        return lambda self, other: ufunc(self, other, out=(self,))
    return lambda self, other: ufunc(other, self) if reflected else ufunc(self, other)


for _name in METHODS:
    setattr(DeviceArray, _name, method(_name))
for _name in CHANGES:
    setattr(DeviceArray, _name, method(_name, changes=True))
for _name, _ufunc in OPERATORS.items():
    setattr(DeviceArray, f"__{_name}__", operation(_ufunc))
    setattr(DeviceArray, f"__r{_name}__", operation(_ufunc, reflected=True))
    setattr(DeviceArray, f"__i{_name}__", operation(_ufunc, inplace=True))
for _name, _ufunc in COMPARISONS.items():
    setattr(DeviceArray, f"__{_name}__", operation(_ufunc))
for _name, _ufunc in SIGNS.items():
    setattr(DeviceArray, f"__{_name}__", operation(_ufunc, single=True))
DeviceArray.__hash__ = None  # type: ignore[assignment]

arrays.answers.ufunc, arrays.answers.function = ufunc, function
arrays.answers.download, arrays.answers.upload = download, upload
arrays.answers.indexed, arrays.answers.write, arrays.answers.write_at = indexed, write, write_at
