"""What kernels of a device compute for each element: more than those of the host, complex numbers above all.

What is computed of complex numbers is computed of their two parts: `real` and `imag` are steps that take what is read
apart, `complex` joins two parts to what is written, and all between them is real.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.jit.language.complex_parts import FUNCTIONS
from pullback.kernels.jit.language.expression import (
    COMPLEX,
    KNOWN,
    WRAPPING,
    Node,
    Stand,
    Trace,
    Untraceable,
    is_narrow,
)

INT32 = np.dtype(np.int32)
WHOLE = {"floor_divide", "remainder", "fmod", "left_shift", "right_shift", "power"}
"""What integers can do in kernels of a device, and on the host better without kernels: noted as `whole_remainder`."""
DOUBLE = np.dtype(np.float64)


class ComplexStand(Stand):
    """Stands for an array of complex numbers; its parts can be read and written."""

    __slots__ = ()
    trace: DeviceTrace

    @property
    def real(self) -> Stand:
        """The real parts."""
        return self.trace.parts(self)[0]

    @real.setter
    def real(self, value: Any) -> None:
        self.node = self.trace.joined(value, self.imag, self.dtype).node

    @property
    def imag(self) -> Stand:
        """The imaginary parts."""
        return self.trace.parts(self)[1]

    @imag.setter
    def imag(self, value: Any) -> None:
        self.node = self.trace.joined(self.real, value, self.dtype).node

    def conj(self) -> Stand:
        """The conjugates."""
        return self.trace.joined(self.real, -self.imag, self.dtype)

    conjugate = conj

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.empty_like and len(args) == 1 and not kwargs:
            return self.trace.stand(self.trace.constant(0, self.dtype))  # its parts are written one by one
        return super().__array_function__(function, types, args, kwargs)


class DeviceTrace(Trace):
    """A trace for kernels of a device: integers divide, narrow ones in 32 bits, and numbers may be complex."""

    known = {*KNOWN, "ldexp"}

    def input(self, dtype: np.dtype[Any]) -> Stand:
        """A stand-in for an array."""
        if dtype not in COMPLEX:
            return super().input(dtype)
        self.inputs += 1
        return self.stand(self.node("input", (), dtype, self.inputs - 1))

    def stand(self, node: Node) -> Stand:
        """What stands for an array of a node's elements."""
        return ComplexStand(self, node) if node.dtype in COMPLEX else Stand(self, node)

    def parts(self, value: Any, dtype: np.dtype[Any] | None = None) -> tuple[Stand, Stand]:
        """The real and the imaginary part of an operand."""
        node = self.node_of(value, dtype)
        if node.op == "complex":
            return Stand(self, node.args[0]), Stand(self, node.args[1])
        part = COMPLEX[node.dtype]
        return Stand(self, self.node("real", (node,), part)), Stand(self, self.node("imag", (node,), part))

    def joined(self, real: Any, imag: Any, dtype: np.dtype[Any]) -> Stand:
        """Complex numbers made of two parts."""
        nodes = (self.node_of(real, COMPLEX[dtype]), self.node_of(imag, COMPLEX[dtype]))
        return ComplexStand(self, self.node("complex", nodes, dtype))

    def node_of(self, value: Any, dtype: np.dtype[Any] | None = None) -> Node:
        """What an operand stands for, in a dtype if one is given."""
        if isinstance(value, Stand) and dtype is not None and value.dtype != dtype:
            if value.dtype not in COMPLEX:
                return super().node_of(value, dtype) if dtype not in COMPLEX else self.joined(value, 0, dtype).node
            real, imag = self.parts(value)
            if dtype in COMPLEX:
                return self.joined(real, imag, dtype).node
            return super().node_of((real != 0) | (imag != 0) if dtype.kind == "b" else real, dtype)
        return super().node_of(value, dtype)

    def constant(self, value: Any, dtype: np.dtype[Any]) -> Node:
        """A number."""
        if dtype not in COMPLEX:
            return super().constant(value, dtype)
        number = np.asarray(value).astype(dtype)
        parts = [super(DeviceTrace, self).constant(part, COMPLEX[dtype]) for part in (number.real, number.imag)]
        return self.node("complex", tuple(parts), dtype)

    def chosen(self, condition: Any, a: Any, b: Any) -> Stand:
        """np.where, of complex numbers part by part."""
        if not any([type(x) is complex or getattr(x, "dtype", None) in COMPLEX for x in (a, b)]):
            return super().chosen(condition, a, b)
        dtype = np.result_type(*[type(x)(0) if type(x) in (int, float, complex) else x.dtype for x in (a, b)])
        pairs = zip(self.parts(a, dtype), self.parts(b, dtype), strict=True)
        return self.joined(*[super(DeviceTrace, self).chosen(condition, *pair) for pair in pairs], dtype)

    def apply(self, name: str, dtypes: Any, inputs: Any) -> Stand:
        """A ufunc whose dtypes are resolved."""
        if not any([kind in COMPLEX for kind in dtypes]):
            return self.of_reals(name, dtypes, inputs)
        if name not in FUNCTIONS or not all([kind in COMPLEX for kind in dtypes[: len(inputs)]]):
            raise Untraceable(f"{name} of complex numbers")
        made = FUNCTIONS[name](*[self.parts(x, kind) for x, kind in zip(inputs, dtypes, strict=False)])
        return self.joined(*made, dtypes[-1]) if dtypes[-1] in COMPLEX else made  # type: ignore[no-any-return]

    def of_reals(self, name: str, dtypes: Any, inputs: Any) -> Stand:
        """The same of real numbers."""
        if any([is_narrow(kind) for kind in dtypes]) and name not in WRAPPING:
            wide = self.apply(name, [INT32 if is_narrow(kind) else kind for kind in dtypes], inputs)
            return Stand(self, self.node_of(wide, dtypes[-1]))
        if name == "ldexp":
            return self.scaled(Stand(self, self.node_of(inputs[0], dtypes[0])), inputs[1])
        if name in WHOLE and dtypes[0].kind in "iu":
            given = tuple([self.node_of(x, kind) for x, kind in zip(inputs, dtypes, strict=False)])
            return Stand(self, self.node(f"whole_{name}", given, dtypes[-1]))
        if name == "power" and dtypes[0] == DOUBLE:  # whose digits the host leaves to NumPy
            return Stand(self, self.node("double_power", tuple([self.node_of(x, DOUBLE) for x in inputs]), DOUBLE))
        return super().apply(name, dtypes, inputs)

    def scaled(self, x: Any, by: Any) -> Stand:
        """x * 2**n in three steps, none of which leaves the range of floats before x does."""
        kind = x.dtype if x.dtype in COMPLEX.values() else np.dtype(np.float32)
        n = Stand(self, self.node_of(by, INT32)).astype(kind)
        n = np.maximum(np.minimum(n, 2200.0 if kind == DOUBLE else 300.0), -2200.0 if kind == DOUBLE else -300.0)
        third = np.trunc(n * (1 / 3))
        step = np.exp2(third)
        return (x.astype(kind) * step * step * np.exp2(n - third - third)).astype(x.dtype)  # type: ignore[no-any-return]
