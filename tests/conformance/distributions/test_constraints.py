"""Constraints, the transforms onto them, and the tools the distributions share."""

import numpy as np
import pytest

from tests.conformance.distributions.sides import Side, agree

NUMBERS = np.array([-1.5, -1.0, 0.0, 0.3, 1.0, 2.0, 3.5, np.nan, np.inf, -np.inf])
VECTORS = np.array(
    [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.5, 0.6, -0.1], [2.0, 1.0, 0.0], [0.2, 0.3, 0.50001]]
)
MATRICES = np.array(
    [
        [[1.0, 0.0], [0.6, 0.8]],
        [[2.0, 0.5], [0.5, 1.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[-1.0, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [0.0, 0.0]],
    ]
)

CONSTRAINTS = {
    "boolean": (lambda c, t: c.boolean, NUMBERS),
    "one_hot": (lambda c, t: c.one_hot, VECTORS),
    "nonnegative_integer": (lambda c, t: c.nonnegative_integer, NUMBERS),
    "positive_integer": (lambda c, t: c.positive_integer, NUMBERS),
    "integer_interval": (lambda c, t: c.integer_interval(-1, 2), NUMBERS),
    "real": (lambda c, t: c.real, NUMBERS),
    "real_vector": (lambda c, t: c.real_vector, VECTORS),
    "positive": (lambda c, t: c.positive, NUMBERS),
    "nonnegative": (lambda c, t: c.nonnegative, NUMBERS),
    "greater_than": (lambda c, t: c.greater_than(t(0.3)), NUMBERS),
    "greater_than_eq": (lambda c, t: c.greater_than_eq(0.3), NUMBERS),
    "less_than": (lambda c, t: c.less_than(0.3), NUMBERS),
    "multinomial": (lambda c, t: c.multinomial(2), VECTORS),
    "unit_interval": (lambda c, t: c.unit_interval, NUMBERS),
    "interval": (lambda c, t: c.interval(-1.0, t(2.0)), NUMBERS),
    "half_open_interval": (lambda c, t: c.half_open_interval(-1.0, 2.0), NUMBERS),
    "simplex": (lambda c, t: c.simplex, VECTORS),
    "lower_triangular": (lambda c, t: c.lower_triangular, MATRICES),
    "lower_cholesky": (lambda c, t: c.lower_cholesky, MATRICES),
    "corr_cholesky": (lambda c, t: c.corr_cholesky, MATRICES),
    "square": (lambda c, t: c.square, MATRICES),
    "not square": (lambda c, t: c.positive_definite, VECTORS),
    "symmetric": (lambda c, t: c.symmetric, MATRICES),
    "positive_semidefinite": (lambda c, t: c.positive_semidefinite, MATRICES[1:]),
    "positive_definite": (lambda c, t: c.positive_definite, MATRICES[1:]),
    "cat": (lambda c, t: c.cat([c.positive, c.unit_interval], 0, [4, 6]), NUMBERS),
    "stack": (lambda c, t: c.stack([c.positive, c.unit_interval, c.real], -1), VECTORS),
    "independent": (lambda c, t: c.independent(c.positive, 1), VECTORS),
    "MixtureSameFamilyConstraint": (lambda c, t: c.MixtureSameFamilyConstraint(c.greater_than(t([0.0, 1.0]))), NUMBERS),
}


def made(side: Side, name: str):
    return CONSTRAINTS[name][0](side.d.constraints, side.t)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_a_constraint_finds_what_torchs_finds(name: str):
    agree(lambda side: made(side, name).check(side.given(CONSTRAINTS[name][1])))


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_facts_of_a_constraint_are_torchs(name: str):
    def program(side: Side):
        constraint = made(side, name)
        facts = [constraint.is_discrete, constraint.event_dim, side.d.constraints.is_dependent(constraint)]
        return [*facts, repr(constraint).split(" object at")[0].replace("pullback", "torch")]

    agree(program)


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_transform_onto_a_constraint_is_torchs(name: str, registry: str):
    values = {0: np.linspace(-1.0, 1.0, 10), 1: np.linspace(-1.0, 1.0, 6).reshape(2, 3)}
    values[2] = np.linspace(-1.0, 1.0, 9).reshape(3, 3)

    def program(side: Side):
        constraint = made(side, name)
        transform = getattr(side.d, registry)(constraint)
        y = transform(side.given(values[transform.domain.event_dim if name != "stack" else 1]))
        return [y, constraint.check(y), repr(transform)]

    agree(program)


ERRORS = {
    "a dependent constraint checks nothing": lambda c, t: c.dependent.check(t(1.0)),
    "it is not known to be discrete": lambda c, t: c.dependent.is_discrete,
    "its events are not known": lambda c, t: c.dependent.event_dim,
    "unless it is said": lambda c, t: c.dependent(is_discrete=True, event_dim=2).event_dim,
    "independent of a number": lambda c, t: c.independent(1, 1),
    "independent of half a dimension": lambda c, t: c.independent(c.real, 0.5),
    "independent of fewer dimensions": lambda c, t: c.independent(c.real, -1),
    "too few dimensions": lambda c, t: c.independent(c.real, 2).check(t([1.0])),
    "cat of numbers": lambda c, t: c.cat([1]),
    "cat of other lengths": lambda c, t: c.cat([c.real], lengths=[1, 2]),
    "stack of numbers": lambda c, t: c.stack([1]),
    "no such dimension": lambda c, t: c.stack([c.real], 2).check(t([1.0])),
    "a mixture of numbers": lambda c, t: c.MixtureSameFamilyConstraint(1),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_a_constraint_cannot_say_raises_torchs_error(name: str):
    agree(lambda side: ERRORS[name](side.d.constraints, side.t))


def test_a_registry_takes_new_constraints():
    def program(side: Side):
        registry = side.d.constraint_registry.ConstraintRegistry()

        class Even(side.d.constraints.Constraint):
            pass

        @registry.register(Even)
        def onto_even(constraint):
            return side.d.AffineTransform(0.0, 2.0)

        return [registry(Even())(side.t(3.0)), repr(Even())]

    agree(program)


@pytest.mark.parametrize("what", [1, int])
def test_a_registry_takes_nothing_but_constraints(what: object):
    agree(lambda side: side.d.biject_to.register(what, lambda constraint: None))


def test_a_lazy_property_is_computed_once_with_gradients():
    def program(side: Side):
        class Thing:
            count = 0

            @side.d.utils.lazy_property
            def fact(self):
                self.count += 1
                return x * 2

        x = side.t(3.0)
        thing = Thing()
        with side.library.no_grad():
            thing.fact
        return [thing.count, thing.fact.requires_grad, thing.fact, thing.count, Thing.fact is None]

    agree(program, leaves=True)


def test_numbers_take_the_dtype_of_the_first_tensor():
    def program(side: Side):
        a, b, c = side.d.utils.broadcast_all(1, side.t([1.0, 2.0]), 2.5)
        return [a, b, c, side.d.utils.broadcast_all(1, 2)[0]]

    agree(program)


@pytest.mark.parametrize("binary", [True, False])
def test_probabilities_become_logits_and_back(binary: bool):
    def program(side: Side):
        utils, probs = side.d.utils, side.t([0.0, 0.2, 0.8, 1.0])
        logits = utils.probs_to_logits(probs, binary)
        return [logits, utils.logits_to_probs(logits, binary), utils.clamp_probs(probs)]

    agree(program)
