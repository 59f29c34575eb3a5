"""NumPy's error state belongs to the user: pullback computes without NumPy's warnings, and changes nothing."""

import re
import threading
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import pullback as torch
from tests.structure.source import python_files

BIG = torch.full((3,), 1e38)
ZERO = torch.zeros(3)
MATRIX = torch.tensor([[1, -float("inf"), 3e38], [float("nan"), float("inf"), 0], [0, -0.0, -3e38]])
nn = torch.nn.functional


def backward_through_infinity() -> None:
    leaf = torch.zeros(3, requires_grad=True)
    (leaf.log() * leaf.rsqrt()).sum().backward()


def steps_of_an_optimizer() -> None:
    parameter = torch.nn.Parameter(BIG.clone())
    parameter.grad = BIG.clone()
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.Adagrad):
        kind([parameter], lr=1e9).step()


def writes() -> None:
    x = torch.ones(3)
    x /= 0
    x.log_().mul_(1e38).mul_(1e38).sub_(x)
    torch.div(BIG, 0, out=x)


def random_numbers() -> None:
    torch.empty(2000).normal_(0, 1e308).cauchy_(0, 1e300).log_normal_(0, 1e6).exponential_(1e-300).geometric_(1e-9)
    torch.empty(2000).half().normal_(0, 1e30)
    torch.normal(torch.zeros(3), 1e38), torch.normal(0.0, 1e300, (2000,)), torch.randn(2000, dtype=torch.float16)
    torch.multinomial(torch.tensor([0.0, 1e-40, 1.0]), 2), torch.poisson(torch.full((2000,), 3e8))
    torch.binomial(torch.full((2000,), 1e6), torch.full((2000,), 0.5))
    alpha = torch.tensor([1e-40, 0.0, 1e-3, 1.0, 3e38], requires_grad=True)
    torch._standard_gamma(alpha).sum().backward()
    concentrations = torch.tensor([1e-30, 1e-3, 1e30], requires_grad=True)
    torch.distributions.Dirichlet(concentrations).rsample().sum().backward()


