"""Grad mode and inference mode: blocks, decorators, generators, coroutines, threads, tasks."""

import asyncio
import threading

from tests.conformance.both import attempt, on_both


@on_both
def test_no_grad_and_enable_grad_nest(torch):
    seen = [torch.is_grad_enabled()]
    with torch.no_grad():
        seen.append(torch.is_grad_enabled())
        with torch.enable_grad():
            seen.append(torch.is_grad_enabled())
            with torch.set_grad_enabled(False):
                seen.append(torch.is_grad_enabled())
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())
    seen.append(torch.is_grad_enabled())
    return seen


@on_both
def test_modes_end_when_the_block_raises(torch):
    def fail():
        with torch.no_grad():
            raise ValueError("inside")

    return attempt(fail), torch.is_grad_enabled()


@on_both
def test_set_grad_enabled_as_a_call(torch):
    seen = []
    torch.set_grad_enabled(False)
    seen.append(torch.is_grad_enabled())
    torch.set_grad_enabled(True)
    seen.append(torch.is_grad_enabled())
    guard = torch.set_grad_enabled(False)
    seen.append(torch.is_grad_enabled())
    with guard:
        seen.append(torch.is_grad_enabled())
    seen.append(torch.is_grad_enabled())
    return seen


@on_both
def test_decorated_functions(torch):
    @torch.no_grad()
    def a():
        """Docs of a."""
        return torch.is_grad_enabled()

    @torch.no_grad
    def b():
        return torch.is_grad_enabled()

    @torch.enable_grad()
    def c():
        return torch.is_grad_enabled()

    @torch.set_grad_enabled(False)
    def d():
        return torch.is_grad_enabled()

    with torch.no_grad():
        inside = c()
    return a(), b(), inside, d(), torch.is_grad_enabled(), a.__name__, a.__doc__


@on_both
def test_decorated_function_may_recurse(torch):
    @torch.no_grad()
    def f(n):
        return [torch.is_grad_enabled()] + (f(n - 1) if n else [])

    return f(3), torch.is_grad_enabled()


@on_both
def test_decorated_class_warns(torch):
    @torch.no_grad()
    class Thing:
        def __init__(self):
            self.mode = torch.is_grad_enabled()

    return Thing().mode


@on_both
def test_decorated_methods(torch):
    class Thing:
        @torch.no_grad()
        def run(self):
            return torch.is_grad_enabled()

    return Thing().run()


@on_both
def test_generators_keep_their_mode_to_themselves(torch):
    @torch.no_grad()
    def numbers():
        try:
            got = yield torch.is_grad_enabled()
            got = yield (got, torch.is_grad_enabled())
            try:
                yield got
            except ValueError:
                yield ("caught", torch.is_grad_enabled())
        finally:
            log.append(torch.is_grad_enabled())
        return "end"

    log = []
    generator = numbers()
    seen = [next(generator), torch.is_grad_enabled(), generator.send(5), torch.is_grad_enabled(), next(generator)]
    seen += [generator.throw(ValueError("x")), torch.is_grad_enabled()]
    try:
        next(generator)
    except StopIteration as end:
        seen.append(end.value)
    other = numbers()
    next(other)
    other.close()
    return seen, log, torch.is_grad_enabled()


@on_both
def test_enable_grad_generator_inside_no_grad(torch):
    @torch.enable_grad()
    def numbers():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    seen = []
    with torch.no_grad():
        for value in numbers():
            seen += [value, torch.is_grad_enabled()]
    return seen


@on_both
def test_plain_generator_inside_a_block_leaks_its_mode(torch):
    def numbers():
        with torch.no_grad():
            yield 1
            yield 2

    seen = []
    for _ in numbers():
        seen.append(torch.is_grad_enabled())
    return seen, torch.is_grad_enabled()


@on_both
def test_threads_start_with_gradients_on(torch):
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    return seen


