"""Sine, cosine, tangent: an angle is brought to a quarter turn with all the bits of pi it needs, then polynomials."""

from __future__ import annotations

from collections.abc import Callable

from pullback.kernels.jit.language.code import Code, Value, count_of, element_of, literal
from pullback.kernels.jit.language.elementary import FUNCTIONS, INF, nearest, polynomial

SIN = (-0.16666666666666666, 0.008333333333333321, -0.000198412698412536, 2.7557319213419995e-06,
       -2.5052104708708803e-08, 1.6058340529725394e-10, -7.577392978707794e-13)  # fmt: skip
COS = (0.041666666666666664, -0.0013888888888888872, 2.4801587301569893e-05, -2.755731921468387e-07,
       2.087675420968327e-09, -1.14702754494661e-11, 4.737303075848291e-14)  # fmt: skip
SIN_32 = (-0.16666653752326965, 0.008332131430506706, -0.00019510839774738997)
COS_32 = (0.04166664555668831, -0.0013887305976822972, 2.4431205019936897e-05)
QUARTER_TURN_32 = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
FAR_32 = 30000.0
"""Up to here they suffice for float32; beyond, float64 takes over."""
QUARTER_TURN = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
"""pi / 2 in three parts."""
FAR = 2.0**31
"""Up to here three parts of pi / 2 suffice."""


def turned(code: Code, x: Value) -> tuple[Value, Value]:
    """r and n with x = n * pi / 2 + r; numbers beyond FAR are reduced one by one with as many bits as they need."""
    n, whole = nearest(code, x, 0.6366197723675814)
    r = x
    for part in QUARTER_TURN:
        r = code.fma(n, -part, r)
    far = (code.abs(x) >= FAR) & code.compare("ne", code.abs(x), INF)
    lanes = count_of(x.type)
    rest, quarter = code.variable(r), code.variable(whole)
    with code.when(code.any(far)):
        code.declared.add(far_turn())  # once in a module, whoever calls it
        code.declare("llvm.fma.f64", "double", "double", "double", "double")
        code.declare("llvm.fshr.i64", "i64", "i64", "i64", "i64")
        for lane in range(lanes):
            with code.when(code.lane(far, lane)):
                both = code.emit(f"call {{double, i64}} @far_turn({code.lane(x, lane)})", "{double, i64}")
                for variable, type in ((rest, "double"), (quarter, "i64")):
                    now = variable.get()
                    value = code.emit(f"extractvalue {both}, {int(type == 'i64')}", type)
                    variable.set(code.emit(f"insertelement {now}, {value}, i64 {lane}", now.type))
    return rest.get(), quarter.get()


def two_over_pi(bits: int) -> int:
    """The first bits of 2 / pi after the point, by Machin's formula."""
    one = 1 << (bits + 64)

    def arccot(n: int) -> int:
        total, term, k = 0, one // n, 1
        while term:
            total += (-term if k & 2 else term) // k
            term //= n * n
            k += 2
        return total

    pi = 4 * (4 * arccot(5) - arccot(239))
    return (one * 2 << bits) // pi


