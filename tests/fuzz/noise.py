"""Rounding errors, imitated: after each line of a program on torch what it has computed is moved by one.

A result that moves as much as two libraries differ is decided by the last digit of something on its way.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
import torch

from tests.fuzz.inputs import ROUNDING

ASSIGNED = re.compile(r"^(\w+) = ")
WRITTEN = re.compile(r"^(?:with torch\.no_grad\(\): )?(\w+)\b")
OUT = re.compile(r"\bout=(\w+)")
NAMES = re.compile(r"\b([a-z]\d*)\b")

MIXING = re.compile(
    r"fft|stft|conv|matmul|\bb?mm\(|\bmv\(|einsum|dot\(|linear\(|linalg|cholesky|solve|inverse|det\(|\bqr\(|geqrf|householder"
    r"|ormqr|attention|\bcov\(|corrcoef|cdist|kron|inner\(|cross\(|interpolate|upsample|grid_sample|normalize|cosine_similarity"
    r"|matrix_exp|_norm\(|\b(std|var)\w*\(|_polynomial_|bessel|\bndtr\("
)
"""Ops whose errors are as large as a rounding error of their largest number, also beside it: a zero may become one."""
SUMMING = re.compile(
    r"\b(nan)?(sum|mean)_?\(|cumsum|trapezoid|trapz|\bdist\(|_loss\(|avg_pool|log_?softmax|logsumexp|cross_entropy"
)
"""Ops whose errors are as large as a rounding error of the largest number they add."""

SATURATING = re.compile(r"\b(log)?(tanh|sigmoid|softmax|softmin|erf|erfc|ndtr|gelu|silu|softplus)_?\(")
"""Functions that come so near to a whole number that a rounding error decides whether they reach it."""
CURVED = re.compile(
    r"\b(a?(sin|cos|tan)h?|arc\w+|atan2|sinc|exp(2|m1|it)?|log(2|10|1p|it)?|logaddexp2?|xlog1?py|(l|di|mvl|poly|multi)?gamma\w*"
    r"|zeta|pow|float_power|__r?pow__|hypot|i[01]e?|erf(inv|cx)|rsqrt|mish|s?elu|celu|softsign|logcumsumexp)_?\("
)
"""Functions whose whole numbers are rounded ones, but at whole numbers: the sine of what is nearly pi / 2 is one."""

DEVIATING = re.compile(r"\b(std|var)\w*\(")
"""Deviations of equal numbers, of which the mean may be a rounding error away."""

KNOWN_DIGITS = {re.compile(r"\bbessel_[jy][01]\("): 3e-8, re.compile(r"\bairy_ai\("): 3e-5}
"""Functions of which torch knows some digits only, and the error of those."""

CHOOSING = re.compile(r"\b(f?(max|min)(imum)?|a(min)?max|amin|clamp\w*|clip|cum(max|min))_?\(")
"""Ops that take one of several numbers: of zeros of both signs, which are equal, torch's vectors take another."""

CANCELLING = re.compile(r"\bcross\(")
"""Ops whose errors are as large as a rounding error of the largest product they subtract: nothing may be left of it."""
UNDERFLOWING = re.compile(r"prod\w*\(")
"""Products of many numbers, of which the order decides whether they become zero."""
FACTORING = re.compile(
    r"linalg|cholesky|solve|inverse|pinv|det\(|\bqr\(|geqrf|householder|ormqr|\blu|svd|eig|lstsq|lowrank|nuc|cond\(|matrix_exp"
)
"""Algorithms that give the exact answer of a matrix a rounding error away, which for a singular one may be any."""

FACTORED = 4.0
"""So many rounding errors away."""

EXACT = 4096
"""Whole numbers and halves up to this size were computed exactly, as far as one can tell."""
MANY = 4096
"""Among more elements it is not looked for those of the operands."""


