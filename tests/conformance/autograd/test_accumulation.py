"""What accumulating into .grad does: identity, layout, versions, create_graph."""

from tests.conformance.both import attempt, on_both


@on_both
def test_second_gradient_is_added_in_place(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).sum().backward()
    first = x.grad
    version = first._version
    (x * 3).sum().backward()
    return x.grad is first, first, version, first._version


@on_both
def test_second_gradient_with_a_graph_is_added_out_of_place(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    first = x.grad
    (x * x * x).sum().backward(create_graph=True)
    return x.grad is first, first, x.grad, x.grad.grad_fn


@on_both
def test_first_gradient_with_a_graph_is_a_copy_with_history(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward(create_graph=True)
    g = x.grad
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, g.grad_fn, h


@on_both
def test_gradient_added_to_one_with_a_graph(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * 3).sum().backward()
    return x.grad is first, x.grad, x.grad.grad_fn


@on_both
def test_gradient_without_dependence_under_create_graph(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).sum().backward(create_graph=True)
    return x.grad, x.grad.grad_fn


@on_both
def test_expanded_gradient_is_made_contiguous(torch):
    x = torch.zeros(2, 3, requires_grad=True)
    x.sum().backward()
    return x.grad, x.grad.stride(), x.grad.is_contiguous()


@on_both
def test_gradient_takes_the_strides_of_its_leaf(torch):
    x = torch.zeros(2, 3).t().requires_grad_()
    (x * 2).sum().backward()
    y = torch.zeros(2, 3).t().requires_grad_()
    y.sum().backward()
    z = torch.zeros(4, 6)[::2, ::2].requires_grad_()
    z.sum().backward()
    return x.stride(), x.grad.stride(), y.grad.stride(), z.stride(), z.grad.stride()


@on_both
def test_gradient_of_an_expanded_leaf_is_contiguous(torch):
    x = torch.zeros(3, 1).expand(3, 4).requires_grad_()
    (x * 2).sum().backward()
    return x.stride(), x.grad.stride(), x.grad


@on_both
def test_gradient_given_to_backward_is_not_aliased(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    g = torch.ones(2)
    x.backward(g)
    x.grad.mul_(5)
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    (y + 0).backward(g)
    y.grad.mul_(5)
    return g, x.grad, y.grad


@on_both
def test_leaves_of_one_addition_do_not_share_a_gradient(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    (x + y).backward(torch.ones(2))
    x.grad.mul_(5)
    return x.grad, y.grad, x.grad is y.grad


@on_both
def test_results_of_grad_do_not_share_memory_with_later_writes(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = torch.autograd.grad((x + y).sum(), [x, y])
    return a, b, a.stride(), b.stride()


@on_both
def test_same_input_asked_twice_gives_equal_gradients(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    a, b, c = torch.autograd.grad(y.sum(), [x, x, y])
    return a, b, c, a is b


@on_both
def test_accumulating_into_an_assigned_gradient(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    mine = torch.tensor([10.0, 20.0])
    x.grad = mine
    (x * 2).sum().backward()
    return mine, x.grad is mine


@on_both
def test_zeroing_the_gradient_in_place(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 2).sum().backward()
    g = x.grad
    x.grad.zero_()
    (x * 3).sum().backward()
    return g, x.grad is g, g._version


@on_both
def test_gradient_broadcast_to_a_smaller_leaf(torch):
    x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    y = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    s = torch.tensor(2.0, requires_grad=True)
    (x * y * s).sum().backward()
    return x.grad, y.grad, s.grad


@on_both
def test_gradient_of_a_promoted_input_keeps_its_dtype(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    z = x * y
    z.sum().backward()
    return z.dtype, x.grad, y.grad


@on_both
def test_complex_gradient_of_a_real_input_is_its_real_part(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    z = x * torch.tensor([1.0 + 2.0j, 3.0 - 1.0j])
    z.backward(torch.tensor([1.0 + 1.0j, 2.0 + 0.0j]))
    return z, x.grad


@on_both
def test_complex_gradients_are_conjugated(torch):
    z = torch.tensor([1.0 + 2.0j, 3.0 - 1.0j], requires_grad=True)
    w = torch.tensor([2.0 - 1.0j, 1.0 + 1.0j], requires_grad=True)
    (z * w / (z + w)).backward(torch.tensor([1.0 + 0.5j, 1.0 - 1.0j]))
    return z.grad, w.grad


@on_both
def test_leaf_used_many_times(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x + x + x * x - x / 2
    y.sum().backward()
    return x.grad


@on_both
def test_diamonds_add_up(torch):
    x = torch.tensor(2.0, requires_grad=True)
    a = x * x
    b = a + x
    c = a * b
    d = b * c + a
    d.backward()
    return x.grad


@on_both
def test_switching_requires_grad_off_after_recording(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    x.requires_grad_(False)
    y.backward()
    return x.grad, x.requires_grad


@on_both
def test_data_replaced_after_recording(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = (x * x).sum()
    x.data = torch.tensor([5.0, 6.0])
    y.backward()
    return x.grad, x


@on_both
def test_grad_dtype_of_a_leaf(torch):
    x = torch.tensor([1.0], requires_grad=True)
    return x.grad_dtype


@on_both
def test_leaf_that_became_an_intermediate_result(torch):
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 2
    x.requires_grad_(False)
    x.mul_(torch.tensor([2.0], requires_grad=True))
    return attempt(lambda: y.backward())


@on_both
def test_layout_policy(torch):
    policy = torch.autograd.enforce_grad_layout_policy

    def strides(enable):
        x = torch.ones(2, 3).t().requires_grad_()
        with policy(enable):
            (x.t() * torch.ones(2, 3)).t().sum().backward()
        return x.grad.stride()

    @policy(False)
    def inside():
        return strides(True)

    return strides(True), inside()
