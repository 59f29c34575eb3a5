"""What arrays of the device answer to NumPy's words and to the engine: native code does again what came before."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pullback._op.ufuncs import ARITHMETIC
from pullback.autograd.accumulate import laid_as
from pullback.kernels.cuda import answering
from pullback.kernels.cuda.array import DeviceArray, answers, converted
from pullback.kernels.cuda.calls import writing
from pullback.kernels.cuda.native import reduced
from pullback.kernels.cuda.quick import launcher, recorder, writer
from pullback.kernels.numpy.reduce.dims import column_sums
from pullback.ops.pointwise.arithmetic import add


def operation(name: str, reflected: bool) -> Any:
    """A Python operator of arrays, which the engine and formulas use: launched as the op is."""

    @cache
    def launch() -> Any:
        return launcher(ARITHMETIC[name], ARITHMETIC[name])

    if reflected:
        return lambda self, other: launch()(other, self)
    return lambda self, other: launch()(self, other)


def by(self: DeviceArray, function: Any, *args: Any) -> Any:
    """What a function of arrays that plain backward calls makes of this array; None to compute it on tensors."""
    return recorded(BY[function])(self, *args) if function in BY and self.size else None


BY: dict[Any, Any] = {column_sums: lambda array: reduced("sum", array, 0, False), laid_as: laid_as}
"""The gradient of a bias, and a copy of a gradient that lies as its leaf."""


@cache
def recorded(function: Any) -> Any:
    """A function of arrays, done again by native code."""
    return recorder(function, lambda compute: compute)


@cache
def casting(dtype: Any) -> Any:
    """What copies arrays in a dtype."""
    return recorded(lambda array: converted(array, dtype))


@cache
def calling(ufunc: Any, into: bool) -> Any:
    """A ufunc of arrays, which may be written into the first."""
    if into:
        return writer(
            ufunc, lambda first, *rest: answering.computed(ufunc, "__call__", (first, *rest), {"out": (first,)})
        )
    return launcher(ufunc, lambda *args: answering.computed(ufunc, "__call__", args, {}))


answers.cast = lambda array, dtype: casting(dtype)(array)
answers.call = lambda ufunc, *args: calling(ufunc, False)(*args)
answers.into = lambda ufunc, *args: calling(ufunc, True)(*args)


@cache
def adding() -> Any:
    """What adds one array to another, in place."""
    return writing.launcher(add.op)


def gather(self: DeviceArray, other: Any) -> None:
    """Add a gradient to one that is there."""
    if type(other) is not DeviceArray or adding()(self, other) is None:
        np.add(self, other, self)  # type: ignore[call-overload]


DeviceArray.gather = gather  # type: ignore[method-assign]
DeviceArray.by = by  # type: ignore[method-assign]
for _name, _ufunc in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide")):
    setattr(DeviceArray, f"__{_name}__", operation(_ufunc, False))
    setattr(DeviceArray, f"__r{_name}__", operation(_ufunc, True))
