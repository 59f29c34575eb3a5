"""Seed 004, the statements: what its summary (section 3) and its notes on the mechanics (section 4) claim."""

import math

import pytest


def test_ops_that_require_grad_get_a_grad_fn_during_the_forward(torch):
    x = torch.ones(2, requires_grad=True)
    assert (x * 2).grad_fn is not None
    assert (torch.ones(2) * 2).grad_fn is None


def test_requires_grad_is_false_unless_asked_for(torch):
    assert torch.ones(2).requires_grad is False
    assert torch.nn.Parameter(torch.ones(2)).requires_grad is True


def test_all_weights_of_a_net_are_leaves_that_require_grad(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert all(weight.is_leaf and weight.requires_grad for weight in net.parameters())


def test_leaves_keep_their_gradient_and_intermediate_results_do_not(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.sum().backward()
    assert x.grad is not None
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_retain_grad_keeps_the_gradient_of_an_intermediate_result(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3., 3.]


def test_requires_grad_of_a_result_cannot_be_changed(torch, error_of):
    y = torch.ones(2, requires_grad=True) * 2

    def program(torch):
        y.requires_grad = False

    assert error_of(program).startswith(
        "RuntimeError: you can only change requires_grad flags of leaf variables. If you want to use a "
        "computed variable in a subgraph that doesn't require differentiation use var_no_grad = "
        "var.detach()."
    )


@pytest.mark.parametrize("wanting", [(False, False), (True, False), (False, True), (True, True)])
def test_one_input_that_requires_grad_is_enough(torch, wanting):
    a, b = (torch.ones(2, requires_grad=wants) for wants in wanting)
    assert (a * b).requires_grad is any(wanting)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_floating_point_and_complex_tensors_can_require_grad(torch, dtype):
    assert torch.ones(2, dtype=getattr(torch, dtype), requires_grad=True).requires_grad


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
def test_other_tensors_cannot_require_grad(error_of, dtype):
    assert error_of(lambda torch: torch.ones(2, dtype=getattr(torch, dtype), requires_grad=True)).startswith(
        "RuntimeError: Only Tensors of floating point and complex dtype can require gradients"
    )
    assert error_of(lambda torch: torch.ones(2, dtype=getattr(torch, dtype)).requires_grad_()).startswith(
        "RuntimeError: only Tensors of floating point dtype can require gradients"
    )


def test_new_tensors_under_no_grad_do_not_require_grad(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        assert torch.ones(2, requires_grad=True).requires_grad, "unless they are created so"


def test_only_scalars_get_their_gradient_implicitly(torch, error_of):
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    assert x.grad.tolist() == [1., 1.]
    assert error_of(lambda torch: (x * 1).backward()).startswith(
        "RuntimeError: grad can be implicitly created only for scalar outputs")


def test_the_gradient_given_to_backward_is_a_tensor(torch, error_of):
    # The document writes .backward(1).
    x = torch.ones(2, requires_grad=True)
    assert error_of(lambda torch: x.sum().backward(1)).startswith("TypeError: 'int' object is not iterable")


def test_frozen_weights_get_no_gradient(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    net[0].weight.requires_grad = False
    net[0].bias.requires_grad_(False)
    net(torch.ones(2, 3)).sum().backward()
    assert net[0].weight.grad is None and net[0].bias.grad is None
    assert net[1].weight.grad is not None and net[1].bias.grad is not None


def test_a_module_freezes_all_its_parameters_at_once(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    assert net.requires_grad_(False) is net
    assert not any(weight.requires_grad for weight in net.parameters())
    assert not net(torch.ones(2, 3)).requires_grad, "nothing is recorded then"


def test_every_forward_builds_a_new_graph_of_any_shape(torch):
    x = torch.ones(2, requires_grad=True)
    for rounds in [1, 3, 0]:
        y = x
        for _ in range(rounds):
            y = y * 2
        length, node = 0, y.grad_fn
        while node is not None and node.name() == "MulBackward0":
            length, node = length + 1, node.next_functions[0][0]
        assert length == rounds


def test_a_leaf_is_a_tensor_without_grad_fn(torch):
    x = torch.ones(2, requires_grad=True)
    for tensor in [x, x * 2, x.detach(), torch.ones(2) + 1, x.clone(), x.view(2)]:
        assert tensor.is_leaf is (tensor.grad_fn is None)


def test_a_leaf_has_one_accumulator_that_all_ops_share(torch):
    x = torch.ones(2, requires_grad=True)
    y, z = x * 2, x.exp()
    assert y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0]
    assert y.grad_fn.next_functions[0][0].variable is x


def test_a_view_knows_its_base_and_shares_its_version(torch):
    base = torch.zeros(2, 3)
    view = base.view(6)
    assert view._is_view() and view._base is base
    assert not base._is_view() and base._base is None
    view.add_(1)
    assert base._version == view._version == 1
    assert base.tolist() == [[1., 1., 1.], [1., 1., 1.]]


def test_output_nr_is_the_place_among_the_outputs_of_the_node(torch):
    x = torch.ones(2, 3, requires_grad=True)
    assert [part.output_nr for part in x.unbind()] == [0, 1]
    assert (x * 2).output_nr == 0 and x.output_nr == 0


def test_a_product_saves_both_factors(torch):
    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3., requires_grad=True)
    node = (x * y).grad_fn
    assert node._saved_self is x and node._saved_other is y


def test_a_product_saves_only_what_a_gradient_needs(torch):
    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.)
    node = (x * y).grad_fn
    assert node._saved_self is None and torch.equal(node._saved_other, y)


def test_squaring_saves_its_input(torch):
    x = torch.randn(5, requires_grad=True)
    assert (x ** 2).grad_fn._saved_self is x
    assert (x ** 2).grad_fn._saved_exponent == 2


def what_nodes_save(torch):
    x = torch.randn(5, requires_grad=True)
    y = x.pow(2)
    print(x.equal(y.grad_fn._saved_self))
    print(x is y.grad_fn._saved_self)

    x = torch.randn(5, requires_grad=True)
    y = x.exp()
    print(y.equal(y.grad_fn._saved_result))
    print(y is y.grad_fn._saved_result)


def test_an_input_is_saved_as_it_is_and_a_result_is_packed(printed):
    assert printed(what_nodes_save) == "True\nTrue\nTrue\nFalse\n"


def test_a_saved_result_shares_the_storage(torch):
    y = torch.randn(5, requires_grad=True).exp()
    saved = y.grad_fn._saved_result
    assert saved.data_ptr() == y.data_ptr()
    assert saved.grad_fn is y.grad_fn


def test_saved_values_are_gone_after_backward(torch, error_of):
    y = torch.randn(5, requires_grad=True).exp().sum()
    node = y.grad_fn.next_functions[0][0]
    y.backward()
    assert error_of(lambda torch: node._saved_result).startswith(
        "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed when you call "
        ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph "
        "a second time or if you need to access saved tensors after calling backward."
    )


def gradient_at(torch, function, point):
    x = torch.tensor(point, requires_grad=True)
    function(x).backward()
    return x.grad.item()


def test_a_convex_function_has_its_smallest_subgradient(torch):
    assert gradient_at(torch, torch.relu, 0.) == 0.
    assert gradient_at(torch, torch.abs, 0.) == 0.


def test_a_concave_function_has_its_smallest_supergradient(torch):
    assert gradient_at(torch, lambda x: -torch.relu(x), 0.) == 0.
    assert gradient_at(torch, lambda x: -torch.abs(x), 0.) == 0.


def test_a_gradient_may_be_infinite_by_continuity(torch):
    assert gradient_at(torch, torch.sqrt, 0.) == math.inf


def test_where_a_function_is_not_defined_its_gradient_is_arbitrary(torch):
    assert math.isnan(gradient_at(torch, torch.sqrt, -1.))
    assert gradient_at(torch, torch.log, -1.) == -1.
    assert math.isnan(gradient_at(torch, torch.exp, math.nan))


def test_a_random_draw_has_no_derivative(torch):
    # The document promises an error in backward. In torch drawn indices do not require grad, other draws have gradient 0.
    weights = torch.full((4,), 0.5, requires_grad=True)
    assert not torch.multinomial(weights, 2).requires_grad
    torch.bernoulli(weights).sum().backward()
    assert weights.grad.tolist() == [0., 0., 0., 0.]


def test_gradients_are_switched_off_for_a_block_or_for_one_tensor(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with torch.no_grad():
        y = x * 2
    assert not y.requires_grad

    with torch.set_grad_enabled(False):
        y = x * 2
    assert not y.requires_grad

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
    x.requires_grad = False
    z = x * y
    assert z.requires_grad
    z.sum().backward()
    assert x.grad is None and y.grad.tolist() == [1., 2., 3.]


def test_requires_grad_counts_only_in_grad_mode(torch):
    x = torch.ones(2, requires_grad=True)
    assert (x * 2).requires_grad
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        assert not (x * 2).requires_grad
    assert x.requires_grad


def test_results_of_no_grad_can_be_used_in_grad_mode_later(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = x * 2
    (x * y).sum().backward()
    assert x.grad.tolist() == [2., 2.]


def test_an_optimizer_updates_parameters_in_place_under_no_grad(torch):
    w = torch.ones(2, requires_grad=True)
    (w * w).sum().backward()
    with torch.no_grad():
        w -= 0.25 * w.grad
    assert w.is_leaf and w.requires_grad and w.tolist() == [0.5, 0.5]
    (w * w).sum().backward()
    assert w.grad.tolist() == [3., 3.]


def test_initialisation_is_not_recorded(torch):
    w = torch.empty(3, 3, requires_grad=True)
    assert torch.nn.init.constant_(w, 2.) is w
    assert w.is_leaf and w.grad_fn is None and w.requires_grad and w[0, 0] == 2.


def test_inference_tensors_cannot_be_saved_for_backward(torch, error_of):
    with torch.inference_mode():
        y = torch.ones(2)
    assert error_of(lambda torch: torch.ones(2, requires_grad=True) * y).startswith(
        "RuntimeError: Inference tensors cannot be saved for backward. Please do not use Tensors created in "
        "inference mode in computation tracked by autograd. To work around this, you can make a clone to get "
        "a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
        "`torch.inference_mode()`."
    )


def test_inference_tensors_cannot_be_changed_in_place_outside(torch, error_of):
    with torch.inference_mode():
        y = torch.ones(2)
    assert error_of(lambda torch: y.add_(1)).startswith(
        "RuntimeError: Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
        "a clone to get a normal tensor before doing inplace update.See "
        "https://github.com/pytorch/rfcs/pull/17 for more details."
    )


def test_inference_tensors_cannot_require_grad_outside(torch, error_of):
    with torch.inference_mode():
        y = torch.ones(2)
    assert error_of(lambda torch: y.requires_grad_()).startswith(
        "RuntimeError: Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
    )


def test_a_clone_of_an_inference_tensor_is_an_ordinary_tensor(torch):
    with torch.inference_mode():
        y = torch.ones(2)
    copy = y.clone()
    assert y.is_inference() and not copy.is_inference()
    assert (torch.ones(2, requires_grad=True) * copy).requires_grad


def test_eval_is_train_of_false_and_does_not_touch_the_modes(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    net.eval()
    assert not net.training and not net[1].training
    assert torch.is_grad_enabled() and net(torch.ones(1, 3)).requires_grad
    net.train()
    assert net.training and net[1].training
    net.train(False)
    assert not net.training and not net[1].training


def test_batch_norm_updates_its_statistics_only_in_training(torch):
    norm = torch.nn.BatchNorm2d(2)
    x = torch.randn(4, 2, 3, 3) + 5
    norm.eval()
    norm(x)
    assert norm.running_mean.tolist() == [0., 0.]
    norm.train()
    norm(x)
    assert torch.allclose(norm.running_mean, 0.1 * x.mean((0, 2, 3)))


def test_an_in_place_op_that_overwrites_a_needed_value_is_caught(error_of):
    def program(torch):
        y = torch.ones(3, requires_grad=True).exp()
        y.add_(1)
        y.sum().backward()

    assert error_of(program).startswith(
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.FloatTensor [3]], which is output 0 of Exp, is at version 1; expected version 0 "
        "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def test_an_in_place_op_changes_the_creator_of_its_tensor(torch):
    y = torch.ones(3, requires_grad=True) * 2
    before = y.grad_fn
    y.add_(1)
    assert y.grad_fn.name() == "AddBackward0"
    assert y.grad_fn.next_functions[0][0] is before


def test_an_in_place_op_through_a_view_changes_the_creator_of_all_that_share_the_storage(torch):
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    part = y[:2]
    part.mul_(10)
    assert type(y.grad_fn).__name__ == "CopySlices" and y.grad_fn.name() == "torch::autograd::CopySlices"
    assert part.grad_fn.name() == "AsStridedBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [20., 20., 2., 2.]


def test_an_in_place_op_on_a_view_of_a_leaf_is_an_error(error_of):
    assert error_of(lambda torch: torch.ones(4, requires_grad=True)[:2].mul_(2)).startswith(
        "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation."
    )


def test_an_in_place_op_on_one_of_several_views_is_an_error(error_of):
    def program(torch):
        first, _ = (torch.ones(2, 2, requires_grad=True) * 2).unbind()
        first.mul_(2)

    assert error_of(program).startswith(
        "RuntimeError: Output 0 of Unbind is a view and is being modified inplace. This view is the output "
        "of a function that returns multiple views. Such functions do not allow the output views to be "
        "modified inplace. You should replace the inplace operation by an out-of-place one."
    )
