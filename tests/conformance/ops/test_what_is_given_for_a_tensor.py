"""Every function below torch and nn.functional, with None, a list, a string and a number for each of its tensors.

Torch's compiled functions say which argument is no tensor; those it writes in Python fail where they first use it. Type
and text are the same here, but for the functions counted below.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import pullback
from tests.conformance.both import ADDRESS, evaluated
from tests.conformance.library import TORCH, dtype_name
from tests.conformance.samples import ops

WRONG: dict[str, Any] = {"None": None, "[1.0]": [1.0], "'s'": "s", "0.5": 0.5}
SAMPLES = 2
"""So many of torch's own calls of each function are tried."""
SPACES = ("", "nn.functional", "linalg", "fft", "special")
# Functions of which torch's database has no calls; x is a batch of images, v a batch of signals, c classes.
MORE = """
    nn.functional.adaptive_max_pool1d_with_indices(v, 2)
    nn.functional.adaptive_max_pool2d_with_indices(x, 2)
    nn.functional.affine_grid(v[:, :2, :3], [2, 3, 4, 4])
    nn.functional.dropout1d(v)
    nn.functional.fold(v, 4, 2)
    nn.functional.fractional_max_pool2d_with_indices(x, 2, output_size=2)
    nn.functional.gumbel_softmax(v)
    nn.functional.log_softmax(v, -1)
    nn.functional.softmax(v, -1)
    nn.functional.lp_pool1d(v, 2, 2)
    nn.functional.lp_pool2d(x, 2, 2)
    nn.functional.max_pool1d(v, 2)
    nn.functional.max_pool2d(x, 2)
    nn.functional.max_pool1d_with_indices(v, 2)
    nn.functional.max_pool2d_with_indices(x, 2)
    nn.functional.upsample(x, 2)
    nn.functional.embedding(c, v[0])
    nn.functional.one_hot(c)
    nn.functional.multi_margin_loss(v[0], c)
    nn.functional.nll_loss(v[0], c, weight=v[0, 0])
    conv1d(v, v)
    conv2d(x, x, stride=2)
    max_pool1d(v, 2)
    max_pool2d(x, 2)
    avg_pool1d(v, 2)
    batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    group_norm(x, 1, x[0, :, 0, 0])
    layer_norm(v, (4,), v[0, 0])
    rms_norm(v, (4,), v[0, 0])
    kl_div(v, v)
    embedding(v[0], c)
    bilinear(v, v, v)
    dropout(v, 0.5, True)
    cosine_embedding_loss(v[0], v[0], v[0, 0])
    triplet_margin_loss(v, v, v)
    poisson_nll_loss(v, v, True, False, 1e-8, 1)
    pairwise_distance(v, v)
    grid_sampler(x, x, 0, 0, False)
    one_hot(c)
    relu_(v)
    relu(v)
    prelu(v, v[0, 0, :1])
    pixel_shuffle(x, 1)
    native_dropout(v, 0.5, True)
"""
# `max(x, None)` and its like are read as `max(x)`; a number is an operand, and a list a tolerance, where a tensor is
# one; functions of two names.
DIFFERENT = {
    "inner": 1,
    "linalg.pinv": 5,
    "max": 2,
    "min": 2,
    "poisson_nll_loss": 1,
    "special.polygamma": 8,
    "trapz": 16,
    "where": 2,
}
Call = tuple[str, list[Any], dict[str, Any]]


def found(module: Any, path: str) -> Any:
    """What a path leads to; None if nothing."""
    for part in path.split("."):
        module = getattr(module, part, None)
    return module


def of_database() -> Iterator[Call]:
    """Calls of torch's op database."""
    for info in ops().values():
        space = info.name.rpartition(".")[0]
        if space not in SPACES or isinstance(found(torch, info.name), torch.dtype):
            continue
        if found(torch, info.name) is None or found(pullback, info.name) is None:
            continue
        kinds = (torch.float32, torch.int64, torch.bool, torch.complex64)
        kind = next((kind for kind in kinds if info.supports_dtype(kind, "cpu")), None)
        torch.manual_seed(0), np.random.seed(0), random.seed(0)
        for sample in itertools.islice(info.sample_inputs("cpu", kind), SAMPLES) if kind is not None else ():
            yield info.name, [sample.input, *sample.args], sample.kwargs


