"""Seed 002: backward and grad, the grad modes, in-place checks, Function and hooks on saved tensors."""

import inspect
import threading
from textwrap import dedent

import pytest


def parameters(function):
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


def test_backward_has_the_documented_signature(torch):
    # torch 2.13 has one parameter more than the document: inputs.
    assert parameters(torch.autograd.backward) == {
        "tensors": inspect.Parameter.empty, "grad_tensors": None, "retain_graph": None, "create_graph": False,
        "grad_variables": None, "inputs": None,
    }


def test_grad_has_the_documented_signature(torch):
    # torch 2.13 has two parameters more than the document: is_grads_batched and materialize_grads; and allow_unused is
    # None unless told, which means what materialize_grads says.
    assert parameters(torch.autograd.grad) == {
        "outputs": inspect.Parameter.empty, "inputs": inspect.Parameter.empty, "grad_outputs": None,
        "retain_graph": None, "create_graph": False, "only_inputs": True, "allow_unused": None, "is_grads_batched": False,
        "materialize_grads": False,
    }


def test_backward_computes_the_gradients_of_all_leaves(torch):
    x = torch.tensor([1., 2.], requires_grad=True)
    y = torch.tensor([3., 4.], requires_grad=True)
    assert torch.autograd.backward((x * y).sum()) is None
    assert x.grad.tolist() == [3., 4.] and y.grad.tolist() == [1., 2.]


def test_backward_of_several_tensors_adds_up(torch):
    x = torch.tensor([1., 2.], requires_grad=True)
    torch.autograd.backward([x.sum(), (x * x).sum()])
    assert x.grad.tolist() == [3., 5.]


def test_grad_tensors_turns_a_vector_into_a_scalar_by_an_inner_product(torch):
    x = torch.tensor([1., 2.], requires_grad=True)
    v = torch.tensor([10., 100.])
    torch.autograd.backward(x * x, v)
    by_vector, x.grad = x.grad, None
    (x * x * v).sum().backward()
    assert torch.equal(by_vector, x.grad)


def test_a_tensor_of_several_elements_needs_grad_tensors(error_of):
    assert error_of(lambda torch: (torch.ones(2, requires_grad=True) * 2).backward()).startswith(
        "RuntimeError: grad can be implicitly created only for scalar outputs"
    )


def test_grad_tensors_must_have_the_shape_of_tensors(error_of):
    def program(torch):
        torch.autograd.backward(torch.ones(2, requires_grad=True) * 2, torch.ones(3))

    assert error_of(program).startswith(
        "RuntimeError: Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a "
        "shape of torch.Size([2])."
    )


def test_leaves_accumulate_until_they_are_set_to_zero(torch):
    x = torch.tensor([1., 2.], requires_grad=True)
    for round in [1, 2, 3]:
        (x * 2).sum().backward()
        assert x.grad.tolist() == [2. * round] * 2
    x.grad.zero_()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2., 2.]


