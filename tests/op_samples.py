"""Arguments for an op of the registry, found by trying what its parameters' names and kinds suggest, in several shapes.

A new op is sampled, and so tested, the moment it is declared; only few need a hint about shapes that belong together.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import pullback
from pullback._op.declare import REQUIRED, Op, Parameter, registry
from pullback.ops import load_all

load_all()

SHAPES = [(3, 3), (3,), (2, 3, 3), (1, 2, 4, 4)]
# Numbers away from the corners and edges most functions have: of both signs, positive, above one.
DOMAINS = [(-0.85, 0.85), (0.15, 0.85), (1.2, 2.5)]
# What a plain parameter without default may be, tried in this order.
PLAIN: dict[str, list[Any]] = {
    "dim": [0, (0,), 1], "dim0": [0], "dim1": [1], "dim2": [1], "dims": [(1, 0), (0,)], "dimension": [0],
    "size": [(3, 3), (9,), (2, 3, 3)], "keepdim": [False], "index": [1], "start": [0], "end": [2], "length": [2],
    "step": [1], "k": [2], "n": [2], "p": [2.0, 1], "split_size": [2], "split_sizes": [(1, 2), (2, 1)],
    "shifts": [(1,)], "repeats": [2, (2, 2)], "correction": [1], "reverse": [False], "by": [1], "fill": [0.5],
    "value": [0.3], "other": [0.7], "self": [0.7], "exponent": [1.5], "weight": [0.3], "threshold": [0.1],
    "lambd": [0.3], "min": [-0.4], "max": [0.4], "rounding_mode": ["floor"], "decimals": [1], "offset": [0],
    "storage_offset": [0], "stride": [(3, 1)], "alpha": [1.0], "scale": [1.0], "input_scale": [1.0],
    "negative_slope": [0.1], "min_val": [-0.4], "max_val": [0.4], "approximate": ["none"], "reduction": [1],
    "beta": [1.0], "reduce": ["sum", "add"], "accumulate": [False], "upper": [False], "lower": [False],
    "memory_format": [None], "dtype": [None], "numel": [9], "sign": [1], "diagonal": [0], "ord": [2], "margin": [0.3],
    "delta": [0.5], "eps": [1e-5], "training": [True], "normalized_shape": [(3,)], "group": [1], "padding": [(1, 1)],
    "kernel_size": [(2, 2)], "output_size": [(2, 2)], "align_corners": [False], "ceil_mode": [False],
    "count_include_pad": [True], "divisor_override": [None], "pad": [(1, 1)], "dilation": [(1, 1)], "maxnorm": [0.5],
    "normalization": [0], "forward": [True], "hermitian": [False],
}  # fmt: skip
INDICES = {"index": 1, "indices": 1, "target": 1, "input_lengths": 1, "offsets": 1}
MASKS = {"mask", "condition"}
INDEX_SHAPES = [None, (2,)]
# Shapes of parameters that a common shape does not suit, and arguments that other ops of the name may not have.
HINTS: dict[str, dict[str, Any]] = {
    "mv": {"self": (3, 3), "vec": (3,)},
    "addmv": {"self": (3,), "mat": (3, 3), "vec": (3,)},
    "addbmm": {"self": (3, 3), "batch1": (2, 3, 3), "batch2": (2, 3, 3)},
    "select_scatter": {"self": (3, 3), "src": (3,)},
    "diagonal_scatter": {"self": (3, 3), "src": (3,)},
    "masked_fill_tensor": {"self": (3, 3), "value": ()},
    "index_fill_tensor": {"self": (3, 3), "value": ()},
    "fill_with_tensor": {"self": (3, 3), "value": ()},
    "full_of_tensor": {"value": ()},
    "clamp_numbers": {"self": (3, 3), "min": [-0.4], "max": [0.4]},
    "clamp_tensors": {"self": (3, 3), "min": (3, 3), "max": ()},
    "unfold_windows": {"self": (5,), "size": [2], "step": [2]},
    "unfold_copy": {"self": (5,), "size": [2], "step": [2]},
    "on_diagonal": {"self": (), "size": [(3, 3)]},
    "put": {"self": (3, 3), "index": [np.array([4, 0, 7])], "source": (3,)},
    "polar": {"abs": [np.array([0.3, 1.5])], "angle": (2,)},
    "weight_norm_op": {"v": (3, 3), "g": (3, 1)},
    "trilinear": {"i1": (2, 3), "i2": (4, 3, 5), "i3": (2, 5)},
    "three_products": {"a": (2, 3), "b": (4, 3, 5), "c": (2, 5), "equation": ["bi,oij,bj->bo"]},
    "nll_loss_rows": {"self": (3, 4), "target": [np.array([1, 3, 0])], "weight": (4,), "ignore_index": [-100]},
    "nll_loss_2d": {
        "self": (1, 4, 2, 1), "target": [np.array([[[1], [3]]])], "weight": (4,), "ignore_index": [-100],
    },
    "huber": {"self": (3, 3), "target": (3, 3)},
    "binary_loss": {"self": (3, 3), "target": (3, 3), "weight": (3, 3)},
    "logit_loss": {"self": (3, 3), "target": (3, 3), "weight": (3,), "pos_weight": (3,)},
    "group_norm_op": {"input": (2, 4, 3), "weight": (4,), "bias": (4,), "N": [2], "C": [4], "HxW": [3], "group": [2]},
    "batch_norm_op": {
        "input": (4, 3), "weight": (3,), "bias": (3,), "running_mean": [None], "running_var": [None], "momentum": [0.1],
    },
    "embedding_op": {
        "weight": (4, 3), "indices": [np.array([1, 0, 1])], "padding_idx": [-1], "scale_grad_by_freq": [False],
        "sparse": [False],
    },
    "embedding_bag_op": {
        "weight": (4, 3), "indices": [np.array([1, 0, 3, 1])], "offsets": [np.array([0, 2])], "mode": [0],
        "scale_grad_by_freq": [False], "sparse": [False], "per_sample_weights": (4,), "include_last_offset": [False],
        "padding_idx": [-1],
    },
    "multi_margin": {"self": (3, 4), "target": [np.array([1, 3, 0])], "p": [2], "weight": (4,)},
    "grouped": {"self": (2, 3, 4), "mat2": (2, 4, 5), "offs": [None]},
    "fused_attention": {
        "query": (1, 2, 3, 4), "key": (1, 2, 3, 4), "value": (1, 2, 3, 4), "dropout_p": [0.0], "is_causal": [True],
        "attn_mask": (3, 3), "scale": [None],
    },
    "lstm_layer": {
        "input": (4, 2, 3), "weight0": (8, 3), "weight1": (8, 2), "weight2": (8,), "weight3": (8,), "hx_": (2, 2),
        "cx_": (2, 2), "batch_sizes": [()], "mode": [2], "hidden_size": [2], "num_layers": [1], "has_biases": [True],
        "bidirectional": [False], "batch_first": [False], "train": [True],
    },
}  # fmt: skip

# Random ops, and ops whose inputs belong together, so that they have no derivative with respect to one alone.
NOT_FREE = (
    "backward", "impl", "rand", "bernoulli", "dropout", "draw", "toss", "normal", "poisson", "multinomial", "binomial",
    "distribute", "log_of_part", "cholesky", "_parts", "max_unpool", "max_pool_3d",
)  # fmt: skip


@dataclass
class Sampled:
    """Arguments an op accepts: arrays for tensors, plain values for the rest."""

    op: Op
    arguments: dict[str, Any]

    def call(self, tensors: dict[str, Any]) -> Any:
        """The op on these tensors, which replace the arrays of the same names."""
        given = {**{name: as_tensor(value) for name, value in self.arguments.items()}, **tensors}
        positional = [given[p.name] for p in self.op.params if not p.keyword_only]
        return self.op.call(*positional, **{p.name: given[p.name] for p in self.op.params if p.keyword_only})

    def tensors(self) -> dict[str, Any]:
        """A new leaf that wants a gradient for every differentiable input."""
        return {name: leaf(self.arguments[name]) for name in self.moving()}

    def moving(self) -> list[str]:
        """The inputs that have a derivative and hold real numbers."""
        return [name for name in self.op.differentiable if is_moving(self.arguments[name])]


def is_moving(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, np.ndarray) and first.dtype.kind == "f"


def leaf(value: Any) -> Any:
    if isinstance(value, list):
        return [leaf(item) for item in value]
    return pullback.tensor(value.copy(), requires_grad=True)


def as_tensor(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return [as_tensor(item) for item in value]
    return pullback.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def outputs_of(result: Any) -> list[Any]:
    """The tensors among the outputs."""
    results = result if isinstance(result, (tuple, list)) else [result]
    return [tensor for tensor in results if isinstance(tensor, pullback.Tensor)]


def choices(
    parameter: Parameter, shape: tuple[int, ...], domain: tuple[float, float], random: Any, hint: Any = None
) -> list[Any]:
    """The values to try for one parameter; a hint is a shape, or the list of values itself."""
    if isinstance(hint, list):
        return hint
    if hint is not None:
        return [np.asarray(random.uniform(*domain, hint))]
    if parameter.kind == "plain" or (parameter.kind == "number" and parameter.name in ("value", "alpha", "beta")):
        return [parameter.default] if parameter.default is not REQUIRED else PLAIN.get(parameter.name, [])
    if parameter.kind == "optional" and parameter.default is None:
        return [None]
    if parameter.name in MASKS:
        return [random.random(shape) < 0.5]
    if parameter.name in INDICES:
        # No index twice along the first dimension: what is written last would win, and have all of the gradient.
        chosen = [random.random(shape if size is None else size).argsort(0) for size in INDEX_SHAPES]
        return [[chosen[1]]] if parameter.kind == "list" else chosen
    numbers = random.uniform(*domain, shape)
    return [[numbers, random.uniform(*domain, shape)]] if parameter.kind == "list" else [numbers]


def is_sparse(op: Op) -> bool:
    """True for an op of sparse tensors alone: those are compared in tests/conformance/sparse."""
    return op.layout == "sparse" or op.declared.__module__.startswith("pullback.ops.sparse")


@functools.cache
def sample(key: str) -> Sampled | None:
    """Arguments the op accepts and answers with finite numbers, or None."""
    op = registry[key]
    if any(part in key for part in NOT_FREE) or is_sparse(op):
        return None
    for domain, shape in itertools.product(DOMAINS, SHAPES):
        random = np.random.default_rng(7)
        hints = HINTS.get(key, {})
        lists = [choices(parameter, shape, domain, random, hints.get(parameter.name)) for parameter in op.params]
        for values in itertools.islice(itertools.product(*lists), 8):
            sampled = Sampled(op, dict(zip(op.param_names, values, strict=True)))
            if works(sampled):
                return sampled
    return None


def works(sampled: Sampled) -> bool:
    """True if the op accepts the arguments, answers the same twice, and with finite numbers."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            first, second = (outputs_of(sampled.call({})) for _ in range(2))
    except Exception:  # whatever an op says to arguments that do not suit it
        return False
    arrays = [(one.numpy(force=True), other.numpy(force=True)) for one, other in zip(first, second, strict=True)]
    return bool(arrays) and all(np.isfinite(one).all() and np.array_equal(one, other) for one, other in arrays)


@functools.cache
def recorded_only() -> set[str]:
    """The keys of ops that nobody calls: what comparisons in place record."""
    others = (0, pullback.ones(1))
    return {op.overwrites(other).key for op in list(registry.values()) if op.overwrites for other in others}


def sampled_ops(differentiable: bool = True) -> list[str]:
    """The keys of all ops there are arguments for."""
    found = [key for key in sorted(registry) if key not in recorded_only() and sample(key) is not None]
    return [key for key in found if sample(key).moving()] if differentiable else found
