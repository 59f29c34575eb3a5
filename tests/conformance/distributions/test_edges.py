"""Parameters and values at the ends of their ranges, subclasses, copies, and the derivatives of gamma draws."""

import copy
import pickle

import numpy as np
import pytest

from tests.conformance.distributions.families import ALL, WEIGHTS
from tests.conformance.distributions.sides import Side, agree, both, seeded

INF = float("inf")

PROGRAMS = {
    "impossible categories": lambda d, t: d.Categorical(logits=t([[0.0, -INF, 1.0]])).entropy(),
    "an impossible category": lambda d, t: d.Categorical(logits=t([[0.0, -INF, 1.0]])).log_prob(
        t([[0.0], [1.0], [2.0]])
    ),
    "a weight of zero": lambda d, t: d.Categorical(t([0.0, 1.0])).logits,
    "counts of an impossible category": lambda d, t: d.Multinomial(3, logits=t([0.0, -INF])).log_prob(t([3.0, 0.0])),
    "impossible counts": lambda d, t: d.Multinomial(3, logits=t([0.0, -INF])).log_prob(t([2.0, 1.0])),
    "certain tosses": lambda d, t: d.Bernoulli(t([0.0, 1.0, 0.0, 1.0])).log_prob(t([0.0, 1.0, 1.0, 0.0])),
    "certain tosses by logits": lambda d, t: d.Bernoulli(logits=t([-INF, INF, 800.0])).probs,
    "certain trials": lambda d, t: d.Binomial(3, t([0.0, 1.0])).log_prob(t([0.0, 3.0])),
    "far logits": lambda d, t: d.Binomial(3, logits=t([-200.0, 0.0, 200.0])).log_prob(t([0.0, 3.0, 3.0])),
    "no events": lambda d, t: d.Poisson(t([0.0, 0.0])).log_prob(t([0.0, 1.0])),
    "first success": lambda d, t: d.Geometric(t([1.0, 1.0])).log_prob(t([0.0, 2.0])),
    "ends of the interval": lambda d, t: d.Uniform(0.0, 1.0).log_prob(t([0.0, 0.5, 1.0])),
    "beyond the interval": lambda d, t: d.Uniform(0.0, 1.0, validate_args=False).cdf(t([-1.0, 2.0])),
    "ends of Beta": lambda d, t: d.Beta(t(1.0), 1.0).log_prob(t([0.0, 1.0])),
    "ends of the simplex": lambda d, t: d.Dirichlet(t([1.0, 1.0, 2.0])).log_prob(t([0.0, 0.0, 1.0])),
    "far tails": lambda d, t: d.Normal(t([0.0]), 1.0).log_prob(t([1e10, -INF, 40.0])),
    "far tails of cdf": lambda d, t: d.Normal(t([0.0]), 1.0).cdf(t([1e10, -INF, -9.0])),
    "ends of icdf": lambda d, t: d.Normal(t([0.0]), 1.0).icdf(t([0.0, 0.5, 1.0])),
    "ends of Gumbel": lambda d, t: d.Gumbel(t([0.0]), 1.0).icdf(t([0.01, 0.5, 0.999])),
    "one sample for all": lambda d, t: d.Normal(t([0.0, 1.0, 2.0]), 1.0).log_prob(t(0.5)),
    "an empty batch": lambda d, t: d.Normal(t([]), t([])).log_prob(t([])),
    "an empty sample": lambda d, t: d.Normal(t([0.0]), 1.0).sample((0, 2)),
    "no trials": lambda d, t: d.Multinomial(0, t([0.5, 0.5])).log_prob(t([0.0, 0.0])),
    "other limits": lambda d, t: d.ContinuousBernoulli(t([0.45, 0.55]), lims=(0.4, 0.6)).expand((2, 2)).mean,
    "natural parameters of a normal": lambda d, t: d.ExponentialFamily.entropy(d.Normal(t([0.0]), t([2.0]))),
    "natural parameters of a toss": lambda d, t: d.ExponentialFamily.entropy(d.Bernoulli(t([0.3]))),
    "natural parameters of gamma": lambda d, t: d.ExponentialFamily.entropy(d.Gamma(t([0.3]), t([2.0]))),
    "natural parameters of exponential": lambda d, t: d.ExponentialFamily.entropy(d.Exponential(t([0.3]))),
    "natural parameters of continuous tosses": lambda d, t: d.ExponentialFamily.entropy(
        d.ContinuousBernoulli(t([0.3]))
    ),
    "normalizer of Beta": lambda d, t: d.Beta(t([0.3]), 2.0)._log_normalizer(t([0.3]), t([2.0])),
    "normalizer of Poisson": lambda d, t: d.Poisson(t([0.3]))._log_normalizer(*d.Poisson(t([0.3]))._natural_params),
    "survival": lambda d, t: d.GeneralizedPareto(0.0, 1.0, 0.5).log_survival_function(t([1.0, 2.0]).float()),
}


