"""Overwriting a tensor with random numbers: uniform_, normal_, random_ and their relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import read_for
from pullback._arrays.memory import overlaps_itself
from pullback._arrays.sizes import check_ints, in_torch_words
from pullback._op.define import Array, function, op
from pullback._op.inplace import inplace
from pullback._op.parser import is_real
from pullback._runtime import messages
from pullback._runtime.quiet import quiet
from pullback._tensor import Tensor, bump_version
from pullback._thresholds import FEW_DRAWS
from pullback.autograd.tracebacks import trim
from pullback.kernels.numpy.random import distributions as kernels
from pullback.ops.create.copy import plain_write
from pullback.ops.create.filled import plain
from pullback.ops.create.like import array_like
from pullback.ops.random.draw import zero_grad, zero_tangent
from pullback.ops.random.generator import Generator, engine_of


@in_torch_words
def drawn(self: Array, draw: Any, *args: Any) -> Array:
    """Random numbers in the shape of self, drawn in the order its memory is filled."""
    draw = read_for((self,), draw)
    if self.flags.c_contiguous:
        return draw(*args[:1], self.shape, self.dtype, *args[1:])
    out = array_like(self, self.dtype) if 0 in self.strides else np.empty_like(self)
    ordered = kernels.fill_order(out)
    ordered[...] = draw(*args[:1], ordered.shape, self.dtype, *args[1:])
    return out


def real(name: str, argument: str, position: int, value: Any) -> float:
    """A parameter of a distribution as a float, or torch's TypeError."""
    if type(value) is float:
        return value
    if not is_real(value):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be float, not {messages.type_name(value)}"
        )
    return float(value)


def overwrite(declared: Any, self: Tensor, *args: Any) -> Tensor:
    """Run a random op in place: straight into the memory where nobody records."""
    if not plain_write(self) or overlaps_itself(self._array):
        declared.op.declared(np.empty(0, self._array.dtype), *args)  # a dtype is refused before the memory is
        return inplace(declared.op, self, args)
    array = self._array
    if type(array) is np.ndarray and array.flags.c_contiguous and array.size < FEW_DRAWS:
        draw, name = FEW[declared]
        *bounds, generator = args
        array[...] = quiet().run(draw, engine_of(name, generator), array.shape, array.dtype, *bounds)
    else:
        array[...] = quiet().run(declared.op.declared, array, *args)
    bump_version(self)
    return self


@op(space=None, name="uniform", vmap="drawn_again", self=zero_grad, result=zero_tangent)
def draw_uniform(self: Array, low: Any, high: Any, generator: Any) -> Array:
    """Numbers uniform in [low, high)."""
    return drawn(self, kernels.uniform, engine_of("uniform_", generator), low, high)


@function(raw=True, explained=True, space=None)
def uniform_(self: Tensor, *args: Any, to: Any = 1.0, generator: Generator | None = None, **bounds: Any) -> Tensor:
    """Fill the tensor in place with random numbers drawn uniformly from [from, to), [0, 1) by default.

    `generator` is the source of the numbers, by default the one `manual_seed` seeds.
    """
    try:
        low = args[0] if args else bounds.pop("from", 0.0)
        if bounds:
            raise TypeError(f"uniform_() got an unexpected keyword argument '{next(iter(bounds))}'")
        high = args[1] if len(args) > 1 else to
        return overwrite(
            draw_uniform, self, real("uniform_", "from", 1, low), real("uniform_", "to", 2, high), generator
        )
    except Exception as error:
        trim(error)
        raise


@op(space=None, name="normal", vmap="drawn_again", self=zero_grad, result=zero_tangent)
def draw_normal(self: Array, mean: Any, std: Any, generator: Any) -> Array:
    """Normal numbers."""
    return drawn(self, kernels.normal, engine_of("normal_", generator), mean, std, self.flags.c_contiguous)


