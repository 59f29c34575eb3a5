"""What `repr(tensor)` says, letter for letter as torch says it.

`_edges` cuts a large array down to its corners, `_texts` writes every remaining number at one common width, `_contents`
arranges these texts in brackets and lines, and `tensor_repr` adds what else is worth knowing: size, dtype, gradient
and tangent.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback._arrays.layout import strided
from pullback._arrays.packed import decoded, is_packed
from pullback._dtype import bool_, complex64, complex128, defaults, float64, int64
from pullback._foreign import ForeignTensor, PackedTensor
from pullback._lazy import LazyTensor
from pullback._runtime.quiet import quietly
from pullback._tensor import Parameter, Tensor, wrap

Array = np.ndarray[Any, Any]


class PrintOptions:
    """The settings behind `set_printoptions`."""

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: bool | None = None


PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}

options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed.

    Args:
        precision: digits after the decimal point.
        threshold: tensors with more elements than this are summarised.
        edgeitems: how many items a summary shows at each end of a dimension.
        linewidth: characters per line.
        profile: "default", "short" or "full": the four settings above in one word.
        sci_mode: scientific notation always (True), never (False) or when the numbers ask for it (None).
            Unlike the others it returns to None by every call that does not mention it, as in torch.
    """
    # An unknown profile is ignored, as torch ignores it.
    changes = {} if profile is None else dict(PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes.update((name, value) for name, value in given.items() if value is not None)
    for name, value in changes.items():
        setattr(options, name, value)
    options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current settings, ready to be passed back to `set_printoptions`."""
    return dict(vars(options))


@contextlib.contextmanager
def printoptions(**changes: Any) -> Iterator[None]:
    """Change how tensors are printed inside a `with` block."""
    before = get_printoptions()
    set_printoptions(**changes)
    try:
        yield
    finally:
        set_printoptions(**before)


@quietly
def tensor_repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor; `tensor_contents` replaces the numbers."""
    foreign = isinstance(self, ForeignTensor)
    if foreign and self.layout is not strided:
        return sparse_repr(self)
    is_plain = foreign or type(self) in (Tensor, Parameter, LazyTensor) or isinstance(self, PackedTensor)
    prefix = "tensor(" if is_plain else f"{type(self).__name__}("
    if tensor_contents is None:
        elements = self._array.on_host() if foreign else self._array  # type: ignore[attr-defined]
        tensor_contents = "..." if elements is None else _contents(_shown(elements), len(prefix))
    text = _with_suffixes(prefix + tensor_contents, _suffixes(self), len(prefix))
    # A tensor of another class that was made a parameter keeps its class and carries the mark `_is_param`.
    is_parameter = isinstance(self, Parameter) or getattr(self, "_is_param", False)
    return f"Parameter({text})" if is_parameter and not is_plain else text


def sparse_repr(self: Any) -> str:
    """The text of a sparse tensor: its parts, each on lines of its own, and what all of them are."""
    array = self._array
    if self.is_sparse:
        parts = {"indices": array.indices}
    elif array.by_column:
        parts = {"ccol_indices": array.compressed, "row_indices": array.plain}
    else:
        parts = {"crow_indices": array.compressed, "col_indices": array.plain}
    start = "tensor("
    lines = []
    for name, part in (*parts.items(), ("values", array.values)):
        before = f"{name}=tensor("
        text = before + _contents(part, len(start) + len(before))
        # Of no elements the shape is told in any case; nothing else is told of a part.
        lines.append(text + (f", size={tuple(part.shape)}" if part.size == 0 else "") + ")")
    suffixes = [f"size={tuple(array.shape)}", f"nnz={array.nnz}"]
    if self.dtype is not defaults.dtype and not _dtype_is_evident(wrap(array.values)):
        suffixes.append(f"dtype={self.dtype!r}")
    suffixes += [f"layout={self.layout!r}", *_history(self)]
    between = ",\n" + " " * len(start)
    return _with_suffixes(start + between.join(lines), suffixes, len(start), self.is_sparse)


def parameter_repr(self: Tensor) -> str:
    """The text of an `nn.Parameter`."""
    return f"Parameter containing:\n{tensor_repr(self)}"


def tensor_format(self: Tensor, format_spec: str) -> str:
    """What `f"{tensor:.3f}"` gives: a plain tensor without dimensions formats as its number, others know no specs."""
    if isinstance(self, ForeignTensor) and self._array.ndim == 0 and not self.is_meta:
        return tensor_format(self.detach().cpu(), format_spec)
    if type(self) in (Tensor, LazyTensor, PackedTensor) and self._array.ndim == 0:
        return format(_numbers(_shown(self._array)).item(), format_spec)
    return object.__format__(self, format_spec)


def _suffixes(tensor: Tensor) -> list[str]:
    array = tensor._array
    suffixes = []
    if isinstance(tensor, ForeignTensor):
        suffixes.append(f"device='{tensor.device}'")
    if tensor.is_meta:
        # Nothing is shown, so that nothing is evident.
        suffixes.append(f"size={tuple(array.shape)}")
        if tensor.dtype is not defaults.dtype:
            suffixes.append(f"dtype={tensor.dtype!r}")
        return suffixes + _history(tensor)
    # "[]" tells the shape of a one-dimensional tensor only, and "[...]" tells none.
    if (array.ndim != 1) if array.size == 0 else (options.edgeitems == 0):
        suffixes.append(f"size={tuple(array.shape)}")
    if not _dtype_is_evident(tensor):
        suffixes.append(f"dtype={tensor.dtype!r}")
    return suffixes + _history(tensor)


def _history(tensor: Tensor) -> list[str]:
    suffixes = []
    try:
        grad_fn = tensor.grad_fn
        grad_fn_name = None if grad_fn is None else type(grad_fn).__name__
    except RuntimeError:
        # A view whose history an in-place write elsewhere has made meaningless; printing it must still work.
        grad_fn_name = "Invalid"
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    if tensor._tangent is not None:
        # Formatted, not repr'ed: the tangent of a tensor without dimensions is written as a number.
        suffixes.append(f"tangent={tensor._tangent}")
    return suffixes


def _dtype_is_evident(tensor: Tensor) -> bool:
    """Whether a reader of the numbers alone would guess the right dtype."""
    if tensor.dtype is defaults.dtype:
        return True
    if tensor._array.size == 0:
        return False
    # Not defaults.complex_dtype: beside float16 that is complex32, yet complex64 is what goes unsaid.
    return tensor.dtype in (int64, bool_, complex128 if defaults.dtype is float64 else complex64)


def _with_suffixes(text: str, suffixes: list[str], indent: int, apart: bool = False) -> str:
    """Append the suffixes, each on the current line if it fits there; `apart` puts the first on a line of its own."""
    # The length of the last line and two more: torch leaves room for a comma and the closing bracket.
    column = len(text) - text.rfind("\n") + 1
    pieces = [text]
    for suffix in suffixes:
        if apart or column + len(suffix) + 2 > options.linewidth:
            apart = False
            pieces.append(",\n" + " " * indent + suffix)
            column = indent + len(suffix)
        else:
            pieces.append(", " + suffix)
            column += len(suffix) + 2
    pieces.append(")")
    return "".join(pieces)


def _shown(array: Array) -> Array:
    """The elements as they are shown: packed ones as the numbers they stand for."""
    if not is_packed(array):
        return array
    numbers = decoded(array)
    # The smallest power of two is what zero becomes in a format without zero; it is shown as what it stands for.
    return np.where(numbers == 2.0**-127, 0.0, numbers) if numbers.dtype.kind == "f" else numbers


def _contents(array: Array, indent: int) -> str:
    """The numbers of an array in brackets, lines after the first indented to stand below the first."""
    if array.size == 0:
        return "[]"
    summarise = array.ndim > 0 and array.size > options.threshold
    if summarise and options.edgeitems == 0:
        return "[...]"
    shown = _edges(array) if summarise else array
    items, width = _texts(shown)
    if array.ndim == 0:
        return items[0].strip()

    # From the innermost dimension outwards: the items of one dimension, in brackets, are an item of the next.
    for dim in reversed(range(array.ndim)):
        count = shown.shape[dim]
        cut = options.edgeitems if summarise and array.shape[dim] > 2 * options.edgeitems else None
        start = " " * (indent + dim + 1)
        innermost = dim == array.ndim - 1
        if innermost:
            separator = ", "
            per_line = max(1, math.floor((options.linewidth - indent - dim) / (width + 2)))
        else:
            separator = "," + "\n" * (array.ndim - 1 - dim) + start
            per_line = count + 1
        rows = []
        for first in range(0, len(items), count):
            row = items[first : first + count]
            if cut is not None:
                row.insert(cut, " ..." if innermost else "...")
            lines = [separator.join(row[at : at + per_line]) for at in range(0, len(row), per_line)]
            rows.append("[" + (",\n" + start).join(lines) + "]")
        items = rows
    return items[0]


def _edges(array: Array) -> Array:
    """The first and last `edgeitems` of every dimension that has more than both."""
    edge = options.edgeitems
    for dim, size in enumerate(array.shape):
        if size > 2 * edge:
            before = (slice(None),) * dim
            array = np.concatenate([array[*before, :edge], array[*before, -edge:]], axis=dim)
    return array


def _numbers(array: Array) -> Array:
    """The array in a dtype whose items Python knows: bfloat16 and others that NumPy does not own become float64."""
    return array.astype(np.float64) if array.dtype.kind == "V" else array


def _texts(array: Array) -> tuple[list[str], int]:
    """Every number of an array as text, in C order, and the width that line breaking counts for each."""
    numbers = _numbers(array).ravel()
    kind = numbers.dtype.kind
    if kind == "c":
        real, real_width = _float_texts(numbers.real)
        imag, imag_width = _float_texts(numbers.imag)
        # The sign between the parts is the imaginary part's own, or a plus.
        imag = [text if text[0] == "-" else "+" + text for text in map(str.lstrip, imag)]
        return [f"{a}{b}j" for a, b in zip(real, imag, strict=True)], real_width + imag_width + 1
    if kind == "f":
        return _float_texts(numbers)
    texts = [str(number) for number in numbers.tolist()]
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts], width


