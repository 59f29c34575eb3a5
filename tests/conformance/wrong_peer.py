"""torch with one fault for each aspect: the harness must find every one of them.

Everything not named here is torch's own. `FAULTS` says which op is wrong in which aspect.
"""

from __future__ import annotations

from typing import Any

import torch

FAULTS = {
    "value": "mul",
    "dtype": "exp2",
    "shape": "cosh",
    "structure": "sort",
    "view": "transpose",
    "strides": "erf",
    "grad": "sin",
    "gradgrad": "cos",
    "grad_complex": "tanh",
    "forward": "sinh",
    "node": "square",
    "next": "exp",
    "saved": "reciprocal",
    "inplace": "add",
    "out": "sub",
    "method": "atan2",
    "alias": "abs",
    "error_type": "cat",
    "error_text": "gather",
}


def __getattr__(name: str) -> Any:
    return getattr(torch, name)


class _Methods:
    """torch.Tensor's methods, two of them wrong."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.Tensor, name)

    @staticmethod
    def add_(self: torch.Tensor, other: Any, *, alpha: Any = 1) -> torch.Tensor:
        return torch.Tensor.add_(self, other, alpha=alpha).logical_not_()

    @staticmethod
    def atan2(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return torch.atan2(other, self)


Tensor = _Methods()


def mul(input: torch.Tensor, other: Any) -> torch.Tensor:
    result = torch.mul(input, other)
    return result * (1 + 1e-6) if result.dtype == torch.float64 else result


def exp2(input: torch.Tensor) -> torch.Tensor:
    return torch.exp2(input).to(torch.complex128)


def cosh(input: torch.Tensor) -> torch.Tensor:
    return torch.cosh(input).unsqueeze(0)


def sort(*args: Any, **kwargs: Any) -> tuple:
    return tuple(torch.sort(*args, **kwargs))


def transpose(*args: Any) -> torch.Tensor:
    return torch.transpose(*args).clone()


def erf(input: torch.Tensor) -> torch.Tensor:
    return torch.erf(input).contiguous()


class _Sin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return -grad * torch.cos(ctx.saved_tensors[0])


class _Cos(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.cos(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return -grad * (torch.sin(x).detach() + 0 * x)  # the right value, the wrong derivative


class _Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        result = torch.tanh(x)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * (1 - ctx.saved_tensors[0] ** 2)  # right for real numbers; the conjugate is missing


class _Sinh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_forward(x)
        return torch.sinh(x)

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor) -> torch.Tensor:
        return tangent * torch.sinh(ctx.saved_tensors[0])


def sin(input: torch.Tensor) -> torch.Tensor:
    return _Sin.apply(input)


def cos(input: torch.Tensor) -> torch.Tensor:
    return _Cos.apply(input)


def tanh(input: torch.Tensor) -> torch.Tensor:
    return _Tanh.apply(input)


def sinh(input: torch.Tensor) -> torch.Tensor:
    return _Sinh.apply(input)


def square(input: torch.Tensor, **kwargs: Any) -> torch.Tensor:
    return torch.mul(input, input, **kwargs)


def exp(input: torch.Tensor, **kwargs: Any) -> torch.Tensor:
    return torch.exp(input.clone(), **kwargs)


def reciprocal(input: torch.Tensor, **kwargs: Any) -> torch.Tensor:
    return torch.div(1, input, **kwargs)


def sub(*args: Any, out: torch.Tensor | None = None, **kwargs: Any) -> torch.Tensor:
    return torch.sub(*args, **kwargs) if out is None else out


def absolute(input: torch.Tensor) -> torch.Tensor:
    return torch.abs(input) + 1


def cat(*args: Any, **kwargs: Any) -> torch.Tensor:
    try:
        return torch.cat(*args, **kwargs)
    except Exception as error:
        raise LookupError(str(error)) from error


def gather(*args: Any, **kwargs: Any) -> torch.Tensor:
    try:
        return torch.gather(*args, **kwargs)
    except Exception as error:
        raise type(error)("cannot gather") from error
