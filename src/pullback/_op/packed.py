"""What ops make of packed elements: the 8 bit floats and complex32.

Torch has few kernels for them. What only moves elements runs on their bits; what compares them, or computes with them
where torch can, runs on float32 (or complex64) and is rounded; everything else is refused, in torch's words where they
are known. No op runs on them by chance: the tables below say which do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import convert_number, exact_number
from pullback._arrays.packed import PackedArray, bits_of, converted, decoded, from_bits, packed
from pullback._dtype import (
    FROM_NUMPY,
    complex32,
    dtype,
    float8_e5m2,
    float8_e8m0fnu,
    float16,
    packed_dtype,
    result_dtype_of,
)
from pullback._op.declare import Op
from pullback._op.readings import forward_of

COMPARED_BESIDES = {("isinf", float8_e5m2), ("isfinite", float8_e5m2), ("isfinite", float8_e8m0fnu)}
"""Comparisons of complex32 that torch has for some floats of 8 bits, too."""


def no_kernel(kernel: str, kind: dtype) -> NotImplementedError:
    """Torch's refusal."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{kind.scalar_type}'")


def way_of(op: Op, kind: dtype) -> str:
    """How an op treats elements of a dtype; raises where it does not."""
    if op.view and not op.flips and (not op.changes_dtype or op.name == "view_as_real"):
        return "moved"
    way, _, only_complex = op.packed.partition("_")
    if way and (not only_complex or kind is complex32 or (op.name, kind) in COMPARED_BESIDES):
        return way
    raise no_kernel(op.kernel or f"{op.name}_{'vml_cpu' if op.foreach == 'unary' else 'cpu'}", kind)


# ------------------------------------------------------------------ operands


def packed_among(values: Any) -> Any:
    """The first packed array among operands and lists of them."""
    for value in values:
        for item in value if type(value) is list else (value,):
            if type(item) is PackedArray:
                return item
    return None


def prepared(op: Op, arrays: dict[str, Any]) -> dict[str, Any]:
    """The operands of an op, some of them packed, brought to one dtype where the op asks for that."""
    group = [name for name in op.promote if arrays[name] is not None]
    first = packed_among(arrays.values())
    target = FROM_NUMPY[first.dtype]
    if group:
        flat = [a for name in group for a in (arrays[name] if op.kinds[name] == "list" else [arrays[name]])]
        target = result_dtype_of(flat)
    if not target.packed:  # complex32 beside wider numbers
        return {name: as_wide(value, target.numpy) if name in group else value for name, value in arrays.items()}
    refuse_more(op, target, arrays)
    way_of(op, target)
    numpy = packed_dtype(target)
    return {name: as_packed(value, numpy) if name in group else value for name, value in arrays.items()}


def refuse_more(op: Op, kind: dtype, arrays: dict[str, Any]) -> None:
    """Raise for the calls of an op that torch has no kernel for, though it has one for others."""
    if op.name == "flip":
        ndim, dims = arrays["self"].ndim, arrays["dims"]
        if any(dim % ndim == ndim - 1 for dim in (dims if isinstance(dims, (list, tuple)) else (dims,)) if ndim):
            raise no_kernel("flip_cpu", kind)
    if kind is complex32:
        return
    numbers = [name for name in op.promote if not isinstance(arrays[name], np.ndarray) or not arrays[name].ndim]
    if numbers and op.unrounded:  # what torch computes of half precision and a number, in float32
        raise no_kernel(f"{op.name}_cpu_reduced_float", kind)
    if op.name == "index_put" and (kind is float8_e8m0fnu or type(arrays["values"]) is not PackedArray):
        raise no_kernel("index_put" if type(arrays["values"]) is PackedArray else "masked_fill", kind)
    if op.name == "abs" and kind is float8_e8m0fnu:
        raise no_kernel("abs_cpu", kind)


def as_wide(value: Any, numpy: np.dtype[Any]) -> Any:
    """An operand, or a list of them, in a dtype NumPy computes with."""
    if type(value) is list:
        return [as_wide(item, numpy) for item in value]
    return converted(decoded(value), numpy) if isinstance(value, np.ndarray) else np.asarray(value).astype(numpy)


def as_packed(value: Any, numpy: np.dtype[Any]) -> Any:
    """An operand, or a list of them, as packed elements."""
    return [as_packed(item, numpy) for item in value] if type(value) is list else packed(value, numpy)


# ------------------------------------------------------------------ computing


ELEMENTS = ("other", "source", "src", "tensors", "value", "values")
"""The parameters, beside the first, whose elements are stored among packed ones: they become such first."""