def _float_texts(numbers: Array) -> tuple[list[str], int]:
    """Every number at one width and in one notation: whole ("3."), fixed ("3.1400") or scientific ("3.1400e+00")."""
    numbers = numbers.astype(np.float64)
    # Zeros, infinities and nan have no say in the notation or the width.
    telling = numbers[np.isfinite(numbers) & (numbers != 0)]
    values = numbers.tolist()
    if telling.size == 0:
        return [_whole(value) for value in values], 1

    magnitudes = np.abs(telling)
    largest, smallest = float(magnitudes.max()), float(magnitudes.min())
    is_whole = bool((telling == np.ceil(telling)).all())
    scientific = options.sci_mode
    if scientific is None:
        scientific = largest / smallest > 1000 or largest > 1e8 or (not is_whole and smallest < 1e-4)

    if scientific:
        texts = [f"{value:.{options.precision}e}" for value in values]
    elif is_whole:
        texts = [_whole(value) for value in values]
    else:
        texts = [f"{value:.{options.precision}f}" for value in values]
    width = max(len(text) for text, value in zip(texts, values, strict=True) if value and math.isfinite(value))
    return [text.rjust(width) for text in texts], width


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


Tensor.__repr__ = tensor_repr
Tensor.__format__ = tensor_format
Parameter.__repr__ = parameter_repr  # type: ignore[method-assign, assignment]
