"""What nested tensors of both layouts have in common.

A nested tensor is a tensor of a class of its own around one plain tensor with all elements, its *values*: what is
done to it is done to the values, which carry the history. Calls come to `__torch_function__`, as for any class of
tensors that a program defines; each layout has a table of what it knows, by the names of the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count, pairwise
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np

import pullback as torch
from pullback import Size, Tensor
from pullback._op.declare import Op, functions, registry
from pullback._op.ufuncs import is_loss, is_pointwise
from pullback._tensor import adopt, new

Rule = Callable[..., Any]
numbers = count(1)


class NestedInt(int):
    """A size that differs from sequence to sequence: `j1` in (B, j1, D). It is equal to itself only."""

    label: str

    def __new__(cls, label: str) -> NestedInt:
        made = int.__new__(cls, -1)  # where a shape is asked for, it is the one that follows from the others
        made.label = label
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and other.label == self.label

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.label)

    def __mul__(self, other: int) -> Any:
        return self if other == 1 else NestedInt(f"{other}*{self.label}")

    __rmul__ = __mul__

    def refused(self, *others: Any) -> NoReturn:
        """It has no one value."""
        raise RuntimeError(f"{self.label} differs from sequence to sequence: it is no number to count or compare with")

    __add__ = __radd__ = __sub__ = __rsub__ = __floordiv__ = __mod__ = refused  # type: ignore[assignment]
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __index__ = __float__ = refused  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.label

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return self.label


class Raggedness:
    """Where the sequences begin and end; nested tensors that share it have the same shape."""

    __slots__ = ("__weakref__", "lengths", "offsets", "size")
    known: WeakValueDictionary[int, Raggedness] = WeakValueDictionary()
    """By the tensors of offsets, which say which sequences belong together."""

    def __init__(self, offsets: Any, lengths: Any) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.size = NestedInt(f"j{next(numbers)}")

    @classmethod
    def of(cls, offsets: Any, lengths: Any = None) -> Raggedness:
        """The one of these offsets."""
        found = cls.known.get(id(offsets))
        if found is None or found.offsets is not offsets or found.lengths is not lengths:
            found = cls.known[id(offsets)] = cls(offsets, lengths)
        return found

    def spans(self) -> list[tuple[int, int]]:
        """Where each sequence begins, and how long it is."""
        begins = self.offsets.tolist()
        if self.lengths is not None:
            return list(zip(begins[:-1], self.lengths.tolist(), strict=True))
        return [(a, b - a) for a, b in pairwise(begins)]

    def longest(self) -> int:
        """The length of the longest sequence."""
        return max([length for _, length in self.spans()], default=0)


class Standin(np.ndarray[Any, Any]):
    """Stands for the array of a nested tensor, which has none of one shape: looking at its elements raises."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{ufunc.__name__} is not implemented for nested tensors")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError(f"{func.__name__} is not implemented for nested tensors")


class Nested(Tensor):  # type: ignore[misc]
    """A nested tensor."""

    __hash__ = Tensor.__hash__
    rules: dict[str, Rule] = {}
    """What the layout knows, by name."""
    pointwise: Rule
    """What it does element by element, with the function, its name and its arguments."""
    pointwise_words: tuple[str, ...]
    shape_words: tuple[str, ...]
    """What declarations say of functions that it does so, or on its values."""
    unknown: Callable[[str], str]
    """What it says of a function that it does not know."""
    _values: Any
    is_nested = True

    @classmethod
    def shell(cls, values: Tensor, ndim: int) -> Any:
        """A tensor of this class around values; where its sequences are, the class knows."""
        made = new(cls)
        adopt(made, np.zeros((0,) * ndim, values._array.dtype).view(Standin))
        made._values = values
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look up what the layout knows of a function."""
        found = next(one for one in leaves(args, kwargs) if isinstance(one, Nested))
        name = getattr(func, "__name__", str(func))
        return type(found).called(func, OPERATORS.get(name, name), args, kwargs or {})

    @classmethod
    def called(cls, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """A call with one of these tensors."""
        if name in cls.rules:
            return cls.rules[name](*args, **kwargs)
        if name in ON_GRAPHS:
            return ON_GRAPHS[name](func, args, kwargs)
        return cls.others(func, name, args, kwargs)

    @classmethod
    def others(cls, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """A call that has no rule of its own: element by element, on the values, or not known."""
        declared = getattr(func, "op", None)
        word = word_of(name) or (declared and word_of(declared.name))
        if word in cls.pointwise_words:
            return cls.pointwise(func, name, args, kwargs)
        if word in cls.shape_words:
            out = func(args[0]._values, *args[1:], **kwargs)
            return args[0] if name[-1] == "_" else args[0].like(out)
        raise NotImplementedError(cls.unknown(name))

    def like(self, values: Any) -> Any:
        """Other values in the same sequences."""
        raise NotImplementedError

    def parts(self) -> list[Any]:
        """The sequences: views of the values."""
        raise NotImplementedError

    # ---------------------------------------------------------------- the graph is that of the values

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are wanted."""
        return bool(self._values.requires_grad)

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self._values.requires_grad = wanted

    @property
    def grad(self) -> Any:
        """The gradient, once there is one."""
        grad = self._values.grad
        return None if grad is None else self.like(grad)

    @grad.setter
    def grad(self, grad: Any) -> None:
        self._values.grad = grad._values if isinstance(grad, Nested) else grad

    grad_fn = property(lambda self: self._values.grad_fn, doc="The node that made the values.")
    is_leaf = property(lambda self: self._values.is_leaf, doc="Whether no recorded operation made it.")
    retains_grad = property(lambda self: self._values.retains_grad, doc="Whether the gradient is kept.")
    _version = property(lambda self: self._values._version, doc="How often it has been written to.")
    data = property(lambda self: self.like(self._values.data), doc="The same memory, without history.")
    ndim = property(lambda self: self.dim(), doc="The number of dimensions.")
    itemsize = property(lambda self: self._values.itemsize, doc="The bytes of an element.")
    nbytes = property(lambda self: self._values.nbytes, doc="The bytes of all elements.")

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Want gradients, or no longer."""
        self._values.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        """Keep the gradient."""
        self._values.retain_grad()

    def register_hook(self, hook: Any) -> Any:
        """Call a hook with the gradient, once it is there."""

        def on_values(grad: Any) -> Any:
            changed = hook(self.like(grad))
            return changed._values if isinstance(changed, Nested) else changed

        return self._values.register_hook(on_values)

    def dim(self) -> int:
        """The number of dimensions, that of the batch among them."""
        return int(self._array.ndim)

    def numel(self) -> int:
        """How many elements there are."""
        return sum([part.numel() for part in self.parts()])

    nelement = numel

    def untyped_storage(self) -> Any:
        """The memory of the values."""
        return self._values.untyped_storage()

    def storage_offset(self) -> int:
        """Where in it the values begin."""
        return int(self._values.storage_offset())

    def item(self) -> Any:
        """Refused, unless there is one element."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self._values.item()

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """All sequences in one tensor, the shorter ones padded at their ends."""
        return type(self).rules["to_padded_tensor"](self, padding, output_size)  # type: ignore[no-any-return]

    def __iter__(self) -> Any:
        return iter(self.parts())

    def __bool__(self) -> bool:
        return bool(self.item())


