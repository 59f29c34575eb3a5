"""What linear algebra demands of its matrices, and the errors of what could not be computed, in torch's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback._dtype import FROM_NUMPY, can_cast
from pullback._op.declare import spaces
from pullback._op.define import Array
from pullback._op.out import check_targets, write_result
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor
from pullback.ops.supported import same_dtype


class _LinAlgError(RuntimeError):
    """The numbers do not allow the computation: a matrix is singular, not positive-definite, or nothing converged."""


LinAlgError = spaces.setdefault("linalg", {})["LinAlgError"] = _LinAlgError
"""Its public name; torch gives the class itself the underscore, and programs may print it."""

LAPACK_DTYPES = frozenset(np.dtype(kind) for kind in ("f4", "f8", "c8", "c16"))


def scalar_type(array: Array) -> str:
    """Torch's name of the dtype in these errors: Float."""
    return FROM_NUMPY[array.dtype].scalar_type


# ------------------------------------------------------------------ arguments


def need_tensors(function: str, **given: Any) -> None:
    """Raise torch's TypeError unless every argument (named in the order of the signature) is a tensor."""
    for position, (name, value) in enumerate(given.items()):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{function}(): argument '{name}' (position {position + 1}) must be Tensor, not {type(value).__name__}"
            )


def written(name: str, result: Any, out: Any, check: Callable[..., None] = same_dtype) -> Any:
    """The result itself, or written into `out` if its dtypes pass a check: by default, if they are the same."""
    if out is None:
        return result
    results = result if isinstance(result, tuple) else (result,)
    check_targets(name, out, len(results))
    targets = out if isinstance(out, (tuple, list)) else (out,)
    check(list(targets), [part._array for part in results], {})
    return write_result(name, result, out)


def castable(function: str, *names: str) -> Callable[..., None]:
    """The check of an `out=` into which results are converted: what torch would say if one could not be."""

    def check(targets: list[Any], arrays: list[Any], bound: dict[str, Any]) -> None:
        for name, target, array in zip(names or ("result",), targets, arrays, strict=True):
            if not can_cast(FROM_NUMPY[array.dtype], target.dtype):
                raise RuntimeError(
                    f"{function}: Expected {name} to be safely castable from {scalar_type(array)} dtype, but got "
                    f"{name} with dtype {target.dtype.scalar_type}"
                )

    return check


# ------------------------------------------------------------------ matrices


def check_matrix(self: Array, function: str, name: str = "A") -> None:
    """At least two dimensions."""
    if self.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")


def check_square(self: Array, function: str, name: str = "A") -> None:
    """Square matrices."""
    check_matrix(self, function, name)
    rows, columns = self.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{function}: {name} must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def check_floating(self: Array, function: str, half: bool = True) -> None:
    """Floating point or complex numbers; where `half` is false, of at least single precision."""
    if self.dtype in LAPACK_DTYPES:
        return
    kind = FROM_NUMPY[self.dtype]
    if kind.category < 2:
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {kind.scalar_type}")
    if not half:
        raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {kind.scalar_type}")


def check_kernel(self: Array, kernel: str) -> None:
    """A dtype LAPACK knows."""
    if self.dtype not in LAPACK_DTYPES:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(self)}'")


def check_same_dtype(a: Array, b: Array, function: str, first: str, second: str) -> None:
    """Two operands of one dtype."""
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{function}: Expected {first} and {second} to have the same dtype, but found {first} of type "
            f"{scalar_type(a)} and {second} of type {scalar_type(b)} instead"
        )


def check_system(a: Array, b: Array, left: bool, function: str) -> None:
    """Sizes that fit AX = B or XA = B."""
    check_square(a, function)
    check_matrix(b, function, "B")
    if a.shape[-2] != b.shape[-2 if left else -1]:
        sizes = f"{a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]}"
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(f"{function}: Incompatible shapes of A and B for the equation {equation} ({sizes})")


def check_old_system(b: Array, a: Array, function: str) -> None:
    """The demands of the functions that take the right-hand side first: their words are their own."""
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_type(b)} and A of type "
            f"{scalar_type(a)} instead."
        )
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {a.shape[-2]} by {a.shape[-1]} matrices"
        )
    if a.shape[-2] != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {function}: each A matrix is {a.shape[-1]} by {a.shape[-1]} but each b "
            f"matrix is {b.shape[-2]} by {b.shape[-1]}"
        )


def check_two_dimensions(self: Array, function: str) -> None:
    """The demand of the LU functions, which show the size they got."""
    if self.ndim < 2:
        raise RuntimeError(
            f"{function}: Expected tensor with 2 or more dimensions. Got size: {shape_text(self.shape)} instead"
        )


# ------------------------------------------------------------------ what LAPACK reports

REPORTS = (
    (
        "inv",
        "The diagonal element {info} is zero, the inversion could not be completed because the input matrix is "
        "singular.",
    ),
    ("solve", "The solver failed because the input matrix is singular."),
    (
        "cholesky",
        "The factorization could not be completed because the input is not positive-definite (the leading minor of "
        "order {info} is not positive-definite).",
    ),
    (
        "eig",
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "eigenvalues (error code: {info}).",
    ),
    (
        "svd",
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "singular values (error code: {info}).",
    ),
    (
        "lstsq",
        "The least squares solution could not be computed because the input matrix does not have full rank (error "
        "code: {info}).",
    ),
    (
        "lu_factor",
        "U[{info},{info}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
        "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
    ),
)
"""What a positive code means, by the first of these words the function's name contains."""


def check_if_asked(codes: Array, check_errors: bool | str, function: str) -> None:
    """The same for an op that leaves it to its caller, who may also name the function the error is to speak of."""
    if check_errors:
        check_info(codes, check_errors if isinstance(check_errors, str) else function)


@answered(meta=lambda codes, function: None)
def check_info(codes: Array, function: str) -> None:
    """Raise if LAPACK reported that something went wrong, saying what and with which matrix of a batch."""
    where = ""
    if codes.ndim:
        if not codes.any():
            return
        first = int(np.flatnonzero(codes)[0])
        where, code = f" (Batch element {first}):", int(codes.flat[first])
    else:
        code = codes.item()
        if not code:
            return
    if code < 0:
        raise LinAlgError(
            f"{function}:{where} The algorithm failed to converge because the input matrix contained non-finite values."
        )
    for word, text in REPORTS:
        if word in function:
            kind = RuntimeError if word == "lu_factor" else LinAlgError
            raise kind(f"{function}:{where} {text.format(info=code)}")
    raise RuntimeError(f"{function}:{where} Unknown error code: {code}.")