MIXTURES = {
    "one choice for a batch": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([0.2, 0.3, 0.5])), d.Normal(t([[0.5, -1.0, 2.0], [0.0, 1.0, 3.0]]), 1.0)
    ),
    "some choices for a batch": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t(WEIGHTS)), d.Normal(t([[[0.5, -1.0, 2.0], [0.0, 1.0, 3.0]]] * 4), 1.0)
    ),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_a_mixture_broadcasts_its_choice(name: str):
    def program(side: Side):
        d = side.make(MIXTURES[name])
        return [d.mean, d.variance, d.log_prob(d.mean), d.cdf(d.mean)]

    agree(program)


@pytest.mark.parametrize("name", MIXTURES)
def test_a_mixture_that_broadcasts_draws_no_more_than_torchs(name: str):
    agree(lambda side: seeded(side, lambda: side.make(MIXTURES[name]).sample()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_edges_are_torchs(name: str):
    agree(lambda side: side.make(PROGRAMS[name]))


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("Gumbel")])
def test_a_distribution_survives_copying(name: str):
    def program(side: Side):
        d = side.make(ALL[name])
        draws = [
            seeded(side, lambda one=one: one.sample()) for one in (copy.deepcopy(d), pickle.loads(pickle.dumps(d)))
        ]
        return [*draws, repr(copy.copy(d))]

    agree(program)


def test_a_copy_of_a_gumbel_draws_where_torchs_has_lost_its_inverses():
    side = both()[1]
    d = side.make(ALL["Gumbel of tensors"])
    drawn = seeded(side, lambda: d.sample((3,)))
    assert (seeded(side, lambda: copy.deepcopy(d).sample((3,))) == drawn).all()


def test_a_distribution_of_ones_own_works():
    def program(side: Side):
        d = side.d

        class Triangle(d.Distribution):
            arg_constraints = {"width": d.constraints.positive}
            support = d.constraints.nonnegative
            has_rsample = True

            def __init__(self, width, validate_args=None):
                (self.width,) = d.utils.broadcast_all(width)
                super().__init__(self.width.size(), validate_args=validate_args)

            def rsample(self, sample_shape=()):
                shape = self._extended_shape(sample_shape)
                return self.width * side.library.rand(shape, dtype=self.width.dtype).sqrt()

            def log_prob(self, value):
                self._validate_sample(value)
                return (2 * value / self.width**2).log()

        one = Triangle(side.t([1.0, 2.0]))
        return [repr(one), seeded(side, lambda: one.sample((2,))), one.log_prob(side.t([0.5, 0.5]))]

    agree(program)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gamma_draws_have_torchs_derivative_in_every_region(dtype: str):
    random = np.random.default_rng(0)
    alpha = np.exp(random.uniform(-4, 5, 2000)).astype(dtype)
    x = np.maximum(alpha * np.exp(random.normal(0, 1, 2000) / np.sqrt(alpha + 0.1)), 1e-30).astype(dtype)
    agree(lambda side: side.library._standard_gamma_grad(side.given(alpha), side.given(x)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_dirichlet_draws_have_torchs_derivative_in_every_region(dtype: str):
    random = np.random.default_rng(0)
    alpha, beta = np.exp(random.uniform(-4, 5, (2, 2000))).astype(dtype)
    x = random.beta(alpha, beta).astype(dtype).clip(1e-20, 0.999)
    tolerance = 1e-9 if dtype == "float64" else 3e-4  # torch's series in single precision lose digits
    agree(lambda side: side.library._dirichlet_grad(*[side.given(a) for a in (x, alpha, alpha + beta)]), tolerance)


@pytest.mark.parametrize("name", ["_standard_gamma", "_standard_gamma_grad", "_sample_dirichlet", "_dirichlet_grad"])
def test_the_derivatives_of_draws_go_no_further_than_torchs(name: str):
    def program(side: Side):
        library, a = side.library, side.t([0.5, 2.0])
        arguments = {"_standard_gamma_grad": 2, "_dirichlet_grad": 3}.get(name, 1) * [a]
        result = getattr(library, name)(*arguments)
        (grad,) = library.autograd.grad(result.sum(), a, create_graph=True)
        return library.autograd.grad(grad.sum(), a)

    agree(program, leaves=True)


def test_a_gamma_draw_saves_what_torchs_saves():
    theirs, ours = (side.library._standard_gamma(side.t([0.5])).grad_fn for side in both(leaves=True))
    saved = [name for name in dir(theirs) if name.startswith("_saved")]
    assert ours.name() == theirs.name() == "StandardGammaBackward0"
    assert [name for name in dir(ours) if name.startswith("_saved")] == saved
