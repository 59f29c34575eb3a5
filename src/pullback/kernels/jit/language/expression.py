"""What is computed for each element: a small typed tree, made by running NumPy code on stand-ins for arrays.

    trace = Trace()
    x, y = trace.input(float32), trace.input(float32)
    result = np.exp(x) * (1 - y)        # operators and ufuncs note what they would do
    trace.node_of(result)               # multiply(exp(x0), subtract(1, x1))

Equal subexpressions are one node. `evaluate` computes a tree with NumPy, `emit` writes it as vectors of LLVM. Code that
looks at values, shapes or sizes is not pointwise: it raises Untraceable, and the caller lets NumPy do the work.

Python numbers that change from call to call (a learning rate) are `Number`s: what is computed of them alone stays
Python's arithmetic, which `python_source` writes, and a decision by their value becomes a condition of the trace.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pullback._runtime.building import loaded

DTYPES = {"float32", "float64", "int64", "int32", "bool", "float16", "bfloat16", "int16", "int8", "uint8"}
"""What kernels read and write. Numbers of 16 bits are computed in float32 and rounded after each step."""
COMPLEX = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
"""Complex numbers, with the dtypes of their parts: kernels of a device read and write them. See device_trace.py."""
NARROW = {"int16", "int8", "uint8"}
WRAPPING = {"add", "subtract", "multiply", "positive", "bitwise_and", "bitwise_or", "bitwise_xor"}
"""What narrow integers can do beside being cast."""
WEAK = (bool, int, float)
DOUBLE = np.dtype(np.float64)
UNARY = ("negative", "positive", "absolute", "fabs", "square", "sqrt", "reciprocal", "exp", "expm1", "log", "log1p",
         "log2", "log10", "tanh", "erf", "sin", "cos", "sinh", "cosh", "floor", "ceil", "trunc", "rint", "isnan",
         "isinf", "isfinite", "signbit", "logical_not", "invert", "conjugate", "sign", "tan", "expit", "arcsin",
         "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "exp2", "erfc", "erfcx", "erfinv", "ndtri", "log_ndtr",
         "gammaln", "psi", "i0e", "i1e")  # fmt: skip
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "power", "copysign",
          "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or",
          "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "fmod", "remainder",
          "floor_divide", "arctan2", "hypot", "logaddexp2", "nextafter")  # fmt: skip
KNOWN = {*UNARY, *BINARY, "left_shift", "right_shift"}


@cache
def is_known(dtype: np.dtype[Any]) -> bool:
    """True if kernels read and write a dtype. NumPy takes a microsecond to say a dtype's name."""
    return dtype.name in DTYPES and dtype.isnative


@cache
def is_narrow(dtype: np.dtype[Any]) -> bool:
    """True for integers that kernels hardly compute with."""
    return dtype.name in NARROW


class Untraceable(Exception):
    """This code is not a pointwise expression that kernels can compute."""


class Halfway(Exception):
    """Raised by code that is pointwise up to here: the value so far, and what turns the array into the result."""

    def __init__(self, value: Any, finish: Callable[[Any], Any]) -> None:
        super().__init__()
        self.value, self.finish = value, finish


class Node(NamedTuple):
    """One step: an operation on earlier ones, an input or a number (`value` its position) or a constant."""

    op: str
    args: tuple[Node, ...]
    dtype: np.dtype[Any]
    value: Any = None

    def __str__(self) -> str:
        if self.op in ("input", "number"):
            return f"{'x' if self.op == 'input' else 'n'}{self.value}"
        if self.op == "constant":
            return str(self.value)
        name = f"{self.op}:{self.dtype}" if self.op == "cast" else self.op
        return f"{name}({', '.join(map(str, self.args))})"


