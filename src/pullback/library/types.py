"""The types that schemas name, and the numbers torch gives to dtypes and memory formats."""

from __future__ import annotations

from typing import Any

import pullback._dtype as dtypes


class JitType:
    """The type of an argument: torch's names for what a value may be."""

    shown = "Any"

    @classmethod
    def get(cls) -> Any:
        """The one type of this class."""
        return cls()

    def kind(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def parts(self) -> tuple[Any, ...]:
        """The types it is made of."""
        return ()

    @property
    def annotation_str(self) -> str:
        """As Python would write it."""
        return str(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return self.shown


class TensorType(JitType):
    """A tensor."""

    shown = "Tensor"


class IntType(JitType):
    """An int; also what torch numbers: dtypes, layouts and memory formats."""

    shown = "int"


class FloatType(JitType):
    """A float."""

    shown = "float"


class ComplexType(JitType):
    """A complex number."""

    shown = "complex"


class BoolType(JitType):
    """A bool."""

    shown = "bool"


class StringType(JitType):
    """A string."""

    shown = "str"


class NumberType(JitType):
    """A number of any type."""

    shown = "number"


class DeviceObjType(JitType):
    """A device."""

    shown = "Device"


class OtherType(JitType):
    """Something of which only the name is known."""

    def __init__(self, shown: str) -> None:
        self.shown = shown


class OptionalType(JitType):
    """Something, or None."""

    def __init__(self, element: JitType) -> None:
        self.element, self.shown = element, f"Optional[{element}]"

    def getElementType(self) -> JitType:
        """What it is if it is not None."""
        return self.element

    def parts(self) -> tuple[Any, ...]:
        return (self.element,)


class ListType(JitType):
    """A list of things of one type."""

    def __init__(self, element: JitType) -> None:
        self.element, self.shown = element, f"List[{element}]"

    def getElementType(self) -> JitType:
        """What each of them is."""
        return self.element

    def parts(self) -> tuple[Any, ...]:
        return (self.element,)


class TupleType(JitType):
    """Several things."""

    def __init__(self, elements: list[JitType]) -> None:
        self.elements_, self.shown = elements, f"Tuple[{', '.join([str(e) for e in elements])}]"

    def elements(self) -> list[JitType]:
        """What each of them is."""
        return list(self.elements_)

    def parts(self) -> tuple[Any, ...]:
        return tuple(self.elements_)


NAMED: dict[str, JitType] = {
    "Tensor": TensorType(),
    "SymInt": IntType(),
    "int": IntType(),
    "ScalarType": IntType(),
    "Layout": IntType(),
    "MemoryFormat": IntType(),
    "float": FloatType(),
    "complex": ComplexType(),
    "bool": BoolType(),
    "SymBool": BoolType(),
    "str": StringType(),
    "Dimname": StringType(),
    "Scalar": NumberType(),
    "number": NumberType(),
    "Device": DeviceObjType(),
    **{name: OtherType(name) for name in ("Generator", "Storage", "Stream", "QScheme", "Any", "NoneType", "Dict")},
    **{name: OtherType(name) for name in ("t", "t1", "t2", "AnyEnumType", "DeviceIndex", "ConstQuantizerPtr")},
    **{name: OtherType(name) for name in ("Future", "RRef", "Await", "Union", "tVal", "AnyClassType", "AnyListType")},
}
"""The types a schema names."""
NUMBERED = ("ScalarType", "Layout", "MemoryFormat")
"""Those whose values torch numbers."""
FORMATS = {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "strided": 0, "Mean": 1}
"""The numbers of values that a schema may name."""
SCALAR_TYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64"),
    *("complex128", "bool", "qint8", "quint8", "qint32", "bfloat16"),
)
"""dtypes in the order in which torch numbers them."""
OLD_NAMES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32"}
OLD_NAMES |= {"short": "int16", "char": "int8", "byte": "uint8", "cfloat": "complex64", "cdouble": "complex128"}


def scalar_type(value: Any) -> int:
    """The number torch gives a dtype."""
    return SCALAR_TYPES.index(str(value).removeprefix("torch."))


def dtype_numbered(number: int) -> Any:
    """The dtype of a number."""
    return getattr(dtypes, SCALAR_TYPES[number])
