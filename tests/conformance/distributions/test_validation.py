"""Parameters and values out of range raise torch's errors, word for word."""

import pytest

from tests.conformance.distributions.families import COVARIANCE, FACTOR
from tests.conformance.distributions.sides import Side, agree

BAD_PARAMETERS = {
    "a negative scale": lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, -1.0])),
    "a negative scale as a number": lambda d, t: d.Normal(0.0, -1.0),
    "a location that is not a number": lambda d, t: d.Normal(t([float("nan")]), 1.0),
    "a string": lambda d, t: d.Normal("0", 1.0),
    "an empty interval": lambda d, t: d.Uniform(t([0.0, 2.0]), t([1.0, 1.0])),
    "no parameter": lambda d, t: d.Bernoulli(),
    "both parameters": lambda d, t: d.Bernoulli(0.5, 0.5),
    "a probability above one": lambda d, t: d.Bernoulli(t([0.5, 1.5])),
    "logits that are not numbers": lambda d, t: d.Bernoulli(logits=t([float("nan")])),
    "a number of trials below zero": lambda d, t: d.Binomial(-1, t([0.5])),
    "a certain success": lambda d, t: d.NegativeBinomial(3, t([1.0])),
    "no chance of success": lambda d, t: d.Geometric(t([0.5, 0.0])),
    "a weight below zero": lambda d, t: d.Categorical(t([0.5, -0.1])),
    "one weight": lambda d, t: d.Categorical(t(0.5)),
    "one logit": lambda d, t: d.Categorical(logits=t(0.5)),
    "both weights and logits": lambda d, t: d.OneHotCategorical(t([0.5]), t([0.5])),
    "different counts": lambda d, t: d.Multinomial(t([1.0, 2.0]), t([0.5, 0.5])),
    "one concentration": lambda d, t: d.Dirichlet(t(0.5)),
    "a concentration of zero": lambda d, t: d.Dirichlet(t([0.5, 0.0])),
    "a concentration of zero of Beta": lambda d, t: d.Beta(t([0.5, 0.0]), 1.0),
    "a negative rate": lambda d, t: d.Gamma(1.0, t([-1.0])),
    "a negative number of degrees": lambda d, t: d.Chi2(t([-1.0])),
    "a negative number of degrees of StudentT": lambda d, t: d.StudentT(t([-1.0])),
    "a rate below zero": lambda d, t: d.Poisson(t([-1.0])),
    "an invalid probability, asked to validate": lambda d, t: d.ContinuousBernoulli(t([1.5]), validate_args=True),
    "a location without dimensions": lambda d, t: d.MultivariateNormal(t(0.5), t([[1.0]])),
    "no matrix": lambda d, t: d.MultivariateNormal(t([0.5])),
    "two matrices": lambda d, t: d.MultivariateNormal(t([0.5]), t([[1.0]]), t([[1.0]])),
    "a covariance that is a vector": lambda d, t: d.MultivariateNormal(t([0.5]), t([1.0])),
    "a factor that is a vector": lambda d, t: d.MultivariateNormal(t([0.5]), scale_tril=t([1.0])),
    "a precision that is a vector": lambda d, t: d.MultivariateNormal(t([0.5]), precision_matrix=t([1.0])),
    "a covariance that is not symmetric": lambda d, t: d.MultivariateNormal(t([0.5, 1.0]), t([[1.0, 0.5], [0.0, 1.0]])),
    "a covariance that is indefinite": lambda d, t: d.MultivariateNormal(t([0.5, 1.0]), t([[1.0, 2.0], [2.0, 1.0]])),
    "a factor that is not triangular": lambda d, t: d.MultivariateNormal(
        t([0.5, 1.0]), scale_tril=t([[1.0, 2.0], [2.0, 1.0]])
    ),
    "a factor of another height": lambda d, t: d.LowRankMultivariateNormal(t([0.5]), t(FACTOR), t([1.0])),
    "a factor that is a vector, of low rank": lambda d, t: d.LowRankMultivariateNormal(t([0.5]), t([1.0]), t([1.0])),
    "a diagonal of another length": lambda d, t: d.LowRankMultivariateNormal(t([0.5, 1.0, 2.0]), t(FACTOR), t([1.0])),
    "batches that do not fit": lambda d, t: d.LowRankMultivariateNormal(
        t([[0.5, 1.0, 2.0]] * 2), t([FACTOR] * 3), t([1.0] * 3)
    ),
    "a location without dimensions, of low rank": lambda d, t: d.LowRankMultivariateNormal(t(0.5), t(FACTOR), t([1.0])),
    "too few degrees of freedom": lambda d, t: d.Wishart(1.5, t(COVARIANCE)),
    "few degrees of freedom": lambda d, t: d.Wishart(2.5, t(COVARIANCE)),
    "a matrix that is a vector": lambda d, t: d.Wishart(2.5, t([1.0])),
    "no matrix of Wishart": lambda d, t: d.Wishart(2.5),
    "one row": lambda d, t: d.LKJCholesky(1),
    "too many dimensions of the event": lambda d, t: d.Independent(d.Normal(t([0.0]), 1.0), 2),
    "a mixture of numbers": lambda d, t: d.MixtureSameFamily(1, d.Normal(t([0.0]), 1.0)),
    "components that are numbers": lambda d, t: d.MixtureSameFamily(d.Categorical(t([0.5, 0.5])), 1),
    "too few components": lambda d, t: d.MixtureSameFamily(d.Categorical(t([0.5, 0.5])), d.Normal(t([0.0]), 1.0)),
    "a mixture of another batch": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([[0.5, 0.5]] * 3)), d.Normal(t([[0.0, 1.0]] * 2), 1.0)
    ),
    "no transforms": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
    "wrong transforms": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
    "a base without dimensions": lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
    "a default that is no truth value": lambda d, t: d.Distribution.set_default_validate_args(3),
    "no constraints": lambda d, t: type("Mine", (d.Distribution,), {})() and None,
    "bad parameters, unchecked": lambda d, t: repr(d.Normal(0.0, -1.0, validate_args=False)),
}


