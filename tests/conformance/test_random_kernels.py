"""The random kernels give torch's numbers, bit for bit, and leave the generator in torch's state."""

# ruff: noqa: B023 (`check` calls the functions it is given before the loop goes on)

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

import pullback.kernels.numpy.random.distributions as R
from pullback import _dtype as dtypes
from pullback._runtime.quiet import quiet

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="the bits are those of torch's code for AVX2 and FMA; elsewhere torch rounds differently",
)

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
# Around 16, where normal changes its way, and around the pieces in which long draws are made.
SIZES = [0, 1, 4, 5, 15, 16, 17, 33, 1000, 32768, 32769, 32784, 32785, 70007]


def numpy_dtype(name):
    return getattr(dtypes, name).numpy  # where bfloat16 comes to be known


def array(tensor):
    """The numbers of a tensor, shared; NumPy's protocol knows no bfloat16."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def outcome(function):
    try:
        return function()
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
        return type(error), str(error).split("\n")[0]


def check(of_torch, of_kernel, seed=0):
    """Run both from one seed, twice, and compare the bits of the results, or the errors, and the states."""
    engine = R.Engine(seed)
    torch.manual_seed(seed)
    for _ in range(2):
        expected, got = outcome(lambda: array(of_torch())), outcome(lambda: quiet().run(of_kernel, engine))
        if isinstance(expected, tuple) or isinstance(got, tuple):
            assert got == expected
            return
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        assert got.flags.c_contiguous
        differing = np.frombuffer(got.tobytes(), np.uint8) != np.frombuffer(expected.tobytes(), np.uint8)
        assert not differing.any(), f"{differing.mean():.2%} of the bytes differ"
        assert np.array_equal(engine.get_state(), torch.get_rng_state().numpy())


def empty(size, dtype):
    return torch.empty(size, dtype=getattr(torch, dtype))


def random_parameters(shape, dtype, scale=1.0, seed=7):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator) * scale).to(getattr(torch, dtype))


def needs_generator(fill):
    """Skip where torch draws from a library of the processor's maker and takes only a seed from its generator."""
    torch.manual_seed(0)
    fill(torch.empty(4))
    if torch.get_rng_state()[16] != 8:
        pytest.skip("this build of torch does not draw these numbers from its own generator")


# ---------------------------------------------------------------------------------------------------- the engine


@pytest.mark.parametrize("seed", [0, 1, 2**31 + 5, 2**40 + 3, -1, 2**64 - 1])
def test_an_engine_has_torchs_state_at_every_step(seed):
    engine = R.Engine(seed)
    torch.manual_seed(seed)
    assert engine.initial_seed == torch.initial_seed()
    for n in (0, 1, 5, 623, 624, 625, 3, 2000, 620, 1, 4):
        drawn = torch.empty(n, dtype=torch.int32).random_(0, 2**20).numpy()
        assert np.array_equal(engine.raw32(n) % 2**20, drawn)
        assert np.array_equal(engine.get_state(), torch.get_rng_state().numpy())


def test_a_state_of_torch_continues_in_an_engine():
    torch.manual_seed(3)
    torch.randn(5)
    engine = R.Engine(0)
    engine.set_state(torch.get_rng_state().numpy())
    for _ in range(3):
        assert np.array_equal(R.normal(engine, (7,), np.float32), torch.randn(7).numpy())
        assert np.array_equal(R.uniform(engine, (700,), np.float32), torch.rand(700).numpy())


def test_a_state_of_an_engine_continues_in_torch():
    engine = R.Engine(11)
    R.normal(engine, (3,), np.float64)
    generator = torch.Generator()
    generator.set_state(torch.from_numpy(engine.get_state()))
    assert generator.initial_seed() == 11
    for _ in range(3):
        expected = torch.empty(7, dtype=torch.float64).normal_(generator=generator).numpy()
        assert np.array_equal(R.normal(engine, (7,), np.float64), expected)


def test_a_kept_float_sample_survives_the_state():
    engine = R.Engine(1)
    engine.next_float_normal_sample = 0.25
    generator = torch.Generator()
    generator.set_state(torch.from_numpy(engine.get_state()))
    assert np.array_equal(generator.get_state().numpy(), engine.get_state())
    assert engine.clone().next_float_normal_sample == 0.25


def test_a_clone_goes_its_own_way():
    engine = R.Engine(5)
    engine.raw32(100)
    clone = engine.clone()
    assert np.array_equal(clone.raw64(1000), engine.raw64(1000))
    clone.raw32(1)
    assert not np.array_equal(clone.raw32(10), engine.raw32(10))


