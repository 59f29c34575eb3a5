"""Leaves: written to, swapped, detached, zeroed, and where a graph is cut or its building fails."""

from tests.conformance.both import attempt, on_both


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
