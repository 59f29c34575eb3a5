"""What rounding errors decide, and how far infinities and NaNs spread."""

from __future__ import annotations

from tests.fuzz.known.reason import (
    RANKED,
    TRANSFORMS,
    TWICE,
    Known,
    at_nan,
    complex_numbers,
    equals,
    expanded,
    half,
    mirrored,
    near,
    smallest,
    special,
)

STEPS = (
    "remainder|fmod|__r?mod__|floor_divide|frac|floor|ceil|trunc|round|sign|sgn|heaviside|signbit|eq|ne|lt|le|gt|ge"
    "|bool|int|long|type|nonzero|unique|argmax|argmin"
)

ROUNDING = [
    Known("order among equals", "value", whole=RANKED, given=(equals,)),
    Known(
        "remainders, steps and comparisons of numbers that differ in their last digit",
        "value shape",
        whole=rf"(fft|corrcoef|cosine_similarity|normalize|_polynomial_|\bi0|bessel)[\s\S]*(%| > 0|\b({STEPS})_?\()",
    ),
    Known(
        "functions of infinite slope at the end of a range, which rounding reaches or not",
        "value",
        whole=r"(corrcoef|cosine_similarity|normalize)\([\s\S]*\b(acosh?|asin|atanh|erfinv|logit)_?\(",
    ),
    Known(
        "remainders, steps and comparisons of numbers that differ in their last digit",
        "value shape",
        whole=rf"interpolate\([\s\S]*(%| > 0|\b({STEPS})_?\()",
        given=(half,),
    ),
    Known(
        "functions of infinite slope at the end of a range, which rounding reaches or not",
        "value",
        whole=r"conv[\s\S]*\b(acosh?|asin|atanh|erfinv|logit)_?\(",
        given=(half,),
    ),
    Known(
        "cross products of tensors with themselves, of which torch's fused products leave rounding errors",
        "value shape",
        whole=r"\bcross\((\w+), \1\b[\s\S]*",
    ),
    Known("signs of eigenvectors and singular vectors", "value", line=r"\beigh?\(|\bsvd\(|lowrank"),
    Known("the order of eigenvalues, which is LAPACK's", "value", line=r"\beigvals\("),
    Known(
        "Bessel and Airy functions, of which torch knows 5 to 8 digits",
        "value",
        line=r"\b(bessel_[jy][01]|airy_ai)\(",
    ),
    Known(
        "logarithms of the ends of incomplete gamma functions, of which single precision leaves few digits",
        "value",
        whole=r"igammac?\([\s\S]*\blog\(",
    ),
    Known("the sign of NaN", "value", whole=r"\bnan\b[\s\S]*\b(signbit|copysign)_?\("),
    Known("the sign of NaN", "value", whole=r"\b(x?log\w*|sqrt|acosh?|asin|atanh)_?\([\s\S]*\b(signbit|copysign)_?\("),
    Known(
        "derivatives of deviations of equal numbers, of which rounding errors leave one or not",
        "value",
        line=r"\b(std|nanstd)\w*\(",
        modes=("backward", *TRANSFORMS),
        given=(expanded,),
    ),
    Known(
        "quotients of deviations of equal numbers, of which rounding errors leave one or not",
        "value",
        whole=r"\b(std|var)\w*\([\s\S]*\n",
        said="nan",
        given=(expanded,),
    ),
    Known(
        "derivatives of factorisations of matrices with equal rows, which they do not have",
        "value",
        line=r"svd|pinv|nuc|cond\(|qr\(|lstsq|matrix_norm|matrix_rank|inv\(|inverse|solve|lu|det\(|eig",
        modes=("backward", *TRANSFORMS),
        given=(expanded,),
    ),
    Known(
        "least squares of matrices with equal rows, which are not of full rank",
        "value",
        line=r"\blstsq\(",
        given=(expanded,),
    ),
    Known(
        "pseudoinverses of matrices with equal rows, by singular values that are rounding errors",
        "value",
        line=r"\bpinv\(",
        given=(expanded,),
    ),
    Known(
        "pivots of matrices with equal rows, which rounding errors choose",
        "value",
        line=r"\blu(_factor\w*)?\(",
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
        "the sign of a zero that a Fourier transform leaves, which its angle shows",
        "value",
        line=r"angle\(",
        whole="fft",
        said=r"3\.14",
    ),
    Known(
        "the sign of a zero that a Fourier transform leaves, which decides about a root or logarithm",
        "value",
        whole=r"fft[\s\S]*\b(sqrt|log\w*|pow|float_power)_?\(",
        given=(mirrored,),
    ),
    Known(
        "the sign of a zero that a Fourier transform leaves, which decides about a root or logarithm",
        "value",
        whole=r"fft[\s\S]*\b(sqrt|log\w*|rsqrt)_?\(",
        said="nan",
    ),
    Known(
        "the sign of a zero in the negative of a complex number, which torch's vectors lose and single elements keep",
        "value",
        whole=r"\bneg_?\([\s\S]*\b(sqrt|rsqrt|log\w*|pow|float_power|angle)_?\(",
        given=(complex_numbers, mirrored),
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
    (r"conv|matmul|@|mm\(|bmm|mv\(|einsum|dot|linear|fft|linalg|lu|cholesky|solve|inverse|det|qr\(|geqrf|householder|ormqr|attention|cov|corrcoef|cdist|kron",
     "how far infinities and NaNs spread in products, transforms and factorisations"),
    (r"\b(std|var)\w*\(", "deviations of large numbers that are equal"),
    (r"\bprod\(", "derivatives of products of several zeros and NaN"),
    (r"_polynomial_\w+\(", "polynomials of NaN, for which torch gives what lies in memory"),
    (r"(layer|batch|instance|group|rms)_norm\(", "statistics of numbers whose squares are infinite"),
    (r"\b(__rmod__|remainder_?|fmod_?)\(|%", "derivatives of remainders at infinities, zero times which torch adds"),
    (r"signbit|copysign", "the sign of NaN"),
    (r"\bcross\(", "differences of equal products of large numbers, of which torch rounds one twice"),
    (r"__rmul__", "derivatives of products of complex numbers with infinities"),
    (r"\baddr\(", "products of complex numbers with infinities"),
    (r"polar\(", "tangents of infinite complex numbers"),
    (r"ldexp_?\(", "products of complex numbers with infinities"),
    (r"logaddexp2?\(", "exponentials of infinite complex numbers"),
    (r"cumprod", "tangents of running products at infinities"),
    (r"\bgradient\(", "quotients of infinite complex numbers"),
    (r"\bunique\(.*dim=", "NaN among slices, which torch sorts in no order"),
]  # fmt: skip

NOT_FINITE = [
    Known(
        "torch's gradients of renorm of complex numbers by the largest, which are NaN",
        "value",
        whole=r"renorm_?\(\w+, float\('inf'\)",
        said=r"expected \(nan",
    ),
    Known(
        "running sums of exponentials of complex numbers, for which torch gives NaN",
        "value",
        line=r"logcumsumexp\(",
        said=r"expected \(nan",
    ),
    Known(
        "how far infinities and NaNs spread in products, transforms and factorisations",
        "value",
        whole=r"mvlgamma\([\s\S]*matrix_exp\(",
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
        "signs of infinite complex numbers, of which torch's vectors and single elements have other parts",
        "value",
        line=r"\bsgn_?\(",
        said="nan",
        given=(special, complex_numbers),
    ),
    Known(
        "products of complex numbers with infinities",
        "value",
        line=r"\baddc(mul|div)_?\(",
        said="nan|inf",
        given=(special, complex_numbers),
    ),
    Known(
        "gradients of NaN through functions of several pieces, which torch's vectors and single elements pass or not",
        "value",
        whole=r"\b(soft|hard)\w+\(|relu6\(",
        modes=("backward", *TRANSFORMS),
        given=(at_nan,),
    ),
    Known(
        "periodic functions of numbers so large that their last digit is many periods",
        "value",
        whole=r"\n.*\b(sin|cos|tan)_?\(",
        given=(special,),
    ),
    *(Known(why, "value", line=line, given=(special,)) for line, why in AT_SPECIAL_VALUES),
    Known(
        "second derivatives at infinities, of which one library multiplies a zero by one",
        "value",
        said=r"expected \S*nan\S*, got (?!\S*nan)|expected (?!\S*nan)\S*, got \S*nan",
        modes=TWICE,
        given=(special, smallest),
    ),
]
"""How far infinities and NaNs spread."""
