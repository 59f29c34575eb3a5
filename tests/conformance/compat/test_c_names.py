"""The names of torch._C that programs use, on torch and on pullback."""

import pytest
import torch as peer

import pullback

BOTH = pytest.mark.parametrize("torch", [peer, pullback], ids=["torch", "pullback"])


@BOTH
def test_undefined_grad_gives_its_input_and_stops_the_gradient(torch):
    x = torch.ones(2, requires_grad=True)
    y = torch._C._functions.UndefinedGrad()(x * 2)
    assert y.tolist() == [2.0, 2.0]
    assert type(y.grad_fn).__name__ == "UndefinedGradBackward"
    y.sum().backward()
    assert x.grad is None


@BOTH
def test_undefined_grad_takes_one_tensor(torch):
    x = torch.ones(2)
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        torch._C._functions.UndefinedGrad()(x, x)


@BOTH
def test_a_delayed_error_is_raised_by_backward(torch):
    x = torch.ones(2, requires_grad=True)
    first, second = torch._C._functions.DelayedError("not today", 2)(x, x)
    assert first.tolist() == second.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="not today"):
        (first + second).sum().backward()


@BOTH
@pytest.mark.parametrize("arguments", [(), ("a",), ("a", 1, 2), ("a", "b")])
def test_a_delayed_error_needs_a_message_and_a_count(torch, arguments):
    with pytest.raises(RuntimeError) as caught:
        torch._C._functions.DelayedError(*arguments)
    expected = "argument 'num_inputs' must be an int" if len(arguments) == 2 else "Requires two arguments, got"
    assert expected in str(caught.value)


@BOTH
def test_default_saved_tensor_hooks_can_be_pushed_and_popped(torch):
    seen = []
    torch._C._autograd._push_saved_tensors_default_hooks(lambda t: seen.append(t) or t, lambda t: t)
    try:
        torch.ones(2, requires_grad=True).exp()
    finally:
        torch._C._autograd._pop_saved_tensors_default_hooks()
    torch.ones(2, requires_grad=True).exp()
    assert len(seen) == 1


@BOTH
def test_the_engine_of_variable_queues_callbacks(torch):
    called = []

    def hook(grad):
        torch.autograd.Variable._execution_engine.queue_callback(lambda: called.append("after"))
        called.append("hook")

    x = torch.ones(2, requires_grad=True)
    x.register_hook(hook)
    (x * 2).sum().backward()
    assert called == ["hook", "after"]


@BOTH
def test_grad_mode_is_switched_by_the_old_names(torch):
    torch._C._set_grad_enabled(False)
    try:
        assert not torch._C.is_grad_enabled() and not torch.is_grad_enabled()
    finally:
        torch._C._set_grad_enabled(True)
    assert torch.is_grad_enabled()


def test_a_missing_name_says_that_it_is_missing():
    with pytest.raises(AttributeError, match=r"pullback has no torch\._C\._jit_pass_inline"):
        pullback._C._jit_pass_inline


@BOTH
def test_a_hook_can_ask_whether_the_running_backward_comes_by_a_node(torch):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y, aside, elsewhere = x * 2, x * 3, w * 2
    nodes = [y.grad_fn, aside.grad_fn, y.grad_fn.next_functions[0][0], elsewhere.grad_fn.next_functions[0][0]]
    seen = []
    y.register_hook(lambda grad: seen.extend(torch._C._will_engine_execute_node(node) for node in nodes))
    y.sum().backward()
    assert seen == [True, False, True, False]


@BOTH
def test_only_nodes_and_only_a_running_backward_can_be_asked(torch):
    with pytest.raises(RuntimeError, match="expects an grad_fn, but got int"):
        torch._C._will_engine_execute_node(3)
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        torch._C._will_engine_execute_node((torch.ones(2, requires_grad=True) * 2).grad_fn)


@BOTH
def test_each_backward_has_a_number(torch):
    numbers = []
    x = torch.ones(2, requires_grad=True)
    for _ in range(2):
        y = x * 2
        for _ in range(2):
            y.register_hook(lambda grad: numbers.append(torch._C._current_graph_task_id()))
        y.sum().backward()
    assert numbers[0] == numbers[1] != numbers[2] == numbers[3]
    assert min(numbers) >= 0
    assert torch._C._current_graph_task_id() == -1


@BOTH
def test_a_subclass_can_be_treated_as_a_plain_tensor(torch):
    class Counted(torch.Tensor):
        calls = 0

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls += 1
            with torch._C.DisableTorchFunctionSubclass():
                assert not torch._C._is_torch_function_enabled()
                return func(*args, **(kwargs or {}))

    out = torch.ones(2).as_subclass(Counted) + 1
    assert type(out) is torch.Tensor
    assert Counted.calls == 1
    assert torch._C._is_torch_function_enabled()
