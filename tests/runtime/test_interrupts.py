"""KeyboardInterrupt at every instruction: no mode, buffer or count is left in a wrong state, whenever it comes."""

import gc
import signal
import threading
import time

import numpy as np
import pytest

import pullback as torch
from pullback._modes import before_write, claim, grad_enabled, in_transform, inference, modes, saved_tensor_hooks
from pullback._op.patch import sites
from pullback._runtime.building import uninterrupted
from pullback.autograd import numbering
from pullback.autograd.collector import BLOCK
from pullback.autograd.locations import here
from pullback.autograd.task import current_task
from pullback.batching.tensor import levels
from pullback.ops.autocast import State
from pullback.ops.autocast import state as autocast_state

pytest.importorskip("llvmlite")
from tests.runtime.interrupter import at_every_instruction, tracer

# Python drops an interrupt that comes in the callback of a weak reference, or in a finalizer.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

x = torch.tensor([1.0, 2.0], requires_grad=True)
w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)


def state():
    """Everything an interrupt must leave as it was."""
    here().left = None
    return {
        "grad mode": (grad_enabled.get(), torch.is_grad_enabled()),
        "inference mode": inference.get(),
        "rare modes": (modes.active, dict(modes.holders), modes.anomaly, modes.check_nan, modes.profiler),
        "forward mode": modes.dual_level,
        "numbers": numbering.numbers.next is numbering.numbers.plain,
        "hooks": (saved_tensor_hooks.get(), before_write.get()),
        "vmap": (levels.get(), claim.get(), in_transform.get()),
        "patches": {f: (site.actions, f.__code__ is site.code) for f, site in sites.items()},
        "autocast": autocast_state.get()._replace(nesting=0) == State(),
        "task": current_task.get(),
        "transforms": (in_transform.get(), claim.get()),
        "nodes under watch": list(numbering.evaluating),
        "place": (here().scope, here().block),
        "collector": gc.isenabled(),
        "NumPy's error state": np.geterr(),
    }


def no_grad():
    with torch.no_grad():
        x * 2


def enable_grad():
    with torch.enable_grad():
        x * 2


@torch.set_grad_enabled(False)
def set_grad_enabled():
    return x * 2


@torch.no_grad()
def decorated():
    return x * 2


def inference_mode():
    with torch.inference_mode():
        x * 2


def autocast():
    with torch.autocast("cpu"):
        w @ w


def autocast_off_inside():
    with torch.autocast("cpu"), torch.autocast("cpu", enabled=False):
        w @ w


def dual_level():
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.detach(), torch.ones(2))
        torch.autograd.forward_ad.unpack_dual(dual * 2)


def vmap():
    torch.vmap(lambda v: v * 2)(w)


def vmap_with_random_numbers():
    torch.vmap(lambda v: v + torch.rand(2), randomness="different")(w)


def jvp():
    torch.func.jvp(torch.sin, (x.detach(),), (torch.ones(2),))


def func_grad():
    torch.func.grad(lambda v: (v * v).sum())(x.detach())


def anomaly():
    with torch.autograd.detect_anomaly():
        (x * x).sum().backward()
    x.grad = None


def saved_hooks():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        (x * x).sum().backward()
    x.grad = None


def allowed_mutation():
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        (x * x).sum().backward()
    x.grad = None


def nonfinite():
    with torch.find_nonfinite():
        x * 2


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad * 2


def custom_function():
    Double.apply(x).sum().backward()
    x.grad = None


def second_order():
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    g.sum().backward()
    x.grad = None