class Trace:
    """The nodes of one expression, each kept once."""

    known = KNOWN

    def __init__(self, shapes: Sequence[tuple[int, ...]] | None = None) -> None:
        self.nodes: dict[Any, Node] = {}
        self.inputs = 0
        self.shapes = shapes
        """The shapes of the inputs, where code may ask for them."""
        self.asked = False
        """Whether it did: then the expression is good for these shapes only."""
        self.numbers = 0
        self.decisions: list[tuple[Node, bool]] = []
        """What code asked of numbers, and the answers: the expression is good for calls that answer alike."""

    def node(self, op: str, args: tuple[Node, ...], dtype: np.dtype[Any], value: Any = None) -> Node:
        """A node, or the equal one that is there."""
        # Zeros of both signs and equal numbers of several types are different constants.
        key = (op, *map(id, args), dtype, repr(value))
        return self.nodes.setdefault(key, Node(op, args, dtype, value))

    def input(self, dtype: np.dtype[Any]) -> Stand:
        """A stand-in for an array."""
        if not is_known(dtype):
            raise Untraceable(f"dtype {dtype}")
        self.inputs += 1
        return self.stand(self.node("input", (), dtype, self.inputs - 1))

    def stand(self, node: Node) -> Stand:
        """What stands for an array of a node's elements."""
        return Stand(self, node)

    def chosen(self, condition: Any, a: Any, b: Any) -> Stand:
        """np.where"""
        given = [0.0 if type(x) is float else 0 if type(x) is int else dtype_of(x) for x in (a, b)]
        dtype = np.result_type(*given)
        nodes = (self.node_of(condition, np.dtype(bool)), *[self.node_of(x, dtype) for x in (a, b)])
        return self.stand(self.node("where", nodes, dtype))

    def number(self, value: Any) -> Number:
        """A stand-in for a Python number that is another one in the next call."""
        self.numbers += 1
        return Number(self, self.node("number", (), DOUBLE, self.numbers - 1), value)

    def node_of(self, value: Any, dtype: np.dtype[Any] | None = None) -> Node:
        """What an operand stands for, in a dtype if one is given."""
        if isinstance(value, Stand):
            node = value.node
        elif isinstance(value, (*WEAK, complex, np.generic)) or (type(value) is np.ndarray and not value.ndim):
            kind = dtype or np.asarray(value).dtype
            return self.constant(value, kind)
        else:
            raise Untraceable(f"an operand of type {type(value).__name__}")
        if dtype is None or node.dtype == dtype:
            return node
        if not is_known(dtype):
            raise Untraceable(f"dtype {dtype}")
        return self.node("cast", (node,), dtype)

    def constant(self, value: Any, dtype: np.dtype[Any]) -> Node:
        """A number."""
        if not is_known(dtype):
            raise Untraceable(f"dtype {dtype}")
        return self.node("constant", (), dtype, np.asarray(value).astype(dtype).item())

    def apply(self, name: str, dtypes: Sequence[np.dtype[Any]], inputs: Sequence[Any]) -> Stand:
        """A ufunc whose dtypes are resolved."""
        if name not in KNOWN or (name not in WRAPPING and any([is_narrow(kind) for kind in dtypes])):
            raise Untraceable(name)
        if name == "nextafter" and dtypes[-1].itemsize == 2:
            raise Untraceable("the neighbour of a half, which in float32 is nearer than any half")
        args = tuple([self.node_of(x, kind) for x, kind in zip(inputs, dtypes, strict=False)])
        return Stand(self, self.node(name, args, dtypes[-1]))


class Many:
    """The size of a stand-in: larger than any threshold, and good for nothing else."""

    __slots__ = ()

    def __gt__(self, other: Any) -> bool:
        return True

    __ge__ = __gt__

    def __lt__(self, other: Any) -> bool:
        return False

    __le__ = __lt__

    def __eq__(self, other: Any) -> bool:
        return self is other

    def __hash__(self) -> int:
        return 0


MANY = Many()


class Stand(NDArrayOperatorsMixin):
    """Stands for an array while pointwise code runs; writing into it with `out=` gives it another node."""

    __slots__ = ("node", "trace")
    ndim = 2
    size: Any = MANY

    def __init__(self, trace: Trace, node: Node) -> None:
        self.trace, self.node = trace, node

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype the array would have."""
        return self.node.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an input, if the trace gives shapes away."""
        if self.trace.shapes is None or self.node.op != "input":
            raise Untraceable("the shape of a stand-in")
        self.trace.asked = True
        return self.trace.shapes[self.node.value]

    @property
    def real(self) -> Stand:
        """Itself: there are no complex ones."""
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, dtype: Any = None) -> Any:
        if method != "__call__":
            raise Untraceable(f"{ufunc.__name__}.{method}")
        name = plain_name(ufunc)
        if name not in self.trace.known:
            raise Untraceable(name)
        given = [
            float
            if type(x) is Number
            else type(x)
            if isinstance(x, (*WEAK, complex)) and not isinstance(x, np.generic)
            else dtype_of(x)
            for x in inputs
        ]
        if bool in given:
            given = [np.dtype(bool) if kind is bool else kind for kind in given]
        wanted = {} if dtype is None else {"signature": (None,) * len(inputs) + (np.dtype(dtype),)}
        resolved = ufunc.resolve_dtypes((*given, None), **wanted)
        made = self.trace.apply(name, resolved, inputs)
        if out is None:
            return made
        (target,) = out
        if type(target) not in (Stand, type(made)):
            raise Untraceable("a result written into an array")
        target.node = self.trace.node_of(made, target.dtype)
        return target

    def special(self, name: str) -> Any:
        """A function of one argument that NumPy does not have."""
        if name not in KNOWN:
            raise Untraceable(name)
        return self.trace.apply(name, (self.dtype, self.dtype), (self,))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where and len(args) == 3 and not kwargs:
            return self.trace.chosen(*args)
        raise Untraceable(function.__name__)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Untraceable("the values of a stand-in")

    def __bool__(self) -> bool:
        raise Untraceable("a decision by value")

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> Stand:
        """The same in another dtype."""
        return self.trace.stand(self.trace.node_of(self, np.dtype(dtype)))

    def copy(self, order: str = "K") -> Stand:
        """The same, to be written into."""
        return self.trace.stand(self.node)

    def conj(self) -> Stand:
        """Itself: there are no complex ones."""
        return self

    conjugate = conj