@function(raw=True, explained=True, space=None)
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor in place with random numbers from the normal distribution with mean `mean` and deviation `std`.

    `generator` is the source of the numbers, by default the one `manual_seed` seeds.
    """
    try:
        return overwrite(draw_normal, self, real("normal_", "mean", 1, mean), real("normal_", "std", 2, std), generator)
    except Exception as error:
        trim(error)
        raise


@op(space=None, name="random", node="RandomBackward2", vmap="drawn_again", self=zero_grad, result=zero_tangent)
def draw_random(self: Array, generator: Any) -> Array:
    """Integers of the whole range of the dtype."""
    return drawn(self, kernels.random, engine_of("random_", generator))


@op(space=None, name="random", node="RandomBackward1", vmap="drawn_again", self=zero_grad, result=zero_tangent)
def draw_random_to(self: Array, to: Any, generator: Any) -> Array:
    """Integers in [0, to)."""
    return drawn(self, kernels.random_from_to, engine_of("random_", generator), 0, to)


@op(space=None, name="random", node="RandomBackward0", vmap="drawn_again", self=zero_grad, result=zero_tangent)
def draw_random_from_to(self: Array, low: Any, high: Any, generator: Any) -> Array:
    """Integers in [low, high), or up to the largest of the dtype."""
    return drawn(self, kernels.random_from_to, engine_of("random_", generator), low, high)


@function(raw=True, explained=True, space=None)
def random_(self: Tensor, *args: Any, to: Any = None, generator: Generator | None = None, **bounds: Any) -> Tensor:
    """Fill the tensor in place with random integers: `random_()`, `random_(to)` or `random_(from, to)`.

    They are uniform in [0, to) or [from, to). Without bounds they go from 0 to the largest number of an integer dtype,
    or to `2 ** mantissa` of a floating point one, so that every integer is exact.
    """
    try:
        check_ints("random_", {"from": args[0] if args else bounds.get("from"), "to": args[1] if len(args) > 1 else to})
        if len(args) == 1 and to is None and not bounds:
            return overwrite(draw_random_to, self, int(plain(args[0])), generator)
        low = args[0] if args else bounds.pop("from", None)
        high = args[1] if len(args) > 1 else to
        if bounds:
            raise TypeError(f"random_() got an unexpected keyword argument '{next(iter(bounds))}'")
        if low is None:
            return (
                overwrite(draw_random, self, generator)
                if high is None
                else overwrite(draw_random_to, self, int(high), generator)
            )
        return overwrite(draw_random_from_to, self, int(low), None if high is None else int(high), generator)
    except Exception as error:
        trim(error)
        raise


@op(space=None, name="exponential", vmap="drawn_again", self=zero_grad, result=zero_tangent)
def draw_exponential(self: Array, lambd: Any, generator: Any) -> Array:
    """Waiting times."""
    return drawn(self, kernels.exponential, engine_of("exponential_", generator), lambd)


@function(raw=True, explained=True, space=None)
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor in place with numbers from the exponential distribution with the rate `lambd`.

    The density is `lambd * exp(-lambd * x)` for positive x; the mean is `1 / lambd`.
    """
    try:
        return overwrite(draw_exponential, self, real("exponential_", "lambd", 1, lambd), generator)
    except Exception as error:
        trim(error)
        raise


@op(space=None, name="cauchy", vmap="drawn_again", self=zero_grad, result=zero_tangent)
def draw_cauchy(self: Array, median: Any, sigma: Any, generator: Any) -> Array:
    """Cauchy numbers."""
    return drawn(self, kernels.cauchy, engine_of("cauchy_", generator), median, sigma)


