"""Backward inside backward, callbacks at the end, exceptions on the way, several threads."""

import threading

from tests.conformance.both import attempt, on_both


def reentrant(torch, depth_seen=None):
    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                x = torch.ones(1, requires_grad=True)
                if ctx.depth > 0:
                    Again.apply(x, ctx.depth - 1).sum().backward()
                elif depth_seen is not None:
                    depth_seen.append("bottom")
            return grad, None

    return Again


@on_both
def test_backward_inside_backward(torch):
    x = torch.ones(1, requires_grad=True)
    inner = torch.tensor(3.0, requires_grad=True)

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                (inner * inner).backward()
            return grad * inner.grad

    F.apply(x).backward()
    return x.grad, inner.grad


@on_both
def test_hundreds_of_levels(torch):
    seen = []
    x = torch.ones(1, requires_grad=True)
    reentrant(torch, seen).apply(x, 400).sum().backward()
    return x.grad, seen


@on_both
def test_hook_that_runs_backward(torch):
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)

    def hook(grad):
        with torch.enable_grad():
            (w * w).backward()
        return grad * w.grad

    y = x * x
    y.register_hook(hook)
    y.backward()
    return x.grad, w.grad


@on_both
def test_same_leaf_inside_and_outside(torch):
    x = torch.tensor(2.0, requires_grad=True)

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                (x * 10).backward()
            return grad * 2

    (F.apply(x) + x).backward()
    return x.grad


@on_both
def test_callbacks_run_at_the_end(torch):
    seen = []
    engine = torch.autograd.Variable._execution_engine
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3

    def hook(grad):
        seen.append("hook")
        engine.queue_callback(lambda: seen.append(("callback", x.grad.clone())))
        engine.queue_callback(lambda: engine.queue_callback(lambda: seen.append("from a callback")))

    y.register_hook(hook)
    x.register_hook(lambda g: seen.append("leaf"))
    y.backward()
    seen.append("done")
    return seen, attempt(lambda: engine.queue_callback(lambda: None))


@on_both
def test_callbacks_of_inner_passes(torch):
    seen = []
    engine = torch.autograd.Variable._execution_engine

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            engine.queue_callback(lambda: seen.append("outer"))
            with torch.enable_grad():
                x = torch.tensor(1.0, requires_grad=True)
                y = x * 1
                y.register_hook(lambda g: engine.queue_callback(lambda: seen.append("inner")))
                y.backward()
            seen.append("after inner")
            return grad

    F.apply(torch.tensor(1.0, requires_grad=True)).backward()
    return seen


@on_both
def test_callback_that_raises(torch):
    engine = torch.autograd.Variable._execution_engine
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3

    def fail():
        raise ValueError("from the callback")

    handle = y.register_hook(lambda g: engine.queue_callback(fail))
    error = attempt(lambda: y.backward(retain_graph=True))
    handle.remove()
    y.backward()
    return error, x.grad


@on_both
def test_error_leaves_everything_usable(torch):
    x = torch.tensor(2.0, requires_grad=True)
    z = torch.tensor(2.0, requires_grad=True)
    y = x * x
    out = y * z

    def fail(grad):
        raise ValueError("from the hook")

    handle = y.register_hook(fail)
    error = attempt(lambda: out.backward(retain_graph=True))
    state = (x.grad, torch.is_grad_enabled(), (x * 2).requires_grad)
    handle.remove()
    z.grad = None
    out.backward()
    return error, state, x.grad, z.grad


@on_both
def test_error_deep_inside_reaches_the_outermost_caller(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            if ctx.depth == 0:
                raise KeyError("at the bottom")
            with torch.enable_grad():
                F.apply(torch.ones(1, requires_grad=True), ctx.depth - 1).backward()
            return grad, None

    error = attempt(lambda: F.apply(torch.ones(1, requires_grad=True), 30).backward())
    x = torch.ones(1, requires_grad=True)
    (x * 2).backward()
    return error, x.grad, torch.is_grad_enabled()


@on_both
def test_grad_inside_backward(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                leaf = x.detach().requires_grad_()
                (g,) = torch.autograd.grad(leaf**3, leaf)
            return g * grad

    x = torch.tensor(2.0, requires_grad=True)
    F.apply(x).backward()
    return x.grad


@on_both
def test_threads_add_up_in_a_shared_leaf(torch):
    x = torch.ones(4, requires_grad=True)
    errors = []

    def work(k):
        try:
            for _ in range(20):
                (x * k).sum().backward()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return x.grad, errors


@on_both
def test_threads_share_a_retained_graph(torch):
    x = torch.ones(4, requires_grad=True)
    y = (x * x).exp().sum()
    results = []

    def work():
        results.append(torch.autograd.grad(y, x, retain_graph=True)[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@on_both
def test_graph_built_in_one_thread_and_run_in_another(torch):
    x = torch.ones(4, requires_grad=True)
    box = []
    thread = threading.Thread(target=lambda: box.append((x * 3).sum()))
    thread.start()
    thread.join()
    box[0].backward()
    return x.grad, box[0].grad_fn


@on_both
def test_hooks_run_in_the_thread_of_the_call(torch):
    x = torch.ones(4, requires_grad=True)
    seen = []
    y = (x * 3).sum()
    y.register_hook(lambda g: seen.append(threading.current_thread() is threading.main_thread()))
    y.backward()
    return seen


@on_both
def test_modes_are_local_to_the_thread(torch):
    x = torch.ones(1, requires_grad=True)
    seen = []

    def work():
        seen.append((torch.is_grad_enabled(), (x * 2).requires_grad, torch.is_inference_mode_enabled()))
        torch.set_grad_enabled(False)
        seen.append((x * 2).requires_grad)

    with torch.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        seen.append((x * 2).requires_grad)
    seen.append((x * 2).requires_grad)
    return seen


@on_both
def test_saved_tensor_hooks_are_local_to_the_thread(torch):
    x = torch.ones(1, requires_grad=True)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t):
        thread = threading.Thread(target=lambda: x * x)
        thread.start()
        thread.join()
        inside = len(packed)
        x * x
    return inside, len(packed)
