"""The dtypes: their names, their NumPy counterparts, how they promote, the default dtype."""

import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any, NoReturn

import numpy as np

from pullback._runtime.building import loaded
from pullback._runtime.warnings import warn_once

Number = bool | int | float | complex

# A category always beats the ones below it, whatever the widths: an int64 tensor meeting a float16 one gives float16.
BOOL, INT, FLOAT, COMPLEX = range(4)


class dtype:
    """The type of a tensor's elements; there is exactly one object per type, so `is` compares them.

    `numpy` is the NumPy dtype holding the data. Its slot stays empty where it cannot be known at import time (see
    `__getattr__`), so that reading it runs no Python code for any other type.
    """

    __slots__ = (
        "name", "numpy", "category", "itemsize", "is_floating_point", "is_complex", "is_signed", "abbr",
        "scalar_type", "c_type", "cpp_name", "packed", "stored",
    )  # fmt: skip

    name: str
    numpy: np.dtype[Any]
    category: int
    itemsize: int
    is_floating_point: bool
    is_complex: bool
    is_signed: bool
    abbr: str
    scalar_type: str  # torch's internal name, "Float": seen in error texts and legacy types ("torch.FloatTensor")
    c_type: str  # the C++ name as torch writes it, "int64_t": seen in the texts about overflowing scalars
    cpp_name: str  # the one its compiler prints, "long int": seen where two dtypes are compared
    stored: np.dtype[Any]  # the same as `numpy`, but packed elements have one, too: for who only makes and moves them
    packed: bool  # elements are stored and moved, but hardly computed with: see _arrays/packed.py

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("cannot create 'torch.dtype' instances")

    def __init_subclass__(cls) -> None:
        raise TypeError("type 'torch.dtype' is not an acceptable base type")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        if name in dtype.__slots__:
            raise AttributeError(f"attribute '{name}' of 'torch.dtype' objects is not writable")
        raise AttributeError(f"'torch.dtype' object has no attribute '{name}'")

    def __getattr__(self, name: str) -> Any:
        # Reached only when the slot is empty: bfloat16 before its first use, packed and narrower dtypes always. So
        # whoever makes an array without a thought for packed elements refuses them; the others ask `packed_dtype`.
        if name == "stored":
            return packed_dtype(self) if self.packed else self.numpy
        if name != "numpy":
            raise AttributeError(f"'torch.dtype' object has no attribute '{name}'")
        if self is bfloat16:
            return _load_bfloat16()
        raise NotImplementedError(
            f"{self!r} is for storing here, not for computing: convert with .to(torch.{_instead(self)})"
            if self.packed
            else f"{self!r} has no arrays here; use torch.float16, torch.bfloat16 or torch.int8"
        )

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        # A string means "the global of that name", so copies and pickles give back this very object.
        return self.name

    def to_real(self) -> "dtype":
        """Return the dtype of the real part of a complex dtype; other dtypes are returned as they are."""
        return _REAL_OF.get(self, self)

    def to_complex(self) -> "dtype":
        """Return the complex dtype whose parts have this dtype."""
        if self.is_complex:
            return self
        if self not in _COMPLEX_OF:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_type}")
        return _COMPLEX_OF[self]


# Hot code reads FROM_NUMPY[array.dtype]: every dtype an array inside a tensor can have is in it.
FROM_NUMPY: dict[np.dtype[Any], dtype] = {}


def _instead(self: dtype) -> str:
    return "complex64" if self.is_complex else "float32"


def _dtype(
    name: str, category: int, itemsize: int, abbr: str, scalar_type: str, c_type: str, cpp_name: str = "",
    arrays: bool = True, packed: bool = False,
) -> dtype:  # fmt: skip
    self = object.__new__(dtype)
    values = {
        "name": name,
        "category": category,
        "itemsize": itemsize,
        "is_floating_point": category == FLOAT,
        "is_complex": category == COMPLEX,
        "is_signed": category > INT or (category == INT and name[0] == "i"),
        "abbr": abbr,
        "scalar_type": scalar_type,
        "c_type": c_type,
        "cpp_name": cpp_name or c_type,
        "packed": packed,
    }
    for slot, value in values.items():
        object.__setattr__(self, slot, value)
    if arrays and not packed and name != "bfloat16":
        _set_numpy(self, np.dtype(name))
    return self


