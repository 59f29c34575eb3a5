"""The differences from torch that are intended or accepted, each with its reason.

Keys are (op, aspect) as the harness prints them. The list is strict: an entry whose aspect agrees again is an error.
"""

OVERWRITTEN = (
    "torch's gradient keeps the elements that were overwritten and drops the others; the derivative is the reverse"
)
NO_HALF_COMPLEX = "what only stores numbers does not compute their second derivatives; convert to complex64 first"
CANCELS = "torch adds 1e-13 to the running sum it divides by; without it the tangent is exact"
UNWRITTEN = "torch leaves `out` as it was when only one dimension is transformed; here it holds the result"
MORE_DIGITS = "torch's polynomials are right to 5 (airy_ai) or 8 digits; SciPy's, used here, to all of them"
ROUNDING = "small elements of a large float32 exponential: torch's are right to 3 digits, these to all, by doubles"
WRONG_TANGENT = "torch multiplies in another order than the derivative does; finite differences agree with ours"
UNREAD = "torch lets the triangle of A that is never read move the solution; its derivative there is zero"

KNOWN_DIFFERENCES: dict[tuple[str, str], str] = {
    ("as_strided_scatter", "grad"): OVERWRITTEN,
    ("as_strided_scatter", "gradgrad"): OVERWRITTEN,
    ("as_strided_scatter", "grad_complex"): OVERWRITTEN,
    ("chalf", "gradgrad"): NO_HALF_COMPLEX,
    ("logcumsumexp", "forward"): CANCELS,
    ("fft.ihfft2", "out"): UNWRITTEN,
    ("fft.ihfftn", "out"): UNWRITTEN,
    ("masked.logsumexp", "forward"): "the tangent of the sum of no elements is zero; torch gives nan",
    ("special.airy_ai", "value"): MORE_DIGITS,
    ("special.airy_ai", "out"): MORE_DIGITS,
    ("special.bessel_j0", "value"): MORE_DIGITS,
    ("special.bessel_j0", "out"): MORE_DIGITS,
    ("special.bessel_j1", "value"): MORE_DIGITS,
    ("special.bessel_j1", "out"): MORE_DIGITS,
    ("special.bessel_y0", "value"): MORE_DIGITS,
    ("special.bessel_y0", "out"): MORE_DIGITS,
    ("special.bessel_y1", "value"): MORE_DIGITS,
    ("special.bessel_y1", "out"): MORE_DIGITS,
    ("matrix_exp", "value"): ROUNDING,
    ("matrix_exp", "method"): ROUNDING,
    ("matrix_exp", "alias"): ROUNDING,
    ("cholesky_inverse", "forward"): WRONG_TANGENT,
    ("triangular_solve", "forward"): UNREAD,
}