BITS = 1280
FAR_TURN = """
@far_turn_bits = private constant [WORDS x i64] [TWO_OVER_PI]
define internal {double, i64} @far_turn(double %x) noinline {
  %bits = bitcast double %x to i64
  %e0 = lshr i64 %bits, 52
  %e = and i64 %e0, 2047
  %m0 = and i64 %bits, 4503599627370495
  %m = or i64 %m0, 4503599627370496
  ; x is m * 2**(e - 1075). Of 2 / pi only the bits that make no whole turns matter: 190 below the quarter turns.
  %shift = sub i64 2165, %e
  %word = lshr i64 %shift, 6
  %w0 = getelementptr i64, ptr @far_turn_bits, i64 %word
  %w1 = getelementptr i64, ptr %w0, i64 1
  %w2 = getelementptr i64, ptr %w0, i64 2
  %w3 = getelementptr i64, ptr %w0, i64 3
  %b0 = load i64, ptr %w0
  %b1 = load i64, ptr %w1
  %b2 = load i64, ptr %w2
  %b3 = load i64, ptr %w3
  %k0 = call i64 @llvm.fshr.i64(i64 %b1, i64 %b0, i64 %shift)
  %k1 = call i64 @llvm.fshr.i64(i64 %b2, i64 %b1, i64 %shift)
  %k2 = call i64 @llvm.fshr.i64(i64 %b3, i64 %b2, i64 %shift)
  %v0 = insertelement <3 x i64> poison, i64 %k0, i64 0
  %v1 = insertelement <3 x i64> %v0, i64 %k1, i64 1
  %v2 = insertelement <3 x i64> %v1, i64 %k2, i64 2
  %kept = bitcast <3 x i64> %v2 to i192
  %wide_m = zext i64 %m to i192
  %product = mul i192 %kept, %wide_m
  %rounded = add i192 %product, HALF
  %n0 = lshr i192 %rounded, 190
  %n = trunc i192 %n0 to i64
  %whole = shl i192 %n0, 190
  %rest = sub i192 %product, %whole
  %high0 = ashr i192 %rest, 128
  %high1 = trunc i192 %high0 to i64
  %middle0 = lshr i192 %rest, 64
  %middle1 = trunc i192 %middle0 to i64
  %top1 = and i64 %high1, -2048
  %end1 = and i64 %high1, 2047
  %top0 = sitofp i64 %top1 to double
  %end = uitofp i64 %end1 to double
  %middle = uitofp i64 %middle1 to double
  %end2 = fmul double %end, 0x43F0000000000000
  %low = fadd double %end2, %middle
  %top = fmul double %top0, 0x43F0000000000000
  %p = fmul double %top, FIRST
  %minus_p = fneg double %p
  %e1 = call double @llvm.fma.f64(double %top, double FIRST, double %minus_p)
  %e2 = call double @llvm.fma.f64(double %top, double SECOND, double %e1)
  %e3 = call double @llvm.fma.f64(double %low, double FIRST, double %e2)
  %r = fadd double %p, %e3
  %negative = icmp slt i64 %bits, 0
  %minus_r = fneg double %r
  %minus_n = sub i64 0, %n
  %out_r = select i1 %negative, double %minus_r, double %r
  %out_n = select i1 %negative, i64 %minus_n, i64 %n
  %out0 = insertvalue {double, i64} poison, double %out_r, 0
  %out1 = insertvalue {double, i64} %out0, i64 %out_n, 1
  ret {double, i64} %out1
}
"""


def far_turn() -> str:
    """The function that reduces one number beyond FAR."""
    bits = two_over_pi(BITS)
    words = [bits >> k & (1 << 64) - 1 for k in range(0, BITS + 64, 64)]
    text = FAR_TURN.replace("TWO_OVER_PI", ", ".join([f"i64 {word}" for word in words]))
    text = text.replace("WORDS", str(len(words))).replace("HALF", str(1 << 189))
    for name, part in zip(("FIRST", "SECOND"), QUARTER_TURN, strict=False):
        text = text.replace(name, literal(part * 2.0**-126, "double"))
    return text


def sine_and_cosine(code: Code, r: Value) -> tuple[Value, Value]:
    """Of an angle up to an eighth of a turn."""
    sines, cosines = (SIN, COS) if element_of(r.type) == "double" else (SIN_32, COS_32)
    square = r * r
    sin = code.fma(r * square, polynomial(code, square, sines), r)
    return sin, code.fma(square * square, polynomial(code, square, cosines), code.fma(square, -0.5, 1.0))


def sine_of(code: Code, r: Value, n: Value) -> Value:
    """sin(n * pi / 2 + r) for a small r."""
    sin, cos = sine_and_cosine(code, r)
    out = code.select(code.compare("ne", n & 1, 0), cos, sin)
    return code.select(code.compare("ne", n & 2, 0), -out, out)


def tangent_of(code: Code, r: Value, n: Value) -> Value:
    """tan(n * pi / 2 + r) for a small r."""
    sin, cos = sine_and_cosine(code, r)
    odd = code.compare("ne", n & 1, 0)
    return code.select(odd, -cos, sin) / code.select(odd, sin, cos)


def by_quarters(code: Code, x: Value, quarters: int, function: Callable[[Code, Value, Value], Value]) -> Value:
    """A function of x + quarters * pi / 2."""
    if element_of(x.type) == "double":
        r, n = turned(code, x)
        return function(code, r, n + quarters)
    n, whole = nearest(code, x, 0.6366197723675814)
    r = x
    for part in QUARTER_TURN_32:
        r = code.fma(n, -part, r)
    out = code.variable(function(code, r, whole + quarters))
    far = code.abs(x) > FAR_32
    with code.when(code.any(far)):
        wide = code.convert(by_quarters(code, code.convert(x, "double"), quarters, function), "float")
        out.set(code.select(far, wide, out.get()))
    return out.get()


def sin(code: Code, x: Value) -> Value:
    """The sine."""
    return code.select(code.compare("eq", x, 0.0), x, by_quarters(code, x, 0, sine_of))


def cos(code: Code, x: Value) -> Value:
    """The cosine."""
    return by_quarters(code, x, 1, sine_of)


def tan(code: Code, x: Value) -> Value:
    """The tangent."""
    return code.select(code.compare("eq", x, 0.0), x, by_quarters(code, x, 0, tangent_of))


FUNCTIONS |= {"sin": ("fd", sin), "cos": ("fd", cos), "tan": ("fd", tan)}
