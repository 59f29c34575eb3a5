"""Writing random programs: each line is tried on torch first, so that most programs run to their end."""

from __future__ import annotations

import itertools
import random
import re
import warnings
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from tests.conformance.aspects import UNDEFINED_VALUES, op_path
from tests.conformance.library import dtype_name
from tests.conformance.samples import ops
from tests.fuzz.inputs import LAYOUTS, Leaf
from tests.fuzz.program import FLOATS, HESSIANS, NAMES, Program, fits

DTYPES = ("float64",) * 8 + ("float32",) * 6 + (
    "float16", "bfloat16", "bfloat16", "complex64", "complex128", "complex128", "int64", "int64", "int32", "uint8",
    "int8", "int16", "bool",
)  # fmt: skip
MODES = ("eager",) * 8 + ("backward",) * 5 + ("double",) * 3 + ("jvp", "jvp", "vmap", "vmap", *HESSIANS)
SHAPES = [(), (1,), (3,), (5,), (2, 3), (3, 3), (3, 1), (1, 4), (0,), (2, 0), (2, 3, 4), (1, 3, 1), (2, 1, 3, 2)]
LARGE = [(70000,), (300, 300), (16, 4096)]
THEME = 40
"""So many ops are in play at a time."""
SAMPLES, LARGEST = 24, 300

NOT_COMPARED = {
    *UNDEFINED_VALUES, "item", "chalf", "to_sparse", "multinomial",
}  # fmt: skip
"""Ops whose results nobody can compare, or that leave tensors."""

CRASHING = {"grid_sample", "grid_sampler_2d", "grid_sampler_3d", "eigvals", "eig"}
"""Ops in which infinities and NaNs send torch to memory that is not there."""

ENDLESS = re.compile(r"pool\w*\(.*\d{10}")
"""Calls in which torch counts to numbers nobody lives to see."""

UNARY = (
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "ceil", "conj_physical", "cos", "cosh",
    "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "frac", "isfinite", "isnan",
    "lgamma", "log", "log10", "log1p", "log2", "logical_not", "logit", "neg", "positive", "rad2deg", "reciprocal",
    "round", "rsqrt", "sigmoid", "sign", "sgn", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh",
    "trunc", "relu", "nan_to_num", "cumsum:0", "cumprod:0", "logcumsumexp:0", "softmax:-1", "log_softmax:-1", "sum",
    "mean", "prod", "amax", "amin", "argmax", "var", "std", "any", "all", "sum:0", "mean:-1", "prod:0", "norm",
    "median", "logsumexp:0", "cummax:0", "sort", "msort", "argsort", "unique", "flip:0", "tril", "triu", "trace",
    "diag", "count_nonzero", "nonzero",
)  # fmt: skip
BINARY = (
    "add", "sub", "mul", "div", "pow", "atan2", "hypot", "maximum", "minimum", "fmax", "fmin", "fmod", "remainder",
    "floor_divide", "copysign", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "xlogy", "logaddexp", "nextafter", "heaviside", "matmul", "ldexp",
    "float_power", "true_divide", "dot", "outer", "cross", "kron", "gcd", "lcm", "lerp:0.3", "addcmul:2", "dist",
    "equal",
)  # fmt: skip
VIEWS = (
    ".t()", ".T", ".mT", "[0]", "[..., 0]", "[:, None]", "[1:]", "[..., ::2]", ".reshape(-1)", ".view(-1)",
    ".unsqueeze(0)", ".squeeze()", ".flatten()", ".transpose(0, -1)", ".expand(2, *{0}.shape)", ".diagonal()",
    ".unfold(0, 2, 1)", ".narrow(0, 0, 1)", ".select(-1, 0)", ".split(1)[0]", ".chunk(2)[-1]", ".unbind(0)[0]",
    ".movedim(0, -1)", ".swapaxes(0, 1)", ".permute(*range({0}.ndim)[::-1])", ".detach()", ".clone()",
    ".contiguous()", ".as_strided((2, 2), (1, 1))", ".real", ".imag", ".conj()", ".flip(0)", ".roll(1, 0)",
    "[{0} > 0]", ".repeat(2, *[1] * {0}.ndim)", ".view_as({0})", ".squeeze(0)", "[[0, -1]]",
    "[torch.tensor([0, 0, 1])]", ".float()", ".double()", ".bfloat16()", ".half()", ".to(torch.complex64)",
    ".int()", ".bool()", ".long()", ".type(torch.uint8)",
)  # fmt: skip
WRITES = (
    "{0}.mul_({1})", "{0}.add_({1})", "{0}.sub_({1}, alpha=2)", "{0}.div_({1})", "{0}.copy_({1})", "{0}.fill_(1.5)",
    "{0}.zero_()", "{0}.exp_()", "{0}.pow_(2)", "{0}.sin_()", "{0}.neg_()", "{0}.clamp_(-0.5, 0.5)",
    "{0}.sigmoid_()", "{0}.relu_()", "{0}[0] = {1}", "{0}[..., 0] = 2.5", "{0}[{0} > 0] = 0", "{0}[1:] *= 2",
    "{0}.masked_fill_({0} > 0.5, 1)", "{0}.t_()", "{0}.squeeze_()", "{0}.unsqueeze_(0)", "{0}.reciprocal_()",
    "{0}.sqrt_()", "{0}.addcmul_({1}, {1}, value=0.5)", "{0}.lerp_({1}, 0.25)", "{0} += {1}", "{0} *= 0.3",
    "{0}.index_fill_(0, torch.tensor([0]), 3)", "{0}.requires_grad_()", "{0}.detach_()", "{0}.cumsum_(0)",
    "{0}.tril_()", "{0}.transpose_(0, -1)", "{0}.floor_()", "{0}.remainder_({1})", "{0}.abs_()", "{0}.tanh_()",
    "{0}.hypot_({1})", "{0}.atan2_({1})", "{0}.data.mul_(2)", "{0}.normal_()", "{0}.uniform_()",
    "{0}.bernoulli_(0.5)", "{0}.index_add_(0, torch.tensor([0]), {1}[:1])",
    "{0}.scatter_(0, torch.zeros_like({0}, dtype=torch.long), {1})", "{0}.set_({1})", "{0}.swapaxes_(0, -1)",
    "{0}.erfinv_()", "{0}.bitwise_and_({1})", "{0}.logical_not_()", "{0}.eq_({1})", "{0}.softmax(0)", "{0}.sign_()",
    "{0}.round_()", "{0}.ldexp_({1})",
)  # fmt: skip
NUMBERS = (0, 1, 2, -1, 3, 0.5, 1.5, -0.3, 1e30, float("inf"), float("nan"), True, 1j, 2**40, 300)


