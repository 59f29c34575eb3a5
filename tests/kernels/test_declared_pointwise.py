"""What an op says about itself as a pointwise op is true: kernels can compute what they are given, and only that."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pullback._op.declare import Op, names_of, registry
from pullback._op.readings import forward_of, reread
from pullback._op.ufuncs import is_loss, is_pointwise, is_traced
from pullback.kernels.compiled import room
from pullback.kernels.jit.language.expression import Halfway, Trace

from ..op_samples import HINTS, SHAPES, choices, sample

LAYOUTS = {"", "row_major", "other_first", "own", "sparse"}
POINTWISE = sorted(key for key, op in registry.items() if is_pointwise(op) and not op.view)
DTYPES = ("float32", "float64", "int64", "bool")
"""In this order; what takes no floating point numbers is traced with others."""


def parts_of(op: Op) -> list[str]:
    """What a kernel may compute of an op."""
    return ["forward", *[t for t, formula in op.formulas.items() if callable(formula) and "grad" in names_of(formula)]]


def candidates(op: Op) -> Iterator[dict[str, Any]]:
    """Arguments that the op might accept."""
    found = sample(op.key)
    if found is not None:
        yield found.arguments
    for shape in SHAPES:
        random = np.random.default_rng(1)
        # What other ops take for indices and for one are numbers like all others here.
        hints = {"target": shape, "alpha": [2.0], **HINTS.get(op.key, {})}
        lists = [choices(p, shape, (0.2, 0.8), random, hints.get(p.name)) or [1.0, 1] for p in op.params]
        for values in itertools.islice(itertools.product(*lists), 4):
            yield dict(zip(op.param_names, values, strict=True))


def in_dtype(op: Op, arguments: dict[str, Any], dtype: str) -> dict[str, Any]:
    """The same with tensors of a dtype."""
    out = dict(arguments)
    for name in op.tensors:
        value = np.asarray(arguments[name]) if isinstance(arguments[name], (float, int)) else arguments[name]
        out[name] = value.astype(dtype) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value
    return out


def calls(op: Op, part: str) -> Iterator[tuple[Callable[..., Any], list[Any], dict[str, Any]]]:
    """What is computed, and of what."""
    for dtype, given in itertools.product(DTYPES, candidates(op)):
        arguments = in_dtype(op, given, dtype)
        positional = [arguments[p.name] for p in op.params if not p.keyword_only]
        keywords = {p.name: arguments[p.name] for p in op.params if p.keyword_only}
        if part == "forward":
            yield forward_of(op), positional, keywords
            continue
        try:
            result = np.asarray(forward_of(op)(*positional, **keywords))
        except Exception:  # whatever an op says to arguments that do not suit it
            continue
        grad = np.ones(result.shape, result.dtype if result.dtype.kind == "f" else "float32")
        known = {**arguments, "result": result, "grad": grad}
        for name in names_of(op.formulas[part]):
            if name not in known:
                source, suffix = op.derived_from(name)  # type: ignore[misc]
                facts = {"_sym_sizes": known[source].shape, "_dtype": known[source].dtype}
                known[name] = facts[suffix]
        yield reread(op.formulas[part]), [known[name] for name in names_of(op.formulas[part])], {}


def is_traceable(function: Callable[..., Any], args: list[Any], keywords: dict[str, Any], shapes: bool) -> bool:
    """True if a kernel could compute it."""
    arrays = [value for value in (*args, *keywords.values()) if type(value) is np.ndarray]
    trace = Trace([a.shape for a in arrays] if shapes else None)

    def stand(value: Any) -> Any:
        return trace.input(value.dtype) if type(value) is np.ndarray else value

    try:
        made = function(*map(stand, args), **{name: stand(value) for name, value in keywords.items()})
    except Halfway as stop:
        made = stop.value
    except Exception:  # a kernel is not made, whatever the reason
        return False
    try:
        room("pointwise.loops").Program(trace.node_of(made), "traced")
    except Exception:
        return False
    return True


def traceable(op: Op, part: str) -> bool:
    """True if a kernel could compute it for some arguments."""
    shapes = part != "forward" or is_loss(op)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return any(is_traceable(*call, shapes) for call in calls(op, part))


@pytest.mark.skipif(room("pointwise.loops") is None, reason="there is no compiler")
@pytest.mark.parametrize("key", POINTWISE)
def test_what_is_declared_pointwise_can_be_traced_and_what_is_not_traced_cannot(key: str) -> None:
    op = registry[key]
    parts = parts_of(op)
    traced = {part for part in parts if is_traced(op, part)}
    untraced = parts if op.untraced is True else [part for part in op.untraced if part in parts]
    found = {part for part in (*traced, *untraced) if traceable(op, part)}
    assert found == traced, f"{key} declares untraced={op.untraced}, but of {parts} only {sorted(found)} can be"


def test_only_pointwise_ops_say_what_of_them_is_not_traced_and_how_their_results_lie() -> None:
    others = [op for op in registry.values() if not is_pointwise(op)]
    assert not [op.key for op in others if op.untraced or op.layout not in ("", "sparse")]


def test_a_pointwise_op_has_one_result_of_its_own_memory() -> None:
    assert not [key for key, op in registry.items() if op.pointwise and (op.multiple or op.view)]


def test_layouts_are_known() -> None:
    assert {op.layout for op in registry.values()} == LAYOUTS


def test_untraced_parts_are_parts_of_the_op() -> None:
    for key, op in registry.items():
        # The comparisons of a tensor and a number in place share one declaration with those of two tensors.
        assert op.untraced is True or {*op.untraced} <= {"forward", *op.formulas, *op.tensors, *op.param_names}, key
