"""The inputs each op is tried on: torch's own sample inputs, and cases of our own for layouts, sizes and promotion."""

from __future__ import annotations

import functools
import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.testing import make_tensor
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo import core
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, ReductionOpInfo, UnaryUfuncInfo

from tests.conformance import oracle  # noqa: F401

# For every list of samples torch looks through the stack for a test of its own kind, with the source of every frame:
# that takes longer than most tests here, and there is none.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None

DTYPES = (torch.float64, torch.float32, torch.complex128, torch.int64, torch.bool)
# How many of torch's samples are used, and among how many first ones they are chosen.
SAMPLES = {torch.float64: 12}
OTHER_SAMPLES = 5
CONSIDERED = 80
ERRORS = 12
LARGEST = 20000  # elements; larger samples only cost time

# Ops that only exist inside torch: compiled CUDA snippets, sparse kernels, entries of the dispatcher.
INTERNAL = {
    "bmm.triton_optimized", "hash_tensor", "max_pool2d_with_indices_backward", "native_dropout_backward", "slice",
    "to_sparse",
}  # fmt: skip
INTERNAL_PREFIXES = ("jiterator", "torch.", "sparse.")


@dataclass(frozen=True)
class Sample:
    """One call of an op, held as torch values."""

    label: str
    dtype: torch.dtype
    input: Any
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    process: Callable | None = None  # makes an ambiguous result (the sign of a singular vector) comparable

    @property
    def own(self) -> bool:
        """Whether it is a case of our own, rather than one of torch's."""
        return self.process is None

    def __str__(self) -> str:
        parts = [_brief(self.input), *map(_brief, self.args)]
        parts += [f"{key}={_brief(value)}" for key, value in self.kwargs.items()]
        return f"{self.label} ({', '.join(parts)})"


@functools.cache
def ops() -> dict[str, OpInfo]:
    """torch's op database by name (`add`, `max.binary`, `nn.functional.relu`), without what only torch can have."""
    named = {}
    for info in op_db:
        name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name
        private = name.startswith("_") and not name.startswith("__")
        if name not in INTERNAL and not name.startswith(INTERNAL_PREFIXES) and not private:
            named[name] = info
    return named


def samples(info: OpInfo, dtype: torch.dtype) -> list[Sample]:
    """The valid inputs of an op for one dtype, the same on every run."""
    if not info.supports_dtype(dtype, "cpu"):
        return []
    requires_grad = info.supports_autograd and dtype in (torch.float64, torch.complex128)
    requires_grad = requires_grad and dtype in info.supported_backward_dtypes("cpu")
    _seed_everything()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(_database_samples(info, dtype, requires_grad))
        found += _own_samples(info, dtype, requires_grad)
    return [sample for sample in found if _elements(sample) <= LARGEST]


def error_samples(info: OpInfo) -> list[Sample]:
    """Inputs torch must refuse."""
    if info.error_inputs_func is None:
        return []
    _seed_everything()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(itertools.islice(info.error_inputs("cpu"), CONSIDERED))
    chosen = [_from_database(error.sample_input, "error", torch.float32) for error in _spread(found, ERRORS)]
    # A method called on a number is refused by the language, before the library has a say.
    is_method = info.op is getattr(torch.Tensor, info.name, None)
    return [sample for sample in chosen if isinstance(sample.input, torch.Tensor) or not is_method]


def _database_samples(info: OpInfo, dtype: torch.dtype, requires_grad: bool) -> Iterator[Sample]:
    found = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=requires_grad), CONSIDERED))
    for i, sample in _spread(list(enumerate(found)), SAMPLES.get(dtype, OTHER_SAMPLES)):
        yield _from_database(sample, f"{_name(dtype)} sample {i}", dtype)


def _from_database(sample: Any, label: str, dtype: torch.dtype) -> Sample:
    return Sample(label, dtype, sample.input, tuple(sample.args), dict(sample.kwargs), sample.output_process_fn_grad)


def _own_samples(info: OpInfo, dtype: torch.dtype, requires_grad: bool) -> Iterator[Sample]:
    if info.name in ("to", "item", "contiguous") or info.op is None:
        return
    if isinstance(info, UnaryUfuncInfo):
        make = functools.partial(_make, dtype=dtype, requires_grad=requires_grad, domain=info.domain)
        for label, tensor in _layouts(make):
            kwargs = info.sample_kwargs("cpu", dtype, tensor)[0]
            yield Sample(f"{_name(dtype)} {label}", dtype, tensor, (), kwargs)
        if dtype.is_floating_point:
            extremes = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-30, 50.0, -50.0]
            tensor = torch.tensor(extremes, dtype=dtype)
            yield Sample(f"{_name(dtype)} extremes", dtype, tensor, (), info.sample_kwargs("cpu", dtype, tensor)[0])
    elif isinstance(info, BinaryUfuncInfo):
        yield from _binary_samples(info, dtype, requires_grad)
    elif isinstance(info, ReductionOpInfo):
        yield from _reduction_samples(info, dtype, requires_grad)


