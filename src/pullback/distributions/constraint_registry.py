"""biject_to and transform_to: from a constraint to a transform of all real numbers onto it.

`biject_to` is bijective and has a Jacobian, as a change of variables needs; `transform_to` may be any map onto the set,
as an optimizer of constrained parameters needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.distributions import constraints, transforms
from pullback.distributions.transforms import Transform
from pullback.distributions.utils import Number

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """A table from classes of constraints to functions that make a transform for a constraint."""

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Add a factory for a class of constraints, named by itself or by an instance; also used as a decorator."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Transform:
        """A transform onto the set of the constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def for_both(*kinds: Any) -> Callable[[Factory], Factory]:
    """Register a factory in both tables."""

    def add(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return add


@for_both(constraints.real)
def onto_real(constraint: Any) -> Transform:
    """Nothing to do."""
    return transforms.identity_transform


@for_both(constraints.greater_than, constraints.greater_than_eq)
def onto_above(constraint: Any) -> Transform:
    """exp, above the bound."""
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@for_both(constraints.less_than)
def onto_below(constraint: Any) -> Transform:
    """-exp, below the bound."""
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@for_both(constraints.interval, constraints.half_open_interval)
def onto_interval(constraint: Any) -> Transform:
    """The sigmoid, stretched."""
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and low == 0 and isinstance(high, Number) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@for_both(constraints.corr_cholesky)
def onto_corr_cholesky(constraint: Any) -> Transform:
    """Partial correlations."""
    return transforms.CorrCholeskyTransform()


biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda constraint: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda constraint: transforms.PositiveDefiniteTransform())


def register_compound(registry: ConstraintRegistry) -> None:
    """Constraints made of others take the transforms that the same table has for those."""

    @registry.register(constraints.independent)
    def onto_independent(constraint: Any) -> Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def onto_cat(constraint: Any) -> Transform:
        parts = [registry(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def onto_stack(constraint: Any) -> Transform:
        return transforms.StackTransform([registry(part) for part in constraint.cseq], constraint.dim)


register_compound(biject_to)
register_compound(transform_to)