@pytest.mark.parametrize("state", [np.zeros(5, np.uint8), np.zeros(5056, np.uint8), np.zeros(5056, np.float32)])
def test_a_wrong_state_is_refused_in_torchs_words(state):
    expected = outcome(lambda: torch.Generator().set_state(torch.from_numpy(state)))
    assert outcome(lambda: R.Engine(0).set_state(state)) == expected


# ---------------------------------------------------------------------------------------------------- uniform


@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1), (0.3, 7.7), (0, 5.3), (-0.05, 0.05), (1, 1)])
def test_uniform(dtype, bounds):
    for n in SIZES:
        check(lambda: empty(n, dtype).uniform_(*bounds), lambda e: R.uniform(e, (n,), numpy_dtype(dtype), *bounds), n)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64"])
@pytest.mark.parametrize("bounds", [(2, 1), (0, 1e39), (-1e39, 0), (-3e38, 3e38), (-6e4, 6e4)])
def test_uniform_refuses_bounds_in_torchs_words(dtype, bounds):
    check(lambda: empty(4, dtype).uniform_(*bounds), lambda e: R.uniform(e, (4,), numpy_dtype(dtype), *bounds))


# ---------------------------------------------------------------------------------------------------- normal


@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("parameters", [(0, 1), (0.3, 1.7), (0, 2.5), (1.5, 1), (2, 0)])
def test_normal(dtype, parameters):
    for n in SIZES:
        check(
            lambda: empty(n, dtype).normal_(*parameters),
            lambda e: R.normal(e, (n,), numpy_dtype(dtype), *parameters),
            n,
        )


