"""NumPy's error state belongs to the user: pullback computes without NumPy's warnings, and changes nothing."""

import re
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch
from tests.structure.source import python_files

BIG = torch.full((3,), 1e38)
ZERO = torch.zeros(3)
MATRIX = torch.tensor([[1, -float("inf"), 3e38], [float("nan"), float("inf"), 0], [0, -0.0, -3e38]])
nn = torch.nn.functional


def backward_through_infinity() -> None:
    poles().backward()


def poles() -> torch.Tensor:
    leaf = torch.zeros(3, requires_grad=True)
    return (leaf.log() * leaf.rsqrt()).sum()


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
    "a backward pass step by step": lambda: list(torch.autograd.steps(poles())),
    "a graph with its gradients": lambda: torch.explore(poles(), path=None),
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


# ------------------------------------------------------------------ the user's own code inside of a backward pass


def noisy(*_: object) -> None:
    """What a user's function may do with NumPy."""
    np.log(np.zeros(1))


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        noisy()
        return grad


def recomputed(x: torch.Tensor, reentrant: bool) -> torch.Tensor:
    calls = []

    def segment(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        if len(calls) == 2:
            noisy()
        return x.exp()

    return torch.utils.checkpoint.checkpoint(segment, x, use_reentrant=reentrant)


def with_node_hook(x: torch.Tensor, register: str) -> torch.Tensor:
    y = x * 2
    assert y.grad_fn is not None
    getattr(y.grad_fn, register)(noisy)
    return y


def with_tensor_hook(x: torch.Tensor, hook: Callable[..., None] = noisy) -> torch.Tensor:
    y = x * 2
    y.register_hook(hook)
    return y


def with_leaf_hook(x: torch.Tensor, register: str) -> torch.Tensor:
    getattr(x, register)(noisy)
    return x * 2


def with_saved_hooks(x: torch.Tensor) -> torch.Tensor:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (noisy(), t)[1]):
        return x.exp()


def with_module_hook(x: torch.Tensor) -> torch.Tensor:
    module = torch.nn.Tanh()
    module.register_full_backward_hook(noisy)
    return module(x)


def queued(_: object) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(noisy)


USERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the hook of a tensor": with_tensor_hook,
    "the hook of a leaf": lambda x: with_leaf_hook(x, "register_hook"),
    "a hook after accumulation": lambda x: with_leaf_hook(x, "register_post_accumulate_grad_hook"),
    "the hook of a node": lambda x: with_node_hook(x, "register_hook"),
    "the pre-hook of a node": lambda x: with_node_hook(x, "register_prehook"),
    "the hook of a module": with_module_hook,
    "the backward of a Function": Noisy.apply,
    "what checkpoint computes again": lambda x: recomputed(x, False),
    "the same, reentrant": lambda x: recomputed(x, True),
    "what unpacks a saved tensor": with_saved_hooks,
    "a callback at the end of the pass": lambda x: with_tensor_hook(x, queued),
}
PASSES: dict[str, Callable[[torch.Tensor], object]] = {
    "backward": lambda y: y.backward(),
    "a pass that is recorded": lambda y: y.backward(create_graph=True),
    "steps": lambda y: list(torch.autograd.steps(y)),
}


def warned(call: Callable[[], object]) -> list[str]:
    """What NumPy warns of in one call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]


@pytest.mark.parametrize("way", PASSES)
@pytest.mark.parametrize("name", USERS)
def test_numpy_warns_of_what_the_user_computes_inside_of_a_backward_pass(name: str, way: str) -> None:
    if name == "the same, reentrant" and way == "a pass that is recorded":
        pytest.skip("reentrant checkpoints are only for passes that are not recorded")
    x = torch.ones(3, requires_grad=True)
    assert warned(lambda: PASSES[way](USERS[name](x).sum())) == ["divide by zero encountered in log"]


@pytest.mark.parametrize("name", USERS)
def test_the_user_decides_what_numpy_does_there(name: str) -> None:
    x = torch.ones(3, requires_grad=True)
    with np.errstate(divide="raise"):
        y = USERS[name](x).sum()
        with pytest.raises(FloatingPointError):
            y.backward()
        assert np.geterr()["divide"] == "raise"
    with np.errstate(divide="ignore"):
        assert warned(lambda: USERS[name](x).sum().backward()) == []


def test_an_error_state_set_inside_of_a_hook_holds_there() -> None:
    x = torch.ones(3, requires_grad=True)

    def hook(grad: torch.Tensor) -> None:
        with np.errstate(divide="ignore"):
            Noisy.apply(grad)
            with torch.enable_grad():
                Noisy.apply(torch.ones(3, requires_grad=True)).sum().backward()

    assert warned(lambda: with_tensor_hook(x, hook).sum().backward()) == []


# ------------------------------------------------------------------ the state


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
    assert setting == ["quiet.py"]
