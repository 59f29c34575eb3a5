"""finfo and iinfo: the numerical properties of dtypes."""

from pullback._dtype import _FORMAT, _LIMITS, FLOAT, _check_dtype, _integer_range, bool_, defaults, dtype


class finfo:
    """The numerical properties of a floating point dtype, or of the parts of a complex one."""

    __slots__ = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, type: "dtype | None" = None) -> None:
        if type is None:
            type = defaults.dtype
        _check_dtype(type, "finfo", "type", 1)
        if type.category < FLOAT:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        real = type.to_real()
        fraction, exponent, digits = _FORMAT[real]
        self.bits = 8 * real.itemsize
        self.eps = 2.0**-fraction
        self.max = _LIMITS[real]
        self.min = -self.max
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
        _check_dtype(type, "iinfo", "type", 1)
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
