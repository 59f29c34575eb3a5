"""Transforms: forward, inverse, Jacobian, composition, cache, shapes, equality and text."""

import copy
import pickle

import numpy as np
import pytest

from tests.conformance.distributions.sides import Side, agree, both

POSITIVE, REAL, UNIT = np.linspace(0.3, 2.4, 6), np.linspace(-2.0, 1.7, 6), np.linspace(0.1, 0.8, 6)
LOWER = np.array([[1.5, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.2, 1.2]])

# name: (the transform, an input)
TRANSFORMS = {
    "ExpTransform": (lambda d, t: d.ExpTransform(), REAL),
    "inverse of ExpTransform": (lambda d, t: d.ExpTransform().inv, POSITIVE),
    "PowerTransform": (lambda d, t: d.PowerTransform(t(1.7)), POSITIVE),
    "PowerTransform, falling": (lambda d, t: d.PowerTransform(t([-0.5] * 6)), POSITIVE),
    "SigmoidTransform": (lambda d, t: d.SigmoidTransform(), REAL),
    "SigmoidTransform, far out": (lambda d, t: d.SigmoidTransform(), REAL * 500),
    "SoftplusTransform": (lambda d, t: d.SoftplusTransform(), REAL),
    "TanhTransform": (lambda d, t: d.TanhTransform(), REAL),
    "AbsTransform": (lambda d, t: d.AbsTransform(), REAL),
    "AffineTransform of numbers": (lambda d, t: d.AffineTransform(1.0, -2.0), REAL),
    "AffineTransform of tensors": (lambda d, t: d.AffineTransform(t(1.0), t([2.0, -3.0, 1.0])), REAL.reshape(2, 3)),
    "AffineTransform of events": (
        lambda d, t: d.AffineTransform(t([1.0] * 3), t([2.0, -3.0, 1.0]), 1),
        REAL.reshape(2, 3),
    ),
    "AffineTransform of events by a number": (
        lambda d, t: d.AffineTransform(0.0, 3.0, event_dim=1),
        REAL.reshape(2, 3),
    ),
    "CumulativeDistributionTransform": (lambda d, t: d.CumulativeDistributionTransform(d.Normal(t(0.5), 1.0)), REAL),
    "SoftmaxTransform": (lambda d, t: d.SoftmaxTransform(), REAL.reshape(2, 3)),
    "StickBreakingTransform": (lambda d, t: d.StickBreakingTransform(), REAL.reshape(2, 3)),
    "CorrCholeskyTransform": (lambda d, t: d.CorrCholeskyTransform(), REAL.reshape(2, 3)),
    "CorrCholeskyTransform, larger": (lambda d, t: d.CorrCholeskyTransform(), REAL),
    "LowerCholeskyTransform": (lambda d, t: d.LowerCholeskyTransform(), REAL[:4].reshape(2, 2)),
    "PositiveDefiniteTransform": (lambda d, t: d.PositiveDefiniteTransform(), REAL[:4].reshape(2, 2)),
    "ReshapeTransform": (lambda d, t: d.ReshapeTransform((2, 3), (6,)), np.arange(12.0).reshape(2, 2, 3)),
    "IndependentTransform": (lambda d, t: d.IndependentTransform(d.ExpTransform(), 1), REAL.reshape(2, 3)),
    "ComposeTransform": (
        lambda d, t: d.ComposeTransform([d.AffineTransform(t(1.0), 2.0), d.TanhTransform(), d.ExpTransform()]),
        REAL,
    ),
    "ComposeTransform of events": (
        lambda d, t: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0), d.StickBreakingTransform()]),
        REAL.reshape(2, 3),
    ),
    "inverse of a ComposeTransform": (
        lambda d, t: d.ComposeTransform([d.ExpTransform(), d.SigmoidTransform()]).inv,
        np.linspace(0.55, 0.8, 6),
    ),
    "identity_transform": (lambda d, t: d.identity_transform, REAL),
    "CatTransform": (
        lambda d, t: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)], dim=0, lengths=[4, 2]),
        REAL,
    ),
    "CatTransform of events": (
        lambda d, t: d.CatTransform([d.IndependentTransform(d.ExpTransform(), 1), d.SigmoidTransform()], -1, [1, 2]),
        REAL.reshape(2, 3),
    ),
    "StackTransform": (lambda d, t: d.StackTransform([d.ExpTransform(), d.SigmoidTransform()], 0), REAL.reshape(2, 3)),
    "StackTransform along the last": (
        lambda d, t: d.StackTransform([d.ExpTransform(), d.SigmoidTransform(), d.identity_transform], -1),
        REAL.reshape(2, 3),
    ),
}


