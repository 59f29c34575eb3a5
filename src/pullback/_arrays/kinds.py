"""Kinds of arrays: NumPy's on the host, and others on other devices. See docs/notes/arrays.md.

An array of another kind is of a class of its own that derives from `ForeignArray`. What reads the code of ops and
kernels for such arrays is the kind's `read`: it gives the same function as arrays of this kind need it. A kernel that
a kind cannot read, or should not, has an answer of its own beside it:

    @answered(meta=lambda array, dims: MetaArray(...))
    def kernel(array, dims): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from threading import get_ident
from typing import Any

import numpy as np

from pullback._arrays import memory
from pullback._arrays.packed import PackedArray, bits_of, from_bits
from pullback._device import CPU, check_device, device, place_of
from pullback._modes import modes
from pullback._runtime.building import made
from pullback._runtime.quiet import catch_up, quiet, waiting

ndarray = np.ndarray


class ForeignArray:
    """An array that is not NumPy's. To `isinstance` it is an array like any other; `type()` tells them apart."""

    __slots__ = ()
    __array_priority__ = 900
    device: device
    """Where its elements are."""

    __class__ = property(lambda self: np.ndarray)  # type: ignore[assignment]

    @staticmethod
    def read(function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of ops or kernels as arrays of this kind need it."""
        raise NotImplementedError("attached by the kind")

    @staticmethod
    def adopted(array: Any, place: Any = None) -> Any:
        """What a function made, as an array of this kind on a device: the function may have made one of the host's."""
        raise NotImplementedError("attached by the kind")

    @staticmethod
    def computed(op: Any, positional: list[Any], keywords: dict[str, Any]) -> Any:
        """The results of an op whose operands, or some, are of this kind."""
        raise NotImplementedError("attached by the kind")

    @staticmethod
    def check_devices(op: Any, named: list[tuple[str, Any]]) -> None:
        """Raise for operands of an op, given with their names, on different devices; one is of this kind."""
        raise NotImplementedError("attached by the kind")

    @staticmethod
    def stepped(node: Any, grad: Any) -> Any:
        """What a node makes of a gradient of this kind: tensors in, tensors out, nothing recorded."""
        raise NotImplementedError("attached by the kind")

    def arranged(self, operands: Any) -> Any:
        """A pointwise result in the memory order torch gives it."""
        raise NotImplementedError("attached by the kind")

    @staticmethod
    def check_place(place: device) -> None:
        """Raise for a device of this kind's type that is not there."""

    def on_host(self) -> Any:
        """A copy of the elements on the host, with the same strides; None where there are no elements to copy."""
        return None

    updating: Any = None
    """What does steps of optimizers on such arrays, many at a time: see kernels/cuda/update.py."""

    engine: Any = None
    """What draws random numbers for a generator of such a device, given a seed; None if that is the host's."""

    steps_on_arrays = False
    """Whether steps of a plain backward pass are run on such arrays, as on those of the host; else on tensors."""

    has_views = True
    """Whether an op that makes views makes views of such arrays; else what it makes is a tensor of its own."""

    @staticmethod
    def noted(node: type[Any], inputs: list[Any]) -> Any:
        """The node that records an op on arrays of this kind, of the op's own class or of one made from it."""
        return object.__new__(node)

    @staticmethod
    def written(op: Any, self: Any, bound: dict[str, Any]) -> Any:
        """Run an op in place on tensors of which some are of this kind; NotImplemented to do it as on the host."""
        return NotImplemented

    def by(self, function: Callable[..., Any], *args: Any) -> Any:
        """What a function of arrays that plain backward calls makes of this array; None to compute it on tensors."""
        return None

    def gather(self, other: Any) -> None:
        """Add another array to this one, in place."""
        np.add(self, other, self)  # type: ignore[call-overload]

    @staticmethod
    def accumulated(variable: Any, grad: Any) -> bool:
        """Add a gradient to that of a leaf, where one of them is of this kind; False to do it as on the host."""
        return False

    def tensor(self) -> Any:
        """A tensor around this array: what `wrap` gives. Attached by _foreign.py."""
        raise NotImplementedError("import pullback._foreign first")


MODULES = {"meta": "pullback._meta.reading", "cuda": "pullback.kernels.cuda.eager"}
"""Where the kinds are, by the type of their device. A kind is loaded when it is first asked for."""
kinds: dict[str, type[ForeignArray]] = {}
"""Those that are loaded."""


def kind_on(place: device) -> type[ForeignArray]:
    """The kind of the arrays on a device; raises for a device that is not there."""
    if place.type not in kinds:
        if place.type not in MODULES:
            check_device(place)  # which says what is wrong
        made(lambda: import_module(MODULES[place.type]))
    kind = kinds[place.type]
    kind.check_place(place)
    return kind


def exists(place: device) -> bool:
    """True if tensors can be placed on a device."""
    try:
        return place is CPU or kind_on(place) is not None
    except (AssertionError, NotImplementedError, RuntimeError):
        return False


def is_foreign(array: Any) -> bool:
    """True for an array of another kind than NumPy's."""
    return issubclass(type(array), ForeignArray)


def is_sparse(array: Any) -> bool:
    """True for an array that keeps only some of its elements: see _sparse/."""
    return issubclass(type(array), ForeignArray) and not array.has_views


def as_array(value: Any) -> Any:
    """np.asarray, but an array of another kind is one already."""
    return value if is_foreign(value) or type(value) is PackedArray else np.asarray(value)


def foreign_among(values: Iterable[Any]) -> Any:
    """The class of the arrays that are not NumPy's among the operands of an op; None if there are none."""
    for value in values:
        kind = type(value)
        if kind is not ndarray:
            if kind is list:
                found = foreign_among(value)
                if found is not None:
                    return found
            elif issubclass(kind, (ForeignArray, PackedArray)):
                return kind
    return None


def made_on(wanted: Any, make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function makes, on a device: the function itself on the CPU, else as the kind of that device reads it."""
    place = place_of(wanted)
    if place is CPU:
        if waiting:
            catch_up()
        if modes.recorders and (recorder := modes.recorders.get(get_ident())) is not None:
            return recorder.made(make, args, kwargs)
        return quiet().run(make, *args, **kwargs)
    kind = kind_on(place)
    # Functions among the arguments are read, too.
    return kind.adopted(kind.read(make)(*[kind.read(value) for value in args], **kwargs), place)


def read_for(values: Iterable[Any], function: Any) -> Any:
    """A function as its operands need it: itself for NumPy's arrays."""
    kind = foreign_among(values)
    return function if kind is None else kind.read(function)


def laid_out(result: Any, operands: Any) -> Any:
    """`laid_out` of _arrays/memory.py for results of any kind."""
    if type(result) is PackedArray:
        return from_bits(
            memory.laid_out(bits_of(result), [bits_of(a) if type(a) is PackedArray else a for a in operands]),
            result.dtype,
        )
    return result.arranged(operands) if is_foreign(result) else memory.laid_out(result, operands)


def answered(**answers: Callable[..., Any]) -> Callable[[Any], Any]:
    """Declare what stands for a function where arrays of another kind come, by the type of their device."""

    def declare(function: Any) -> Any:
        function.answers = answers
        return function

    return declare