def test_a_million_float32_normals_have_torchs_bits():
    check(lambda: torch.randn(1_000_003), lambda e: R.normal(e, (1_000_003,), np.float32), 4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_for_a_target_that_is_not_contiguous(dtype):
    shape = (31, 21)
    check(
        lambda: empty(shape, dtype).t().normal_(0.3, 1.7).t(),
        lambda e: R.normal(e, shape, numpy_dtype(dtype), 0.3, 1.7, contiguous=False),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shapes", [((20,), None), (None, (20,)), ((20,), (5, 20)), ((3,), (3,)), ((2, 1), (3,))])
def test_normal_of_means_and_deviations(dtype, shapes):
    mean, std = (p if s is None else random_parameters(s, dtype) for s, p in zip(shapes, (1.5, 2.5), strict=True))
    arrays = [array(p) if isinstance(p, torch.Tensor) else p for p in (mean, std)]
    check(lambda: torch.normal(mean, std), lambda e: R.normal_of_arrays(e, *arrays))


def test_normal_refuses_negative_deviations_in_torchs_words():
    check(lambda: torch.empty(4).normal_(0, -1), lambda e: R.normal(e, (4,), np.float32, 0, -1))
    check(lambda: empty(4, "int64").normal_(), lambda e: R.normal(e, (4,), np.int64))
    mean, std = torch.zeros(3), torch.tensor([1.0, -1.0, 1.0])
    check(lambda: torch.normal(mean, std), lambda e: R.normal_of_arrays(e, mean.numpy(), std.numpy()))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("parameters", [(1, 2), (0, 1), (3.3, 1.7), (0, 300), (0, 0)])
def test_log_normal(dtype, parameters):
    for n in (0, 4, 5, 40000):
        check(
            lambda: empty(n, dtype).log_normal_(*parameters),
            lambda e: R.log_normal(e, (n,), numpy_dtype(dtype), *parameters),
        )


# ---------------------------------------------------------------------------------------------------- integers

RANGES = [(0, 10), (-5, 7), (0, 2), (0, 2**27), (0, 2**28), (0, 2**31 - 1), (-(2**31), 2**31 - 1), (5, 2**40)]
RANGES += [(-(2**62), 2**62 + 5), (-(2**63), 2**63 - 1), (0, 257), (0, 2**17), (5, 5), (-1, 2), (2049, 2050)]
RANGES += [(0, 5000), (0, 65504), (-(2**25), 2**26), (3, None), (-7, None), (-(2**63), None), (2**25, None)]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool", "uint16", "uint32", "uint64", "complex64"])
def test_random_of_a_range(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for low, high in RANGES:
            for n in (0, 3, 2000):
                check(
                    lambda: empty(n, dtype).random_(low, high),
                    lambda e: R.random_from_to(e, (n,), numpy_dtype(dtype), low, high),
                )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool", "uint16", "uint64", "complex64"])
def test_random_without_a_range(dtype):
    for n in (0, 3, 40000):
        check(lambda: empty(n, dtype).random_(), lambda e: R.random(e, (n,), numpy_dtype(dtype)))


@pytest.mark.parametrize(
    ("dtype", "bounds"), [("float16", (0, 5000)), ("bfloat16", (-300, 5)), ("float32", (0, 2**26))]
)
def test_random_warns_where_the_type_is_too_narrow(dtype, bounds):
    with pytest.warns(UserWarning) as of_torch:
        empty(4, dtype).random_(*bounds)
    with pytest.warns(UserWarning) as of_kernel:
        R.random_from_to(R.Engine(0), (4,), numpy_dtype(dtype), *bounds)
    texts = [str(w.message).split(" (Triggered")[0] for w in of_torch]
    assert [str(w.message) for w in of_kernel] == texts


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool", "uint16", "complex64"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 128, 129, 256, 257, 999, 1000, 2049, 2050, 65537, 100_000])
def test_randperm(dtype, n):
    check(lambda: torch.randperm(n, dtype=getattr(torch, dtype)), lambda e: R.randperm(e, n, numpy_dtype(dtype)))


# ---------------------------------------------------------------------------------------------------- coins and waits


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool", "complex64"])
@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0, 1.5])
def test_bernoulli_of_a_number(dtype, p):
    needs_generator(lambda t: t.bernoulli_())
    for n in (0, 4, 40000):
        check(lambda: empty(n, dtype).bernoulli_(p), lambda e: R.bernoulli(e, (n,), numpy_dtype(dtype), p))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("p_dtype", [*FLOATS, "int64"])
def test_bernoulli_of_an_array(dtype, p_dtype):
    for shape in ((0,), (4,), (100, 30)):
        p = random_parameters(shape[-1:], p_dtype)
        check(
            lambda: empty(shape, dtype).bernoulli_(p),
            lambda e: R.bernoulli_of_array(e, array(p), shape, numpy_dtype(dtype)),
        )


def test_bernoulli_refuses_what_is_no_probability_in_torchs_words():
    p = torch.full((4,), 1.5)
    check(lambda: torch.bernoulli(p), lambda e: R.bernoulli_of_array(e, p.numpy(), (4,), np.float32))


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "complex64"])
@pytest.mark.parametrize("rate", [1.0, 2.5, 0.1, 0.0, -1.5, float("inf"), float("nan")])
def test_exponential(dtype, rate):
    needs_generator(lambda t: t.exponential_())
    for n in (0, 4, 40000):
        check(lambda: empty(n, dtype).exponential_(rate), lambda e: R.exponential(e, (n,), numpy_dtype(dtype), rate))


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "complex64"])
@pytest.mark.parametrize("parameters", [(0, 1), (1.5, 2.5), (0, 0.3), (1, 0)])
def test_cauchy(dtype, parameters):
    for n in (0, 4, 40000):
        check(
            lambda: empty(n, dtype).cauchy_(*parameters), lambda e: R.cauchy(e, (n,), numpy_dtype(dtype), *parameters)
        )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool", "complex64"])
@pytest.mark.parametrize("p", [0.5, 0.3, 0.01, 0.99, 1.0])
def test_geometric(dtype, p):
    for n in (0, 4, 40000):
        check(lambda: empty(n, dtype).geometric_(p), lambda e: R.geometric(e, (n,), numpy_dtype(dtype), p))


# ---------------------------------------------------------------------------------------------------- samplers


@pytest.mark.parametrize("dtype", [*FLOATS, "int64"])
@pytest.mark.parametrize("scale", [0.5, 5, 9.99, 60, 1000, 1e6])
def test_poisson(dtype, scale):
    for n in (0, 4, 1500):
        rate = random_parameters(n, dtype, scale)
        check(lambda: torch.poisson(rate), lambda e: R.poisson(e, array(rate)))


@pytest.mark.parametrize("rate", [0.0, 0.3, 9.0, 10.0, 33.3, 1e5, float("inf")])
def test_poisson_of_one_rate(rate):
    rates = torch.full((70, 50), rate)
    check(lambda: torch.poisson(rates), lambda e: R.poisson(e, rates.numpy()))


def test_poisson_refuses_negative_rates_in_torchs_words():
    rate = torch.tensor([1.0, -1.0])
    check(lambda: torch.poisson(rate), lambda e: R.poisson(e, rate.numpy()))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [-3, 1, 5, 20, 100, 10000, 1e6])
