"""Random tensors: rand, randn, randint, randperm and the distributions that take tensors."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

from pullback import _dtype as dtypes
from pullback._arrays.kinds import answered, made_on
from pullback._arrays.sizes import LARGEST, UNPACKING, allocated, check_ints, check_sizes, check_storage
from pullback._device import CPU, place_of
from pullback._dtype import defaults, dtype
from pullback._modes import claim, modes
from pullback._op.apply import check_broadcast
from pullback._op.define import Array, function, not_implemented, op
from pullback._op.out import write_result
from pullback._runtime.building import loaded
from pullback._runtime.messages import type_name
from pullback._runtime.quiet import quiet, waiting
from pullback._tensor import Tensor, fresh
from pullback.autograd.tracebacks import trim
from pullback.kernels.numpy.random import distributions as kernels
from pullback.ops.create.data import REQUIRED, as_dtype, check_layout, finished, pinned
from pullback.ops.create.filled import check_given, given, is_int, sizes_of
from pullback.ops.create.like import array_like, pattern
from pullback.ops.random.generator import Generator, default_generator, engine_of
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import invalid_combination, no_derivative

# ------------------------------------------------------------------ from a shape


@function(raw=True, method=False, vmap="size_first")
def rand(
    *args: Any, size: Any = None, generator: Generator | None = None, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False, names: Any = None,
) -> Tensor:  # fmt: skip
    """Draw random numbers uniformly from [0, 1), in a tensor of the given shape.

    The shape is given as integers, as one sequence, or as `size`. `generator` is the source of the numbers, by default
    the one `manual_seed` seeds. The rest is as in `empty`.
    """
    try:
        more = (dtype, layout, device, requires_grad, pin_memory)
        return shaped("rand", kernels.uniform, args, size, generator, out, *more)
    except Exception as error:
        trim(error)
        raise


@function(raw=True, method=False, out_resized=True, vmap="size_first")
def randn(
    *args: Any, size: Any = None, generator: Generator | None = None, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False, names: Any = None,
) -> Tensor:  # fmt: skip
    """Draw random numbers from the standard normal distribution (mean 0, variance 1), in a tensor of the given shape.

    The shape is given as integers, as one sequence, or as `size`. `generator` is the source of the numbers, by default
    the one `manual_seed` seeds. Complex numbers have variance 1 in all, half of it in each part.
    """
    try:
        more = (dtype, layout, device, requires_grad, pin_memory)
        return shaped("randn", kernels.normal, args, size, generator, out, *more)
    except Exception as error:
        trim(error)
        raise


def shaped(
    name: str, draw: Any, args: Any, size: Any, generator: Any, out: Any, dtype: Any, layout: Any, device: Any,
    requires_grad: bool, pin_memory: bool,
) -> Tensor:  # fmt: skip
    """What a kernel draws in the shape that was asked for."""
    if size is generator is out is dtype is layout is device is None and requires_grad is pin_memory is False:
        small = small_shape(args)
        if small is not None:
            return fresh(quiet().run(draw, default_generator._engine, small, defaults.dtype.numpy))
    check_layout(layout)
    if not args and size is None:
        raise no_size(name)
    shape = sizes_of(name, args, size)
    target, kind = prepared(name, shape, dtype, device, out)
    array = made_on(device, drawn, draw, engine_of(name, generator), shape, kind.numpy)
    return given(name, out, pinned(array) if pin_memory else array, target, requires_grad)


def small_shape(args: tuple[Any, ...]) -> tuple[int, ...] | None:
    """A shape of few elements, if it is given as it mostly is and a draw on the host is nobody else's concern."""
    if modes.active or modes.recorders or waiting or place_of(None) is not CPU or claim.get() is not None:
        return None
    shape = args[0] if len(args) == 1 and type(args[0]) is tuple else args
    count = 1
    for size in shape:
        if type(size) is not int or not 0 < size < SURELY_FITS:
            return None
        count *= size
    return shape if count < SURELY_FITS else None


