"""Functions that work element by element, and those that keep shapes: nested tensors do them on their values."""

from __future__ import annotations

POINTWISE = frozenset({
    "abs", "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "angle", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "celu",
    "clamp", "clamp_max", "clamp_min", "clip", "conj", "copysign", "cos", "cosh", "deg2rad", "digamma", "div",
    "divide", "elu", "eq", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "float_power", "floor",
    "floor_divide", "fmax", "fmin", "fmod", "frac", "ge", "gelu", "greater", "greater_equal", "gt",
    "hardsigmoid", "hardswish", "hardtanh", "hypot", "isclose", "isfinite", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "le", "leaky_relu", "lerp", "less", "less_equal", "lgamma", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logit",
    "logsigmoid", "lt", "masked_fill", "maximum", "minimum", "mish", "mul", "multiply", "nan_to_num", "ne",
    "neg", "negative", "nextafter", "not_equal", "pow", "power_from", "power_operator", "rad2deg",
    "reciprocal", "relu", "relu6", "remainder", "round", "rsqrt", "rsub", "selu", "sgn", "sigmoid", "sign",
    "signbit", "silu", "sin", "sinc", "sinh", "softplus", "softsign", "sqrt", "square", "sub", "subtract",
    "tan", "tanh", "tanhshrink", "threshold", "true_divide", "trunc", "where", "xlogy",
})  # fmt: skip
SAME_SHAPE = frozenset({
    "alias", "alpha_dropout", "bernoulli", "clone", "cpu", "detach", "detach_", "dropout", "empty_like",
    "fill", "full_like", "ones_like", "rand_like", "randn_like", "requires_grad_", "view_as_real", "zero_",
    "zeros_like",
})  # fmt: skip
CASTS = frozenset({
    "bfloat16", "bool", "byte", "char", "double", "float", "half", "int", "long", "short", "to", "type",
})  # fmt: skip
STRIDED = frozenset({
    "abs", "add", "cos", "div", "divide", "eq", "fill", "ge", "gelu", "gt", "isinf", "isnan", "isneginf",
    "isposinf", "logical_not", "masked_fill", "mul", "multiply", "neg", "negative", "relu", "sgn", "silu",
    "sin", "sqrt", "sub", "subtract", "tanh", "threshold", "true_divide",
})  # fmt: skip
"""Those that torch has for the strided layout."""
