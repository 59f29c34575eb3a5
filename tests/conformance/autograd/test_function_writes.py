"""An autograd.Function that writes to its inputs, returns them, or returns views of them."""

from tests.conformance.both import attempt, on_both


def doubling_in_place(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return Double


@on_both
def test_dirty_inputs(torch):
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = AddOne.apply(y)
    version = y._version
    z.sum().backward()
    plain = torch.ones(2)
    again = AddOne.apply(plain)
    return z is y, z, z.grad_fn, version, x.grad, again is plain, plain, plain._version


@on_both
def test_dirty_leaf_is_an_error(torch):
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return attempt(lambda: AddOne.apply(x)), x.requires_grad, x.is_leaf


@on_both
def test_dirty_but_not_returned(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([1.0, 2.0], requires_grad=True) * 1
    return attempt(lambda: F.apply(x))


@on_both
def test_dirty_view_of_a_history(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    base = x * 1
    view = base[:1]
    out = Double.apply(view)
    (base * base).sum().backward()
    return out, base, base.grad_fn, out is view, view.grad_fn, x.grad


@on_both
def test_dirty_view_beside_another_output(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, x * 2

        @staticmethod
        def backward(ctx, a, b):
            return a

    base = torch.tensor([1.0, 2.0], requires_grad=True) * 1
    return attempt(lambda: F.apply(base[:1]))


@on_both
def test_input_returned_as_it_is(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Same.apply(x)
    y.sum().backward()
    plain = torch.ones(2)
    p = Same.apply(plain)
    z = x * 1
    w = Same.apply(z)
    return (
        y is x,
        y.grad_fn,
        x.grad,
        x.grad_fn,
        y._is_view(),
        y._base is x,
        p is plain,
        p._is_view(),
        attempt(lambda: w.mul_(2)),
        y.data_ptr() == x.data_ptr(),
    )


@on_both
def test_view_of_an_input_returned(torch):
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1]

        @staticmethod
        def backward(ctx, g):
            return torch.cat([g, torch.zeros(1)])

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a = x * 1
    y = First.apply(a)
    y.sum().backward()
    return y, y.grad_fn, y._is_view(), x.grad, attempt(lambda: y.mul_(2)), attempt(lambda: a.mul_(2).sum())


@on_both
def test_two_views_of_an_input_returned(torch):
    class Halves(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1], x[1:]

        @staticmethod
        def backward(ctx, a, b):
            return torch.cat([a, b])

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = Halves.apply(x * 1)
    return a, b, attempt(lambda: a.mul_(2)), a._is_view()


@on_both
def test_same_tensor_returned_twice(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 20

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = Twice.apply(x)
    a.sum().backward(retain_graph=True)
    first = x.grad.clone()
    x.grad = None
    b.sum().backward()
    return a is b, a.output_nr, b.output_nr, first, x.grad


@on_both
def test_same_argument_given_twice(torch):
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    x = torch.tensor([3.0], requires_grad=True)
    y = Mul.apply(x, x)
    y.backward()
    return x.grad, len(y.grad_fn.next_functions), y.grad_fn.next_functions[0][0] is y.grad_fn.next_functions[1][0]


@on_both
def test_leaf_made_inside_forward_is_returned(torch):
    class Make(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.ones(2, requires_grad=True)

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Make.apply(x)
    y.sum().backward()
    return y, y.grad_fn, x.grad


@on_both
def test_graph_built_inside_forward_is_cut(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                y = x * x
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 100

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = F.apply(x)
    y.sum().backward()
    plain = F.apply(torch.ones(1))
    return y.grad_fn, x.grad, plain.requires_grad, plain.grad_fn


@on_both
def test_jvp_of_views_and_writes(torch):
    forward_ad = torch.autograd.forward_ad

    def function(run, move, dirty=False):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                if dirty:
                    ctx.mark_dirty(x)
                return run(x)

            @staticmethod
            def jvp(ctx, t):
                return move(t)

        return F

    def call(*parts):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
            return tuple(forward_ad.unpack_dual(function(*parts).apply(dual)))

    return [
        attempt(lambda: call(lambda x: x[:1], lambda t: t[:1])),
        attempt(lambda: call(lambda x: x[:1], lambda t: t[:1].clone())),
        attempt(lambda: call(lambda x: x, lambda t: t)),
        attempt(lambda: call(lambda x: x, lambda t: t.view_as(t))),
        attempt(lambda: call(lambda x: x.mul_(2), lambda t: t * 2, True)),
        attempt(lambda: call(lambda x: x.mul_(2), lambda t: t.mul_(2), True)),
    ]


@on_both
def test_marking_something_new_dirty_warns(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = F.apply(x)
    y.sum().backward()
    return y, y._version, x.grad


@on_both
def test_writing_to_a_view_follows_the_rules_of_ops_in_place(torch):
    double = doubling_in_place(torch)
    leaf = torch.ones(2, requires_grad=True)
    inner = leaf * 1
    with torch.no_grad():
        of_leaf, of_inner = leaf.view(2), inner[:1]
    inputs = [leaf, leaf.view(2), leaf[:1], leaf.unbind()[0], inner.unbind()[0], of_leaf, of_inner, inner[:1]]
    return [attempt(lambda x=x: double.apply(x)) for x in inputs] + [leaf, leaf.is_leaf]


@on_both
def test_writing_where_nobody_records_gives_an_alias_without_history(torch):
    double = doubling_in_place(torch)
    leaf = torch.ones(2, requires_grad=True)
    plain = torch.ones(2)
    inner = leaf * 1
    with torch.no_grad():
        pairs = [(x, double.apply(x)) for x in (leaf, inner, inner[:1], plain, plain[1:])]
    return [[out is x, out, out.is_leaf, out._version == x._version] for x, out in pairs]
