"""float16 and bfloat16: read into float32, computed there, and rounded back to the nearest, ties to even."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.jit.compiler.target import FEATURES, TRIPLE
from pullback.kernels.jit.language.code import Code, Value, count_of, like

NATIVE = FEATURES.get("f16c", False) or TRIPLE.startswith(("aarch64", "arm64"))
"""Whether the machine converts float16; bfloat16 is the upper half of a float32 on any."""


def unsigned(code: Code, a: Value, element: str) -> Value:
    """Wider integers of the same bits."""
    return code.emit(f"zext {a} to {like(a.type, element)}", like(a.type, element))


def shifted_down(code: Code, a: Value, by: int) -> Value:
    """A shift that fills with zeros."""
    return code.emit(f"lshr {a}, {code.const(by, a.type).name}", a.type)


def from_bits(code: Code, bits: Value, dtype: np.dtype[Any]) -> Value:
    """The float32 numbers that vectors of i16 stand for."""
    single = f"<{count_of(bits.type)} x float>"
    if dtype.name == "bfloat16":
        return code.bitcast(unsigned(code, bits, "i32") << 16, "float")
    if NATIVE:
        return code.emit(f"fpext {code.bitcast(bits, 'half')} to {single}", single)
    wide = unsigned(code, bits, "i32")
    body = wide & 0x7FFF
    # The exponent counts from another zero: a product moves it, and does what denormals need.
    number = code.bitcast(body << 13, "float") * 2.0**112
    number = code.select(body >= 0x7C00, code.bitcast((body << 13) | 0x7F800000, "float"), number)
    return code.bitcast(code.bitcast(number, "i32") | ((wide & 0x8000) << 16), "float")


def to_bits(code: Code, x: Value, dtype: np.dtype[Any]) -> Value:
    """Float32 numbers rounded to 16 bits, as vectors of i16."""
    if dtype.name == "float16" and NATIVE:
        half = like(x.type, "half")
        return code.bitcast(code.emit(f"fptrunc {x} to {half}", half), "i16")
    bits = code.bitcast(x, "i32")
    body = bits & 0x7FFFFFFF
    sign = shifted_down(code, bits ^ body, 16)
    nan = code.compare("uno", x, x)
    if dtype.name == "bfloat16":
        even = shifted_down(code, body, 16) & 1
        made = code.select(nan, 0x7FC0, shifted_down(code, body + 0x7FFF + even, 16))
    else:
        size = code.bitcast(body, "float")
        even = shifted_down(code, body, 13) & 1
        normal = shifted_down(code, body + (0xFFF - (112 << 23)) + even, 13)
        small = code.bitcast(size + 0.5, "i32") - 0x3F000000  # the sum is rounded where denormals end
        made = code.select(size < 2.0**-14, small, code.select(size >= 65520.0, 0x7C00, normal))
        made = code.select(nan, 0x7E00, made)
    return code.convert(made | sign, "i16")


def rounded(code: Code, x: Value, dtype: np.dtype[Any]) -> Value:
    """Float32 numbers as the nearest that 16 bits can stand for."""
    return from_bits(code, to_bits(code, x, dtype), dtype)