def in_single(number: float) -> float:
    """A number as float32 keeps it."""
    return float(np.float32(number))


PYTHON: dict[str, tuple[str, Callable[..., Any]]] = {
    "add": ("{} + {}", operator.add),
    "subtract": ("{} - {}", operator.sub),
    "multiply": ("{} * {}", operator.mul),
    "divide": ("{} / {}", operator.truediv),
    "power": ("{} ** {}", operator.pow),
    "negative": ("-{}", operator.neg),
    "absolute": ("abs({})", abs),
    "less": ("{} < {}", operator.lt),
    "less_equal": ("{} <= {}", operator.le),
    "greater": ("{} > {}", operator.gt),
    "greater_equal": ("{} >= {}", operator.ge),
    "equal": ("{} == {}", operator.eq),
    "not_equal": ("{} != {}", operator.ne),
    "cast": ("rounded({})", in_single),
}
"""What can be done with Python numbers: how it is written, and what does it."""


class Number(Stand):
    """Stands for a Python number and has its value: beside arrays it takes their dtype, as Python's numbers do."""

    __slots__ = ("value",)

    def __init__(self, trace: Trace, node: Node, value: Any) -> None:
        super().__init__(trace, node)
        self.value = value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if options or not all([type(x) is Number or type(x) in WEAK for x in inputs]):
            return super().__array_ufunc__(ufunc, method, *inputs, **options)
        name = plain_name(ufunc)
        if name not in PYTHON:
            raise Untraceable(name)
        value = PYTHON[name][1](*[x.value if type(x) is Number else x for x in inputs])
        args = tuple([self.trace.node_of(x, None if type(x) is Number else DOUBLE) for x in inputs])
        return Number(self.trace, self.trace.node(name, args, DOUBLE), value)

    def rounded(self) -> Number:
        """What float32 makes of it."""
        node = self.trace.node("cast", (self.node,), np.dtype(np.float32))
        return Number(self.trace, node, in_single(self.value))

    def __bool__(self) -> bool:
        self.trace.decisions.append((self.node, bool(self.value)))
        return bool(self.value)


def python_source(trace: Trace, wanted: Sequence[Node]) -> list[str]:
    """The lines of a function of n0, n1, ... that returns some of a trace's numbers; None if it decides otherwise."""
    names: dict[int, str] = {}
    lines: list[str] = []

    def named(node: Node) -> str:
        for step in order_of(node):
            if id(step) not in names:
                if step.op == "number":
                    names[id(step)] = f"n{step.value}"
                elif step.op == "constant":
                    names[id(step)] = repr(step.value) if np.isfinite(step.value) else f"float('{step.value}')"
                else:
                    args = [names[id(arg)] for arg in step.args]
                    names[id(step)] = f"v{len(lines)}"
                    lines.append(f"v{len(lines)} = {PYTHON[step.op][0].format(*args)}")
        return names[id(node)]

    for node, answer in trace.decisions:
        lines.append(f"if {'not ' * answer}{named(node)}: return None")
    lines.append(f"return [{', '.join([named(node) for node in wanted])}]")
    return lines


def plain_name(ufunc: Any) -> str:
    """The name kernels know a ufunc by."""
    return {"true_divide": "divide", "conj": "conjugate", "abs": "absolute"}.get(ufunc.__name__, ufunc.__name__)


def dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of an operand that is no Python number."""
    found = getattr(value, "dtype", None)
    if not isinstance(found, np.dtype):
        raise Untraceable(f"an operand of type {type(value).__name__}")
    return found


def order_of(*roots: Node) -> list[Node]:
    """Every node under some roots, arguments first."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args))
    return order


def evaluate(root: Node, inputs: Sequence[Any]) -> Any:
    """The value of an expression by NumPy, step by step."""
    values: dict[int, Any] = {}
    for node in order_of(root):
        args = [values[id(arg)] for arg in node.args]
        if node.op == "input":
            made = inputs[node.value]
        elif node.op == "constant":
            made = node.dtype.type(node.value)
        elif node.op == "cast":
            made = args[0].astype(node.dtype)
        elif node.op == "complex":
            made = np.empty(np.broadcast_shapes(*[np.shape(part) for part in args]), node.dtype)
            made.real, made.imag = args
        else:
            made = np.where(*args) if node.op == "where" else numpy_function(node.op)(*args)
        values[id(node)] = made
    return values[id(root)]


def numpy_function(name: str) -> Callable[..., Any]:
    """The ufunc of a name."""
    name = name.removeprefix("whole_").removeprefix("double_")
    found: Any = getattr(np, name, None)
    if found is None:
        found = getattr(loaded("scipy.special"), name)
    return found  # type: ignore[no-any-return]