def test_the_graph_is_freed_unless_it_is_retained(torch, error_of):
    x = torch.tensor([1., 2.], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert error_of(lambda torch: y.backward()).startswith(
        "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed when you call "
        ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph "
        "a second time or if you need to access saved tensors after calling backward."
    )


def test_create_graph_allows_higher_derivatives(torch):
    x = torch.tensor(3., requires_grad=True)
    first, = torch.autograd.grad(x ** 3, x, create_graph=True)
    second, = torch.autograd.grad(first, x, create_graph=True)
    third, = torch.autograd.grad(second, x)
    assert (first.item(), second.item(), third.item()) == (27., 18., 6.)
    assert first.requires_grad and second.requires_grad and not third.requires_grad


def test_grad_outputs_is_like_grad_tensors(torch):
    x = torch.tensor([1., 2.], requires_grad=True)
    gradient, = torch.autograd.grad(x * x, x, grad_outputs=torch.tensor([10., 100.]))
    assert gradient.tolist() == [20., 400.]


def test_only_inputs_false_is_ignored_with_a_warning(torch):
    # The document says that the gradients of all leaves are accumulated then; torch 2.13 does not any more.
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated and is ignored now"):
        torch.autograd.grad(x * y, x, only_inputs=False)
    assert x.grad is None and y.grad is None


def test_an_unused_input_is_an_error(error_of):
    def program(torch):
        x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        torch.autograd.grad(x * 2, (x, y))

    assert error_of(program).startswith(
        "RuntimeError: The differentiated Tensor at index 1 appears to not have been used in the graph. Set "
        "allow_unused=True if this is the desired behavior."
    )


def test_allow_unused_gives_none_for_an_unused_input(torch):
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    of_x, of_y = torch.autograd.grad(x * 2, (x, y), allow_unused=True)
    assert of_x.tolist() == [2.] and of_y is None


def no_grad_example(torch):
    x = torch.tensor([1.], requires_grad=True)
    with torch.no_grad():
        y = x * 2
    print(y.requires_grad)

    @torch.no_grad()
    def doubler(x):
        return x * 2

    z = doubler(x)
    print(z.requires_grad)


def test_no_grad_as_context_manager_and_decorator(printed):
    assert printed(no_grad_example) == "False\nFalse\n"


def enable_grad_example(torch):
    x = torch.tensor([1.], requires_grad=True)
    with torch.no_grad():
        with torch.enable_grad():
            y = x * 2
    print(y.requires_grad)
    y.backward()
    print(x.grad)

    @torch.enable_grad()
    def doubler(x):
        return x * 2

    with torch.no_grad():
        z = doubler(x)
    print(z.requires_grad)


def test_enable_grad_as_context_manager_and_decorator(printed):
    assert printed(enable_grad_example) == dedent("""\
        True
        tensor([2.])
        True
    """)


def test_an_integer_tensor_cannot_require_grad(error_of):
    # The document writes torch.tensor([1], requires_grad=True) for set_grad_enabled and inference_mode.
    assert error_of(lambda torch: torch.tensor([1], requires_grad=True)).startswith(
        "RuntimeError: Only Tensors of floating point and complex dtype can require gradients"
    )


def set_grad_enabled_example(torch):
    x = torch.tensor([1.], requires_grad=True)
    is_train = False
    with torch.set_grad_enabled(is_train):
        y = x * 2
    print(y.requires_grad)
    torch.set_grad_enabled(True)
    y = x * 2
    print(y.requires_grad)
    torch.set_grad_enabled(False)
    y = x * 2
    print(y.requires_grad)


def test_set_grad_enabled_as_context_manager_and_as_function(printed):
    assert printed(set_grad_enabled_example) == "False\nTrue\nFalse\n"


def test_is_grad_enabled_tells_the_mode(torch):
    assert torch.is_grad_enabled() is True
    with torch.no_grad():
        assert torch.is_grad_enabled() is False
        with torch.enable_grad():
            assert torch.is_grad_enabled() is True
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled() is True
        assert torch.is_grad_enabled() is False
    assert torch.is_grad_enabled() is True


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_a_mode_does_not_reach_other_threads(torch, mode):
    seen = []

    def in_another_thread():
        x = torch.tensor([1.], requires_grad=True)
        seen.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled(), (x * 2).requires_grad))

    with getattr(torch, mode)():
        thread = threading.Thread(target=in_another_thread)
        thread.start()
        thread.join()
    assert seen == [(True, False, True)]


def inference_mode_example(torch):
    x = torch.tensor([1.], requires_grad=True)
    with torch.inference_mode():
        y = x * 2
    print(y.requires_grad)

    @torch.inference_mode()
    def doubler(x):
        return x * 2

    z = doubler(x)
    print(z.requires_grad)


def test_inference_mode_as_context_manager_and_decorator(printed):
    assert printed(inference_mode_example) == "False\nFalse\n"


def test_is_inference_mode_enabled_tells_the_mode(torch):
    assert torch.is_inference_mode_enabled() is False
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() is True
        with torch.inference_mode(False):
            assert torch.is_inference_mode_enabled() is False
    with torch.no_grad():
        assert torch.is_inference_mode_enabled() is False


def test_inference_tensors_do_not_count_versions(torch, error_of):
    with torch.inference_mode():
        y = torch.ones(2)
        y.add_(1)
    assert y.is_inference()
    assert error_of(lambda torch: y._version).startswith(
        "RuntimeError: Inference tensors do not track version counter."
    )


def test_inference_mode_does_not_track_views(torch):
    with torch.inference_mode():
        y = torch.ones(2, 2)
        assert not y.view(4)._is_view()
    with torch.no_grad():
        y = torch.ones(2, 2)
        assert y.view(4)._is_view()


