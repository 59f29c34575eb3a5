"""Parameters and other subclasses of Tensor in a graph."""

from tests.conformance.both import attempt, on_both


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
