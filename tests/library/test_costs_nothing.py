"""Dispatch modes cost nothing while there is none, leave nothing behind, and are of one thread."""

import subprocess
import sys
import threading

import pytest

import pullback as torch
from pullback.library.unlisted import told_too
from pullback.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(str(func))
        return func(*args, **(kwargs or {}))


ALONE = """
import pullback as torch
from pullback._modes import modes
codes = lambda: [torch.zeros.__code__, torch.Tensor.detach.__code__, torch.Tensor.copy_.__code__]
before, active = codes(), modes.active
assert modes.dispatch is None
from pullback.utils._python_dispatch import TorchDispatchMode, BaseTorchDispatchMode
with BaseTorchDispatchMode():
    assert modes.active and not any(a is b for a, b in zip(codes(), before))
assert codes() == before and modes.active is active
"""


def test_functions_have_their_own_code_again_after_a_mode():
    subprocess.run([sys.executable, "-c", ALONE], check=True)  # alone: no class with __torch_dispatch__ was defined


def test_an_error_inside_of_a_mode_leaves_nothing_behind():
    holders = set(told_too.holders)
    with pytest.raises(ZeroDivisionError), Log():
        torch.ones(1) / torch.ones(1)
        raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="must match"), Log():
        torch.ones(2) + torch.ones(3)
    assert set(told_too.holders) == holders
    mode = Log()
    torch.ones(1) + 1
    assert mode.log == []


def test_a_mode_is_told_only_of_its_own_thread():
    with Log() as mode:
        thread = threading.Thread(target=lambda: torch.ones(1) * 2)
        thread.start()
        thread.join()
        torch.ones(1) + 1
    assert mode.log == ["aten.ones.default", "aten.add.Tensor"]


def test_gradients_inside_of_a_mode_are_those_outside():
    def gradients(inside):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.GELU(), torch.nn.Flatten()
        )
        model.append(torch.nn.Linear(48, 4))
        x = torch.randn(2, 2, 6, 6, requires_grad=True)

        def run():
            torch.nn.functional.cross_entropy(model(x), torch.tensor([0, 1])).backward()

        if inside:
            with Log():
                run()
        else:
            run()
        return [x.grad, *[p.grad for p in model.parameters()]]

    for a, b in zip(gradients(False), gradients(True), strict=True):
        torch.testing.assert_close(a, b)


def test_second_derivatives_are_told_too():
    x = torch.tensor([2.0], requires_grad=True)
    with Log() as mode:
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        mode.log.clear()
        (h,) = torch.autograd.grad(g.sum(), x)
    assert h.item() == 12.0
    assert "aten.mul.Tensor" in mode.log


def test_an_op_torch_has_not_is_told_under_its_own_name_and_can_be_called():
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    with Log() as mode:
        torch.nn.functional.hardshrink(x).sum().backward()
        torch.special.i1(x)
    assert "aten.special_i1.default" in mode.log
    assert all(name.startswith(("aten.", "pullback.")) for name in mode.log)
