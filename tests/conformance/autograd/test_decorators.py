"""Grad modes on generators, coroutines and async generators: sent, thrown, closed; local to tasks and threads."""

import asyncio
import inspect

import pullback
from tests.conformance.both import attempt, on_both


@on_both
def test_values_sent_into_a_generator(torch):
    seen = []

    @torch.no_grad()
    def echo():
        got = None
        while True:
            seen.append(torch.is_grad_enabled())
            got = yield got
            if got == "stop":
                return "result"

    g = echo()
    outside = [next(g), g.send(1), torch.is_grad_enabled(), g.send(2)]
    end = attempt(lambda: g.send("stop"))
    try:
        h = echo()
        next(h)
        h.send("stop")
    except StopIteration as stop:
        outside.append(stop.value)
    return outside, seen, end


@on_both
def test_exceptions_thrown_into_a_generator(torch):
    seen = []

    @torch.no_grad()
    def stubborn():
        while True:
            try:
                yield "value"
            except ValueError as error:
                seen.append((str(error), torch.is_grad_enabled()))

    g = stubborn()
    next(g)
    answer = g.throw(ValueError("thrown"))
    return (
        answer,
        seen,
        torch.is_grad_enabled(),
        attempt(lambda: g.throw(KeyError("not caught"))),
        torch.is_grad_enabled(),
    )


@on_both
def test_closing_a_generator(torch):
    seen = []

    @torch.no_grad()
    def careful():
        try:
            yield 1
        except GeneratorExit:
            seen.append(("exit", torch.is_grad_enabled()))
            raise
        finally:
            seen.append(("finally", torch.is_grad_enabled()))

    g = careful()
    next(g)
    g.close()
    h = careful()
    next(h)
    del h
    return seen, torch.is_grad_enabled()


@on_both
def test_generator_that_ignores_close(torch):
    @torch.no_grad()
    def rude():
        while True:
            try:
                yield 1
            except GeneratorExit:
                yield 2

    g = rude()
    next(g)
    return attempt(g.close), torch.is_grad_enabled()


@on_both
def test_generator_delegating_to_another(torch):
    seen = []

    @torch.no_grad()
    def inner():
        seen.append(torch.is_grad_enabled())
        yield 1
        seen.append(torch.is_grad_enabled())
        return 5

    @torch.enable_grad()
    def outer():
        result = yield from inner()
        seen.append((result, torch.is_grad_enabled()))

    with torch.no_grad():
        values = list(outer())
        seen.append(torch.is_grad_enabled())
    return values, seen


@on_both
def test_generator_errors_restore_the_mode(torch):
    @torch.no_grad()
    def broken():
        yield 1
        raise ValueError("inside")

    g = broken()
    next(g)
    return attempt(lambda: next(g)), torch.is_grad_enabled()


@on_both
def test_set_grad_enabled_on_generators(torch):
    seen = []

    @torch.set_grad_enabled(False)
    def numbers():
        for i in range(2):
            seen.append(torch.is_grad_enabled())
            yield i

    before = torch.is_grad_enabled()
    out = list(numbers())
    return before, out, seen, torch.is_grad_enabled()


@on_both
def test_inference_mode_on_generators(torch):
    @torch.inference_mode()
    def tensors():
        yield torch.ones(1)
        yield torch.is_inference_mode_enabled()

    g = tensors()
    first = next(g)
    return first.is_inference(), torch.is_inference_mode_enabled(), next(g)


@on_both
def test_kinds_of_decorated_functions(torch):
    @torch.no_grad()
    def plain():
        """Doc."""

    @torch.no_grad()
    def generator():
        yield

    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    kept = plain.__doc__, plain.__name__, hasattr(plain, "__wrapped__")
    return [[kind(f) for kind in kinds] for f in (plain, generator)], kept


@on_both
def test_decorating_lambdas_partials_and_callables(torch):
    from functools import partial

    class Callable:
        def __call__(self, x):
            return (x * 2).requires_grad

    x = torch.ones(1, requires_grad=True)
    return (
        torch.no_grad()(lambda: (x * 2).requires_grad)(),
        torch.no_grad(partial(lambda a: (a * 2).requires_grad, x))() if False else None,
        torch.no_grad()(Callable())(x) if hasattr(Callable(), "__name__") else None,
    )


@on_both
def test_decorators_without_parentheses(torch):
    x = torch.ones(1, requires_grad=True)

    @torch.no_grad
    def off():
        return (x * 2).requires_grad

    @torch.enable_grad
    def on():
        return (x * 2).requires_grad

    @torch.inference_mode
    def inference():
        return (x * 2).is_inference()

    with torch.no_grad():
        inside = on()
    return off(), inside, inference(), torch.is_grad_enabled()


@on_both
def test_one_context_entered_twice(torch):
    seen = []
    ctx = torch.no_grad()
    with ctx:
        with torch.enable_grad():
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())
    with ctx:
        seen.append(torch.is_grad_enabled())
    seen.append(torch.is_grad_enabled())
    return seen


@on_both
def test_wrong_arguments_of_modes(torch):
    return (
        attempt(lambda: torch.set_grad_enabled()),
        attempt(lambda: torch.set_grad_enabled("text") and None),
        torch.is_grad_enabled(),
    )


# Torch's decorators know nothing of `async def`: the mode ends before the body starts, and a task that suspends leaks
# its mode into others. Here both do what they say, so there is nothing to compare with.


def test_decorated_coroutines_keep_their_mode_over_an_await():
    seen = []

    @pullback.no_grad()
    async def work():
        seen.append(pullback.is_grad_enabled())
        await asyncio.sleep(0)
        seen.append(pullback.is_grad_enabled())
        return "done"

    async def main():
        result = await work()
        seen.append(pullback.is_grad_enabled())
        return result

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(main()) == "done"
    assert seen == [False, False, True]


def test_decorated_async_generators_keep_their_mode_to_themselves():
    seen = []

    @pullback.no_grad()
    async def numbers():
        try:
            got = None
            while got != "stop":
                try:
                    seen.append(("inside", pullback.is_grad_enabled()))
                    got = yield got
                except ValueError:
                    seen.append(("thrown", pullback.is_grad_enabled()))
        finally:
            seen.append(("finally", pullback.is_grad_enabled()))

    async def main():
        g = numbers()
        out = [await g.asend(None), await g.asend(1), await g.athrow(ValueError("x"))]
        seen.append(("outside", pullback.is_grad_enabled()))
        await g.aclose()
        return out

    assert inspect.isasyncgenfunction(numbers)
    assert asyncio.run(main()) == [None, 1, 1]
    modes = {who: {mode for name, mode in seen if name == who} for who, _ in seen}
    assert modes == {"inside": {False}, "thrown": {False}, "outside": {True}, "finally": {False}}


def test_modes_are_local_to_the_asyncio_task():
    seen = []

    async def quiet():
        with pullback.no_grad():
            await asyncio.sleep(0)
            seen.append(("quiet", pullback.is_grad_enabled()))
            await asyncio.sleep(0)

    async def loud():
        for _ in range(3):
            seen.append(("loud", pullback.is_grad_enabled()))
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(quiet(), loud())

    asyncio.run(main())
    assert {mode for who, mode in seen if who == "loud"} == {True}
    assert {mode for who, mode in seen if who == "quiet"} == {False}
    assert pullback.is_grad_enabled()
