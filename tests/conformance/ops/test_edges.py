"""Every pointwise function at the edges of what it takes: values, dtypes and first gradients.

Zeros of both signs, infinities, nan, denormals, the largest numbers, poles and their neighbours, limits of integers,
complex numbers with every combination of such parts; a few of them, many, and with holes between them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import binary_ufuncs, unary_ufuncs

import pullback
from tests.conformance.edges import INF, NAN, differences, numbers
from tests.conformance.known_edges import DIFFERENT, TOLERANCE

Call = Callable[..., Any]
REALS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("bool", "uint8", "int8", "int32", "int64")


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


def found(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def exists(path: str) -> bool:
    try:
        return callable(found(pullback, path)) and callable(found(torch, path))
    except AttributeError:
        return False


def named(path: str, *args: Any, **kwargs: Any) -> Call:
    return lambda module, x: found(module, path)(x, *args, **kwargs)


FUNCTIONAL = (
    "relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "hardtanh", "hardswish", "hardsigmoid",
    "hardshrink", "softshrink", "tanhshrink", "softsign", "logsigmoid", "leaky_relu",
)  # fmt: skip
NOT_ALONE = {
    "fill",
    "polygamma",
    "special.polygamma",
    "mvlgamma",
    "clamp",
    "nn.functional.threshold",
}  # they need further arguments
UNARY: dict[str, Call] = {
    path: named(path)
    for path in sorted({*(info.name for info in unary_ufuncs), *(f"nn.functional.{name}" for name in FUNCTIONAL)})
    if exists(path) and path not in NOT_ALONE and path not in ("bool", "int", "float", "double", "half")
}
for n in (0, 1, 2, 3):
    UNARY[f"polygamma({n})"] = lambda module, x, n=n: module.polygamma(n, x)
for p in (1, 3):
    UNARY[f"mvlgamma({p})"] = named("mvlgamma", p)
for decimals in (-2, 0, 3, 40):
    UNARY[f"round({decimals})"] = named("round", decimals=decimals)
for eps in (0.0, 0.25):
    UNARY[f"logit({eps})"] = named("logit", eps)
for replacements in ((0.5, None, None), (NAN, INF, -INF), (7, 3, 2)):
    UNARY[f"nan_to_num{replacements}"] = named("nan_to_num", *replacements)
for edge in (0.0, 0.5, 1.0, INF):
    UNARY[f"hardshrink({edge})"] = named("nn.functional.hardshrink", edge)
    UNARY[f"softshrink({min(edge, 2)})"] = named("nn.functional.softshrink", min(edge, 2))
    UNARY[f"threshold({min(edge, 2)})"] = named("nn.functional.threshold", min(edge, 2), 7.0)
    UNARY[f"leaky_relu({edge})"] = named("nn.functional.leaky_relu", edge)
UNARY["gelu(tanh)"] = named("nn.functional.gelu", approximate="tanh")
UNARY["hardtanh(0, 2)"] = named("nn.functional.hardtanh", 0.0, 2.0)
for low, high in ((0, 1), (None, 0.5), (0.5, None), (2, 1), (NAN, 1), (1, NAN), (0, -0.0), (-0.0, 0)):
    UNARY[f"clamp({low}, {high})"] = named("clamp", low, high)
for power in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 1 / 3, 1.5, INF, NAN, -100, 1j):
    UNARY[f"x ** {power}"] = lambda module, x, power=power: x**power
    UNARY[f"{power} ** x"] = lambda module, x, power=power: power**x
    UNARY[f"float_power(x, {power})"] = named("float_power", power)

# lcm and the remainders of torch end the process at the smallest integer: 0 and limits are left out for them.
MINIMUM_KILLS = {"lcm", "gcd", "div", "div(floor)", "div(trunc)", "floor_divide", "remainder", "fmod"}
MORE = (
    "special.zeta special.gammainc special.gammaincc special.xlog1py special.xlogy ldexp logaddexp logaddexp2 isclose"
)
BINARY: dict[str, Call] = {
    path: lambda module, x, y, path=path: found(module, path)(x, y)
    for path in sorted({*(info.name for info in binary_ufuncs), *MORE.split()})
    if exists(path) and "polynomial" not in path and path not in ("addcmul", "lerp", "complex", "polar")
}
BINARY["div(floor)"] = lambda module, x, y: module.div(x, y, rounding_mode="floor")
BINARY["div(trunc)"] = lambda module, x, y: module.div(x, y, rounding_mode="trunc")
BINARY["lerp(0.3)"] = lambda module, x, y: module.lerp(x, y, 0.3)
BINARY["isclose(nan)"] = lambda module, x, y: module.isclose(x, y, equal_nan=True)


def check(name: str, dtype: str, problems: list[str]) -> None:
    """Differences nobody has listed, and listed differences that are gone."""
    reason = next((DIFFERENT[key] for key in ((name, dtype), (name, np.dtype(dtype).kind)) if key in DIFFERENT), None)
    if reason is None:
        assert not problems, "\n".join(["", *problems])
    else:
        assert problems, f"listed as different ({reason}), but everything agrees"


def tolerance_of(name: str) -> float:
    return TOLERANCE.get(name, TOLERANCE.get(name.split("(")[0], 4))


@pytest.mark.parametrize("dtype", [*REALS, *COMPLEX, *INTEGERS])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number_agree_at_the_edges(name: str, dtype: str) -> None:
    x = numbers(dtype)
    if "gamma" in name and np.dtype(dtype).kind in "fi":
        x = x[~(np.isfinite(x) & (x < -1e4))]  # torch counts up from there, one by one
    check(name, dtype, differences(UNARY[name], [x], tolerance_of(name), gradients=dtype in REALS))


@pytest.mark.parametrize("dtype", [*REALS, *COMPLEX, *INTEGERS])
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers_agree_at_the_edges(name: str, dtype: str) -> None:
    given = numbers(dtype, few=True)
    kind = np.dtype(dtype).kind
    if name in MINIMUM_KILLS and kind == "i":
        given = given[given != np.iinfo(dtype).min]
    if "zeta" in name and kind in "fi":
        given = given[~(np.isfinite(given) & (np.abs(given) > 1e4))]
    x, y = (part.ravel() for part in np.meshgrid(given, given))
    if name in MINIMUM_KILLS and kind in "iub":
        x, y = x[y != 0], y[y != 0]
    gradients = dtype in REALS and "gamma" not in name and "zeta" not in name
    check(name, dtype, differences(BINARY[name], [x, y], tolerance_of(name), gradients))
