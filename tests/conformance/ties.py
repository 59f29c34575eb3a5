"""Which of several equal elements an index names: torch leaves it open, so they are compared by what they name."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tests.conformance.samples import Sample

# The ops whose indices torch does not promise where elements are equal, and where `dim` stands among their arguments.
DIM_POSITION = {"argsort": 0, "mode": 0, "sort": 0, "kthvalue": 1, "topk": 1}


def leaves_open(name: str, sample: Sample) -> bool:
    """Whether torch leaves open which of equal elements the indices of this call name."""
    stable = sample.kwargs.get("stable", False)
    return name in DIM_POSITION and not stable and isinstance(sample.input, torch.Tensor) and sample.input.ndim > 0


def named_elements(name: str, sample: Sample, observed: Any) -> Any:
    """The observation with its last array, the indices, replaced by the elements they name; each at most once."""
    if isinstance(observed, list):
        return [*observed[:-1], named_elements(name, sample, observed[-1])]
    place = DIM_POSITION[name]
    dim = sample.args[place] if len(sample.args) > place else sample.kwargs.get("dim", -1)
    elements, indices = sample.input.detach().numpy(), np.asarray(observed)
    if indices.ndim < elements.ndim:
        indices = np.expand_dims(indices, dim)
    found = np.take_along_axis(elements, indices, dim)
    in_order = np.sort(indices, dim)
    repeated = np.diff(in_order, axis=dim) == 0
    return [found, "some index twice" if repeated.any() else "all indices different"]
