"""`torch.testing`: whether two values are the same up to rounding, and tensors of random numbers to try things on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import pullback as torch
from pullback import Tensor

TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""Relative and absolute, by dtype; integers and bools must be equal."""
Message = str | Callable[[str], str] | None


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, in containers too."""
    if (rtol is None) != (atol is None):
        missing = "atol" if atol is None else "rtol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    options = {
        "allow_subclasses": allow_subclasses,
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_dtype": check_dtype,
        "check_stride": check_stride,
    }
    found = difference(actual, expected, options, ())
    if found is not None:
        text, place = found
        text = f"{text}\n\nThe failure occurred for item {''.join(f'[{p!r}]' for p in place)}" if place else text
        raise AssertionError(msg(text) if callable(msg) else text if msg is None else msg)


def difference(actual: Any, expected: Any, options: dict[str, Any], place: tuple[Any, ...]) -> Any:
    """The first difference, as (text, place in the containers); None if there is none."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            missing, more = sorted(set(expected) - set(actual)), sorted(set(actual) - set(expected))
            return (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {more}",
                place,
            )
        return first(difference(actual[key], expected[key], options, (*place, key)) for key in actual)
    if is_sequence(actual) and is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place
        return first(
            difference(a, b, options, (*place, i)) for i, (a, b) in enumerate(zip(actual, expected, strict=True))
        )
    if actual is None and expected is None:
        return None
    if actual is None or expected is None:
        return f"None mismatch: {actual} is not {expected}", place
    text = compared(actual, expected, options)
    return None if text is None else (text, place)


def first(differences: Any) -> Any:
    """The first that is one."""
    return next((found for found in differences if found is not None), None)