def prepared(
    name: str, shape: tuple[int, ...], wanted: Any, device: Any, out: Tensor | None, default: dtype | None = None
) -> tuple[dtype | None, dtype]:
    """What creation functions check before they draw: (the dtype asked for, the dtype to draw in)."""
    check_sizes(shape)
    target = as_dtype(name, wanted)
    kind = target if target is not None else out.dtype if out is not None else default or defaults.dtype
    check_storage(shape, kind.itemsize)
    if out is not None:
        check_given(name, out, target)
    return target, kind


def drawn(draw: Any, engine: Any, size: Any, kind: np.dtype[Any], *bounds: float) -> Any:
    """What a kernel draws; the generator stays where it was if there is no memory for it."""
    if math.prod(size if isinstance(size, tuple) else (size,)) >= SURELY_FITS:
        allocated(np.empty, size if isinstance(size, tuple) else (size,), kind)
    return draw(engine, size, kind, *bounds)


SURELY_FITS = 1 << 24
INT64 = dtypes.int64.numpy
FEW_INTEGERS = 1 << 28
"""Ranges below this are drawn of 32 bits."""


def signatures(*forms: str) -> str:
    """The lines of torch's TypeError about a function of sizes: each form with and without a generator."""
    options = (
        "Tensor out = None, torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, "
        "bool pin_memory = False, bool requires_grad = False)\n"
    )
    generators = ("torch.Generator generator, ", "")
    return "".join(f" * ({form}tuple of ints size, *, {g}{options}" for form in forms for g in generators)


def no_size(name: str) -> TypeError:
    """Torch's TypeError for a call without a size."""
    return TypeError(
        f"{name}() received an invalid combination of arguments - got (), but expected one of:\n{signatures('')}"
    )