@dataclass(frozen=True)
class Odds:
    """How often a program turns to what is seldom done."""

    special: float = 0.25
    """Infinities, NaNs and other edges among the elements of its leaves."""
    laid_out: float = 0.4
    """A leaf that does not lie in the order of its rows."""
    number: float = 0.04
    """Another number in place of one of a sample."""
    dtype: float = 0.06
    """A leaf of another dtype than that of a sample."""
    out: float = 0.1
    """A tensor given as `out=`."""
    kept: float = 0.12
    """A line torch refuses stays, as the last one."""


ORDINARY = Odds()
WILD = Odds(special=0.5, laid_out=0.6, number=0.3, dtype=0.3, out=0.2, kept=0.8)
"""What ordinary programs meet once in a hundred thousand is met in these a few times as often."""


class Unwritable(Exception):
    """A sample holds something that has no short text."""


class Theme:
    """The ops in play, and torch's samples of them."""

    def __init__(self, seed: tuple[int, int]) -> None:
        chosen = random.Random(str(seed)).sample(sorted(set(ops()) - NOT_COMPARED), THEME)
        self.infos = {name: ops()[name] for name in chosen}
        self.cache: dict[tuple[str, str], list[Any]] = {}

    def sample(self, draw: random.Random, dtype: str) -> tuple[Any, Any] | None:
        """An op and one of its samples."""
        name = draw.choice(list(self.infos))
        info = self.infos[name]
        if (name, dtype) not in self.cache:
            torch.manual_seed(0), np.random.seed(0), random.seed(0)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made = info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=dtype in FLOATS)
                    self.cache[name, dtype] = list(itertools.islice(made, SAMPLES))
            except Exception:  # no samples of this dtype
                self.cache[name, dtype] = []
        found = self.cache[name, dtype]
        return (info, draw.choice(found)) if found else None