@function(raw=True, explained=True, space=None)
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor in place with numbers from the Cauchy distribution around `median` with the scale `sigma`.

    The density is `sigma / (pi * (sigma ** 2 + (x - median) ** 2))`.
    """
    try:
        return overwrite(
            draw_cauchy, self, real("cauchy_", "median", 1, median), real("cauchy_", "sigma", 2, sigma), generator
        )
    except Exception as error:
        trim(error)
        raise


@op(space=None, name="geometric", vmap="drawn_again", self=zero_grad, result=zero_tangent)
def draw_geometric(self: Array, p: Any, generator: Any) -> Array:
    """Tosses until the first success."""
    return drawn(self, kernels.geometric, engine_of("geometric_", generator), p)


@function(raw=True, explained=True, space=None)
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor in place with numbers from the geometric distribution: the tosses until the first success.

    Each succeeds with the probability `p`; the count k = 1, 2, ... has the probability `(1 - p) ** (k - 1) * p`.
    """
    try:
        return overwrite(draw_geometric, self, real("geometric_", "p", 1, p), generator)
    except Exception as error:
        trim(error)
        raise


@op(space=None, name="log_normal", vmap="drawn_again", self=zero_grad, result=zero_tangent)
def draw_log_normal(self: Array, mean: Any, std: Any, generator: Any) -> Array:
    """Numbers whose logarithm is normal."""
    return drawn(self, kernels.log_normal, engine_of("log_normal_", generator), mean, std)


@function(raw=True, explained=True, space=None)
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor in place with numbers from the log-normal distribution: `exp` of normal numbers.

    `mean` and `std` are those of the logarithm, not of the numbers themselves.
    """
    try:
        return overwrite(
            draw_log_normal, self, real("log_normal_", "mean", 1, mean), real("log_normal_", "std", 2, std), generator
        )
    except Exception as error:
        trim(error)
        raise


@op(
    kernel="bernoulli_scalar_cpu_",
    space=None,
    name="bernoulli",
    node="BernoulliBackward2",
    vmap="drawn_again",
    self=zero_grad,
    result=zero_tangent,
)
def draw_bernoulli(self: Array, p: Any, generator: Any) -> Array:
    """Ones with one probability."""
    return drawn(self, kernels.bernoulli, engine_of("bernoulli_", generator), p)


@op(
    kernel="bernoulli_scalar_cpu_",
    space=None,
    name="bernoulli",
    node="BernoulliBackward1",
    vmap="drawn_again",
    self=zero_grad,
    p=zero_grad,
    result=zero_tangent,
)
def draw_bernoulli_of(self: Array, p: Array, generator: Any) -> Array:
    """Ones with the probabilities of a tensor."""
    return kernels.bernoulli_of_array(engine_of("bernoulli_", generator), p, self.shape, self.dtype)


@function(raw=True, explained=True, space=None)
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor in place with zeros and ones, the ones with the probability `p`.

    `p` is a number, or a tensor of probabilities that broadcasts to the shape of this one.
    """
    try:
        if isinstance(p, Tensor):
            return inplace(draw_bernoulli_of.op, self, (p, generator))
        return overwrite(draw_bernoulli, self, float(p), generator)
    except Exception as error:
        trim(error)
        raise


def to_bound(engine: Any, shape: Any, dtype: Any, high: int) -> Array:
    """Integers in [0, high)."""
    return kernels.random_from_to(engine, shape, dtype, 0, high)


FEW = {
    draw_uniform: (in_torch_words(kernels.uniform), "uniform_"),
    draw_normal: (in_torch_words(kernels.normal), "normal_"),
    draw_random: (in_torch_words(kernels.random), "random_"),
    draw_random_to: (in_torch_words(to_bound), "random_"),
    draw_random_from_to: (in_torch_words(kernels.random_from_to), "random_"),
    draw_exponential: (in_torch_words(kernels.exponential), "exponential_"),
    draw_cauchy: (in_torch_words(kernels.cauchy), "cauchy_"),
    draw_geometric: (in_torch_words(kernels.geometric), "geometric_"),
    draw_log_normal: (in_torch_words(kernels.log_normal), "log_normal_"),
    draw_bernoulli: (in_torch_words(kernels.bernoulli), "bernoulli_"),
}
"""What draws a few numbers straight for a tensor that lies in order, and who says what is wrong with a generator."""