def _set_numpy(self: dtype, numpy: np.dtype[Any]) -> None:
    FROM_NUMPY[numpy] = self  # first: another thread may make arrays of it as soon as it is known
    object.__setattr__(self, "stored", numpy)
    object.__setattr__(self, "numpy", numpy)


def _load_bfloat16() -> np.dtype[Any]:
    # NumPy has no bfloat16 of its own. ml_dtypes adds one, and is imported only by programs that use it.
    numpy: np.dtype[Any] = np.dtype(loaded("ml_dtypes").bfloat16)
    _set_numpy(bfloat16, numpy)
    return numpy


bool_ = _dtype("bool", BOOL, 1, "b8", "Bool", "bool")
uint8 = _dtype("uint8", INT, 1, "u8", "Byte", "uint8_t", "unsigned char")
int8 = _dtype("int8", INT, 1, "i8", "Char", "int8_t", "signed char")
int16 = _dtype("int16", INT, 2, "i16", "Short", "int16_t", "short int")
int32 = _dtype("int32", INT, 4, "i32", "Int", "int")
int64 = _dtype("int64", INT, 8, "i64", "Long", "int64_t", "long int")
uint16 = _dtype("uint16", INT, 2, "u16", "UInt16", "uint16_t", "short unsigned int")
uint32 = _dtype("uint32", INT, 4, "u32", "UInt32", "uint32_t", "unsigned int")
uint64 = _dtype("uint64", INT, 8, "u64", "UInt64", "uint64_t", "long unsigned int")
float16 = _dtype("float16", FLOAT, 2, "f16", "Half", "c10::Half")
bfloat16 = _dtype("bfloat16", FLOAT, 2, "bf16", "BFloat16", "c10::BFloat16")
float32 = _dtype("float32", FLOAT, 4, "f32", "Float", "float")
float64 = _dtype("float64", FLOAT, 8, "f64", "Double", "double")
complex32 = _dtype("complex32", COMPLEX, 4, "c32", "ComplexHalf", "c10::complex<c10::Half>", packed=True)
complex64 = _dtype("complex64", COMPLEX, 8, "c64", "ComplexFloat", "c10::complex<float>")
complex128 = _dtype("complex128", COMPLEX, 16, "c128", "ComplexDouble", "c10::complex<double>")


def _eighth(name: str) -> dtype:
    """One of the floats of 8 bits."""
    kind = name.removeprefix("float8_")
    return _dtype(name, FLOAT, 1, f"f8{kind}", f"Float8_{kind}", f"c10::Float8_{kind}", packed=True)


float8_e4m3fn = _eighth("float8_e4m3fn")
float8_e5m2 = _eighth("float8_e5m2")
float8_e4m3fnuz = _eighth("float8_e4m3fnuz")
float8_e5m2fnuz = _eighth("float8_e5m2fnuz")
float8_e8m0fnu = _eighth("float8_e8m0fnu")
EIGHTHS = (float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu)


@cache
def packed_dtype(self: dtype) -> np.dtype[Any]:
    """The NumPy dtype of packed elements, for those who know how to treat them."""
    kind = getattr(loaded("ml_dtypes"), self.name, None)
    if kind is None:
        raise NotImplementedError(f"{self!r} needs a newer ml_dtypes than {loaded('ml_dtypes').__version__}")
    if self is complex32:
        warn_once("ComplexHalf support is experimental and many operators don't support it yet.")
    numpy: np.dtype[Any] = np.dtype(kind)
    FROM_NUMPY[numpy] = self
    return numpy


_COMPLEX_OF = {float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128}
_REAL_OF = {complex32: float16, complex64: float32, complex128: float64}

_WIDE_UNSIGNED = (uint16, uint32, uint64)
ALL: tuple[dtype, ...] = (bool_, uint8, int8, int16, int32, int64, *_WIDE_UNSIGNED)
ALL += (float16, bfloat16, float32, float64, complex32, complex64, complex128)

# Every public name, aliases included: what the package exports.
NAMES: dict[str, dtype] = {self.name: self for self in (*ALL, *EIGHTHS)}
NAMES |= {"half": float16, "float": float32, "double": float64, "short": int16, "int": int32, "long": int64}
NAMES |= {"chalf": complex32, "cfloat": complex64, "cdouble": complex128}