def distances() -> None:
    points = torch.tensor([[0.0, 0.0], [0.0, 0.0], [3e38, -3e38]], requires_grad=True)
    for p in (0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
        torch.cdist(points, points, p).sum().backward()
        torch.pdist(points, p).sum().backward()


def alignments() -> None:
    scores = torch.full((4, 1, 3), -float("inf"), requires_grad=True)
    nn.ctc_loss(scores, torch.tensor([[1, 1, 2]]), (4,), (3,)).backward()
    nn.ctc_loss(MATRIX[:, None].clone().requires_grad_(), torch.tensor([[1]]), (3,), (1,)).backward()


def points_of_an_image() -> None:
    image = torch.full((1, 1, 3, 3), 3e38, requires_grad=True)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            grid = MATRIX[:, :2].reshape(1, 3, 1, 2).clone().requires_grad_()
            nn.grid_sample(image, grid, mode, padding, align_corners=False).sum().backward()


def transformers() -> None:
    attention = torch.nn.MultiheadAttention(3, 1).eval()
    big = torch.full((2, 1, 3), 3e38)
    with torch.no_grad():
        attention(big, big, big, need_weights=False)
        nn.scaled_dot_product_attention(big, big, big)
        (
            torch.nn.LSTMCell(3, 3)(MATRIX),
            torch.nn.GRUCell(3, 3)(MATRIX),
            torch.nn.RNNCell(3, 3, nonlinearity="relu")(MATRIX),
        )
        nn.instance_norm(MATRIX[None]), torch.outer(BIG, BIG)
        nn.batch_norm(MATRIX, ZERO, ZERO), nn.batch_norm(MATRIX, None, None, training=True)


CALLS: dict[str, Callable[[], object]] = {
    "a quotient": lambda: torch.ones(3) / ZERO,
    "a product": lambda: BIG * BIG,
    "a number that does not fit": lambda: torch.ones(2) * 1e300,
    "functions": lambda: (ZERO.log(), (-BIG).sqrt(), BIG.exp(), ZERO.pow(-1), BIG.acos(), ZERO.lgamma()),
    "sums": lambda: (BIG.sum(), BIG.mean(), BIG.prod(), BIG.cumsum(0), BIG.norm(), BIG.var(), BIG.logsumexp(0)),
    "products of matrices": lambda: torch.full((2, 2), 1e38) @ torch.full((2, 2), 1e38),
    "casts": lambda: (torch.tensor([float("nan"), 1e30]).int(), torch.tensor([1e300], dtype=torch.float64).float()),
    "half precision": lambda: (BIG.half(), torch.full((3,), 6e4).half() * 2, BIG.bfloat16() * 10),
    "making tensors": lambda: (torch.tensor([1e300]), torch.full((2,), 3e38), torch.linspace(0, 3e38, 3)),
    "ranges": lambda: (torch.linspace(1e30, 1e35, 1, dtype=torch.float16), torch.logspace(1, 500, 2)),
    "layers": lambda: (nn.linear(MATRIX, MATRIX, BIG), nn.layer_norm(MATRIX, (3,)), nn.group_norm(MATRIX[None], 3)),
    "angles": lambda: (
        nn.cosine_similarity(MATRIX, MATRIX),
        nn.normalize(MATRIX),
        torch.einsum("ij,jk", MATRIX, MATRIX),
    ),
    "writing into integers": lambda: torch.zeros(3, dtype=torch.uint8).copy_(-BIG),
    "rounding": lambda: torch.round(BIG, decimals=400),
    "losses": lambda: (nn.mse_loss(BIG, -BIG), nn.cross_entropy(MATRIX, torch.tensor([0, 1, 2]))),
    "random numbers": random_numbers,
    "distances": distances,
    "alignments": alignments,
    "points of an image": points_of_an_image,
    "attention, cells and norms": transformers,
    "softmax": lambda: torch.softmax(torch.full((2,), -float("inf")), 0),
    "printing": lambda: repr(torch.tensor([float("inf"), 1e-45, float("nan"), 3e38])),
    "a backward pass": backward_through_infinity,
    "a derivative of a derivative": lambda: torch.func.hessian(lambda u: (1 / u).sum())(ZERO),
    "a tangent": lambda: torch.func.jvp(lambda u: u.log() / u, (ZERO,), (ZERO,)),
    "a batch": lambda: torch.func.vmap(lambda u: u / 0)(BIG),
    "in-place": writes,
    "optimizers": steps_of_an_optimizer,
    "large arrays": lambda: (torch.ones(100_000) / torch.zeros(100_000), torch.full((100_000,), 1e38).sum()),
}


def heard(call: Callable[[], object]) -> list[str]:
    """What is warned of while a call is made, often enough that whatever is compiled for it is used as well."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(60):
            call()
    return [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]


@pytest.mark.parametrize("name", CALLS)
def test_numpy_does_not_warn_of_what_pullback_computes(name: str) -> None:
    assert heard(CALLS[name]) == []


@pytest.mark.parametrize("name", ["a quotient", "functions", "a backward pass", "optimizers"])
def test_nor_in_other_threads(name: str) -> None:
    said: list[list[str]] = []
    thread = threading.Thread(target=lambda: said.append(heard(CALLS[name])))
    thread.start()
    thread.join()
    assert said == [[]]


@pytest.mark.parametrize("state", ["raise", "warn", "print"])
def test_the_error_state_of_the_user_stays_and_concerns_only_the_user(state: str) -> None:
    with np.errstate(all=state):  # type: ignore[arg-type]
        before = np.geterr()
        assert torch.isinf(torch.ones(3) / ZERO).all()
        backward_through_infinity()
        writes()
        assert np.geterr() == before
        if state == "raise":
            with pytest.raises(FloatingPointError):
                np.ones(1) / np.zeros(1)


def test_importing_pullback_leaves_numpy_as_it_was(run_python: Callable[[str], str]) -> None:
    assert "ok" in run_python(
        "import warnings, numpy as np\n"
        "state, filters = np.geterr(), list(warnings.filters)\n"
        "import pullback, pullback.nn, pullback.optim\n"
        "pullback.ones(3) / 0\n"
        "assert np.geterr() == state and warnings.filters == filters\n"
        "print('ok')"
    )


def test_one_module_alone_sets_the_error_state() -> None:
    setting = [path.name for path in python_files("src") if re.search(r"errstate\(|seterr", path.read_text("utf-8"))]
    assert setting == ["_quiet.py"]
