"""Tensors around arrays of other kinds: classes of their own, so that nothing is asked of plain tensors.

The fast path of an op takes none but plain tensors: a foreign one goes to the reference path, which asks the kind of
its arrays; one of packed elements, too: see _arrays/packed.py and _op/packed.py. Programs do not see the difference:
the classes have the names of plain ones.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pullback._arrays.kinds import ForeignArray
from pullback._arrays.packed import PackedArray, packed
from pullback._device import device
from pullback._runtime import messages
from pullback._runtime.builtins import bare
from pullback._tensor import PRISTINE, Parameter, Tensor, adopt, new


class ForeignTensor(Tensor):
    """A tensor whose elements are not the host's."""

    __slots__ = ()
    __hash__ = Tensor.__hash__
    parameter_class: Any
    """What a parameter with such elements is."""

    @property
    def device(self) -> device:
        """Where the elements are."""
        return self._array.device  # type: ignore[attr-defined, no-any-return]

    def data_ptr(self) -> int:
        """The address of the first element; nothing lies at 0."""
        return 0

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
        raise RuntimeError(f"Tensor.item() cannot be called on {self.device.type} tensors")

    def __bool__(self) -> bool:
        if self._array.size != 1:
            return Tensor.__bool__(self)
        return bool(self.item())

    def __float__(self) -> float:
        if self._array.size != 1:
            return Tensor.__float__(self)
        return float(self.item())

    def __int__(self) -> int:
        if self._array.size != 1:
            return Tensor.__int__(self)
        return int(self.item())

    def __complex__(self) -> complex:
        if self._array.size != 1:
            return Tensor.__complex__(self)
        return complex(self.item())

    def __index__(self) -> int:
        if self._array.size != 1 or self._array.dtype.kind not in "iub":
            return Tensor.__index__(self)
        return int(self.item())

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            return Tensor.__deepcopy__(self, memo)  # type: ignore[attr-defined]  # which raises
        if id(self) not in memo:
            copy = new(type(self))
            adopt(copy, self._array.copy("K"))
            copy._requires_grad = self._requires_grad
            memo[id(self)] = copy
            if self._grad is not None and not isinstance(self, Parameter):
                copy._grad = deepcopy(self._grad, memo)
            if self.__dict__ and not isinstance(self, Parameter):
                copy.__dict__.update(deepcopy(self.__dict__, memo))
        return memo[id(self)]

    def tolist(self) -> Any:
        """The elements, which are not here."""
        raise NotImplementedError(messages.NO_META_VALUES)

    def numpy(self, *, force: bool = False) -> Any:
        """The elements, which are not here."""
        if force:
            raise NotImplementedError(messages.NO_META_VALUES)
        raise TypeError(messages.not_on_host(self.device))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.numpy()


class ForeignParameter(Parameter, ForeignTensor):
    """A parameter whose elements are not the host's."""

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        if not isinstance(data, ForeignTensor):  # `type(parameter)(its elements on the host)`
            return Parameter(data, requires_grad)
        return Parameter.__new__(cls, data, requires_grad)

    __hash__ = Tensor.__hash__


def hold(kind: Any, tensor_class: Any, parameter_class: Any) -> None:
    """Say which classes hold arrays of a kind: named as the plain ones are, and made by the arrays themselves."""

    def tensor(array: Any) -> Any:
        """A tensor around the array, without history."""
        out = make()
        out._array = array
        out._requires_grad = False
        out._edge = out._grad = out._view = out._extra = out._detached_at = None
        out._counter = PRISTINE
        return out

    make = bare(tensor_class)
    for made, plain in ((tensor_class, Tensor), (parameter_class, Parameter)):
        made.__name__, made.__qualname__, made.__module__ = plain.__name__, plain.__qualname__, plain.__module__
    tensor_class.parameter_class = parameter_class
    kind.tensor = tensor


hold(ForeignArray, ForeignTensor, ForeignParameter)

# ------------------------------------------------------------------ packed elements


class PackedTensor(Tensor):
    """A tensor whose elements are stored and moved, but hardly computed with."""

    __slots__ = ("_elements",)
    __hash__ = Tensor.__hash__
    parameter_class: Any
    """What a parameter with such elements is."""

    _elements: PackedArray

    @property
    def _array(self) -> Any:  # type: ignore[override]
        return self._elements

    @_array.setter
    def _array(self, array: Any) -> None:
        self._elements = packed(array, array.dtype)  # whoever made it: nothing computes with packed elements by chance

    def is_complex(self) -> bool:
        """True for complex types."""
        return self.dtype.is_complex

    def numpy(self, *, force: bool = False) -> Any:
        """Refuse: NumPy has no such elements."""
        raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_type}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.numpy()


class PackedParameter(Parameter, PackedTensor):
    """A parameter of packed elements."""

    __slots__ = ()
    __hash__ = Tensor.__hash__

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        if not isinstance(data, PackedTensor):
            return Parameter(data, requires_grad)
        return Parameter.__new__(cls, data, requires_grad)


hold(PackedArray, PackedTensor, PackedParameter)