def is_sequence(value: Any) -> bool:
    """Whether a value holds others in order."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def compared(actual: Any, expected: Any, options: dict[str, Any]) -> str | None:
    """What differs between two numbers or two tensors."""
    if isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
        return None if bool(actual) is bool(expected) else f"Booleans mismatch: {actual} is not {expected}"
    if isinstance(actual, (int, float, complex)) and isinstance(expected, (int, float, complex)):
        return compared_numbers(actual, expected, options)
    if not options["allow_subclasses"] and type(actual) is not type(expected):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    if not all(isinstance(v, (Tensor, np.ndarray, np.generic, int, float, complex)) for v in (actual, expected)):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    return compared_tensors(torch.as_tensor(actual).detach(), torch.as_tensor(expected).detach(), options)


def tolerances_of(options: dict[str, Any], *dtypes: Any) -> tuple[float, float]:
    """The given tolerances, or the wider ones of the dtypes."""
    if options["rtol"] is not None:
        return options["rtol"], options["atol"]
    pairs = [TOLERANCES.get(str(dtype).removeprefix("torch."), (0.0, 0.0)) for dtype in dtypes]
    return max(r for r, _ in pairs), max(a for _, a in pairs)


def compared_numbers(actual: Any, expected: Any, options: dict[str, Any]) -> str | None:
    """What differs between two numbers."""
    if type(actual) is not type(expected) and options["check_dtype"]:
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    kinds = {int: torch.int64, float: torch.float64, complex: torch.complex128, bool: torch.bool}
    rtol, atol = tolerances_of(options, kinds[type(actual)], kinds[type(expected)])
    if actual == expected or (options["equal_nan"] and actual != actual and expected != expected):
        return None
    absolute = abs(actual - expected)
    if absolute <= atol + rtol * abs(expected):
        return None
    if rtol == 0 and atol == 0:
        return f"Scalars are not equal!\n\nExpected {expected} but got {actual}.\n" + scalar_lines(
            absolute, expected, None
        )
    return f"Scalars are not close!\n\nExpected {expected} but got {actual}.\n" + scalar_lines(
        absolute, expected, (rtol, atol)
    )


def scalar_lines(absolute: Any, expected: Any, allowed: tuple[float, float] | None) -> str:
    """How far two numbers are apart."""
    relative = float("inf") if expected == 0 else absolute / abs(expected)
    if allowed is None:
        return f"Absolute difference: {absolute}\nRelative difference: {relative}"
    rtol, atol = allowed
    return (
        f"Absolute difference: {absolute} (up to {atol} allowed)\n"
        f"Relative difference: {relative} (up to {rtol} allowed)"
    )


def compared_tensors(actual: Tensor, expected: Tensor, options: dict[str, Any]) -> str | None:
    """What differs between two tensors."""
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}."
    if options["check_dtype"] and actual.dtype != expected.dtype:
        return f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}."
    if options["check_stride"] and actual.stride() != expected.stride():
        return f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}."
    rtol, atol = tolerances_of(options, actual.dtype, expected.dtype)
    common = torch.promote_types(actual.dtype, expected.dtype)
    left, right = actual.to(common), expected.to(common)
    close = torch.isclose(left, right, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
    if bool(close.all()):
        return None
    a, b = (left, right) if common.is_complex or common.is_floating_point else (left.long(), right.long())
    if a.dim() == 0:
        return compared_numbers(
            left.item(), right.item(), {**options, "rtol": rtol, "atol": atol, "check_dtype": False}
        ) or scalar_lines(abs(left.item() - right.item()), right.item(), (rtol, atol))
    apart = close.logical_not()
    absolute = (a - b).abs().masked_fill(close, 0)
    relative = ((a - b).abs() / b.abs()).masked_fill(close, 0)
    count, total = int(apart.sum()), apart.numel()
    exact = rtol == 0 and atol == 0
    text = f"Tensor-likes are not {'equal' if exact else 'close'}!\n\n"
    text += f"Mismatched elements: {count} / {total} ({count / total:.1%})\n"
    text += greatest("absolute", absolute, None if exact else atol) + "\n"
    return text + greatest("relative", relative, None if exact else rtol)


def greatest(kind: str, differences: Tensor, allowed: float | None) -> str:
    """The line about the largest difference of a kind."""
    flat = (
        torch.where(torch.isnan(differences), float("inf"), differences)
        if differences.is_floating_point()
        else differences
    )
    number = int(flat.argmax())
    index = tuple(int(i) for i in np.unravel_index(number, tuple(differences.shape)))
    value = differences[index].item()
    return f"Greatest {kind} difference: {value} at index {index}" + (
        "" if allowed is None else f" (up to {allowed} allowed)"
    )


OLD_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}
"""What `assert_allclose` allowed; other dtypes must be equal."""


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older `assert_close`: numbers and lists are compared as tensors, dtypes may differ."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
        "Please use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    actual = actual if isinstance(actual, Tensor) else torch.tensor(actual)
    expected = expected if isinstance(expected, Tensor) else torch.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        allowed = [OLD_TOLERANCES.get(t.dtype.name, (0, 0)) for t in (actual, expected)]
        rtol, atol = (max(pair) for pair in zip(*allowed, strict=True))
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        msg=msg or None,
    )


def make_tensor(
    *shape: Any,
    dtype: torch.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random numbers from [low, high), by default [-9, 9) or the integers from -9 to 9.

    Args:
        shape: the size, as numbers or as one sequence.
        low, high: brought into the range of the dtype.
        noncontiguous: every second element of a larger tensor; not together with `memory_format`.
        exclude_zero: zeros become ones, or for floats the smallest normal number.

    >>> import pullback as torch
    >>> torch.testing.make_tensor(2, 3, dtype=torch.int64, device="cpu", low=4, high=5)
    tensor([[4, 4, 4],
            [4, 4, 4]])
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    whole = not (dtype.is_floating_point or dtype.is_complex)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got {noncontiguous=} and {memory_format=}"
        )
    if requires_grad and whole:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    apart = noncontiguous and math.prod(shape) > 1
    if apart:
        shape = (*shape[:-1], 2 * shape[-1])
    low, high = bounds(dtype, low, high)
    if whole:
        out = torch.randint(math.ceil(low), math.ceil(high), shape, device=device, dtype=dtype)
    else:
        out = torch.empty(shape, device=device, dtype=dtype)
        numbers = torch.view_as_real(out) if dtype.is_complex else out
        if high - low >= torch.finfo(dtype).max:
            numbers.uniform_(low / 2, high / 2).mul_(2)
        else:
            numbers.uniform_(low, high)
    if apart:
        out = out[..., 1::2]
    elif memory_format is not None:
        out = out.clone(memory_format=memory_format)
    if exclude_zero:
        out[out == 0] = 1 if whole else torch.finfo(dtype).tiny
    return out if whole else out.requires_grad_(requires_grad)


def bounds(dtype: torch.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """From where to where random numbers of a dtype go: what is wanted, or [-9, 9], inside of what it can hold."""
    least: float
    end: float
    if dtype is torch.bool:
        least, end, usual = 0, 2, (0, 2)
    elif dtype.is_floating_point or dtype.is_complex:
        least, end, usual = torch.finfo(dtype).min, torch.finfo(dtype).max, (-9, 9)
    else:
        least, end, usual = torch.iinfo(dtype).min, torch.iinfo(dtype).max, (-9, 10)
        end += dtype is not torch.int64  # randint cannot draw the largest of these
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{least}, {end})"
        )
    return min(max(low, least), end), min(max(high, least), end)
