"""Old names, subclasses, parameters, and corners of the graph that have no file of their own."""

from .both import attempt, on_both


@on_both
def test_variable_is_the_old_name_of_tensor(torch):
    Variable = torch.autograd.Variable
    x = Variable(torch.ones(2), requires_grad=True)
    (x * 3).sum().backward()
    return (
        isinstance(x, Variable),
        type(x).__name__,
        x.grad,
        isinstance(3, Variable),
        isinstance(torch.ones(1), Variable),
    )


@on_both
def test_multithreading_switch(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_multithreading_enabled(False):
        (x * 2).sum().backward()
    torch.autograd.set_multithreading_enabled(True)
    return x.grad


@on_both
def test_names_of_the_package(torch):
    names = (
        "Variable Function backward grad grad_mode no_grad enable_grad set_grad_enabled inference_mode anomaly_mode "
        "detect_anomaly set_detect_anomaly forward_ad function graph functional gradcheck gradgradcheck profiler "
        "set_multithreading_enabled variable NestedIOFunction"
    )
    return {name: hasattr(torch.autograd, name) for name in names.split()}


@on_both
def test_public_names(torch):
    return sorted(set(torch.autograd.__all__)), sorted(torch.autograd.forward_ad.__all__)


@on_both
def test_parameters_in_a_graph(torch):
    p = torch.nn.Parameter(torch.ones(2))
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    y = p * p + frozen
    y.sum().backward()
    return (
        type(y).__name__,
        p.grad,
        type(p.grad).__name__,
        frozen.grad,
        y.grad_fn.next_functions[1],
        (p * 2).grad_fn.next_functions[0][0].variable is p,
        type(p.data).__name__,
        type(p.detach()).__name__,
        p.is_leaf,
    )


@on_both
def test_saved_parameters_are_the_parameters(torch):
    p = torch.nn.Parameter(torch.ones(2))
    x = torch.ones(2, requires_grad=True)
    y = x * p
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    stale = x * p
    with torch.no_grad():
        p.add_(1)
    return y.grad_fn._saved_other is p, g.requires_grad, attempt(lambda: stale.sum().backward())


@on_both
def test_subclasses_in_a_graph(torch):
    class Marked(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    m = x.as_subclass(Marked)
    y = m * 2
    z = (y + x).sum()
    z.backward()
    return type(m).__name__, type(y).__name__, type(z).__name__, x.grad, type(x.grad).__name__


@on_both
def test_tangents_of_gradients_without_a_graph(torch):
    ad = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with ad.dual_level():
        dual = ad.make_dual(x, torch.tensor([1.0, 10.0]))
        (g,) = torch.autograd.grad((dual**3).sum(), dual)
        return tuple(ad.unpack_dual(g))


@on_both
def test_chain_through_every_kind_of_node(torch):
    x = torch.arange(1.0, 7.0).view(2, 3).requires_grad_()
    y = x.t().contiguous().view(-1)[1:].unsqueeze(0).expand(2, 5)
    z = torch.cat([y, y * 2]).chunk(2)[1].sum(0, keepdim=True)
    w = torch.stack([z, z]).permute(2, 0, 1).reshape(-1).clone()
    w[::2].mul_(3)
    w.exp().log().sqrt().pow(2).sum().backward()
    return w.grad_fn, x.grad


@on_both
def test_detach_and_requires_grad(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    d = y.detach()
    d.requires_grad_()
    z = (d * 3).sum()
    z.backward()
    return d.is_leaf, d.grad, x.grad, d.data_ptr() == y.data_ptr(), d._version, y._version


@on_both
def test_leaf_written_under_no_grad_between_forward_and_backward(torch):
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    add, mul = x + w, x * w
    with torch.no_grad():
        w.mul_(5)
    return attempt(lambda: add.sum().backward()), attempt(lambda: mul.sum().backward()), x.grad


@on_both
def test_gradient_of_a_view_used_as_a_leaf(torch):
    base = torch.ones(4)
    leaf = base[:2].requires_grad_()
    (leaf * 3).sum().backward()
    return leaf.is_leaf, leaf.grad, base.requires_grad, attempt(lambda: base.mul_(2)), leaf, leaf._version


@on_both
def test_swapping_data_of_leaves(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * x
    x.data = torch.tensor([5.0, 6.0])
    y.sum().backward()
    first = x.grad
    del y  # torch remembers the old shape as long as a graph does
    x.grad = None
    x.data = torch.ones(3)
    (x * 2).sum().backward()
    return first, x.grad


@on_both
def test_zero_grad_by_hand(torch):
    x = torch.ones(2, requires_grad=True)
    for _ in range(2):
        (x * 2).sum().backward()
        x.grad.zero_()
    (x * 2).sum().backward()
    return x.grad, x.grad._version


@on_both
def test_comparisons_and_indices_cut_the_graph(torch):
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    return (
        (x > 1).requires_grad,
        x.argmax().requires_grad,
        x.sort()[0].grad_fn,
        x.sort()[1].requires_grad,
        x.long().requires_grad,
        x.bool().grad_fn,
        torch.ones_like(x).requires_grad,
        x.new_zeros(2).requires_grad,
        torch.zeros_like(x, requires_grad=True).is_leaf,
    )


@on_both
def test_error_while_building_leaves_no_trace(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    version = y._version
    errors = [
        attempt(lambda: y.add_(torch.ones(3))),
        attempt(lambda: y.mul_("text")),
        attempt(lambda: y.view(5)),
        attempt(lambda: y.add_(torch.ones(2, dtype=torch.complex64))),
        attempt(lambda: torch.ones(2, dtype=torch.int64).add_(y)),
    ]
    y.sum().backward()
    return errors, y, y._version - version, y.grad_fn, x.grad


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


@on_both
def test_subclass_histories(torch):
    class Marked(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    m = x.as_subclass(Marked)
    y = m * 2
    return (
        m.grad_fn,
        m._is_view(),
        m._base is x,
        y.grad_fn,
        y.grad_fn.next_functions[0][0],
        attempt(lambda: x.as_subclass(3)),
    )