# `Tensor.type()` speaks these older names.
TYPE_NAME: dict[dtype, str] = {self: f"torch.{self.scalar_type}Tensor" for self in (*ALL, *EIGHTHS)}
FROM_TYPE_NAME: dict[str, dtype] = {name: self for self, name in TYPE_NAME.items()}


def __getattr__(name: str) -> dtype:
    # The aliases. `float`, `int` and `bool` among them stay Python's own types inside this file.
    if name in NAMES:
        return NAMES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def of(numpy: np.dtype[Any]) -> dtype:
    """Return the dtype of arrays of this NumPy dtype."""
    found = FROM_NUMPY.get(numpy)
    if found is not None:
        return found
    if numpy.name == "bfloat16" and numpy == bfloat16.numpy:
        return bfloat16
    if not numpy.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    raise TypeError(
        f"can't convert np.ndarray of type numpy.{numpy.type.__name__}. The only supported types are: float64, "
        "float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
    )


def canonical(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same memory as an array whose dtype is the very object all tensors of that type have.

    Every array from outside comes in through here. A dtype that was unpickled, copied, given metadata or a byte order
    is equal to NumPy's own, but is another object, as is C's `long long` beside `long`; inside, `is` compares them.
    """
    numpy = of(array.dtype).numpy
    return array if array.dtype is numpy else array.view(numpy)


# --- the default dtype


class _Defaults:
    """The default dtype, in the forms hot code reads it."""

    __slots__ = ("dtype", "numpy", "complex_dtype")

    def __init__(self) -> None:
        self.dtype = float32
        self.numpy = float32.numpy
        self.complex_dtype = complex64


defaults = _Defaults()


def get_default_dtype() -> dtype:
    """Return the dtype of tensors made from Python floats."""
    return defaults.dtype


def set_default_dtype(d: dtype, /) -> None:
    """Make `d` the dtype of tensors made from Python floats; complex numbers follow."""
    if type(d) is not dtype:
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d.packed:
        raise TypeError(f"couldn't find storage object {d.scalar_type}Storage")
    defaults.numpy, defaults.dtype, defaults.complex_dtype = d.numpy, d, d.to_complex()
    _results.clear()


def set_default_tensor_type(t: type | str, /) -> None:
    """Set the default dtype by the name or the class of a legacy tensor type, such as "torch.DoubleTensor"."""
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    if isinstance(t, str):
        return set_default_dtype(_dtype_of_type_name(t))
    d = getattr(t, "dtype", None)
    if not isinstance(t, type) or type(d) is not dtype:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    set_default_dtype(d)


def _dtype_of_type_name(name: str) -> dtype:
    found = FROM_TYPE_NAME.get(name)
    if found is not None and not found.is_complex and found not in _WIDE_UNSIGNED:  # torch has no classes for those
        return found
    if name.startswith("torch.cuda."):
        raise TypeError(f"type {name} not available. Torch not compiled with CUDA enabled.")
    if name.startswith("torch.sparse."):
        raise TypeError("only dense types are supported as the default type")
    module, _, attribute = name.rpartition(".")
    if not module:
        raise ModuleNotFoundError(f"No module named '{name}'")
    raise AttributeError(f"module '{module}' has no attribute '{attribute}'")


# --- promotion

_promoted: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest dtype that both dtypes promote to."""
    found = _promoted.get((type1, type2))
    if found is None:
        first = _check_dtype(type1, "promote_types", "type1", 1)
        second = _check_dtype(type2, "promote_types", "type2", 2)
        found = _promoted[type1, type2] = _promote(first, second)
    return found


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a in EIGHTHS or b in EIGHTHS:
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {a.scalar_type} and {b.scalar_type}"
        )
    if a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED:
        if a.is_floating_point or b.is_floating_point:
            return a if a.is_floating_point else b
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, "
            f"attempted to promote {a.scalar_type} and {b.scalar_type}"
        )
    low, high = (a, b) if (a.category, a.itemsize) <= (b.category, b.itemsize) else (b, a)
    if high.is_complex and low.category >= FLOAT:
        return _promote(low.to_real(), high.to_real()).to_complex()
    if low.category == high.category and low.itemsize == high.itemsize:
        # The two pairs of equal width: neither of uint8 and int8, nor of float16 and bfloat16, holds the other.
        return int16 if low.category == INT else float32
    return high


