"""The differences from torch at the edges of pointwise functions, each with its reason, and how exact functions are.

Keys of DIFFERENT are the function as tests/conformance/ops/test_edges.py calls it, and a dtype or a kind of dtypes. The
list is strict: an entry that agrees again is an error.
"""

TIMES_ONE = "torch multiplies by alpha, even by 1: infinite parts become nan, and -0.0 becomes 0.0"
BY_SUBTRACTION = "torch takes the arc sine from half a turn: a zero gets the other sign, and small results lose digits"
EQUAL_ZEROS = "of 0.0 and -0.0 torch gives the first, NumPy and the kernels give the second"
ONE_AND_TWO = "torch's logarithm of 1 + 1 is not exactly one; the sum of two halves is 1 here"
CANCELS = "what is left of a difference of nearly equal numbers: torch multiplies and adds in one step"
MORE_DIGITS = "torch's approximations are right to about 8 digits (airy_ai to 5), SciPy's to all of them"
SERIES = "torch's series end early, or overflow in float32 on the way; SciPy's, used here, do neither"
BESIDE_POLES = "torch's digamma has no right digit beside its poles: -5.5e15 at -0.9999999999999999, which is -9e15"
STEP_BY_STEP = "torch adds large terms one by one from far below zero, which cancel; here the function is reflected"
SHORT_LOGARITHM = "torch's logarithm of half the smallest number is infinite"

BESSEL = ("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1")
DIFFERENT: dict[tuple[str, str], str] = {
    ("acos", "complex128"): BY_SUBTRACTION,
    ("add", "c"): TIMES_ONE,
    ("sub", "c"): TIMES_ONE,
    ("rsub", "c"): TIMES_ONE,
    ("nn.functional.tanhshrink", "c"): TIMES_ONE,
    ("fmax", "f"): EQUAL_ZEROS,
    ("fmin", "f"): EQUAL_ZEROS,
    ("logaddexp2", "f"): ONE_AND_TWO,
    ("lerp(0.3)", "f"): CANCELS,
    **{(f"special.{name}", kind): MORE_DIGITS for name in BESSEL for kind in "fiu"},
    **{(name, "float64"): BESIDE_POLES for name in ("digamma", "lgamma", "mvlgamma(1)", "mvlgamma(3)")},
    ("polygamma(1)", "float64"): STEP_BY_STEP,
    ("polygamma(2)", "float64"): STEP_BY_STEP,
    ("special.erfcx", "float64"): CANCELS,
    ("special.log_ndtr", "float64"): CANCELS,
    ("igamma", "f"): SERIES,
    ("igammac", "f"): SERIES,
    ("special.gammainc", "f"): SERIES,
    ("special.gammaincc", "f"): SERIES,
    ("special.modified_bessel_k1", "float32"): SHORT_LOGARITHM,
    ("special.scaled_modified_bessel_k0", "float32"): SHORT_LOGARITHM,
    ("special.scaled_modified_bessel_k1", "float32"): SHORT_LOGARITHM,
}

TOLERANCE: dict[str, float] = {
    **dict.fromkeys(("logaddexp", "nn.functional.mish", "nn.functional.tanhshrink"), 8),
    **dict.fromkeys(("special.modified_bessel_k0", "special.scaled_modified_bessel_k0"), 8),
    **dict.fromkeys(("i0", "special.i1", "special.modified_bessel_i1", "sinc", "pow", "float_power"), 16),
    "special.ndtr": 16,
    "expm1": 32,  # near -3 the last digit of the result is sixteen of the gradient
    **dict.fromkeys(("erfinv", "special.ndtri"), 32),
    **dict.fromkeys(("digamma", "lgamma", "mvlgamma"), 100),
    **dict.fromkeys(("nn.functional.gelu",), 200),
    **dict.fromkeys(("polygamma", "gelu", "-2 ** x", "-0.5 ** x", "-100 ** x"), 800),
    **dict.fromkeys(("tanh", "special.erfcx", "special.i0e", "special.i1e", "special.log_ndtr"), 1e300),
}
"""How many units in the last place results and gradients may be apart, where it is more than four.

Most of it is the gradient where it is a small difference (1 - tanh(x)**2, of which the last digit of tanh decides what
is left: only signs, infinities and nan are compared then), or a number whose logarithm is near zero.
"""