def test_every_tensor_counts_the_in_place_operations_on_it(torch):
    x = torch.ones(2)
    assert x._version == 0
    x.add_(1).mul_(2)
    x[0] = 5.
    assert x._version == 3


def test_backward_refuses_a_tensor_changed_in_place_after_it_was_saved(error_of):
    def program(torch):
        x = torch.tensor([1., 2.], requires_grad=True)
        y = x.exp()
        z = (y * y).sum()
        y.add_(1)
        z.backward()

    assert error_of(program).startswith(
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.FloatTensor [2]], which is output 0 of Add, is at version 1; expected version 0 "
        "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def test_in_place_operations_without_an_error_give_correct_gradients(torch):
    x = torch.tensor([1., 2.], requires_grad=True)
    y = x * 3
    y.mul_(2).add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [6., 6.]


def exp_function(torch):
    Function = torch.autograd.Function

    class Exp(Function):
        @staticmethod
        def forward(ctx, i):
            result = i.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            result, = ctx.saved_tensors
            return grad_output * result

    return Exp


def exp_example(torch):
    Exp = exp_function(torch)
    input = torch.tensor([0., 1., 2.], requires_grad=True)
    output = Exp.apply(input)
    print(output)
    print(output.grad_fn)
    output.sum().backward()
    print(input.grad)


def test_a_function_of_ones_own(printed):
    assert printed(exp_example) == dedent("""\
        tensor([1.0000, 2.7183, 7.3891], grad_fn=<ExpBackward>)
        <torch.autograd.function.ExpBackward object at 0x>
        tensor([1.0000, 2.7183, 7.3891])
    """)


def test_gradcheck_verifies_the_function(torch):
    input = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(exp_function(torch).apply, (input,)) is True


def test_needs_input_grad_tells_which_inputs_want_a_gradient(torch):
    seen = []

    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, factor):
            ctx.save_for_backward(a, b)
            return a * b * factor

        @staticmethod
        def backward(ctx, grad_output):
            seen.append(ctx.needs_input_grad)
            _, b = ctx.saved_tensors
            return grad_output * b * 5, None, None

    a, b = torch.tensor([2.], requires_grad=True), torch.tensor([3.])
    Mul.apply(a, b, 5).backward()
    assert seen == [(True, False, False)]
    assert a.grad.tolist() == [15.] and b.grad is None


def test_every_operation_makes_a_new_node_and_edges_point_from_outputs_to_inputs(torch):
    x = torch.tensor([1.], requires_grad=True)
    y, z = x * 2, x * 2
    assert y.grad_fn is not z.grad_fn
    w = y + z
    assert [node for node, _ in w.grad_fn.next_functions] == [y.grad_fn, z.grad_fn]
    assert y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0]


def test_backward_visits_the_nodes_in_topological_order(torch):
    order = []
    x = torch.tensor([1.], requires_grad=True)
    a = x * 2
    b = a.exp()
    c = a + b
    for name, tensor in {"a": a, "b": b, "c": c}.items():
        tensor.register_hook(lambda grad, name=name: order.append(name))
    c.backward()
    assert order == ["c", "b", "a"]


def test_saved_tensors_hooks_pack_and_unpack_what_a_node_saves(torch):
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.tolist())
        return tensor.numpy(force=True).copy()

    def unpack(array):
        unpacked.append(array.tolist())
        return torch.from_numpy(array)

    x = torch.tensor([1., 2.], requires_grad=True)
    y = torch.tensor([3., 4.], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        z = x * y
    # First what the gradient of x needs, then what the gradient of y needs.
    assert packed == [[3., 4.], [1., 2.]] and unpacked == []
    z.sum().backward()
    assert sorted(unpacked) == [[1., 2.], [3., 4.]]
    assert x.grad.tolist() == [3., 4.] and y.grad.tolist() == [1., 2.]


def test_saved_tensors_hooks_can_keep_them_on_disk(torch, tmp_path):
    def pack(tensor):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.pt"
        torch.save(tensor, path)
        return path

    x = torch.randn(5, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, torch.load):
        y = x.pow(2).sum()
    assert len(list(tmp_path.iterdir())) == 1
    y.backward()
    assert torch.equal(x.grad, 2 * x)
