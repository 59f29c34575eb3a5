"""What rounding errors decide, and how far infinities and NaNs spread."""

from __future__ import annotations

from tests.fuzz.compare import OVERLAP
from tests.fuzz.known.reason import (
    RANKED,
    TRANSFORMS,
    TWICE,
    Known,
    answered_in_order,
    at_nan,
    complex_numbers,
    equals,
    expanded,
    half,
    infinite,
    least_integer,
    mirrored,
    near,
    signs_of_nan,
    smallest,
    special,
    to_single_precision,
)
from tests.fuzz.known.wider import nowhere_finite, order_decides, overflows
from tests.fuzz.noise import FACTORING

ROUNDING = [
    Known("order among equals", "value", whole=RANKED, given=(equals,)),
    Known(
        "the order of topk that nobody asked to be sorted",
        "value",
        whole=r"\btopk\(.*\bFalse\)",
        given=(answered_in_order,),
    ),
    Known("order among equals", "accepted", whole=RANKED, said=OVERLAP, given=(equals,)),
    Known(
        "norms of thousands of equal numbers, which torch adds one by one in single precision",
        "value",
        line=r"\bnorm\(",
        given=(expanded, near),
    ),
    Known("signs of eigenvectors and singular vectors", "value", line=r"\beigh?\(|\bsvd\(|lowrank"),
    Known("the order of eigenvalues, which is LAPACK's", "value", line=r"\beigvals\("),
    Known(
        "Bessel and Airy functions, of which torch knows 5 to 8 digits",
        "value",
        line=r"\b(bessel_[jy][01]|airy_ai)\(",
    ),
    Known("the sign of NaN", "value", given=(signs_of_nan,)),
    Known(
        "divisors of the least integer, which has no absolute value",
        "value",
        line=r"\b(gcd|lcm)_?\(",
        given=(least_integer,),
    ),
    Known(
        "derivatives of factorisations of matrices with equal rows, which they do not have",
        "value",
        line=FACTORING.pattern,
        said="nan|inf",
        modes=("backward", *TRANSFORMS),
        given=(expanded,),
    ),
    Known(
        "second derivatives of sinc beside zero, of which only rounding errors are left",
        "value",
        line=r"sinc\(",
        modes=TWICE,
        given=(special,),
    ),
    Known(
        "inverses of what is no Cholesky factor: its diagonal is not real",
        "value",
        line=r"cholesky_inverse\(",
        given=(complex_numbers,),
    ),
    Known(
        "the sign of a zero in the negative of a complex number, or in a difference: torch loses it in some or in all",
        "value",
        whole=r"(\b(neg|r?sub)_?|__[ri]?(sub|neg)__)\([\s\S]*\b(sqrt|rsqrt|log\w*|pow|float_power|angle)_?\(",
        given=(complex_numbers, mirrored),
    ),
    Known(
        "logarithms of counts, which are float32 also beside double precision",
        "value",
        line=r"poisson_nll_loss\(.*full=True",
        given=(to_single_precision,),
    ),
    Known(
        "bicubic samples of half precision, for which torch rounds every product",
        "value",
        line=r"grid_sample.*bicubic",
        given=(half, near),
    ),
]
"""What rounding errors decide."""

AT_SPECIAL_VALUES = [
    (r"conv|matmul|@|mm\(|bmm|mv\(|einsum|dot|linear|fft|linalg|lu|cholesky|solve|inverse|det|qr\(|geqrf|householder|ormqr|attention|cov|corrcoef|cdist|kron|matrix_exp|'nuc'",
     "how far infinities and NaNs spread in products, transforms and factorisations"),
    (r"\b(std|var)\w*\(", "deviations of large numbers that are equal"),
    (r"_polynomial_\w+\(", "polynomials of NaN, for which torch gives what lies in memory"),
    (r"(layer|batch|instance|group|rms)_norm\(", "statistics of numbers whose squares are infinite"),
    (r"\bcross\(", "differences of equal products of large numbers, of which torch rounds one twice"),
    (r"\baddr\(", "products of complex numbers with infinities"),
    (r"ldexp_?\(", "products of complex numbers with infinities"),
    (r"logaddexp2?\(", "exponentials of infinite complex numbers"),
    (r"\bgradient\(", "quotients of infinite complex numbers"),
    (r"\bunique\(.*dim=", "NaN among slices, which torch sorts in no order"),
]  # fmt: skip