def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether an in-place operation may store a result of dtype `from_` in a tensor of dtype `to`."""
    from_ = _check_dtype(from_, "can_cast", "from_", 1)
    to = _check_dtype(to, "can_cast", "to", 2)
    return from_.category <= to.category


PYTHON_DTYPES = {float: float64, int: int64, bool: bool_, complex: complex128}
"""The dtypes that Python's own types of numbers stand for."""


def named_dtype(value: Any) -> Any:
    """The dtype that one of Python's types of numbers stands for; anything else as it is."""
    return PYTHON_DTYPES.get(value, value) if isinstance(value, type) else value


def _check_dtype(given: object, function: str, argument: str, position: int) -> dtype:
    value = named_dtype(given)
    if type(value) is not dtype:
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be torch.dtype, not {type(value).__name__}"
        )
    return value


# What an operand contributes is its key: the NumPy dtype of an array with dimensions, the 1-tuple of it for a 0-d
# array, Python's own type for a number. Few combinations occur, so the answer is looked up by the tuple of keys.
_results: dict[tuple[Any, ...], dtype] = {}
_NUMBER_TYPES = frozenset((bool, int, float, complex))


def result_dtype(operands: Iterable[Any]) -> dtype:
    """Return the dtype of an operation on tensors and numbers; NumPy scalars count as numbers."""
    keys = []
    for operand in operands:
        array = getattr(operand, "_array", None)
        keys.append(_number_key(operand) if array is None else array.dtype if array.ndim else (array.dtype,))
    return _result(tuple(keys))


def result_numpy_dtype(operands: Iterable[Any]) -> np.dtype[Any]:
    """Return the NumPy dtype of an operation on arrays and Python numbers; NumPy scalars count as 0-d arrays."""
    return result_dtype_of(operands).numpy


def result_dtype_of(operands: Iterable[Any]) -> dtype:
    """Return the dtype of an operation on arrays and Python numbers; NumPy scalars count as 0-d arrays."""
    keys = []
    for operand in operands:
        if type(operand) in _NUMBER_TYPES or not hasattr(operand, "ndim"):
            keys.append(_number_key(operand))
        else:
            keys.append(operand.dtype if operand.ndim else (operand.dtype,))
    return _result(tuple(keys))


def _number_key(number: Any) -> Any:
    kind = type(number)
    if kind is int:
        return int if -(2**63) <= number < 2**63 else _check_int(number)
    if kind in _NUMBER_TYPES:
        return kind
    if isinstance(number, int | np.integer):
        return int
    if isinstance(number, complex):
        return complex
    if isinstance(number, float | np.generic):
        # Like torch, which asks any other NumPy scalar, np.bool_ and np.complex64 too, for a Python float.
        return float
    raise TypeError(f"result_type(): expected tensors and numbers, not {type(number).__name__}")


def _check_int(number: int) -> dtype:
    # Only reached outside int64, where torch's numbers still have room for the upper half of uint64.
    if number >= 2**64:
        raise OverflowError("int too big to convert")
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    return uint64


def _result(keys: tuple[Any, ...]) -> dtype:
    found = _results.get(keys)
    if found is None:
        found = _results[keys] = _combine_all(keys)
    return found


def _combine_all(keys: tuple[Any, ...]) -> dtype:
    """Promote within each of the three ranks, then let a higher rank yield to a lower one only in category."""
    with_dimensions = zero_dim = number = None
    number_dtype = {bool: bool_, int: int64, float: defaults.dtype, complex: defaults.complex_dtype, uint64: uint64}
    for key in keys:
        if key in number_dtype:
            number = _promote_known(number, number_dtype[key])
        elif type(key) is tuple:
            zero_dim = _promote_known(zero_dim, of(key[0]))
        else:
            with_dimensions = _promote_known(with_dimensions, of(key))
    result = _yield_to(with_dimensions, _yield_to(zero_dim, number))
    if result is None:
        raise RuntimeError("result_type() needs at least one operand")
    return result


def _promote_known(a: dtype | None, b: dtype | None) -> dtype | None:
    if a is None or b is None:
        return a or b
    return promote_types(a, b)


def _yield_to(higher: dtype | None, lower: dtype | None) -> dtype | None:
    if higher is None or lower is None:
        return higher or lower
    if lower.category <= higher.category:
        return higher
    if higher.is_floating_point:
        return higher.to_complex()
    return lower if higher.category == INT and lower.category >= FLOAT else promote_types(higher, lower)
