"""NumPy's floating point errors: the user's setting is left alone, and no op warns, whatever the user's filters are."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback._op.declare import registry
from tests.op_samples import outputs_of, sample, sampled_ops

EXTREMES = (0.0, 3e38, -1.0, float("inf"), float("nan"))
DEFAULT = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}


@pytest.fixture(params=["shown", "errors", "raised"])
def strict(request: Any) -> Iterator[Any]:
    """The settings under which a warning would be noticed: what was shown is in the list."""
    with warnings.catch_warnings(record=True) as shown, np.errstate(**DEFAULT):
        warnings.resetwarnings()
        warnings.simplefilter("error" if request.param == "errors" else "always")
        if request.param == "raised":
            np.seterr(all="raise")
        yield shown


def extreme(value: Any, number: float, kind: Any) -> Any:
    """Sampled arguments as leaves, every other element the number."""
    if isinstance(value, list):
        return [extreme(item, number, kind) for item in value]
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind != "f":
        return torch.from_numpy(value.copy())
    with np.errstate(all="ignore"):
        array = value.astype(kind)
        array.reshape(-1)[::2] = number
    return torch.from_numpy(array).requires_grad_()


def test_importing_leaves_the_setting_alone(run_python):
    code = "import numpy as np\nbefore = np.geterr()\nimport pullback, pullback.nn\nprint(before == np.geterr())"
    assert run_python(code).strip() == "True"


def test_the_users_own_numpy_code_warns_as_before(run_python):
    code = (
        "import numpy as np, pullback as torch\n"
        "x = torch.zeros(3, requires_grad=True)\n"
        "(x / x).sum().backward(); x.detach().log_(); torch.log(x)\n"
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    np.log(np.zeros(2)); np.float32(3e38) * np.float32(10)\n"
        "print([str(w.message) for w in seen])"
    )
    expected = ["divide by zero encountered in log", "overflow encountered in scalar multiply"]
    assert run_python(code).strip() == str(expected)


def test_no_op_warns_forwards_or_backwards(strict: Any):
    said = set()
    for key in sampled_ops(False):
        op, arguments = registry[key], sample(key).arguments
        for number in EXTREMES:
            given = {name: extreme(value, number, np.float32) for name, value in arguments.items()}
            try:
                made = op.call(
                    *[given[p.name] for p in op.params if not p.keyword_only],
                    **{p.name: given[p.name] for p in op.params if p.keyword_only},
                )
                outs = [out for out in outputs_of(made) if out.requires_grad]
                torch.autograd.backward(outs, [torch.full_like(out, 3e38) for out in outs])
            except Exception as error:  # torch refuses some of these numbers
                text = str(error)
                if isinstance(error, (Warning, ArithmeticError)) or "registry" in text or "encountered" in text:
                    said.add(f"{key} of {number}: {error!r}")
    said |= {f"{w.filename}:{w.lineno}: {w.message}" for w in strict if w.category is RuntimeWarning}
    assert not said, "\n".join(sorted(said))


def test_writes_factories_and_transforms_do_not_warn(strict: Any):
    big, zero = torch.full((3,), 3e38), torch.zeros(3, requires_grad=True)
    written = big.clone()
    assert written.mul_(big).add_(big).exp_().tolist() == [float("inf")] * 3
    big.half(), big.long(), torch.tensor([1e300]), torch.tensor(1e300), torch.linspace(-3e38, 3e38, 5)
    torch.func.grad(lambda x: x.sqrt().sum())(torch.zeros(2))
    torch.vmap(lambda x: x.log())(torch.zeros(2))
    torch.autograd.functional.jvp(lambda x: x.log(), torch.zeros(2), torch.ones(2))
    zero.rsqrt().sum().backward()
    [step.name for step in torch.autograd.steps(zero.sqrt().sum())]
    torch.optim.Adam([zero], lr=1.0).step()
    str(big * big), torch.nn.functional.layer_norm(big, (3,)), torch.einsum("i,i", big, big)
    assert not [w for w in strict if w.category is RuntimeWarning]


def test_another_thread_is_as_quiet(strict: Any):
    def work() -> None:
        try:
            x = torch.zeros(3, requires_grad=True)
            x.log().sum().backward()
            x.detach().div_(0)
        except Exception as error:
            failed.append(error)

    failed: list[Exception] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failed and not [w for w in strict if w.category is RuntimeWarning]


def test_hooks_and_custom_functions_have_the_users_setting():
    class Custom(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(np.geterr())
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(np.geterr())
            return grad

    seen: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: seen.append(np.geterr()))
    with np.errstate(divide="print", over="ignore"):
        mine = np.geterr()
        y = Custom.apply(x)
        y.register_hook(lambda grad: seen.append(np.geterr()))
        y.sum().backward()
        assert np.geterr() == mine
    assert len(seen) == 4 and all(state == mine for state in seen)


def test_an_op_that_draws_or_writes_runs_once_though_it_overflows():
    with np.errstate(**DEFAULT):
        norm = torch.nn.BatchNorm1d(2, momentum=0.5)
        norm(torch.full((4, 2), 1e30))
        assert norm.num_batches_tracked == 1
        assert norm.running_mean.tolist() == pytest.approx([5e29, 5e29])
        torch.manual_seed(0)
        torch.nn.functional.dropout(torch.full((5,), 3e38), 0.9)
        after = torch.rand(1)
        torch.manual_seed(0)
        torch.nn.functional.dropout(torch.ones(5), 0.9)
        assert torch.equal(after, torch.rand(1))


def test_every_op_that_takes_a_generator_says_that_it_has_effects():
    wrong = [key for key, op in registry.items() if "generator" in op.param_names and not op.effects]
    assert not wrong