@pytest.mark.parametrize("name", BAD_PARAMETERS)
def test_bad_parameters_raise_torchs_error(name: str):
    agree(lambda side: repr(side.make(BAD_PARAMETERS[name])))


BAD_VALUES = {
    "a number": lambda d, t: d.Normal(0.0, 1.0).log_prob(1.0),
    "what is not a number": lambda d, t: d.Normal(0.0, 1.0).log_prob(t([float("nan")])),
    "a value of another shape": lambda d, t: d.Normal(t([0.0, 1.0]), 1.0).log_prob(t([1.0, 2.0, 3.0])),
    "an event of another size": lambda d, t: d.Dirichlet(t([1.0, 1.0])).log_prob(t([0.2, 0.3, 0.5])),
    "a value below the support": lambda d, t: d.Exponential(t([1.0])).log_prob(t([-1.0])),
    "a value below the support of cdf": lambda d, t: d.Exponential(t([1.0])).cdf(t([-1.0])),
    "a value outside the interval": lambda d, t: d.Uniform(t([0.0]), 1.0).log_prob(t([2.0])),
    "half a success": lambda d, t: d.Bernoulli(t([0.5])).log_prob(t([0.5])),
    "half a count": lambda d, t: d.Poisson(t([0.5])).log_prob(t([0.5])),
    "too many successes": lambda d, t: d.Binomial(3, t([0.5])).log_prob(t([4.0])),
    "no such category": lambda d, t: d.Categorical(t([0.5, 0.5])).log_prob(t([2.0])),
    "two categories at once": lambda d, t: d.OneHotCategorical(t([0.5, 0.5])).log_prob(t([1.0, 1.0])),
    "off the simplex": lambda d, t: d.Dirichlet(t([1.0, 1.0])).log_prob(t([0.5, 0.6])),
    "below the scale": lambda d, t: d.Pareto(t([1.0]), 1.0).log_prob(t([0.5])),
    "an indefinite matrix": lambda d, t: d.Wishart(5.0, t([[1.0, 0.0], [0.0, 1.0]])).log_prob(
        t([[1.0, 2.0], [2.0, 1.0]])
    ),
    "no correlation": lambda d, t: d.LKJCholesky(2).log_prob(t([[1.0, 0.0], [2.0, 1.0]])),
    "outside every component": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([0.5, 0.5])), d.Exponential(t([1.0, 2.0]))
    ).log_prob(t([-1.0])),
    "a vector outside": lambda d, t: d.Independent(d.Exponential(t([1.0, 2.0])), 1).log_prob(t([-1.0, 1.0])),
    "different counts of trials": lambda d, t: d.Binomial(t([1.0, 2.0]), 0.5).entropy(),
    "a product of supports": lambda d, t: d.Independent(d.Bernoulli(t([0.5, 0.6])), 1).enumerate_support(),
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_bad_values_raise_torchs_error(name: str):
    agree(lambda side: side.make(BAD_VALUES[name]))


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "make",
    [
        lambda d, t: d.HalfNormal(t([1.0]), validate_args=False),
        lambda d, t: d.HalfCauchy(t([1.0]), validate_args=False),
        lambda d, t: d.Uniform(t([0.0]), 1.0, validate_args=False),
        lambda d, t: d.ContinuousBernoulli(t([0.3]), validate_args=False),
        lambda d, t: d.Bernoulli(t([0.3]), validate_args=False),
        lambda d, t: d.Geometric(t([1.0]), validate_args=False),
        lambda d, t: d.NegativeBinomial(t([0.0]), t([0.3]), validate_args=False),
        lambda d, t: d.Gamma(t([1.0]), 1.0, validate_args=False),
    ],
)
def test_values_are_not_checked_if_validation_is_off(make, value: float):
    agree(lambda side: side.make(make).log_prob(side.t([value])))


def test_the_default_of_validation_can_be_set():
    def program(side: Side):
        side.d.Distribution.set_default_validate_args(False)
        try:
            return repr(side.d.Normal(0.0, -1.0))
        finally:
            side.d.Distribution.set_default_validate_args(True)

    agree(program)


def test_a_distribution_without_support_warns_and_answers():
    def program(side: Side):
        class Mine(side.d.Distribution):
            arg_constraints = {}

            def log_prob(self, value):
                self._validate_sample(value)
                return value

        return Mine().log_prob(side.t(1.0))

    agree(program)


def test_every_fact_of_an_empty_distribution_is_not_implemented():
    def program(side: Side):
        d = side.d.Distribution(validate_args=False)
        calls = [d.sample, d.rsample, d.entropy, d.perplexity, d.enumerate_support]
        calls += [lambda: d.log_prob(1), lambda: d.cdf(1), lambda: d.icdf(1)]
        calls += [lambda name=name: getattr(d, name) for name in ("mean", "mode", "variance", "stddev", "support")]
        said = []
        for call in calls:
            with pytest.raises(NotImplementedError) as raised:
                call()
            said.append(str(raised.value).replace("pullback", "torch"))
        return said

    agree(program)
