"""Ops without kernels of their own run on the device by those of what they are made of; nothing goes by the host."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pullback as torch
from pullback.kernels.cuda.composed import forwards

from .agreeing import agree

F = torch.nn.functional
KINDS = [torch.float32, torch.bfloat16]


def matrix(*shape: int, dtype: Any = torch.float32) -> Any:
    torch.manual_seed(0)
    return torch.randn(*(shape or (4, 6))).to(dtype)


def halves(x: Any) -> Any:
    """The positions of ones."""
    return (x > 0).to(x.dtype).detach()


LOSSES = {
    "mse": lambda x, y: F.mse_loss(x, y),
    "mse none": lambda x, y: F.mse_loss(x, y, reduction="none"),
    "mse sum": lambda x, y: F.mse_loss(x, y, reduction="sum"),
    "smooth_l1": lambda x, y: F.smooth_l1_loss(x, y),
    "huber": lambda x, y: F.huber_loss(x, y, delta=0.7),
    "bce": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid().detach()),
    "bce of logits": lambda x, y: F.binary_cross_entropy_with_logits(x, halves(y)),
    "bce with weights": lambda x, y: F.binary_cross_entropy_with_logits(x, halves(y), pos_weight=y.detach().abs()[0]),
    "soft margin": lambda x, y: F.soft_margin_loss(x, y.sign().detach()),
    "log of sigmoid": lambda x, y: F.logsigmoid(x),
    "glu": lambda x, y: F.glu(x),
    "prelu": lambda x, y: F.prelu(x, y[0, :1]),
    "logsumexp": lambda x, y: x.logsumexp(1),
    "softmax of columns": lambda x, y: x.softmax(0),
    "log of softmax of columns": lambda x, y: x.log_softmax(0),
    "std and mean": lambda x, y: torch.std_mean(x, 1),
    "variance": lambda x, y: x.var(0),
    "nansum": lambda x, y: torch.where(y > 0, x, float("nan")).nansum(1),
    "bounds": lambda x, y: torch.clamp(x, y - 0.5, y + 0.5),
    "distances": lambda x, y: F.pairwise_distance(x, y),
    "norm of rows": lambda x, y: x.renorm(2, 0, 1.0),
    "weights and norms": lambda x, y: torch._weight_norm(x, y[:, :1].abs(), 0),
}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_norms_are_composed_on_the_device(name: str, dtype: Any) -> None:
    agree(LOSSES[name], matrix(dtype=dtype), matrix(dtype=dtype).flip(0) * 0.7)


CLASSES = {
    "halves": (lambda x, t: F.cross_entropy(x, t[:, 0, 0]), (4, 6), torch.bfloat16),
    "weights": (lambda x, t: F.cross_entropy(x, t[:, 0, 0], weight=torch.arange(1.0, 7.0, device=x.device)), (4, 6)),
    "smoothing": (lambda x, t: F.cross_entropy(x, t[:, 0, 0], label_smoothing=0.1), (4, 6)),
    "ignored": (lambda x, t: F.cross_entropy(x, t[:, 0, 0], ignore_index=2), (4, 6)),
    "images": (lambda x, t: F.cross_entropy(x, t), (4, 6, 2, 3)),
    "images, none": (lambda x, t: F.cross_entropy(x, t, reduction="none"), (4, 6, 2, 3)),
    "images, ignored": (lambda x, t: F.cross_entropy(x, t, ignore_index=1), (4, 6, 2, 3)),
}


@pytest.mark.parametrize("name", CLASSES)
def test_losses_of_classes_take_weights_halves_and_images(name: str) -> None:
    compute, shape, *dtype = CLASSES[name]
    classes = torch.arange(24).reshape(4, 2, 3) % 6
    agree(compute, matrix(*shape, dtype=dtype[0] if dtype else torch.float32), classes)


MOVED = {
    "diagonals": lambda x: x.diag_embed(),
    "trace": lambda x: x.trace(),
    "turned": lambda x: x.rot90(),
    "blocks": lambda x: torch.block_diag(x, x * 2),
    "select_scatter": lambda x: x.select_scatter(x[0] * 2, 0, 1),
    "slice_scatter": lambda x: x.slice_scatter(x[:2] * 2, 0, 1, 3),
    "windows": lambda x: x.unfold(1, 3, 1) * 2,
    "strides": lambda x: x.as_strided((2, 2), (1, 2)) * 2,
    "blocks of images": lambda x: F.unfold(x.reshape(1, 1, 4, 6), 2),
    "images of blocks": lambda x: F.fold(x.reshape(1, 4, 6), (3, 4), (2, 2)),
    "reflected": lambda x: F.pad(x[None], (1, 2, 1, 1), mode="reflect"),
    "replicated": lambda x: F.pad(x[None], (1, 2), mode="replicate"),
    "shuffled": lambda x: F.pixel_shuffle(x.reshape(1, 4, 2, 3), 2),
    "shuffled back": lambda x: F.pixel_unshuffle(x.reshape(1, 1, 4, 6), 2),
    "channels": lambda x: F.channel_shuffle(x.reshape(1, 4, 2, 3), 2),
    "cross": lambda x: torch.linalg.cross(x[:, :3], x[:, 3:]),
    "batches of products": lambda x: torch.addbmm(x[:, :4], x[None], x.t()[None]),
    "matrix and vector": lambda x: torch.addmv(x[:, 0], x, x[0]),
    "outer": lambda x: torch.addr(x, x[:, 0], x[0]),
    "unpooled": lambda x: F.max_unpool2d(*F.max_pool2d(x.reshape(1, 1, 4, 6), 2, return_indices=True), 2),
}


@pytest.mark.parametrize("name", MOVED)
def test_rearrangements_are_composed_on_the_device(name: str) -> None:
    agree(MOVED[name], matrix())


def test_products_and_running_products_run_on_the_device() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        agree(lambda x: x.prod(), matrix(dtype=dtype))
        agree(lambda x: x.prod(1), matrix(dtype=dtype))
        agree(lambda x: x.cumprod(1), matrix(dtype=dtype))
    whole = torch.arange(1, 13).reshape(3, 4)
    for compute in (lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.cumprod(1)):
        agree(compute, whole)
    agree(lambda x: x.cumprod(0), matrix(3000, 2).sign() * 1.0)


@pytest.mark.parametrize("cell", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers_run_on_the_device(cell: Any) -> None:
    torch.manual_seed(0)
    layer = cell(6, 4)
    parameters = [p.detach().clone() for p in layer.parameters()]
    names = [name for name, _ in layer.named_parameters()]

    def run(x: Any, *weights: Any) -> Any:
        return torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x,))[0]

    agree(run, matrix(5, 2, 6), *parameters)


def test_an_attempt_that_fails_is_not_made_again_and_gives_the_hosts_answer() -> None:
    x = torch.linspace(0.1, 3, 5)
    for times in range(2):
        torch.cuda.reset_fallbacks()
        made = torch.special.bessel_j0(x.cuda())
        assert torch.cuda.fallbacks() == {"bessel_j0": 1}, times
    assert torch.allclose(made.cpu(), torch.special.bessel_j0(x))
    assert any(key[0] == "bessel_j0" for key in forwards.refused)


def test_what_is_drawn_at_random_is_not_attempted() -> None:
    x = torch.rand(4, 6)
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        found.append((torch.poisson(x.cuda()).tolist(), torch.rand(2).tolist()))
    assert found[0] == found[1]


JOINED = ["sum", "prod", "mean", "amax", "amin"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("reduce", JOINED)
def test_elements_are_joined_where_an_index_sends_them(reduce: str, dtype: Any) -> None:
    x = torch.arange(1, 25).reshape(4, 6).flip(1).to(dtype) if dtype is torch.int64 else matrix(dtype=dtype)
    at = torch.tensor([[0, 1, 0, 2, 1, 0]] * 4)

    def run(x: Any, at: Any, include: bool) -> Any:
        return torch.ones_like(x).scatter_reduce(1, at, x, reduce, include_self=include)

    for include in (True, False):
        agree(run, x, at, include)
    if reduce != "sum":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is in beta
            agree(lambda x, at: torch.ones_like(x).index_reduce(0, at[:, 0], x, reduce), x, at)


def test_extrema_of_what_has_nan_and_infinities_are_joined_as_on_the_host() -> None:
    x = torch.tensor([1.0, float("nan"), -float("inf"), float("inf"), -0.0, 0.0])
    at = torch.tensor([0, 0, 1, 1, 2, 2])
    for reduce in ("amax", "amin"):
        agree(lambda x, at, r=reduce: torch.zeros(3, device=x.device).scatter_reduce(0, at, x, r), x, at, grad=False)


SCANS = {
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(0),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
}


@pytest.mark.parametrize("name", SCANS)
def test_running_extrema_and_logarithms_run_on_the_device(name: str) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        agree(SCANS[name], matrix(dtype=dtype))
    agree(SCANS[name], matrix(2, 3000), grad=False)
    agree(lambda x: SCANS[name](x), torch.tensor([[1.0, -float("inf"), 2.0, float("nan"), 0.0]]), grad=False)


def test_running_extrema_of_integers_run_on_the_device() -> None:
    for dtype in (torch.int64, torch.int32, torch.uint8):
        x = (torch.arange(24).reshape(4, 6) * 7 % 11).to(dtype)
        agree(lambda x: x.cummax(1), x)
        agree(lambda x: x.cummin(1), x)


POOLS = {
    "2 of 4 x 6": lambda x: F.adaptive_max_pool2d(x.reshape(2, 1, 4, 6), 2),
    "3 x 4 of 4 x 6": lambda x: F.adaptive_max_pool2d(x.reshape(2, 1, 4, 6), (3, 4), return_indices=True),
    "4 of 6": lambda x: F.adaptive_max_pool1d(x.reshape(2, 4, 6), 4),
    "1 x 2 x 3 of 2 x 4 x 6": lambda x: F.adaptive_max_pool3d(x.reshape(1, 1, 2, 4, 6), (1, 3, 4)),
}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", POOLS)
def test_adaptive_maxima_of_uneven_windows_run_on_the_device(name: str, dtype: Any) -> None:
    agree(POOLS[name], matrix(8, 6, dtype=dtype))


SEARCHES = {
    "searchsorted": lambda x: torch.searchsorted(x.sort(1)[0], x),
    "of one row": lambda x: torch.searchsorted(x[0].sort()[0], x, right=True),
    "in 32 bits": lambda x: torch.searchsorted(x[0].sort()[0], x, out_int32=True),
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([-1, 0, 1], device=x.device).to(x.dtype)),
    "isin": lambda x: torch.isin(x, x[:2]),
    "mode": lambda x: x.mode(1),
    "median": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(1),
    "count": lambda x: x.count_nonzero(1),
    "unique slices": lambda x: torch.cat([x, x.flip(0)]).unique(dim=0, return_inverse=True, return_counts=True),
    "unique columns": lambda x: x.unique(dim=1),
    "runs": lambda x: x.unique_consecutive(return_inverse=True, return_counts=True),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("name", SEARCHES)
def test_searching_and_counting_run_on_the_device(name: str, dtype: Any) -> None:
    agree(SEARCHES[name], (matrix() * 2).round().to(dtype), grad=False)


WHOLE = {
    "%": lambda x: x % 3,
    "% -3": lambda x: x % -3,
    "//": lambda x: x // 4,
    "// -4": lambda x: x // -4,
    "% tensor": lambda x: x % (x.abs() + 2),
    "fmod": lambda x: torch.fmod(x, -3),
    "<<": lambda x: x << 2,
    ">>": lambda x: x >> 1,
    "==": lambda x: x == 3,
    "<": lambda x: x < 3,
    "clamp": lambda x: x.clamp(-2, 3),
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "masked_fill": lambda x: x.masked_fill(x > 2, 1),
    "where": lambda x: torch.where(x > 2, x, x.flip(0)),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8])
@pytest.mark.parametrize("name", WHOLE)
def test_integers_compute_on_the_device_as_on_the_host(name: str, dtype: Any) -> None:
    agree(WHOLE[name], torch.arange(-12, 12).reshape(4, 6).to(dtype))


def test_bytes_compute_on_the_device_as_on_the_host() -> None:
    x = (torch.arange(24).reshape(4, 6) * 11).to(torch.uint8)
    for name in ("%", "//", "==", "<", "maximum", "masked_fill"):
        agree(WHOLE[name], x)


def test_a_mask_fills_with_numbers_and_elements_in_every_dtype() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        agree(lambda x: x.masked_fill(x > 0, float("-inf")), matrix(dtype=dtype))
        agree(lambda x: x.masked_fill(x > 0, x[0, 0].detach()), matrix(dtype=dtype))
        agree(lambda x: x.t().masked_fill(x.t() > 0, 2), matrix(dtype=dtype))
    agree(lambda x: x.masked_fill(x, False), matrix() > 0)


def test_tables_that_were_made_on_the_device_are_not_found_by_the_host() -> None:
    def run(x: Any) -> Any:
        return torch.zeros_like(x).scatter_reduce(1, torch.zeros(3, 7, dtype=torch.int64, device=x.device), x, "sum")

    x = matrix(3, 7)
    there = run(x.cuda())
    assert torch.allclose(run(x), there.cpu())
    agree(lambda x: F.pad(x[None], (3, 2), mode="reflect"), matrix(3, 9))


def test_numbers_of_distributions_are_made_where_their_tensors_are() -> None:
    distributions = torch.distributions
    for make in (
        lambda x: distributions.Normal(x, 1.0).log_prob(x * 2),
        lambda x: distributions.Normal(0.0, x.abs() + 1).entropy(),
        lambda x: distributions.Gumbel(x, 2.0).log_prob(x),
        lambda x: distributions.Laplace(x, 1.0).log_prob(x * 2),
        lambda x: distributions.kl_divergence(distributions.Normal(x, 1.0), distributions.Normal(x * 0, 2.0)),
        lambda x: distributions.Categorical(logits=x).entropy(),
        lambda x: distributions.Bernoulli(logits=x).log_prob((x > 0).to(x.dtype).detach()),
    ):
        agree(make, matrix())
    assert distributions.Normal(matrix().cuda(), 1.0).rsample().device.type == "cuda"


def test_elements_that_are_not_zero_are_counted_on_the_device() -> None:
    for x in (matrix().round(), matrix() > 0, torch.arange(24).reshape(4, 6) % 5):
        agree(lambda x: x.count_nonzero(), x, grad=False)
        agree(lambda x: x.count_nonzero(0), x, grad=False)


def test_what_distributions_make_of_nothing_is_on_the_device_of_their_parameters() -> None:
    x, distributions = matrix().cuda(), torch.distributions
    probabilities = x.softmax(1)
    for made in (
        distributions.Bernoulli(probabilities).enumerate_support(),
        distributions.Categorical(probabilities).enumerate_support(),
        distributions.OneHotCategorical(probabilities).enumerate_support(),
        distributions.Binomial(3, probabilities).enumerate_support(),
        distributions.Categorical(probabilities).mean,
        distributions.HalfCauchy(x.abs() + 1).mean,
        distributions.Cauchy(x, 1.0).mean,
        distributions.Cauchy(x, 1.0).variance,
    ):
        assert made.device == x.device
