"""softmax and its relatives: a row of numbers as probabilities."""

from __future__ import annotations

from typing import Any

from pullback._op.declare import Publication, publish
from pullback._op.define import Array, explain, function, op
from pullback._op.out import exact, write_result
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor, normal_dim
from pullback.kernels.numpy.norm import softmax as kernels
from pullback.ops.create.cast import to
from pullback.ops.pointwise.arithmetic import neg
from pullback.ops.pointwise.elementary import exp
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.supported import refuse


def check_rows(name: str) -> Any:
    """The check of softmax or log_softmax: floats, and a dimension that exists."""

    def check(self: Array, dim: int) -> None:
        last = normal_dim(dim, self.ndim) == max(self.ndim - 1, 0)
        refuse(f"{name}_lastdim_kernel_impl" if last else f"{name}_kernel_impl", self, "iubc", idle=True)

    return check


# ------------------------------------------------------------------ softmax


@op(
    kernel="softmax_lastdim_kernel_impl",
    space=None,
    name="_softmax",
    node="SoftmaxBackward0",
    check=check_rows("softmax"),
    self=lambda grad, result, dim: softmax_backward_data(grad, result, dim),
    result=lambda self_t, result, dim: softmax_backward_data(self_t, result, dim),
)
def softmax_rows(self: Array, dim: int) -> Array:
    """exp(self) divided by its sum along a dimension."""
    return kernels.softmax(self, dim)


@op(
    space=None,
    name="_softmax_backward_data",
    grad_output=lambda grad, output, dim: softmax_backward_data(grad, output, dim),
    output=lambda grad, grad_output, output, dim: softmax_curvature(grad, grad_output, output, dim),
    result=lambda grad_output_t, output_t, grad_output, output, dim: (
        softmax_backward_data(grad_output_t, output, dim)
        + output_t * (grad_output - sum_dim(grad_output * output, (dim,), True))
        - output * sum_dim(grad_output * output_t, (dim,), True)
    ),
)
def softmax_backward_data(grad_output: Array, output: Array, dim: int) -> Array:
    """output * (grad_output - sum(grad_output * output))."""
    return kernels.softmax_backward(grad_output, output, dim)


def softmax_curvature(grad: Any, grad_output: Any, output: Any, dim: int) -> Any:
    """The gradient of softmax_backward_data by the output. Its tangent is another: the Jacobian is not symmetric."""
    return (
        grad * grad_output
        - grad * sum_dim(grad_output * output, (dim,), True)
        - grad_output * sum_dim(grad * output, (dim,), True)
    )


@function(out_dtype=exact, out_ends_history=True)
def softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Apply softmax along a dimension: `exp(x) / sum(exp(x))`.

    The slices along `dim` become positive and sum to one. With `dtype`, the input is cast before anything is computed.
    """
    result = softmax_rows(input if dtype is None else to(input, dtype), dim)
    return result if out is None else write_result("softmax", result, out)  # type: ignore[no-any-return]


# ------------------------------------------------------------------ log_softmax


@op(
    kernel="log_softmax_lastdim_kernel_impl",
    space=None,
    name="_log_softmax",
    node="LogSoftmaxBackward0",
    check=check_rows("log_softmax"),
    self=lambda grad, result, dim: log_softmax_backward_data(grad, result, dim),
    result=lambda self_t, result, dim: self_t - sum_dim(self_t * exp(result), (dim,), True),
)
def log_softmax_rows(self: Array, dim: int) -> Array:
    """self minus the logarithm of the sum of its exponentials along a dimension."""
    return kernels.log_softmax(self, dim)


@op(
    space=None,
    name="_log_softmax_backward_data",
    grad_output=lambda grad, output, dim: grad - sum_dim(grad * exp(output), (dim,), True),
    output=lambda grad, grad_output, output, dim: -grad * exp(output) * sum_dim(grad_output, (dim,), True),
    result=lambda grad_output_t, output_t, grad_output, output, dim: (
        log_softmax_backward_data(grad_output_t, output, dim)
        - output_t * exp(output) * sum_dim(grad_output, (dim,), True)
    ),
)
def log_softmax_backward_data(grad_output: Array, output: Array, dim: int) -> Array:
    """grad_output - exp(output) * sum(grad_output)."""
    return kernels.log_softmax_backward(grad_output, output, dim)


@function(out_dtype=exact, out_ends_history=True)
def log_softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Compute the logarithm of softmax along a dimension: `x - log(sum(exp(x)))`.

    It neither overflows nor underflows where `log(softmax(x))` would.
    With `dtype`, the input is cast before anything is computed.
    """
    result = log_softmax_rows(input if dtype is None else to(input, dtype), dim)
    return result if out is None else write_result("log_softmax", result, out)  # type: ignore[no-any-return]


# ------------------------------------------------------------------ nn.functional


def chosen_dim(name: str, ndim: int) -> int:
    """The dimension of a call that names none, with torch's warning."""
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
    )
    return 0 if ndim in (0, 1, 3) else 1


@function(raw=True, explained=False, space="nn.functional", method=False, name="softmax")
def functional_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Apply softmax along a dimension: `exp(x) / sum(exp(x))`.

    The slices along `dim` become positive and sum to one. With `dtype`, the input is cast before anything is computed.
    Leaving `dim` out is deprecated: it is then 0 for inputs of 0, 1 or 3 dimensions and 1 for others, with a warning.
    """
    try:
        if dim is not None and dtype is None:
            return softmax_rows(input, dim)
        return softmax(input, chosen_dim("softmax", input.ndim) if dim is None else dim, dtype)
    except Exception as error:
        explain(error, functional_softmax, input, dim, _stacklevel, dtype)
        raise


@function(raw=True, explained=False, space="nn.functional", method=False, name="log_softmax")
def functional_log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Compute the logarithm of softmax along a dimension: `x - log(sum(exp(x)))`.

    It neither overflows nor underflows where `log(softmax(x))` would.
    With `dtype`, the input is cast before anything is computed.
    Leaving `dim` out is deprecated: it is then 0 for inputs of 0, 1 or 3 dimensions and 1 for others, with a warning.
    """
    try:
        if dim is not None and dtype is None:
            return log_softmax_rows(input, dim)
        return log_softmax(input, chosen_dim("log_softmax", input.ndim) if dim is None else dim, dtype)
    except Exception as error:
        explain(error, functional_log_softmax, input, dim, _stacklevel, dtype)
        raise


@function(raw=True, space="nn.functional", method=False)
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Apply softmax to the negated input, so that the smallest element along `dim` gets the largest share.

    `dtype` and a missing `dim` are treated as in `softmax`.
    """
    return softmax(neg(input), chosen_dim("softmin", input.ndim) if dim is None else dim, dtype)


def special_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Apply softmax along a dimension: `exp(x) / sum(exp(x))`.

    The slices along `dim` become positive and sum to one. With `dtype`, the input is cast before anything is computed.
    """
    return softmax(input, dim, dtype)


def special_log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Compute the logarithm of softmax along a dimension: `x - log(sum(exp(x)))`.

    It neither overflows nor underflows where `log(softmax(x))` would.
    With `dtype`, the input is cast before anything is computed.
    """
    return log_softmax(input, dim, dtype)


SPECIAL = Publication("special", method=False)
publish("softmax", special_softmax, SPECIAL)
publish("log_softmax", special_log_softmax, SPECIAL)