def made(side: Side, name: str):
    make, values = TRANSFORMS[name]
    return make(side.d, side.t), side.given(values)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_and_its_inverse_are_torchs(name: str):
    def program(side: Side):
        transform, x = made(side, name)
        y = transform(x)
        return [y, transform.inv(y)]

    agree(program)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_jacobian_is_torchs(name: str):
    def program(side: Side):
        transform, x = made(side, name)
        y = transform(x)
        return [transform.log_abs_det_jacobian(x, y), transform.inv.log_abs_det_jacobian(y, x)]

    agree(program)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_is_differentiable(name: str):
    def program(side: Side):
        transform, x = made(side, name)
        x.requires_grad_()
        y = transform(x)
        weights = side.library.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)
        return side.library.autograd.grad((y * weights).sum(), x)

    agree(program)


@pytest.mark.parametrize(
    "fact", ["bijective", "sign", "domain", "codomain", "event_dim", "domain.event_dim", "codomain.is_discrete"]
)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_facts_of_a_transform_are_torchs(name: str, fact: str):
    def program(side: Side):
        value = made(side, name)[0]
        for part in fact.split("."):
            value = getattr(value, part)
        return repr(value) if "domain" in fact else value

    agree(program)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_text_of_a_transform_is_torchs(name: str):
    agree(lambda side: [repr(made(side, name)[0]), repr(made(side, name)[0].inv)])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_shapes_are_known_without_computing(name: str):
    def program(side: Side):
        transform, x = made(side, name)
        y = transform(x)
        return [tuple(transform.forward_shape(x.shape)), tuple(transform.inverse_shape(y.shape))]

    agree(program)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_cache_returns_the_very_tensors(name: str):
    def program(side: Side):
        transform, x = made(side, name)
        cached = transform.with_cache()
        y = cached(x)
        return [
            cached(x) is y,
            cached.inv(y) is x,
            cached.with_cache(1) is cached,
            transform.with_cache(0) is transform,
        ]

    agree(program)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_inverse_of_the_inverse_is_the_transform(name: str):
    agree(lambda side: (lambda transform: transform.inv.inv is transform)(made(side, name)[0]))


@pytest.mark.parametrize("name", [name for name in TRANSFORMS if "inverse" not in name])
def test_a_transform_survives_pickling(name: str):
    def program(side: Side):
        transform, x = made(side, name)
        transform.inv
        return [pickle.loads(pickle.dumps(transform))(x), copy.deepcopy(transform)(x)]

    agree(program)


def test_transforms_are_equal_where_torchs_are():
    def program(side: Side):
        names = [name for name in TRANSFORMS if "CumulativeDistribution" not in name]
        one, two = ([made(side, name)[0] for name in names] for _ in range(2))
        return [[compared(a, b) for b in two] for a in one]

    def compared(a, b):
        try:
            return a == b, a != b
        except Exception as error:
            return type(error).__name__

    agree(program)


