"""The differences a random program may show. Each is a line of docs/differences.md."""

from __future__ import annotations

import re

from .compare import Difference
from .program import HESSIANS, Program

TRANSFORMS = {"double", "jvp", "vmap", *HESSIANS}


def reason(program: Program, found: Difference) -> str | None:
    """Why a difference is accepted, or None."""
    if found.aspect == "accepted" and program.mode in TRANSFORMS:
        return "derivatives and batches torch refuses"
    text = found.where if program.mode == "eager" else "\n".join(program.lines)
    for pattern, aspects, why in SAID:
        if found.aspect in aspects and re.search(pattern, found.text):
            return why
    for pattern, aspects, why in KNOWN:
        if found.aspect in aspects and re.search(pattern, text):
            return why
    if found.aspect == "value" and any(leaf.special for _, leaf in program.leaves):
        for pattern, why in NOT_FINITE:
            if re.search(pattern, text):
                return why
    return None


RAISED = ("raised", "accepted", "error")
SAID: list[tuple[str, tuple[str, ...], str]] = [
    ("not resizable", RAISED, "leaves in memory of NumPy's, which torch does not resize"),
    ("complex32|ComplexHalf", RAISED, "no arrays of complex32"),
    ("TypeError: .* must be bool, not", ("accepted",), "flags that are truths of another type"),
]
"""What an error says, the aspects that may differ, and why."""
KNOWN: list[tuple[str, tuple[str, ...], str]] = [
    (r"\beigh?\(|\bsvd\(|lowrank", ("value",), "signs of eigenvectors and singular vectors"),
    (r"kthvalue|topk|sort|\bmode\(|median", ("value",), "order among equals"),
    (r"fft", ("strides",), "strides of Fourier transforms"),
    (r"conv", ("node",), "convolutions of complex numbers are one node"),
]
"""What a line looks like, the aspects that may differ, and why."""
NOT_FINITE: list[tuple[str, str]] = [
    (r"conv|matmul|@|mm\(|bmm|mv\(|einsum|dot|linear|fft|linalg|lu|cholesky|solve|inverse|det|attention|cov|corrcoef|cdist|kron",
     "how far infinities and NaNs spread in products, transforms and factorisations"),
]  # fmt: skip
"""The same for values, where leaves hold infinities and NaNs."""