class Writer:
    """A program being written."""

    def __init__(self, seed: tuple[int, int], theme: Theme, odds: Odds = ORDINARY) -> None:
        self.draw = random.Random(str(seed))
        self.theme = theme
        self.odds = odds
        self.leaves: dict[str, Leaf] = {}
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"torch": torch}
        self.roomy: list[Any] = []
        self.count = 0
        self.ended = False
        self.special = self.draw.random() < odds.special
        self.large = self.draw.random() < 0.03

    def fresh(self) -> str:
        self.count += 1
        return "abcdefghijklmnopqrsuvwxyz"[(self.count - 1) % 25] + ("" if self.count <= 25 else str(self.count // 25))

    def dtype(self) -> str:
        return self.draw.choice(DTYPES)

    def leaf(self, shape: tuple[int, ...], dtype: str, **more: Any) -> str:
        """A new leaf; its name."""
        name = self.fresh()
        layout = self.draw.choice(LAYOUTS) if self.draw.random() < self.odds.laid_out else "plain"
        if dtype not in FLOATS and "low" not in more:
            more.update(low=0 if dtype in ("bool", "uint8") else -3, high=1 if dtype == "bool" else 5)
        grads = dtype in FLOATS and self.draw.random() < 0.7
        settings = {
            "seed": self.draw.randrange(1 << 30),
            "layout": layout,
            "special": self.special,
            "wants_grad": grads,
        }
        self.leaves[name] = Leaf(shape, dtype, **{**settings, **more})
        self.names[name] = self.leaves[name].build(torch)
        return name

    def any_tensor(self) -> str:
        """The name of a tensor there is, or of a new leaf."""
        held = [name for name, value in self.names.items() if isinstance(value, torch.Tensor)]
        if held and self.draw.random() < 0.8:
            return self.draw.choice(held[-3:] if self.draw.random() < 0.7 else held)
        return self.leaf(self.draw.choice(LARGE if self.large else SHAPES), self.dtype())

    def partner(self, name: str) -> str:
        """A second operand: of the same shape and dtype, or anything."""
        tensor = self.names[name]
        if self.draw.random() < 0.3 or tensor.numel() > 1 << 20:
            return repr_of(self.draw.choice(NUMBERS))
        if self.draw.random() < 0.5:
            shape = tuple(tensor.shape)
            if self.draw.random() < 0.3:
                shape = shape[self.draw.randrange(len(shape) + 1) :]
            same = self.draw.random() < 0.7 and tensor.dtype != torch.complex32  # which NumPy has no arrays of
            return self.leaf(shape, dtype_name(tensor.dtype) if same else self.dtype())
        return self.any_tensor()

    def attempt(self, line: str) -> None:
        """Add a line if torch runs it, or sometimes if it does not."""
        if ENDLESS.search(line):
            return
        if "as_strided" in line and self.memory(line) & {storage.data_ptr() for storage in self.roomy}:
            return
        before = dict(self.names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            try:
                exec(line, self.names)
            except Exception as error:
                self.names = before
                if self.draw.random() < self.odds.kept and "allocate memory" not in str(error):
                    self.lines.append(line)
                    self.ended = True
                if "not resizable" in str(error):
                    self.ended = True  # the tensor has its new size all the same, and torch writes beyond its memory
                return
        self.names.pop("__builtins__", None)
        made = [value for value in self.names.values() if isinstance(value, torch.Tensor)]
        if any(tensor.numel() > 1 << 18 or tensor.layout != torch.strided for tensor in made):
            self.names = before
            return
        self.lines.append(line)
        if any(size < 0 for tensor in made for size in tensor.shape):
            self.ended = True  # a size whose overflow torch has let wrap around, and of which nothing can be made
        # What some reductions leave behind their result nobody has written.
        held = {value.untyped_storage().data_ptr() for value in before.values() if isinstance(value, torch.Tensor)}
        new = [tensor for tensor in made if tensor._base is None and tensor.untyped_storage().data_ptr() not in held]
        self.roomy += [t.untyped_storage() for t in new if t.untyped_storage().nbytes() > t.nbytes]

    # ---- kinds of lines

    def unary(self) -> None:
        name, _, more = self.draw.choice(UNARY).partition(":")
        self.attempt(f"{self.fresh()} = torch.{name}({self.any_tensor()}{', ' + more if more else ''})")

    def binary(self) -> None:
        name, _, more = self.draw.choice(BINARY).partition(":")
        one = self.any_tensor()
        other = self.partner(one)
        if self.draw.random() < 0.1:
            one, other = other, one
        sizes = [self.names[n].numel() for n in (one, other) if isinstance(self.names.get(n), torch.Tensor)]
        if name in ("outer", "kron") and prod(sizes) > 1 << 18:
            return  # more memory than there is
        extra = f", {other}, value=0.5" if more == "2" else f", {more}" if more else ""
        if self.draw.random() < self.odds.out and not extra:
            extra = f", out={self.any_tensor()}"
        self.attempt(f"{self.fresh()} = torch.{name}({one}, {other}{extra})")

    def view(self) -> None:
        source = self.any_tensor()
        self.attempt(f"{self.fresh()} = {source}{self.draw.choice(VIEWS).format(source)}")

    def write(self) -> None:
        target = self.any_tensor()
        self.attempt(self.draw.choice(WRITES).format(target, self.partner(target)))

    def no_grad(self) -> None:
        target = self.any_tensor()
        line = self.draw.choice(WRITES).format(target, self.partner(target))
        if "=" not in line.split("(")[0]:
            self.attempt(f"with torch.no_grad(): {line}")

    def database(self) -> None:
        """A call of torch's op database, with its tensors as leaves or tensors there are."""
        found = self.theme.sample(self.draw, self.dtype())
        if found is None:
            return
        info, sample = found
        try:
            parts = [self.text(sample.input), *map(self.text, sample.args)]
            parts += [f"{key}={self.text(value)}" for key, value in sample.kwargs.items()]
        except Unwritable:
            return
        path = op_path(info)
        named = {word for part in parts for word in NAMES.findall(part) if word in self.names}
        if path.rpartition(".")[2] in CRASHING and not all(self.names[word].isfinite().all() for word in named):
            return
        if info.inplace_variant is not None and self.draw.random() < 0.15 and hasattr(torch.Tensor, f"{info.name}_"):
            self.attempt(f"{parts[0]}.{info.name}_({', '.join(parts[1:])})")
            return
        if info.supports_out and self.draw.random() < self.odds.out:
            target = self.any_tensor()
            if not self.overlaps(target, parts):  # torch may write before it has read: all(a, out=a) is True
                parts.append(f"out={target}")
        self.attempt(f"{self.fresh()} = torch.{path}({', '.join(parts)})")

    def overlaps(self, name: str, parts: list[str]) -> bool:
        """Whether a tensor lies in the memory of one named in the arguments."""
        return self.names[name].untyped_storage().data_ptr() in self.memory(" ".join(parts))

    def memory(self, text: str) -> set[int]:
        """Where the memory of the tensors lies that are named in a text."""
        named = [self.names.get(word) for word in NAMES.findall(text)]
        return {value.untyped_storage().data_ptr() for value in named if isinstance(value, torch.Tensor)}

    def text(self, value: Any) -> str:
        """An argument as it is written in a program."""
        if isinstance(value, torch.Tensor):
            return self.tensor_text(value)
        if isinstance(value, (list, tuple)):
            if hasattr(value, "_fields"):
                raise Unwritable
            inside = ", ".join(map(self.text, value))
            if isinstance(value, list):
                return f"[{inside}]"
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        if type(value) in (bool, int, float, complex):
            if self.draw.random() < self.odds.number and not isinstance(value, bool):
                value = self.draw.choice([n for n in NUMBERS if not isinstance(n, bool)])
            return repr_of(value)
        if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
            return str(value)
        if value is None or value is Ellipsis or isinstance(value, str | slice):
            return repr(value)
        raise Unwritable

    def tensor_text(self, tensor: torch.Tensor) -> str:
        if tensor.layout != torch.strided or tensor.numel() > LARGEST or tensor.is_quantized:
            raise Unwritable
        dtype, shape = dtype_name(tensor.dtype), tuple(tensor.shape)
        alike = [
            n
            for n, v in self.names.items()
            if isinstance(v, torch.Tensor) and v.shape == shape and v.dtype == tensor.dtype
        ]
        if alike and dtype in FLOATS and self.draw.random() < 0.7:
            return self.draw.choice(alike)
        if dtype in FLOATS and self.draw.random() < self.odds.dtype:
            dtype = self.dtype()
        elif dtype not in FLOATS or (tensor.numel() <= 30 and self.draw.random() < 0.4):
            values = [round_off(v) for v in tensor.detach().resolve_conj().reshape(-1).tolist()]
            return self.leaf(shape, dtype, values=tuple(values), special=False)
        if dtype not in FLOATS:
            return self.leaf(shape, dtype)
        real = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
        finite = real[torch.isfinite(real)].double()
        low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (-1.0, 1.0)
        return self.leaf(shape, dtype, low=round(low, 2), high=round(max(high, low + 0.1), 2))


KINDS = ("unary",) * 4 + ("binary",) * 5 + ("view",) * 4 + ("write",) * 4 + ("no_grad",) + ("database",) * 10


def round_off(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    return complex(round_off(value.real), round_off(value.imag)) if isinstance(value, complex) else value


def repr_of(value: Any) -> str:
    """A number as Python reads it."""
    text = repr(value)
    return f"float('{text}')" if isinstance(value, float) and not np.isfinite(value) else text


def write(seed: tuple[int, int], theme: Theme, modes: tuple[str, ...] = MODES, odds: Odds = ORDINARY) -> Program:
    """The program that belongs to a seed, to be looked at in one of some modes."""
    writer = Writer(seed, theme, odds)
    wanted = writer.draw.randint(1, 7) if writer.draw.random() < 0.6 else 1
    for _ in range(4 * wanted):
        if writer.ended or len(writer.lines) >= wanted:
            break
        getattr(writer, "database" if wanted == 1 else writer.draw.choice(KINDS))()
    mode = writer.draw.choice(modes)
    used = {name for line in writer.lines for name in writer.leaves if name in line}
    program = Program(tuple((n, leaf) for n, leaf in writer.leaves.items() if n in used), tuple(writer.lines), mode)
    return program if fits(program, mode) else Program(program.leaves, program.lines, "eager")