def _binary_samples(info: BinaryUfuncInfo, dtype: torch.dtype, requires_grad: bool) -> Iterator[Sample]:
    left = functools.partial(_make, dtype=dtype, requires_grad=requires_grad, **info.lhs_make_tensor_kwargs)
    right = functools.partial(_make, dtype=dtype, requires_grad=requires_grad, **info.rhs_make_tensor_kwargs)
    kwargs = info.sample_kwargs("cpu", dtype, None)[0] if getattr(info, "sample_kwargs", None) else {}
    name = _name(dtype)
    for (label, one), (_, other) in zip(_layouts(left), _layouts(right)):
        yield Sample(f"{name} {label}", dtype, one, (other,), kwargs)
    yield Sample(f"{name} broadcast both ways", dtype, left((3, 1)), (right((2, 1, 4)),), kwargs)
    yield Sample(f"{name} transposed with contiguous", dtype, left((4, 3)).detach().t(), (right((3, 4)),), kwargs)
    yield Sample(f"{name} with a 0-d tensor", dtype, left((3,)), (right(()),), kwargs)
    same = left((2, 3))
    yield Sample(f"{name} with itself", dtype, same, (same,), kwargs)
    if info.supports_rhs_python_scalar:
        yield Sample(f"{name} with a number", dtype, left((2, 3)), (2,), kwargs)
        yield Sample(f"{name} with a float", dtype, left((2, 3)), (1.5,), kwargs)
    for second in DTYPES:
        if second is not dtype and info.supports_dtype(second, "cpu"):
            row = _make((3,), dtype=second, **info.rhs_make_tensor_kwargs)
            yield Sample(f"{name} with {_name(second)}", dtype, left((2, 3)), (row,), kwargs)
            yield Sample(f"{name} with 0-d {_name(second)}", dtype, left((2, 3)), (row[0].clone(),), kwargs)


def _reduction_samples(info: ReductionOpInfo, dtype: torch.dtype, requires_grad: bool) -> Iterator[Sample]:
    make = functools.partial(_make, dtype=dtype, requires_grad=requires_grad)
    several: dict[str, Any] = {"dim": (0, -1) if info.supports_multiple_dims else -1}
    if info.name != "count_nonzero":  # the one reduction without it
        several["keepdim"] = True
    for label, tensor in _layouts(make):
        choices: list[dict[str, Any]] = [{}, {"dim": 0}]
        choices += [several] if tensor.ndim > 1 else []
        for chosen in choices:
            args, kwargs = next(iter(info.generate_args_kwargs(tensor, **chosen)), ((), {}))
            yield Sample(f"{_name(dtype)} {label}", dtype, tensor, tuple(args), {**kwargs, **chosen})


def _layouts(make: Callable[..., torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    yield "contiguous", make((2, 3))
    yield "transposed", _again(make((4, 3)), lambda t: t.t())
    yield "stepped", _again(make((5, 7)), lambda t: t[::2, 1::3])
    yield "expanded", _again(make((3, 1)), lambda t: t.expand(2, 3, 4))
    yield "empty", make((2, 0))
    yield "0-d", make(())


def _again(tensor: torch.Tensor, view: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """A leaf with the layout of a view."""
    return view(tensor.detach()).requires_grad_(tensor.requires_grad)


def _make(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    requires_grad: bool = False,
    domain: tuple[float | None, float | None] = (None, None),
    **limits: Any,
) -> torch.Tensor:
    low, high = domain
    if dtype.is_floating_point or dtype.is_complex:
        low, high = (low if low is None else low + 1e-4), (high if high is None else high - 1e-4)
        # Moderate numbers: steep functions of large ones would drown every comparison in rounding.
        low, high = (-4.0 if low is None else low), (4.0 if high is None else high)
        high = low + 4.0 if high <= low else high
    limits = {"low": low, "high": high, **limits}
    return make_tensor(shape, dtype=dtype, device="cpu", requires_grad=requires_grad, **limits)


def _spread(found: list, count: int) -> list:
    """At most `count` of them, evenly spaced, so that late variants are tried as well."""
    if len(found) <= count:
        return found
    return [found[round(i * (len(found) - 1) / (count - 1))] for i in range(count)]


def _seed_everything() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def _elements(value: Any) -> int:
    if isinstance(value, Sample):
        return _elements([value.input, *value.args, *value.kwargs.values()])
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, (list, tuple)):
        return sum(map(_elements, value))
    return 0


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _brief(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        strides = "" if value.is_contiguous() else f" strides {list(value.stride())}"
        return f"{_name(value.dtype)}{list(value.shape)}{strides}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_brief, value)) + "]"
    return repr(value)