def on_bits(name: str, value: Any, numpy: np.dtype[Any]) -> Any:
    """An argument of what moves elements; a number to be stored becomes the number its bits are."""
    if type(value) is list:
        return [on_bits(name, item, numpy) for item in value]
    if name in ELEMENTS:
        if isinstance(value, np.ndarray):
            return bits_of(packed(value, numpy))
        if isinstance(value, (bool, int, float, complex)):
            return code_of(value, numpy)
    if isinstance(value, np.ndarray) and type(value) is not PackedArray and value.dtype.kind not in "biu":
        raise TypeError(f"an argument {name} of {value.dtype} among elements of {FROM_NUMPY[numpy]!r}")
    return bits_of(value) if type(value) is PackedArray else value


def code_of(value: Any, numpy: np.dtype[Any], one: bool = False) -> int:
    """A number as the number its bits are; zero has bits in every format, though not every format has zero."""
    number = (convert_number if one else exact_number)(value, FROM_NUMPY[numpy]) if value else 0
    return int(bits_of(packed(number, numpy)))


def as_elements(result: Any, numpy: np.dtype[Any]) -> Any:
    """What an op made of bits: elements again."""
    if isinstance(result, (list, tuple)):
        return [as_elements(item, numpy) for item in result]
    return from_bits(np.asarray(result), numpy)


def computed(op: Op, positional: list[Any], keywords: dict[str, Any]) -> Any:
    """The results of an op some of whose operands are packed."""
    named = dict(zip([p.name for p in op.params if not p.keyword_only], positional, strict=True)) | keywords
    numpy = packed_among(named.values()).dtype
    kind = FROM_NUMPY[numpy]
    way = way_of(op, kind)
    if way in CASTS:
        return CASTS[way](named, op)
    if way == "moved":
        if op.name == "view_as_real":
            return pairs(named["self"])
        return as_elements(ran(op, {n: on_bits(n, v, numpy) for n, v in named.items()}), numpy)
    result = ran(op, {n: wide(v) for n, v in named.items()})
    if way == "compared":
        return [np.asarray(item) for item in result] if op.multiple else np.asarray(result)
    result = np.asarray(result)
    return result.astype(float16.numpy) if kind is complex32 and result.dtype.kind == "f" else packed(result, numpy)


def wide(value: Any) -> Any:
    """An argument of what computes."""
    return [decoded(item) for item in value] if type(value) is list else decoded(value)


def ran(op: Op, named: dict[str, Any]) -> Any:
    """The op on plain arrays, its checks first."""
    positional = [named[p.name] for p in op.params if not p.keyword_only]
    keywords = {p.name: named[p.name] for p in op.params if p.keyword_only}
    if op.check is not None:
        op.check(*positional, **keywords)
    return forward_of(op)(*positional, **keywords)


def pairs(array: PackedArray) -> Any:
    """Complex numbers of half precision as pairs, in the same memory."""
    if FROM_NUMPY[array.dtype] is not complex32:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return bits_of(array)[..., None].view(np.float16)


# ------------------------------------------------------------------ conversions


def cast(named: dict[str, Any], op: Op) -> Any:
    """`to` another dtype than a packed one, or the same: see ops/create/cast.py for packed ones."""
    self, target = named["self"], named.get("dtype")
    if target is not None and target.packed:
        return forward_of(op)(**named)  # which knows what packed elements are
    if target is None:
        return as_elements(ran(op, {**named, "self": bits_of(self), "dtype": None}), self.dtype)
    return ran(op, {**named, "self": decoded(self)})


def copy(named: dict[str, Any], op: Op) -> Any:
    """What `copy_` writes: the elements of the source in the dtype of the target."""
    self, source = named["self"], named["src"]
    if type(self) is not PackedArray:
        return ran(op, {"self": self, "src": decoded(source)})
    return as_elements(ran(op, {"self": bits_of(self), "src": bits_of(packed(source, self.dtype))}), self.dtype)


def fill(named: dict[str, Any], op: Op) -> Any:
    """What `fill_` writes."""
    self, value = named["self"], named["value"]
    if type(self) is not PackedArray:
        return ran(op, {"self": self, "value": decoded(value)})
    if isinstance(value, np.ndarray):
        return as_elements(ran(op, {"self": bits_of(self), "value": bits_of(packed(value, self.dtype))}), self.dtype)
    return as_elements(np.full(self.shape, code_of(value, self.dtype, self.size == 1), bits_of(self).dtype), self.dtype)


CASTS: dict[str, Any] = {"cast": cast, "copied": copy, "filled": fill}


def read(function: Any) -> Any:
    """A function that writes into the first array, on the bits of all."""

    def written(**named: Any) -> Any:
        numpy = packed_among(named.values()).dtype
        return function(**{n: on_bits(n, v, numpy) for n, v in named.items()})

    return written


PackedArray.computed = staticmethod(computed)  # type: ignore[method-assign]
PackedArray.read = staticmethod(read)  # type: ignore[method-assign]