@cache
def word_of(name: str) -> str:
    """What the declarations of that name, or of the in-place form of it, say with `nested=`, or imply."""
    same = [one for one in (*registry.values(), *functions.values()) if one.name in (name, name.removesuffix("_"))]
    ops = [one for one in same if isinstance(one, Op)]
    implied = "jagged" if ops and all([is_pointwise(one) and not is_loss(one) for one in ops]) else ""
    return next((one.nested for one in same if one.nested), implied)


def first_of(self: Any, key: Any) -> tuple[Any, list[Any]]:
    """The part that an index begins with, and what follows of it; else None, and all that was asked for."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if not keys or not isinstance(keys[0], int):
        return None, keys
    part = self.parts()[keys[0]]
    return part[tuple(keys[1:])] if keys[1:] else part, keys


def leaves(args: Any, kwargs: Any) -> list[Any]:
    """The arguments of a call, and those in its lists."""
    given = [*args, *(kwargs or {}).values()]
    return [one for arg in given for one in (arg if isinstance(arg, (list, tuple)) else (arg,))]


def with_values(given: Any) -> Any:
    """Arguments with the values in the place of nested tensors."""
    if isinstance(given, (list, tuple)):
        return type(given)([with_values(one) for one in given])
    return given._values if isinstance(given, Nested) else given


def padded(parts: list[Any], padding: float, size: Any) -> Tensor:
    """The sequences one below the other, in one tensor of this size."""
    blocks = []
    for part in parts:
        missing = [want - have for have, want in zip(part.shape, size[1:], strict=True)]
        room = [n for more in reversed(missing) for n in (0, more)]
        blocks.append(torch.nn.functional.pad(part, room, value=padding) if part.dim() else part)
    return torch.stack(blocks)


# ------------------------------------------------------------------ gradients


def backward(func: Any, args: Any, kwargs: Any) -> Any:
    """`backward`, of the values."""
    self, *rest = args
    if isinstance(self, Nested) and not rest and kwargs.get("gradient") is None:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    return func(with_values(self), *with_values(rest), **{k: with_values(v) for k, v in kwargs.items()})


def gradients(func: Any, args: Any, kwargs: Any) -> Any:
    """`torch.autograd.grad`, by values."""
    inputs = kwargs["inputs"] if "inputs" in kwargs else args[1]
    several = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
    found = func(*with_values(args), **{name: with_values(value) for name, value in kwargs.items()})
    return tuple(
        [
            one.like(grad) if isinstance(one, Nested) and grad is not None else grad
            for one, grad in zip(several, found, strict=True)
        ]
    )


ON_GRAPHS: dict[str, Rule] = {"backward": backward, "grad": gradients}
OPERATORS = {"power_operator": "pow", "power_from": "pow", "reflected_sub": "rsub", "reflected_truediv": "div"}
"""Operators that are ops of their own here."""
SIZES_REFUSED = "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."


def refuse(text: str) -> NoReturn:
    """Raise what torch says."""
    raise RuntimeError(text)


def sizes_text(size: Any) -> str:
    """A shape in round brackets."""
    return f"({', '.join([str(n) for n in size])}{',' if len(size) == 1 else ''})"


def nested_size(*sizes: Any) -> Size:
    """A shape."""
    return Size(sizes)