class Shaking:
    """A run of a program on torch in which everything is moved a little after each line; `noise` is its seed."""

    def __init__(self, noise: int) -> None:
        self.draw = np.random.RandomState(noise)
        self.vanishing = noise % 3 == 0
        """Whether what is a rounding error away from a whole number becomes one: functions have poles there."""

    def run(self, line: str, names: dict[str, Any]) -> None:
        """Run one line."""
        given = {name: names[name] for name in NAMES.findall(line) if isinstance(names.get(name), torch.Tensor)}
        before = [tensor.detach().clone() for tensor in given.values()]
        assigned, out = ASSIGNED.match(line), OUT.search(line)
        if assigned and not out and FACTORING.search(line):
            around = {**names, **{name: self.moved(tensor, line, [], FACTORED) for name, tensor in given.items()}}
            exec(line, around)
            names[assigned[1]] = around[assigned[1]]
        else:
            exec(line, names)
        name = out[1] if out else assigned[1] if assigned else WRITTEN.findall(line)[0]
        tensor = names.get(name)
        if isinstance(tensor, torch.Tensor):
            wrapped = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
            moved = self.moved(tensor, line, before, where_it_lies=not wrapped)
            if CHOOSING.search(line) and not wrapped:
                self.choose_zeros(tensor, before)
            if assigned and not out:
                names[name] = moved

    def moved(
        self, tensor: Any, line: str, before: list[Any], by_so_many: float = 1.0, where_it_lies: bool = False
    ) -> Any:
        """A tensor moved by rounding errors: in its memory, unseen by the graph, or as another tensor."""
        if not tensor.numel() or str(tensor.dtype)[6:] not in ROUNDING:
            return tensor
        try:
            by = self.errors(line, tensor.detach(), before) * by_so_many
            if not where_it_lies:
                return tensor + by
            if tensor.is_complex() and not tensor.is_conj():  # which may lie at an address torch crashes at
                torch.view_as_real(tensor.data).add_(torch.view_as_real(by))
            else:
                tensor.data.add_(by)
            return tensor
        except RuntimeError:  # no rule for it inside a transform, or elements that lie on each other
            return tensor

    def choose_zeros(self, tensor: Any, before: list[Any]) -> None:
        """Give zeros another sign, here and there, if those they were taken from have both."""
        floats = [operand for operand in before if operand.is_floating_point()]
        signs = {sign for operand in floats for sign in torch.signbit(operand[operand == 0]).unique().tolist()}
        if len(signs) == 2 and tensor.is_floating_point():
            other = torch.from_numpy(self.draw.rand(*tensor.shape) < 0.5) if tensor.ndim else self.draw.rand() < 0.5
            with contextlib.suppress(RuntimeError):  # elements that lie on each other
                tensor.data.copy_(torch.where((tensor.data == 0) & other, -tensor.data, tensor.data))

    def errors(self, line: str, tensor: Any, before: list[Any]) -> Any:
        """A rounding error for each element, zero for those that have none."""
        wide = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
        size = ROUNDING[str(tensor.dtype)[6:]]
        size = max([size, *(error for function, error in KNOWN_DIGITS.items() if function.search(line))])
        share = torch.from_numpy(self.draw.uniform(-size, size, tuple(wide.shape))).to(wide.dtype)
        finite = torch.where(torch.isfinite(wide), wide, torch.zeros_like(wide))
        by = finite.abs() * share  # of one sign with what is added to it below
        exact = looks_exact(wide) & (not SATURATING.search(line))
        if CURVED.search(line):
            for operand in before:
                if operand.shape == tensor.shape:
                    exact = exact & looks_exact(operand).reshape(tensor.shape + (1,) * (wide.ndim - tensor.ndim))
        largest = max([largest_of(operand) for operand in before], default=0.0)
        mixing = MIXING.search(line) or FACTORING.search(line)
        if mixing:
            scale = finite.abs().amax() + (largest * largest if CANCELLING.search(line) else 0.0)
            by = by + scale * share
            if self.vanishing:
                whole = torch.round(finite) - finite
                by = torch.where(whole.abs() <= 8 * size * scale, whole, by)
        if SUMMING.search(line):
            by = by + largest * share
        elif not mixing:
            by = torch.where(exact, torch.zeros_like(by), by)
        if deviating := DEVIATING.search(line):
            error = (largest * share).abs()
            by = by + (error if deviating[1] == "std" else error * error)
        if UNDERFLOWING.search(line):
            least = torch.finfo(wide.dtype)
            by = torch.where(wide.abs() < least.tiny, torch.sign(share) * least.smallest_normal * least.eps, by)
        by = torch.where(torch.isfinite(wide), by, torch.zeros_like(by))
        by = torch.view_as_complex(by.contiguous()) if tensor.is_complex() else by
        for operand in before:
            if operand.dtype == tensor.dtype and 0 < operand.numel() <= MANY and tensor.numel() <= MANY:
                same = (tensor.reshape(-1, 1) == operand.reshape(1, -1)).any(1).reshape(tensor.shape)
                if mixing:
                    same &= tensor != 0  # which is what is left of large numbers, and no copy
                by = torch.where(same, torch.zeros_like(by), by)
        return by


def looks_exact(tensor: Any) -> Any:
    """Which elements are small whole numbers or halves of them."""
    if tensor.is_complex():
        return looks_exact(tensor.real) & looks_exact(tensor.imag)
    if not tensor.is_floating_point():
        return torch.ones_like(tensor, dtype=torch.bool)
    return (tensor * 2 == torch.round(tensor * 2)) & (tensor.abs() <= EXACT)


def largest_of(tensor: Any) -> float:
    """The size of the largest finite number of a tensor of floats."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)  # all entries of a batch
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return 0.0
    finite = tensor[torch.isfinite(tensor)].abs().double()
    return float(finite.max()) if finite.numel() else 0.0
