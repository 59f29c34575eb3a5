"""Layers that multiply by a matrix: linear and bilinear."""

from __future__ import annotations

from math import prod

import numpy as np

from pullback._arrays.memory import row_major
from pullback._op.declare import FUNCTIONAL, publish
from pullback._op.define import Array, explain, function, op
from pullback._op.out import exact, write_result
from pullback._runtime.messages import type_name
from pullback._tensor import Tensor
from pullback._thresholds import LEAST_WORK
from pullback.kernels.numpy.linalg.products import product_plus
from pullback.ops.linalg.contract import matmul
from pullback.ops.linalg.matmul import addmm
from pullback.ops.nn.unrecorded import arrays_of, unrecorded
from pullback.ops.pointwise.arithmetic import add, conj
from pullback.ops.shape.dims import t
from pullback.ops.shape.reshape import reshape_to, unsqueeze, view_
from pullback.ops.supported import refuse


def affine(x: Array, weight: Array, bias: Array) -> Array:
    """Rows times the transpose of a matrix, and a bias."""
    turned = weight.T
    if x.size * len(bias) > LEAST_WORK:
        return product_plus(x, turned, bias)
    out = x.dot(turned)
    return np.add(out, bias, out)


@function(raw=True, explained=False, space="nn.functional", method=False, autocast="lower", out_dtype=exact)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """Apply a linear layer: `input @ weight.T + bias`.

    `input` is `(..., in_features)`, `weight` is `(out_features, in_features)`, or `(in_features,)` for a single feature
    that drops the last dimension; `bias`, if given, is `(out_features,)`. Returns `(..., out_features)`.
    """
    try:
        if out is not None:
            result = linear(input, weight, bias)
            if result.ndim == 1 and weight.ndim == 2:  # out becomes one row, without being seen as one
                write_result("linear", unsqueeze(result, 0), out, (bias,))
                out._array = out._array[0]
                return out
            return write_result("linear", result, out, (bias,))
        if bias is None:
            return matmul(input, t(weight))
        arrays = arrays_of(input, weight, bias)
        if arrays is not None:
            x, w, b = arrays
            shape = x.shape
            if w.ndim == 2 and b.shape == w.shape[:1] and shape and shape[-1] == w.shape[1] and x.flags.c_contiguous:
                if len(shape) == 2:
                    return unrecorded(affine, x, w, b)
                rows = x.reshape(prod(shape[:-1]), shape[-1])
                return view_(unrecorded(affine, rows, w, b), (*shape[:-1], len(b)))
        if not isinstance(input, Tensor):
            raise TypeError(f"linear(): argument 'input' (position 1) must be Tensor, not {type_name(input)}")
        shape = input._array.shape
        if len(shape) == 2:
            return addmm(bias, input, t(weight))
        row = bias._array.flags.c_contiguous and (bias.ndim == 1 or bias.shape[:-1] == (1,))
        if weight.ndim == 2 and row and input._array.flags.c_contiguous:
            rows = view_(input, (prod(shape[:-1]), shape[-1]))
            return view_(addmm(bias, rows, t(weight)), (*shape[:-1], weight.shape[0]))
        product = matmul(input, t(weight))
        if bias._array.dtype is product._array.dtype and bias.ndim <= product.ndim:
            return add(product, bias)
        return (
            add(product, bias) if bias._tangent is not None else product.add_(bias)
        )  # which keeps its dtype and shape
    except Exception as error:
        explain(error, linear, input, weight, bias, out)
        raise


# ------------------------------------------------------------------ bilinear


@op(
    vmap="entries",
    space=None,
    name="_trilinear",
    node="TrilinearBackward0",
    i1=lambda grad, i2, i3: three_products(grad, conj(i2), conj(i3), "bo,oij,bj->bi"),
    i2=lambda grad, i1, i3: three_products(grad, conj(i1), conj(i3), "bo,bi,bj->oij"),
    i3=lambda grad, i1, i2: three_products(grad, conj(i1), conj(i2), "bo,bi,oij->bj"),
    result=lambda i1_t, i2_t, i3_t, i1, i2, i3: (
        trilinear(i1_t, i2, i3) + trilinear(i1, i2_t, i3) + trilinear(i1, i2, i3_t)
    ),
)
def trilinear(i1: Array, i2: Array, i3: Array) -> Array:
    """The sums i1[b, i] * i2[o, i, j] * i3[b, j]."""
    return row_major(summed_products("bi,oij,bj->bo", i1, i2, i3))


@op(
    vmap="entries",
    space=None,
    node="TrilinearBackward0",
    a=lambda grad, b, c, equation: three_products(grad, conj(b), conj(c), turned(equation, 0)),
    b=lambda grad, a, c, equation: three_products(conj(a), grad, conj(c), turned(equation, 1)),
    c=lambda grad, a, b, equation: three_products(conj(a), conj(b), grad, turned(equation, 2)),
    result=lambda a_t, b_t, c_t, a, b, c, equation: (
        three_products(a_t, b, c, equation) + three_products(a, b_t, c, equation) + three_products(a, b, c_t, equation)
    ),
)
def three_products(a: Array, b: Array, c: Array, equation: str) -> Array:
    """Sums of products of three arrays, as an einsum equation says."""
    return summed_products(equation, a, b, c)


def summed_products(equation: str, *arrays: Array) -> Array:
    """NumPy's einsum, which has no products of bfloat16: those are computed in float32."""
    single = [array.astype(np.float32) if array.dtype.itemsize == 2 else array for array in arrays]
    return np.einsum(equation, *single, optimize=True).astype(arrays[0].dtype, copy=False)


def turned(equation: str, nr: int) -> str:
    """The equation for the gradient of one operand: it and the result change places."""
    operands, result = equation.split("->")
    names = operands.split(",")
    names[nr], result = result, names[nr]
    return f"{','.join(names)}->{result}"


@function(raw=True, method=False, explained=True)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Apply a bilinear layer: `y[o] = sum over i, j of input1[i] * weight[o, i, j] * input2[j]`, plus `bias[o]`.

    `input1` is `(..., in1)` and `input2` is `(..., in2)` with the same leading dimensions, `weight` is
    `(out, in1, in2)`, `bias` is `(out,)`. Returns `(..., out)`.
    """
    check_bilinear(input1, input2, weight, bias)
    batch = tuple(input1.shape[:-1])
    rows1 = reshape_to(input1, (prod(batch), input1.shape[-1]))
    rows2 = reshape_to(input2, (prod(batch), input2.shape[-1]))
    out = reshape_to(trilinear(rows1, weight, rows2), (*batch, weight.shape[0]))
    return out if bias is None else add(out, bias)


def check_bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Torch's demands on the operands of bilinear."""
    named = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
    if any(given.dtype is not input1.dtype for given in named.values()):
        shown = ", ".join(f"{name}: {given.dtype.cpp_name}" for name, given in named.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {shown}")
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for dim in range(input1.ndim - 1):
        n, m = input1.shape[dim], input2.shape[dim]
        if n != m:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {dim}: got {n} and {m}")
    for nr, input in ((1, input1), (2, input2)):
        given, expected = input.size(-1), weight.size(nr)
        if given != expected:
            raise RuntimeError(
                f"bilinear(): input{nr} size does not match weight size: got {given} but expected {expected}"
            )
    if bias is not None and (given := bias.size(0)) != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {given} but expected {weight.shape[0]}"
        )
    if weight.ndim != 3:
        raise RuntimeError("number of dimensions must match")
    if input1._array.size and input2._array.size:
        refuse("bmm", input1._array, "b")


publish("bilinear", bilinear, FUNCTIONAL)