@function(raw=True, explained=True, method=False, vmap="size_last")
def randint(
    *args: Any, low: Any = None, high: Any = None, size: Any = None, generator: Generator | None = None,
    out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Draw random integers uniformly from [low, high): `randint(high, size)` or `randint(low, high, size)`.

    `low` is 0 by default, and `high` is excluded; `size` is a tuple. The dtype is int64 by default.
    `generator` is the source of the numbers, by default the one `manual_seed` seeds.
    """
    try:
        if args and low is high is size is generator is out is dtype is layout is device is None:
            small = small_shape(args[-1:]) if requires_grad is pin_memory is False and type(args[-1]) is tuple else None
            if small is not None and [type(bound) for bound in args[:-1]] in ([int], [int, int]):
                first, last = args[:-1] if len(args) == 3 else (0, args[0])
                if 0 < last - first < FEW_INTEGERS and first >= -LARGEST and last <= LARGEST:
                    draw = kernels.random_from_to
                    return fresh(quiet().run(draw, default_generator._engine, small, INT64, first, last))
        check_layout(layout)
        values = {name: value for name, value in (("low", low), ("high", high), ("size", size)) if value is not None}
        short = len(args) + len(values) < 3
        values |= dict(zip(("high", "size") if short else ("low", "high", "size"), args, strict=False))
        if "high" not in values or "size" not in values:
            got = ", ".join([type(a).__name__ for a in args])
            raise TypeError(
                f"randint() received an invalid combination of arguments - got ({got}), but expected one of:\n"
                f"{signatures('int high, ', 'int low, int high, ')}"
            )
        names = [name for name in ("low", "high") if name in values]
        for position, name in enumerate(names):
            if not is_int(values[name]):
                kind = type(values[name]).__name__
                raise TypeError(f"randint(): argument '{name}' (position {position + 1}) must be int, not {kind}")
        check_ints("randint", {name: values[name] for name in names})
        if not isinstance(values["size"], (tuple, list)):
            kind = type(values["size"]).__name__
            raise TypeError(f"randint(): argument 'size' (position {len(names) + 1}) must be tuple of ints, not {kind}")
        shape = sizes_of("randint", (tuple(values["size"]),))
        target, drawn_in = prepared("randint", shape, dtype, device, out, dtypes.int64)
        bounds = int(values.get("low", 0)), int(values["high"])
        engine = engine_of("randint", generator)
        array = made_on(device, drawn, kernels.random_from_to, engine, shape, drawn_in.numpy, *bounds)
        return given("randint", out, pinned(array) if pin_memory else array, target, requires_grad)
    except Exception as error:
        trim(error)
        raise


@function(raw=True, method=False, vmap="one_by_one")
def randperm(
    n: int, *, generator: Generator | None = None, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return a random permutation of the integers from 0 to `n - 1`, as a vector of int64 by default.

    `generator` is the source of the randomness, by default the one `manual_seed` seeds.
    """
    try:
        check_layout(layout)
        if not is_int(n):
            raise TypeError(f"randperm(): argument 'n' (position 1) must be int, not {type(n).__name__}")
        n = int(n)
        if n > LARGEST:
            raise ValueError(UNPACKING)
        target, kind = prepared("randperm", (n,), dtype, device, out, dtypes.int64)
        array = made_on(device, drawn, kernels.randperm, engine_of("randperm", generator), n, kind.numpy)
        return given("randperm", out, array, target, requires_grad)
    except Exception as error:
        trim(error)
        raise


# ------------------------------------------------------------------ like another tensor


def drawn_like(
    name: str, input: Any, draw: Any, dtype: Any, device: Any, requires_grad: bool, format: Any, *given: Any
) -> Tensor:
    """A new leaf like `input`, its memory filled by `draw(engine, shape, dtype, *bounds)`."""
    source = pattern(name, input)
    array = source._array
    if dtype is device is format is None and requires_grad is False and type(array) is np.ndarray:
        if array.flags.c_contiguous and type(source) is Tensor and small_shape((array.shape,)) is not None:
            return fresh(quiet().run(draw, given[0], array.shape, array.dtype, *given[1:]))
    target = as_dtype(name, dtype) or source.dtype
    place = source.device if device is None else device
    array = made_on(place, array_drawn, source._array, target.numpy, format, draw, *given)
    return finished(name, array, requires_grad)


@answered(meta=lambda pattern, target, *given: np.empty_like(pattern, target))
def array_drawn(pattern: Array, target: np.dtype[Any], format: Any, draw: Any, engine: Any, *bounds: Any) -> Array:
    """An array like another, filled by `draw`, which of normal numbers knows whether memory lies in order."""
    array = array_like(pattern, target, format)
    ordered = kernels.fill_order(array)
    order = {"contiguous": array.flags.c_contiguous} if draw is kernels.normal else {}
    ordered[...] = draw(engine, ordered.shape, target, *bounds, **order)
    return array


@function(nested="jagged_shape", raw=True, method=False, vmap="follows_tensor")
def rand_like(
    input: Any = REQUIRED, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, memory_format: Any = None, generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Draw random numbers uniformly from [0, 1), in the shape, and by default the dtype, of `input`."""
    check_layout(layout)
    engine = engine_of("rand_like", generator)
    return drawn_like("rand_like", input, kernels.uniform, dtype, device, requires_grad, memory_format, engine)


@function(nested="shape", raw=True, method=False, vmap="follows_tensor")
def randn_like(
    input: Any = REQUIRED, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, memory_format: Any = None, generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Draw random numbers from the standard normal distribution, in the shape, and by default the dtype, of `input`."""
    check_layout(layout)
    engine = engine_of("randn_like", generator)
    return drawn_like("randn_like", input, kernels.normal, dtype, device, requires_grad, memory_format, engine)


@function(raw=True, explained=True, method=False, vmap="follows_tensor")
def randint_like(
    input: Any = REQUIRED, *args: Any, low: Any = None, high: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Draw random integers uniformly from [low, high), in the shape, and by default the dtype, of `input`.

    `randint_like(input, high)` or `randint_like(input, low, high)`; `low` is 0 by default, and `high` is excluded.
    """
    check_layout(layout)
    if len(args) == 2:
        low, high = args
    elif args:
        high = args[0]
    if isinstance(low, float) or isinstance(high, float):
        raise invalid_combination("randint_like", (input, *[bound for bound in (low, high) if bound is not None]))
    engine, bounds = engine_of("randint_like", generator), (int(low or 0), int(high))
    draw = kernels.random_from_to
    return drawn_like("randint_like", input, draw, dtype, device, requires_grad, memory_format, engine, *bounds)


# ------------------------------------------------------------------ distributions that take tensors

# A draw does not move when its parameters move a little: the gradients are zeros.
zero_grad = lambda grad: zeros_of(grad, grad.shape)
zero_tangent = lambda result: zeros_of(result, result.shape)
zeros_of_mean = lambda grad, mean_sym_sizes: zeros_of(grad, mean_sym_sizes)
zeros_of_std = lambda grad, std_sym_sizes: zeros_of(grad, std_sym_sizes)


@op(space=None, name="normal", node="NormalBackward1", mean=zeros_of_mean, result=zero_tangent)
def normal_around_tensor(mean: Array, std: Any = 1.0, generator: Any = None) -> Array:
    """Normal numbers around each element of `mean`, all with the same deviation."""
    return kernels.normal_of_arrays(engine_of("normal", generator), mean, std)


@op(space=None, name="normal", node="NormalBackward2", std=zeros_of_std, result=zero_tangent)
def normal_with_tensor(mean: Any, std: Array, generator: Any = None) -> Array:
    """Normal numbers around one mean, with each element of `std` as deviation."""
    return kernels.normal_of_arrays(engine_of("normal", generator), mean, std)


@op(space=None, name="normal", node="NormalBackward3", mean=zeros_of_mean, std=zeros_of_std, result=zero_tangent)
def normal_of_tensors(mean: Array, std: Array, generator: Any = None) -> Array:
    """Normal numbers with means and deviations from two tensors."""
    return kernels.normal_of_arrays(engine_of("normal", generator), mean, std)


@function(raw=True, explained=True, method=False, vmap="size_last")
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, out: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Draw random numbers from normal distributions with the given means and standard deviations.

    `mean` and `std` are tensors, one distribution for each element, or numbers; two tensors broadcast.
    If both are numbers, `size` is the shape of the result. No gradient reaches `mean` and `std`: it is zero.
    """
    check_layout(layout)
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        if size is not None:
            raise invalid_normal(mean, std, size)
        if isinstance(std, Tensor) and std.is_complex():
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if isinstance(out, Tensor) and (out.is_complex() or not (isinstance(mean, Tensor) and mean.is_complex())):
            mean, std = (of.to(out.dtype) if isinstance(of, Tensor) else of for of in (mean, std))  # it is drawn there
        if not isinstance(std, Tensor):
            if isinstance(out, Tensor):  # which torch fills with numbers to add the means to
                check_broadcast([mean._array, out._array])
                mean = mean.expand(np.broadcast_shapes(mean._array.shape, out._array.shape))
            result = normal_around_tensor(mean, float(std), generator)
        elif not isinstance(mean, Tensor):
            result = normal_with_tensor(float(mean), std, generator)
        else:
            check_broadcast([mean._array, std._array])
            result = normal_of_tensors(mean, std, generator)
        return result if out is None else write_result("normal", result, out, (mean, std))  # type: ignore[no-any-return]
    if size is None:
        raise invalid_normal(mean, std)
    if not isinstance(size, (tuple, list)):
        raise invalid_normal(mean, std, size)
    shape = sizes_of("normal", (tuple(size),))
    target, kind = prepared("normal", shape, dtype, device, out)
    engine = engine_of("normal", generator)
    array = made_on(device, drawn, kernels.normal, engine, shape, kind.numpy, float(mean), float(std))
    return given("normal", out, array, target, requires_grad)


def invalid_normal(*given: Any) -> TypeError:
    """Torch's error for arguments that fit no overload."""
    kinds = ", ".join(type_name(value) for value in given)
    return TypeError(
        f"normal() received an invalid combination of arguments - got ({kinds}), but expected one of:\n"
        f"{NORMAL_SIGNATURES}"
    )


NORMAL_SIGNATURES = (
    " * (Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)\n"
    " * (Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None)\n"
    " * (float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None)\n"
    " * (float mean, float std, tuple of ints size, *, torch.Generator generator = None, Tensor out = None, "
    "torch.dtype "
    "dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False, bool "
    "requires_grad = "
    "False)\n"
)


@op(kernel="bernoulli_scalar_cpu_", space=None, name="bernoulli", self=zero_grad, result=zero_tangent)
def tosses_of(self: Array, generator: Any = None) -> Array:
    """Ones with the probabilities in self."""
    return kernels.bernoulli_of_array(engine_of("bernoulli", generator), self, self.shape, self.dtype)


@op(kernel="bernoulli_scalar_cpu_", space=None, name="bernoulli", self=not_implemented)
def tosses_like(self: Array, p: Any, generator: Any = None) -> Array:
    """Ones in the shape of self, all with one probability."""
    return kernels.bernoulli(engine_of("bernoulli", generator), self.shape, self.dtype, float(p))


@function(nested="jagged_shape", out=True, vmap="follows_tensor")
def bernoulli(self: Array, p: Any = None, *, generator: Any = None) -> Array:
    """Draw zeros and ones, the ones with the probabilities in `input`, or all with the probability `p`.

    The result has the shape and dtype of `input`; if `p` is given, the elements of `input` do not matter.
    The gradient is zero.
    """
    return tosses_of(self, generator) if p is None else tosses_like(self, p, generator)


@op(out=False, method=False, vmap="follows_tensor", self=zero_grad, result=zero_tangent)
def poisson(self: Array, generator: Any = None) -> Array:
    """Draw counts from Poisson distributions with the rates in `input`.

    The rates must not be negative; the result has the shape and dtype of `input`. The gradient is zero.
    """
    return kernels.poisson(engine_of("poisson", generator), self)


def check_categories(target: Tensor) -> None:
    """Torch's demand on the tensor multinomial writes to."""
    if target._array.dtype != np.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {target.dtype.scalar_type}")


@op(kernel="aminmax_cpu", check_target=check_categories, vmap="follows_tensor")
def multinomial(self: Array, num_samples: Any, replacement: bool = False, *, generator: Any = None) -> Array:
    """Draw indices of categories, with probabilities proportional to the weights in each row of `input`.

    `input` is a vector `(C,)` or a matrix `(N, C)` of non-negative weights, which need not sum to 1.
    Returns `num_samples` int64 indices for each row, `(num_samples,)` or `(N, num_samples)`; without `replacement` no
    category is drawn twice in a row, so enough weights must be positive.
    """
    return kernels.multinomial(engine_of("multinomial", generator), self, index(num_samples), replacement)


@op(method=False, out=False, vmap="follows_tensor", count=zero_grad, prob=zero_grad, result=zero_tangent)
def binomial(count: Array, prob: Array, generator: Any = None) -> Array:
    """Draw from binomial distributions: the number of successes in `count` trials with probability `prob`.

    Both are tensors of floating point numbers; they broadcast. The gradient is zero.
    """
    return kernels.binomial(engine_of("binomial", generator), *np.broadcast_arrays(count, prob))


@op(method=False, out=False, self=lambda grad, self, result: grad * _standard_gamma_grad(self, result))
def _standard_gamma(self: Array, generator: Any = None) -> Array:
    """Gamma numbers with the shapes in self and scale one."""
    return kernels.standard_gamma(engine_of("_standard_gamma", generator), self)


@op(vmap="aligned", method=False, out=False, self=lambda grad: no_derivative("_standard_gamma_grad"))
def _standard_gamma_grad(self: Array, output: Array) -> Array:
    """How gamma numbers move with their shapes."""
    return loaded("pullback.kernels.numpy.random.gradients").standard_gamma_grad(self, output)


@op(method=False, out=False, self=not_implemented)
def _sample_dirichlet(self: Array, generator: Any = None) -> Array:
    """Points of the simplex from the Dirichlet distribution with the weights in the last dimension."""
    return kernels.dirichlet(engine_of("_sample_dirichlet", generator), self)


@op(vmap="aligned", method=False, out=False, x=not_implemented, alpha=not_implemented, total=not_implemented)
def _dirichlet_grad(x: Array, alpha: Array, total: Array) -> Array:
    """How the components of points of the simplex move with their weights, over what the others leave them."""
    return loaded("pullback.kernels.numpy.random.gradients").dirichlet_grad(x, alpha, total)