ERRORS = {
    "a cache of two": lambda d, t: d.ExpTransform(cache_size=2),
    "different numbers of elements": lambda d, t: d.ReshapeTransform((2, 3), (5,)),
    "too few dimensions to reshape": lambda d, t: d.ReshapeTransform((2, 3), (6,)).forward_shape((3,)),
    "another shape to reshape": lambda d, t: d.ReshapeTransform((2, 3), (6,)).forward_shape((3, 3)),
    "another shape to reshape back": lambda d, t: d.ReshapeTransform((2, 3), (6,)).inverse_shape((3, 3)),
    "too few dimensions for an event": lambda d, t: d.IndependentTransform(d.ExpTransform(), 1)(t(1.0)),
    "too few dimensions for an event back": lambda d, t: d.IndependentTransform(d.ExpTransform(), 1).inv(t(1.0)),
    "no vector": lambda d, t: d.StickBreakingTransform().forward_shape(()),
    "no vector back": lambda d, t: d.SoftmaxTransform().inverse_shape(()),
    "no triangle": lambda d, t: d.CorrCholeskyTransform()(t([1.0, 2.0])),
    "no triangle by its shape": lambda d, t: d.CorrCholeskyTransform().forward_shape((2,)),
    "no square": lambda d, t: d.CorrCholeskyTransform().inverse_shape((2, 3)),
    "no matrix": lambda d, t: d.CorrCholeskyTransform().inverse_shape((2,)),
    "parts that are numbers": lambda d, t: d.CatTransform([1]),
    "stacked parts that are numbers": lambda d, t: d.StackTransform([1]),
    "too few lengths": lambda d, t: d.CatTransform([d.ExpTransform()], lengths=[1, 2]),
    "no such dimension": lambda d, t: d.CatTransform([d.ExpTransform()], dim=1)(t([1.0])),
    "another length": lambda d, t: d.CatTransform([d.ExpTransform()])(t([1.0, 2.0])),
    "another length back": lambda d, t: d.CatTransform([d.ExpTransform()]).inv(t([1.0, 2.0])),
    "another length of the Jacobian": lambda d, t: d.CatTransform([d.ExpTransform()]).log_abs_det_jacobian(
        t([1.0]), t([1.0, 2.0])
    ),
    "another number of parts": lambda d, t: d.StackTransform([d.ExpTransform()])(t([1.0, 2.0])),
    "another number of parts back": lambda d, t: d.StackTransform([d.ExpTransform()]).inv(t([1.0, 2.0])),
    "no Jacobian": lambda d, t: d.AbsTransform().log_abs_det_jacobian(t(1.0), t(1.0)),
    "no sign": lambda d, t: d.SoftmaxTransform().sign,
    "events that change": lambda d, t: d.CorrCholeskyTransform().event_dim,
    "nothing to call": lambda d, t: d.Transform()(t(1.0)),
    "no way to cache": lambda d, t: type(
        "Mine", (d.Transform,), {"__init__": lambda self: None, "_cache_size": 0}
    )().with_cache(),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_a_transform_cannot_do_raises_torchs_error(name: str):
    agree(lambda side: side.make(ERRORS[name]))


@pytest.mark.parametrize("function", ["tril_matrix_to_vec", "vec_to_tril_matrix"])
@pytest.mark.parametrize("diag", [-3, -2, -1, 0, 1, 3])
def test_triangles_become_vectors_and_back(function: str, diag: int):
    values = LOWER if function == "tril_matrix_to_vec" else REAL
    agree(lambda side: getattr(side.d.utils, function)(side.given(values), diag))


def test_the_cache_keeps_what_rounding_would_lose():
    def program(side: Side):
        x = side.t([20.0, -30.0])
        transform = side.d.TanhTransform(cache_size=1)
        return [transform.inv(transform(x)), side.d.TanhTransform().inv(side.d.TanhTransform()(x))]

    agree(program)


def test_a_transformed_distribution_uses_the_cache():
    def program(side: Side):
        d = side.d.TransformedDistribution(side.d.Normal(side.t([0.0]), 30.0), side.d.TanhTransform(cache_size=1))
        side.library.manual_seed(3)
        return d.log_prob(d.rsample((4,)))

    theirs, ours = (program(side) for side in both())
    np.testing.assert_allclose(ours.numpy(), theirs.numpy())
    assert np.isfinite(ours.numpy()).all()