@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 1.3])
def test_binomial(dtype, count, scale):
    for n in (0, 4, 500):
        counts, prob = torch.full((n,), count).to(getattr(torch, dtype)), random_parameters(n, dtype, scale)
        check(lambda: torch.binomial(counts, prob), lambda e: R.binomial(e, array(counts), array(prob)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 100, 12345])
@pytest.mark.parametrize("p", [0.0, 0.001, 0.3, 0.5, 0.7, 1.0, float("nan")])
def test_binomial_of_one_count_and_probability(dtype, count, p):
    counts, prob = (torch.full((3000,), x, dtype=getattr(torch, dtype)) for x in (count, p))
    check(lambda: torch.binomial(counts, prob), lambda e: R.binomial(e, counts.numpy(), prob.numpy()))


@pytest.mark.parametrize("dtype", [*FLOATS, "int64"])
@pytest.mark.parametrize("scale", [0.01, 0.5, 1.5, 10, 1000, -2.0])
def test_standard_gamma(dtype, scale):
    for n in (0, 4, 1500):
        alpha = random_parameters(n, dtype, scale)
        check(lambda: torch._standard_gamma(alpha), lambda e: R.standard_gamma(e, array(alpha)))


@pytest.mark.parametrize("shape", [(5,), (100, 3), (40, 10), (3, 1000), (2, 3, 4)])
def test_dirichlet(shape):
    alpha = random_parameters(shape, "float32", 3)
    check(lambda: torch._sample_dirichlet(alpha), lambda e: R.dirichlet(e, alpha.numpy()))


@pytest.mark.parametrize("shape", [(5,), (100, 3), (3, 1000)])
def test_dirichlet_in_float64_is_equal_but_for_the_rounding_of_the_sum(shape):
    alpha = random_parameters(shape, "float64", 3)
    torch.manual_seed(0)
    engine = R.Engine(0)
    got, expected = R.dirichlet(engine, alpha.numpy()), torch._sample_dirichlet(alpha).numpy()
    assert np.allclose(got, expected, rtol=1e-14, atol=0)
    assert np.array_equal(engine.get_state(), torch.get_rng_state().numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5,), (100, 3), (40, 10), (3, 1000), (0, 4)])
@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(dtype, shape, replacement):
    needs_generator(lambda t: t.exponential_())
    for samples in (0, 1, 2, 3, 5):
        prob = random_parameters(shape, dtype)
        check(
            lambda: torch.multinomial(prob, samples, replacement),
            lambda e: R.multinomial(e, array(prob), samples, replacement),
        )


@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial_with_many_samples(dtype):
    prob = random_parameters(1000, dtype)
    check(lambda: torch.multinomial(prob, 50000, True), lambda e: R.multinomial(e, array(prob), 50000, True))


def test_multinomial_draws_in_the_order_of_a_transposed_input():
    needs_generator(lambda t: t.exponential_())
    prob = random_parameters((10, 40), "float32").t()
    for samples in (1, 3):
        check(lambda: torch.multinomial(prob, samples), lambda e: R.multinomial(e, prob.numpy(), samples))


@pytest.mark.parametrize(
    "values", [[0.0, 0.0], [-1.0, 2.0], [np.inf, 2.0], [np.nan, 2.0], [], [[1.0, 0.0], [0.0, 0.0]]]
)
@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial_refuses_what_is_no_distribution_in_torchs_words(values, replacement):
    prob = torch.tensor(values)
    for samples in (1, 2):
        check(
            lambda: torch.multinomial(prob, samples, replacement),
            lambda e: R.multinomial(e, prob.numpy(), samples, replacement),
        )


# ---------------------------------------------------------------------------------------------------- strided targets


@pytest.mark.parametrize(
    "view",
    [
        lambda: torch.zeros(3, 4).t(),
        lambda: torch.zeros(4, 3, 2).permute(1, 2, 0),
        lambda: torch.zeros(8, 6)[::2, ::3],
        lambda: torch.zeros(8, 6).t()[::2, ::3],
        lambda: torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
        lambda: torch.zeros(3, 1, 4).transpose(0, 2),
        lambda: torch.zeros(()),
    ],
)
def test_a_strided_target_is_filled_in_the_order_of_memory(view):
    target, expected = view(), view()
    torch.manual_seed(0)
    expected.uniform_()
    ordered = R.fill_order(target.numpy())
    ordered[...] = R.uniform(R.Engine(0), ordered.shape, np.float32)
    assert torch.equal(target, expected)