class Silent(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def function_mode():
    with Silent():
        torch.add(x, x)


optimizer = torch.optim.SGD([w], lr=0.0)


def optimizer_step():
    w.grad = torch.zeros(2, 2)
    optimizer.step()


def profile():
    with torch.autograd.profiler.profile():
        torch.vmap(lambda v: v + torch.rand(2), randomness="same")(w)


def vjp():
    torch.autograd.functional.vjp(lambda v: (v * v).sum(), x.detach())


def checkpoint():
    torch.utils.checkpoint.checkpoint(lambda v: v * v, x, use_reentrant=False).sum().backward()
    x.grad = None


QUICK = [
    no_grad,
    enable_grad,
    set_grad_enabled,
    decorated,
    inference_mode,
    dual_level,
    custom_function,
    nonfinite,
    optimizer_step,
]
LONG = [
    *(autocast, autocast_off_inside, vmap, vmap_with_random_numbers, jvp, func_grad, anomaly, saved_hooks),
    *(allowed_mutation, second_order, checkpoint, function_mode, profile, vjp),
]


@pytest.mark.filterwarnings("ignore:Anomaly")
@pytest.mark.parametrize("block", QUICK + LONG, ids=lambda block: block.__name__)
def test_no_interrupt_leaves_a_mode_behind(block):
    for _ in range(2):
        block()
    before, ended = state(), 0
    for was_ended in at_every_instruction(block, 1 if block in QUICK else 7):
        ended += was_ended
        x.grad = None
        assert state() == before
    assert ended > 10
    block()
    assert state() == before


def test_an_interrupted_backward_leaves_each_gradient_as_it_was_or_complete():
    a, b = (torch.tensor([value], requires_grad=True) for value in (2.0, 3.0))

    def loss():
        return (a * b + a).sum()

    loss().backward()
    before, ended = state(), 0
    old, new = (4.0, 2.0), (8.0, 4.0)
    out = None

    def step():
        out.backward()

    def runs():
        nonlocal out
        a.grad, b.grad = torch.tensor([old[0]]), torch.tensor([old[1]])
        versions.append((a.grad._version, b.grad._version))
        out = loss()

    versions = []
    runs()
    for was_ended in at_every_instruction(step):
        ended += was_ended
        assert state() == before
        for leaf, was, will in ((a, old[0], new[0]), (b, old[1], new[1])):
            assert leaf.grad.item() in (was, will)
            if leaf.grad.item() == will:
                assert leaf.grad._version > 0  # who saved it finds out
        runs()
        a.grad = b.grad = None
        out.backward()
        assert (a.grad.item(), b.grad.item()) == old
        runs()
    assert ended > 50


def test_an_interrupted_write_is_counted():
    t = torch.zeros(3)
    seen = 0
    for _ in at_every_instruction(lambda: t.add_(1)):
        assert t._version >= int(t[0].item())
        seen += 1
    assert seen > 10


def test_an_interrupted_large_kernel_leaves_the_pool_working():
    big = torch.ones(300_000)
    big.exp()
    for _ in at_every_instruction(lambda: big.exp()):
        pass
    assert torch.allclose(big.exp(), torch.full((300_000,), 2.7182818))


def test_what_comes_after_an_interrupt_waits_for_what_was_being_made():
    order = []
    tracer()  # which sees to it that interrupts are heard

    def slow():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.3)
        order.append("made")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(slow)
    uninterrupted(lambda: order.append("undone"))
    assert order == ["made", "undone"]


FIRST_CALLS = """
import pullback as torch
from tests.runtime.interrupter import tracer

x = torch.ones(3, requires_grad=True)
calls = [
    lambda: torch.nn.functional.softplus(x).sum().backward(),
    lambda: torch.nn.Linear(3, 2)(x).sum().backward(),
    lambda: torch.linalg.inv(torch.eye(3)),
    lambda: torch.ones(5000).sinh(),
    lambda: torch.fft.fft(torch.ones(4)),
]
for call in calls:
    k = 0
    while tracer().interrupt(call, k)[0] and k < 40_000:
        k += 997
    call()
x.grad = None
(x * x).sum().backward()
print(x.grad.tolist(), torch.is_grad_enabled())
"""


def test_first_calls_that_are_interrupted_work_when_they_are_called_again(run_python):
    assert run_python(FIRST_CALLS).strip() == "[2.0, 2.0, 2.0] True"


def test_an_interrupt_between_two_blocks_of_numbers_does_not_end_them():
    """The collector is looked at after every few thousand nodes; the nodes after that have numbers all the same."""
    reached, k, ended = True, 0, 0
    while reached:
        while numbering.numbers.plain() % BLOCK != BLOCK - 2:
            pass
        reached, was_ended = tracer().interrupt(lambda: [x * 2 for _ in range(3)], k)
        before, after = ((x * 2).grad_fn._sequence_nr() for _ in range(2))
        assert after == before + 1
        on_streams = numbering.next_on_streams if numbering.followed else numbering.numbers.plain
        assert numbering.numbers.next is on_streams  # as before: other tests may have used streams of devices
        k, ended = k + 1, ended + was_ended
    assert ended > 10
