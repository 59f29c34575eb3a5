"""Folding a batch normalization in evaluation mode into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

import pullback
from pullback import Tensor
from pullback.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does what this convolution and the normalization behind it do."""
    check_fusable(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution with the normalization folded in."""
    bias_dtype = conv_w.dtype if conv_b is None else conv_b.dtype
    conv_b = pullback.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = pullback.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = pullback.zeros_like(bn_rm) if bn_b is None else bn_b
    shrink = pullback.rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = (conv_w * (bn_w * shrink).reshape(shape)).to(dtype=conv_w.dtype)
    bias = ((conv_b - bn_rm) * shrink * bn_w + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A Linear that does what this Linear and the normalization behind it do."""
    check_fusable(linear, bn, "linear")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a Linear with the normalization folded in."""
    bias_dtype = linear_w.dtype if linear_b is None else linear_b.dtype
    linear_b = pullback.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * pullback.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=linear_w.dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)


def check_fusable(layer: Any, bn: Any, kind: str = "conv") -> None:
    """Refuse layers in training, and normalizations that do not know their statistics or do not fit."""
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if kind == "linear" and layer.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={layer.out_features} and bn.num_features={bn.num_features}"
        )
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
