"""What an autograd.Function saves: when it is freed, checked, packed and kept."""

from tests.conformance.autograd.test_function import square
from tests.conformance.both import attempt, on_both


@on_both
def test_saved_tensors_after_backward(torch):
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = Square.apply(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return x.grad, attempt(lambda: y.sum().backward()), attempt(lambda: y.grad_fn.saved_tensors)


@on_both
def test_nothing_saved_may_run_twice(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = 3
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor

    x = torch.ones(2, requires_grad=True)
    y = F.apply(x)
    y.backward(torch.ones(2))
    y.backward(torch.ones(2))
    return x.grad, attempt(lambda: y.grad_fn.saved_tensors)


@on_both
def test_stale_saved_tensors(torch):
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    a = x * 1
    y = Square.apply(a)
    a.add_(1)
    return attempt(lambda: y.sum().backward())


@on_both
def test_saving_outputs_and_intermediates(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(out, None, x * 7)
            return out

        @staticmethod
        def backward(ctx, g):
            out, _nothing, seven = ctx.saved_tensors
            return g * out + 0 * seven

    x = torch.tensor([1.0, 0.5], requires_grad=True)
    y = F.apply(x)
    saved = y.grad_fn.saved_tensors
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, h, [None if s is None else s.requires_grad for s in saved], saved[0].grad_fn is y.grad_fn


@on_both
def test_raw_saved_tensors_take_hooks(torch):
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = Square.apply(x)
    (raw,) = y.grad_fn._raw_saved_tensors
    raw.register_hooks(lambda t: t.tolist(), lambda values: torch.tensor(values) * 10)
    y.sum().backward()
    return x.grad, y.grad_fn.saved_tensors if False else None


@on_both
def test_default_hooks_pack_what_functions_save(torch):
    seen = []
    Square = square(torch)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t * 2, lambda t: t):
        y = Square.apply(x)
    y.sum().backward()
    return seen, x.grad


@on_both
def test_saved_variables_is_deprecated(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_variables
            return g * x

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()
    return x.grad


@on_both
def test_saving_twice_keeps_the_last(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            ctx.save_for_backward(y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y, None

    x = torch.ones(2, requires_grad=True)
    y = torch.tensor([2.0, 3.0])
    F.apply(x, y).sum().backward()
    return x.grad


@on_both
def test_attributes_on_ctx_survive_backward(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.note = "kept"
            return x * 2

        @staticmethod
        def backward(ctx, g):
            ctx.more = 5
            return g

    y = F.apply(torch.ones(1, requires_grad=True))
    node = y.grad_fn
    y.backward()
    return node.note, node.more, attempt(lambda: node.absent)


@on_both
def test_input_saved_and_returned(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output)

        @staticmethod
        def backward(ctx, g):
            x, out = ctx.saved_tensors
            return g * x * out

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = F.apply(x)
    y.sum().backward()
    return y.grad_fn, x.grad