@on_both
def test_results_under_no_grad(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        y = x * 2
        z = torch.tensor([1.0], requires_grad=True)
        w = y.requires_grad_()
    return y.requires_grad, y.is_leaf, y.grad_fn, z.requires_grad, w.requires_grad


@on_both
def test_repr_of_modes(torch):
    return repr(torch.set_grad_enabled(True)).split(".")[-1]


@on_both
def test_inference_tensors(torch):
    with torch.inference_mode():
        x = torch.ones(2)
        y = x * 2
        v = y[:1]
        inside = torch.is_inference_mode_enabled(), torch.is_grad_enabled(), x.requires_grad
        x.add_(1)
        v.add_(1)
    return inside, x.is_inference(), y.is_inference(), v.is_inference(), x, y, v._is_view(), torch.is_grad_enabled()


@on_both
def test_inference_tensors_outside(torch):
    w = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        x = torch.ones(2)
        written = torch.ones(2)  # torch writes before it refuses, pullback does not: nobody looks at the values
        v = written[:1]

    def assign():
        x.requires_grad = True

    return (
        attempt(lambda: written.add_(1)),
        attempt(lambda: v.add_(1)),
        attempt(lambda: x * w),
        attempt(lambda: (x + w).requires_grad),
        attempt(lambda: x * 2),
        attempt(lambda: x._version),
        attempt(assign),
        attempt(lambda: x.requires_grad_()),
        x.clone().is_inference(),
        attempt(lambda: x[:1].is_inference()),
        x.detach().is_inference(),
        (x * 2).is_inference(),
        attempt(lambda: x.data.is_inference()),
    )


@on_both
def test_normal_tensors_in_inference_mode(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    n = torch.ones(2)
    with torch.inference_mode():
        a = x * 2
        v = y[:1]
        n.add_(1)
        u = n[:1]
        u.add_(1)
        y.add_(1)
        inside = v.is_inference(), a.is_inference(), v.requires_grad, v._is_view(), u.is_inference()
    return inside, n, n._version, y, y._version, attempt(lambda: v.add_(1)), attempt(lambda: u.add_(1)), y.grad_fn


@on_both
def test_view_in_inference_mode_of_a_written_base(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    with torch.inference_mode():
        v = y[:1]
    y.add_(1)
    return attempt(lambda: v.grad_fn), attempt(lambda: v * 2)


@on_both
def test_writing_to_leaves_in_inference_mode(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        x.add_(1)
        z = torch.ones(2, requires_grad=True)
    return x, x._version, z.requires_grad, z.is_inference()


@on_both
def test_inference_mode_as_a_decorator_and_switched_off(torch):
    @torch.inference_mode()
    def a():
        return torch.ones(1).is_inference()

    @torch.inference_mode
    def b():
        return torch.ones(1).is_inference()

    with torch.inference_mode():
        with torch.inference_mode(False):
            off = torch.ones(1).is_inference(), torch.is_grad_enabled()
        with torch.inference_mode(mode=False):
            again = torch.is_inference_mode_enabled()
        with torch.enable_grad():
            graded = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.ones(1).is_inference()
    with torch.no_grad(), torch.inference_mode(False):
        resets = torch.is_grad_enabled()
    return a(), b(), off, again, graded, resets


@on_both
def test_backward_in_inference_mode(torch):
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    with torch.inference_mode():
        return attempt(lambda: y.backward()), x.grad


@on_both
def test_inference_tensors_saved_for_backward(torch):
    w = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        x = torch.ones(2)
    return (
        attempt(lambda: w * x),
        attempt(lambda: (w + x).sum().backward()),
        w.grad,
        attempt(lambda: w.clone().copy_(x)),
    )


@on_both
def test_coroutines_decorated(torch):
    @torch.no_grad()
    def plain():
        return torch.is_grad_enabled()

    async def main():
        return plain(), torch.is_grad_enabled()

    return asyncio.run(main())
