"""The `_foreach_*` functions: an op applied to every tensor of a list."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, on_both

CALLS = """
torch._foreach_add{_}(a, 2)
torch._foreach_add{_}(a, b, alpha=3)
torch._foreach_add{_}(a, [1, 2])
torch._foreach_add{_}(a, torch.tensor(2.0))
torch._foreach_sub{_}(a, b)
torch._foreach_mul{_}(a, b)
torch._foreach_mul{_}(a, torch.tensor(3.0))
torch._foreach_div{_}(a, 2)
torch._foreach_div{_}(a, b)
torch._foreach_pow{_}(a, 2)
torch._foreach_pow{_}(a, b)
torch._foreach_maximum{_}(a, b)
torch._foreach_minimum{_}(a, 0.5)
torch._foreach_clamp_min{_}(a, [0.5, 1.5])
torch._foreach_clamp_max{_}(a, b)
torch._foreach_sqrt{_}(a)
torch._foreach_neg{_}(a)
torch._foreach_sigmoid{_}(a)
torch._foreach_addcmul{_}(a, a, b)
torch._foreach_addcmul{_}(a, a, b, 2.0)
torch._foreach_addcdiv{_}(a, a, b, [1.0, 2.0])
torch._foreach_addcdiv{_}(a, a, b, torch.tensor([1.0, 2.0]))
torch._foreach_addcmul{_}(a, a, b, scalars=[1.0, 2.0])
torch._foreach_lerp{_}(a, b, 0.3)
torch._foreach_lerp{_}(a, b, b)
torch._foreach_lerp{_}(a, b, [0.1, 0.2])
torch._foreach_add{_}([], 1)
torch._foreach_add{_}(a, b[:1])
torch._foreach_add{_}(a, [1])
torch._foreach_mul{_}(a, torch.ones(2))
torch._foreach_addcmul{_}(a, a, b, torch.tensor([1.0]))
"""
SINGLE = """
torch._foreach_norm(a)
torch._foreach_norm(a, 1, dtype=torch.float64)
torch._foreach_powsum(a, 3)
torch._foreach_max(a)
torch._foreach_max([torch.zeros(0)])
torch._foreach_pow(2, a)
torch._foreach_mm([torch.ones(2, 3)], [torch.ones(3, 2)])
torch._foreach_clone(a)
torch._foreach_copy_(a, b)
torch._foreach_copy_(a, [t.double() for t in b])
torch._foreach_zero_(a)
torch._amp_foreach_non_finite_check_and_unscale_(a, c, torch.tensor(0.5))
"""
EVERY = [call.format(_=mark) for call in CALLS.strip().splitlines() for mark in ("", "_")] + SINGLE.strip().splitlines()


@pytest.mark.parametrize("call", EVERY)
def test_a_list_of_tensors_is_treated_as_torch_does(call: str) -> None:
    @on_both
    def program(torch: Any) -> Any:
        names = {
            "torch": torch,
            "a": [torch.tensor([1.0, 2.0]), torch.tensor([0.5, 1.0, 4.0])],
            "b": [torch.tensor([2.0, 1.0]), torch.tensor([1.0, 3.0, 0.25])],
            "c": torch.zeros(1),
        }
        result = attempt(lambda: eval(call, names))
        same_list = result is names["a"]
        return [result, same_list, names["a"], names["c"], [t._version for t in names["a"]]]

    program()


@on_both
def test_gradients_flow_through_every_tensor_of_a_list(torch: Any) -> Any:
    a = [torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)]
    out = torch._foreach_mul(torch._foreach_exp(a), a)
    return [list(out), torch.autograd.grad(sum(part.sum() for part in out), a)]


@on_both
def test_a_nan_is_found_while_gradients_are_unscaled(torch: Any) -> Any:
    grads, found = [torch.tensor([1.0, float("nan")]), torch.tensor([4.0])], torch.zeros(1)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.25))
    return [grads, found]
