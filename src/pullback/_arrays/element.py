"""The ranges of dtypes: finfo and iinfo, and Python numbers as elements: what fits, is refused, or wraps around."""

from pullback._dtype import (
    FLOAT,
    Number,
    _check_dtype,
    _check_int,
    _number_key,
    bfloat16,
    bool_,
    complex32,
    defaults,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
)

# For each floating point dtype: bits of the fraction, largest exponent, decimal digits that survive a round trip.
_FORMAT = {float16: (10, 15, 3), bfloat16: (7, 127, 2), float32: (23, 127, 6), float64: (52, 1023, 15)}
_FORMAT |= {float8_e4m3fn: (3, 7, 0), float8_e5m2: (2, 15, 0), float8_e4m3fnuz: (3, 8, 0)}
_FORMAT |= {float8_e5m2fnuz: (3, 16, 0), float8_e8m0fnu: (0, 128, 0)}
_LIMITS = {self: (2.0 - 2.0**-fraction) * 2.0**exponent for self, (fraction, exponent, _) in _FORMAT.items()}
_LIMITS |= {float8_e4m3fn: 448.0, float8_e5m2: 57344.0, float8_e4m3fnuz: 240.0}
_LIMITS |= {float8_e5m2fnuz: 57344.0, float8_e8m0fnu: 2.0**127}
_INFINITY = float("inf")


def convert_number(value: Number, to: dtype) -> Number:
    """Return `value` as an element of `to` (for fill_, full and the like), refusing what does not fit.

    As in torch, a negative integer wraps around in an unsigned dtype as long as its absolute value fits, a fraction is
    cut off, and float16 and bfloat16 overflow to infinity: so a single element is filled.
    """
    if isinstance(value, int):
        _number_key(value)
    if to is bool_:
        return bool(value)
    if to.is_complex:
        limit = _LIMITS[to.to_real()]
        parts = complex(value)
        if any(limit < abs(part) < _INFINITY for part in (parts.real, parts.imag)):
            raise _overflow(to)
        return parts
    if isinstance(value, complex):
        if value.imag != 0:
            raise _overflow(to)
        value = value.real
    if to.is_floating_point:
        if to is float32 and _LIMITS[float32] < abs(value) < _INFINITY:
            raise _overflow(to)
        if to.packed and not _fits_eight_bits(float(value), to):
            raise _overflow(to)
        return float(value)
    low, high = _integer_range(to)
    if isinstance(value, float):
        # The comparison is in doubles, so 2.0**63 passes for int64. NaN fails every comparison.
        if not float(low) <= value <= float(high):
            raise _overflow(to)
    elif not (low if to.is_signed else -high) <= value <= high:
        raise _overflow(to)
    return wrap_number(int(value), to)


def _fits_eight_bits(value: float, to: dtype) -> bool:
    """Whether a number is between the smallest and the largest of a format; NaN is in all, infinity in one."""
    least = 2.0**-127 if to is float8_e8m0fnu else -_LIMITS[to]
    return value != value or least <= value <= _LIMITS[to] or (to is float8_e5m2 and abs(value) == _INFINITY)


def exact_number(value: Number, to: dtype) -> Number:
    """The same for more than one element: then torch refuses what float16 and bfloat16 cannot hold; not complex32."""
    if to is complex32:
        return complex(value)
    number = convert_number(value, to)
    if (to is float16 or to is bfloat16) and _LIMITS[to] < abs(number) < _INFINITY:
        raise RuntimeError(f"value cannot be converted to type {to.c_type} without overflow")
    return number


def wrap_number(value: int, to: dtype) -> int:
    """Return the integer as arithmetic in `to` sees it: modulo the width, as C converts."""
    if not -(2**63) <= value < 2**63:
        _check_int(value)
    bits = 8 * to.itemsize
    wrapped = value & ((1 << bits) - 1)
    return wrapped - (1 << bits) if to.is_signed and wrapped >> (bits - 1) else wrapped


def _overflow(to: dtype) -> RuntimeError:
    # A single number on its way to half a precision passes through a double.
    kind = "double" if to is float16 or to is bfloat16 else to.c_type
    return RuntimeError(f"value cannot be converted to type {kind} without overflow")


def _integer_range(self: dtype) -> tuple[int, int]:
    bits = 8 * self.itemsize
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if self.is_signed else (0, (1 << bits) - 1)


class finfo:
    """The numerical properties of a floating point dtype, or of the parts of a complex one."""

    __slots__ = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, type: "dtype | None" = None) -> None:
        if type is None:
            type = defaults.dtype
        type = _check_dtype(type, "finfo", "type", 1)
        if type.category < FLOAT:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        real = type.to_real()
        fraction, exponent, digits = _FORMAT[real]
        self.bits = 8 * real.itemsize
        self.eps = 2.0**-fraction
        self.max = _LIMITS[real]
        self.min = -self.max if real is not float8_e8m0fnu else 2.0 ** (1 - exponent)
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = float(f"1e-{digits}")
        self.dtype = real.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """The range of an integer dtype."""

    __slots__ = ("bits", "max", "min", "dtype")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, type: "dtype") -> None:
        type = _check_dtype(type, "iinfo", "type", 1)
        if type.category >= FLOAT:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.bits = 8 * type.itemsize
        self.min, self.max = _integer_range(type)
        self.dtype = type.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