DERIVATIVES_AT_SPECIAL_VALUES = [
    (r"\bprod\(", "derivatives of products of several zeros and NaN"),
    (r"\b(__rmod__|remainder_?|fmod_?)\(|%", "derivatives of remainders at infinities, zero times which torch adds"),
    (r"__rmul__", "derivatives of products of complex numbers with infinities"),
    (r"polar\(", "tangents of infinite complex numbers"),
    (r"cumprod", "tangents of running products at infinities"),
]

NOT_FINITE = [
    Known(
        "torch's gradients of renorm of complex numbers by the largest, which are NaN",
        "value",
        whole=r"renorm_?\(\w+, float\('inf'\)",
        said=r"expected \(nan",
    ),
    Known(
        "running sums of exponentials of infinite complex numbers",
        "value",
        line=r"logcumsumexp\(",
        said=r"expected \((nan|-?inf)",
    ),
    Known(
        "how far infinities and NaNs spread in products, transforms and factorisations",
        "value",
        whole=r"mvlgamma\([\s\S]*matrix_exp\(",
    ),
    Known(
        "products of which the order decides whether infinities meet a zero",
        "value",
        line=r"\bprod\(",
        given=(order_decides,),
    ),
    Known(
        "torch's exponentials of matrices of half precision, which are NaN",
        "value",
        line=r"matrix_exp\(",
        said="expected nan",
        given=(half,),
    ),
    Known(
        "infinite complex numbers, of which torch adds (1+0j) times",
        "value",
        line=r"\b(__[ri]?(add|sub)_|r?sub|add|diff|index_add|trapezoid|trapz|cumulative_trapezoid|logdet)_?\(|[-+]= ",
        said=r"expected \([^)]*nan",
    ),
    Known(
        "derivatives at infinite complex numbers, of which torch adds (1+0j) times: one minus a square, less a sum",
        "value",
        line=r"\b(atanh|arctanh|logsumexp)\(",
        said=r"expected \([^)]*nan",
        modes=("backward", *TRANSFORMS),
        given=(special,),
    ),
    Known(
        "signs of infinite complex numbers, of which torch's vectors and single elements have other parts",
        "value",
        line=r"\bsgn_?\(",
        said="nan",
        given=(special, complex_numbers),
    ),
    Known(
        "which parts of complex numbers are infinite or NaN, of which torch's vectors and single elements have others",
        "value",
        given=(nowhere_finite,),
    ),
    Known(
        "products of complex numbers with infinities",
        "value",
        line=r"\b(mul|addcmul|addcdiv)_?\(",
        said="nan|inf",
        given=(special, complex_numbers),
    ),
    Known(
        "covariances of complex numbers of fewer observations than are taken off, which are divided by zero",
        "value",
        line=r"\bcov\(.*correction=[2-9]",
        said="inf",
        given=(complex_numbers,),
    ),
    Known(
        "gradients of NaN through functions of several pieces, which torch's vectors and single elements pass or not",
        "value",
        whole=r"\b(soft|hard)\w+\(|\b[cs]?elu_?\(|relu6\(|logit_?\(",
        modes=("backward", *TRANSFORMS),
        given=(at_nan,),
    ),
    *(
        Known(why, "value", line=line, given=(lambda case: special(case) or infinite(case),))
        for line, why in AT_SPECIAL_VALUES
    ),
    *(
        Known(why, "value", line=line, modes=("backward", *TRANSFORMS), given=(special,))
        for line, why in DERIVATIVES_AT_SPECIAL_VALUES
    ),
    Known(
        "second derivatives at infinities, of which one library multiplies a zero by one",
        "value",
        said=r"expected \S*nan\S*, got (?!\S*nan)|expected (?!\S*nan)\S*, got \S*nan",
        modes=TWICE,
        given=(overflows, smallest),
    ),
]
"""How far infinities and NaNs spread."""
