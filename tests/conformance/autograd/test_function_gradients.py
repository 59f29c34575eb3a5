"""What backward of an autograd.Function may return and is given: gradients missing, wrong, undefined, unused."""

from tests.conformance.both import attempt, on_both


@on_both
def test_several_inputs_and_outputs(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y, x + y

        @staticmethod
        def backward(ctx, ga, gb):
            x, y = ctx.saved_tensors
            return ga * y + gb, ga * x + gb

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    a, b = F.apply(x, y)
    (a.sum() + (b * b).sum()).backward()
    return a, b, a.output_nr, b.output_nr, a.grad_fn is b.grad_fn, x.grad, y.grad


@on_both
def test_unused_outputs_get_zeros(torch):
    seen = []

    def function(materialize):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2, x * 3, (x * 4).double()

            @staticmethod
            def backward(ctx, a, b, c):
                seen.append((a, b, c))
                return a

        return F

    x = torch.ones(2, requires_grad=True)
    for materialize in (True, False):
        first, _, _ = function(materialize).apply(x)
        first.sum().backward()
    return seen, x.grad


@on_both
def test_node_between_undefined_gradients_still_runs(torch):
    seen = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(g)
            return g

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    x = torch.ones(2, requires_grad=True)
    Nothing.apply(F.apply(x)).sum().backward()
    return seen, x.grad


@on_both
def test_integer_and_marked_outputs_have_no_gradient(torch):
    seen = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            idx = torch.tensor([0, 1])
            flat = x * 5
            ctx.mark_non_differentiable(flat)
            return x * 2, idx, flat

        @staticmethod
        def backward(ctx, a, b, c):
            seen.append((a, b, c))
            return a

    x = torch.ones(2, requires_grad=True)
    a, b, c = F.apply(x)
    a.sum().backward()
    return seen, b.requires_grad, c.requires_grad, c.grad_fn, b.grad_fn, x.grad, b.is_leaf, c.is_leaf


@on_both
def test_marking_everything_non_differentiable(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_non_differentiable(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g

    y = F.apply(torch.ones(2, requires_grad=True))
    return y.requires_grad, y.grad_fn


@on_both
def test_marks_must_be_tensors(torch):
    def function(mark):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                getattr(ctx, mark)(3)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g

        return F

    x = torch.ones(2, requires_grad=True)
    return [
        attempt(lambda m=m: function(m).apply(x))
        for m in ("mark_dirty", "mark_non_differentiable", "save_for_backward", "save_for_forward")
    ]


@on_both
def test_wrong_number_of_gradients(torch):
    def function(result):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y

            @staticmethod
            def backward(ctx, g):
                return result(g)

        return F

    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    results = [
        lambda g: g,
        lambda g: (g,),
        lambda g: (g, g, g),
        lambda g: (g, g, None),
        lambda g: None,
        lambda g: (None, None),
        lambda g: (g, None, None, None),
        lambda g: [g, g],
        lambda g: (),
    ]
    return [
        attempt(lambda r=r: torch.autograd.grad(function(r).apply(x, y).sum(), [x, y], allow_unused=True))
        for r in results
    ]


@on_both
def test_gradients_of_wrong_type_shape_and_dtype(torch):
    def function(result):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return result(g)

        return F

    x = torch.ones(2, 3, requires_grad=True)
    results = [
        lambda g: 5,
        lambda g: "text",
        lambda g: torch.ones(2),
        lambda g: torch.ones(4, 2, 3),
        lambda g: torch.ones(3),
        lambda g: torch.ones(1, 2, 3),
        lambda g: g.double(),
        lambda g: torch.ones(2, 3, dtype=torch.int64),
        lambda g: torch.tensor(1.0),
    ]
    return [attempt(lambda r=r: torch.autograd.grad(function(r).apply(x).sum(), x)) for r in results]


@on_both
def test_gradient_for_an_argument_that_is_no_tensor(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = torch.ones(2, requires_grad=True)
    return attempt(lambda: F.apply(x, 2).sum().backward())


@on_both
def test_gradient_for_a_tensor_that_needs_none_is_dropped(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = torch.ones(2, requires_grad=True)
    y = torch.ones(2)
    z = F.apply(x, y)
    z.sum().backward()
    return x.grad, y.grad, z.grad_fn.next_functions[1], z.grad_fn.needs_input_grad


@on_both
def test_once_differentiable(torch):
    once = torch.autograd.function.once_differentiable

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    F.apply(x).sum().backward()
    first = x.grad.clone()
    (g,) = torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    v = torch.ones(2, requires_grad=True)
    (h,) = torch.autograd.grad(F.apply(x), x, v, create_graph=True)
    return first, g.requires_grad, h.requires_grad, h.grad_fn, attempt(lambda: h.sum().backward())


@on_both
def test_needs_input_grad_in_forward_and_backward(torch):
    seen = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, n):
            seen.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, None

    x = torch.ones(2, requires_grad=True)
    F.apply(x, torch.ones(2), 3).sum().backward()
    with torch.no_grad():
        F.apply(x, torch.ones(2), 3)
    return seen


@on_both
def test_once_differentiable_leads_nowhere(torch):
    once = torch.autograd.function.once_differentiable

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        @once
        def backward(ctx, g):
            return g * 2, g * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.ones(2, requires_grad=True)
    a, b = torch.autograd.grad(F.apply(x, y), [x, y], v, create_graph=True)
    return (
        a.grad_fn is b.grad_fn,
        a.output_nr,
        b.output_nr,
        a.grad_fn.name(),
        a.grad_fn.next_functions,
        attempt(lambda: torch.autograd.grad(a.sum(), v)),
        attempt(lambda: (a + b).sum().backward()),
    )


@on_both
def test_non_differentiable_input_returned(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = F.apply(x)
    return y is x, y.requires_grad, y.grad_fn, y._is_view(), x.requires_grad, y.data_ptr() == x.data_ptr()