def written() -> Iterator[Call]:
    """The calls above."""
    x, v = torch.rand(2, 3, 4, 4), torch.rand(2, 4, 4)
    names = {"x": x, "v": v, "c": torch.tensor([0, 1, 2, 0])}
    collect = lambda *args, **kwargs: (list(args), kwargs)
    for line in MORE.split("\n")[1:-1]:
        path, _, arguments = line.strip().partition("(")
        args, kwargs = eval(f"collect({arguments}", {"collect": collect, **names})
        yield path, args, kwargs


def ours(value: Any) -> Any:
    """An argument for pullback."""
    if isinstance(value, torch.Tensor):
        return pullback.as_tensor(TORCH.array(value.detach().clone()))
    if isinstance(value, torch.dtype):
        return getattr(pullback, dtype_name(value))
    return type(value)([ours(item) for item in value]) if type(value) in (list, tuple) else value


def outcome(module: Any, source: str, names: dict[str, Any]) -> str:
    """What a call ends with."""
    try:
        evaluated(source, {"torch": module, **names})
    except Exception as error:
        return ADDRESS.sub("", f"{type(error).__name__}: {error}")
    return "accepted"


def differences(call: Call) -> Iterator[str]:
    """What both say to each wrong value for each tensor of a call, where that is not the same."""
    path, args, kwargs = call
    names = {f"a{nr}": value for nr, value in enumerate(args)} | {f"with_{key}": kwargs[key] for key in kwargs}
    mine = {name: ours(value) for name, value in names.items()}
    places = [(f"a{nr}", "") for nr in range(len(args))] + [(f"with_{key}", f"{key}=") for key in kwargs]
    for wrong, _ in places:
        for text in WRONG if isinstance(names[wrong], torch.Tensor) else ():
            given = ", ".join([keyword + (text if name == wrong else name) for name, keyword in places])
            source = f"torch.{path}({given})"
            torchs, pullbacks = outcome(torch, source, names), outcome(pullback, source, mine)
            if torchs != pullbacks:
                yield f"{source}\n    torch: {torchs}\n    ours:  {pullbacks}"


@pytest.mark.filterwarnings("ignore")
def test_what_is_no_tensor_is_refused_in_torchs_words() -> None:
    counts, shown, calls = Counter[str](), [], [*of_database(), *written()]
    for call in calls:
        for text in differences(call):
            counts[call[0]] += 1
            shown.append(text)
    assert len(calls) > 500
    assert dict(counts) == DIFFERENT, "\n".join(shown)


@pytest.mark.parametrize(
    "source",
    [
        "torch.nn.Linear(3, 3)(None)",
        "torch.nn.LayerNorm(3)([1])",
        "torch.nn.Conv1d(1, 1, 1)('s')",
        "torch.nn.Embedding(3, 3)(0.5)",
        "torch.nn.MaxPool1d(2)(None)",
        "torch.nn.MSELoss()(x, 1.0)",
        "torch.nn.CrossEntropyLoss()(x, None)",
        "torch.nn.functional.linear(x, x, bias='s')",
        "torch.nn.functional.dropout(None, p=3)",
        "torch.nn.functional.conv1d(x[None], x[None], stride='a')",
        "x.reshape(None)",
        "torch.reshape(x, 's')",
        "x.flatten('s')",
        "torch.trapezoid(x, None)",
        "torch.linspace(0, x, 3, dtype=torch.float32)",
        "torch.neg(torch.float32)",
        "torch.neg(torch.device('cpu'))",
    ],
)
def test_wrong_arguments_are_named_as_the_call_is_written(source: str) -> None:
    theirs, mine = (outcome(module, source, {"x": module.ones(3, 3)}) for module in (torch, pullback))
    assert mine == theirs != "accepted"
