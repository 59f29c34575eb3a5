"""`torch.utils.flop_counter`: how many floating point operations the products of a program do, by module."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any

from pullback import Tensor
from pullback.library import ops
from pullback.library.dispatch import TorchDispatchMode
from pullback.library.overloads import OpOverloadPacket
from pullback.utils._pytree import tree_map
from pullback.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = ops.aten
Shape = Any

# ------------------------------------------------------------------ formulas

flop_registry: dict[Any, Callable[..., int]] = {}
"""What each op costs."""


def get_shape(i: Any) -> Any:
    """The shape of a tensor; anything else as it is."""
    return i.shape if isinstance(i, Tensor) else i


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """A formula of shapes as one of arguments."""

    @wraps(f)
    def of_arguments(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        shapes, named, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*shapes, out_shape=out_shape, **named)

    return of_arguments


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: the function says what these ops cost, from shapes, or with `get_raw` from the arguments."""

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        kept = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    "torch.ops.mylib.foo), JitFunction, or HigherOrderOperator, got "
                    f"{target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = kept
        return kept

    return register


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Shape = None, **kwargs: Any) -> int:
    """Two for every element of the result and every term of its sum."""
    (m, k), (k2, n) = a_shape, b_shape
    if k != k2:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return m * n * 2 * k


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Shape = None, **kwargs: Any) -> int:
    """Those of the product."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Shape = None, **kwargs: Any) -> int:
    """Those of the products."""
    (b, m, k), (b2, k2, n) = a_shape, b_shape
    if b != b2:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {b} and {b2}")
    if k != k2:
        raise AssertionError(f"bmm: inner dimensions must match (k == k2), got {k} and {k2}")
    return b * m * n * 2 * k


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Shape = None, **kwargs: Any) -> int:
    """Those of the products."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Two for every weight at every place of the output, of a transposed one of the input; none for the bias."""
    places = (x_shape if transposed else out_shape)[2:]
    c_out, c_in, *filter_size = w_shape
    return prod(places) * prod(filter_size) * x_shape[0] * c_out * c_in * 2


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Shape = None,
    **kwargs: Any,
) -> int:
    """Those of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: Any,
    output_mask: Any,
    out_shape: Shape,
    **kwargs: Any,
) -> int:
    """Those of the gradients asked for: that of the input is the transposed product, that of the weight one of both."""

    def t(shape: Shape) -> Shape:
        return [shape[1], shape[0], *shape[2:]]

    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, out_shape[0], not transposed)
    if output_mask[1]:
        image, small = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        count += conv_flop_count(t(image), t(small), t(out_shape[1]), transposed=False)
    return count


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """Those of the two products of attention; keys and values may be shared by several heads of queries."""
    b, h, s_q, d_q = query_shape
    b2, h_kv, s_k, d_k = key_shape
    b3, h3, s_v, d_v = value_shape
    if not (b == b2 == b3 and h_kv == h3 and d_q == d_k and s_k == s_v):
        raise AssertionError(
            f"sdpa_flop_count: query/key/value shapes are incompatible: q={query_shape}, k={key_shape}, v={value_shape}"
        )
    if h < h_kv or h % h_kv != 0:
        raise AssertionError(f"sdpa_flop_count: query heads ({h}) must be a multiple of key/value heads ({h_kv})")
    return bmm_flop((b * h, s_q, d_q), (b * h, d_q, s_k)) + bmm_flop((b * h, s_q, s_k), (b * h, s_k, d_v))


# ------------------------------------------------------------------ numbers as text

suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The suffix with which a number has at most three digits more than its unit."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A number in thousands, millions, ..."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """A share."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


def aligned(header: list[str], rows: list[list[str]]) -> str:
    """A table: the first column to the left, the others to the right; a column of bare numbers without zeros."""
    if all([row[1].replace(".", "").isdigit() for row in rows]):
        rows = [[name, f"{float(count):g}", share] for name, count, share in rows]
    widths = [max(len(title) + 2, *[len(row[i]) for row in rows]) for i, title in enumerate(header)]

    def line(cells: list[str]) -> str:
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "  ".join([cells[0].ljust(widths[0]), *rest])

    return "\n".join([line(header), "  ".join(["-" * width for width in widths]), *[line(row) for row in rows]])


# ------------------------------------------------------------------ the counter


class FlopCounterMode:
    """A block in which the floating point operations of products are counted, for each module and in all."""

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self.mode: _FlopCounterMode | None = None
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        given = (custom_mapping or {}).items()
        own = {op: f if getattr(f, "_get_raw", False) else shape_wrapper(f) for op, f in given}
        self.flop_registry = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """All of them."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Those of each module, by op."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table of the modules down to some depth."""
        depth = self.depth if depth is None else depth
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        suffix = get_suffix_str(total)

        def rows_of(module: str, indent: int) -> list[list[str]]:
            counts, padding = self.flop_counts[module], " " * indent
            named = [(module, sum(counts.values())), *[(f" - {op}", count) for op, count in counts.items()]]
            return [
                [padding + name, convert_num_with_suffix(count, suffix), convert_to_percent_str(count, total)]
                for name, count in named
            ]

        shown = [name for name in sorted(self.flop_counts) if name != "Global" and name.count(".") + 1 <= depth]
        rows = [row for name in shown for row in rows_of(name, name.count("."))]
        covered = any([sum(self.flop_counts[name].values()) >= total for name in shown])
        if "Global" in self.flop_counts and not covered:
            rows = rows_of("Global", 0) + [[f" {first}", *rest] for first, *rest in rows]
        return aligned(["Module", "FLOP", "% Total"], rows or [["Global", "0", "0%"]])

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _FlopCounterMode(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        if self.mode is None:
            raise AssertionError("Internal error: FlopCounter.__exit__ called but mode is None")
        answer = self.mode.__exit__(*error)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))
        return answer

    def _count_flops(self, func_packet: Any, out: Any, args: Any, kwargs: Any) -> Any:
        """Count a call for every module that is running."""
        formula = self.flop_registry.get(func_packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for parent in set(self.mod_tracker.parents):
                self.flop_counts[parent][func_packet] += count
        return out


class _FlopCounterMode(TorchDispatchMode):
    """Tells the counter of every op."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        return self.counter._count_flops(func._overloadpacket, func(*args, **named), args, named)
