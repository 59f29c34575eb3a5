"""utils.checkpoint: same gradients, fewer saved tensors, and torch's complaints when the second run differs."""

import importlib

import pytest

from tests.conformance.both import attempt, same


def utils(torch):
    return importlib.import_module(f"{torch.__name__}.utils.checkpoint")


def numbers(torch, *shape):
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(count, dtype=torch.float64) * 0.3 - 0.7).reshape(shape).requires_grad_()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_gradients_are_those_without_checkpoint(use_reentrant):
    def program(torch):
        x, w = numbers(torch, 2, 3), numbers(torch, 3)
        calls = []

        def segment(a, b):
            calls.append("run")
            return (a * b).sin().exp(), a.sum()

        out, total = utils(torch).checkpoint(segment, x, w, use_reentrant=use_reentrant)
        (out.sum() * total).backward()
        return out, total, x.grad, w.grad, calls

    same(program)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_random_numbers_are_repeated(use_reentrant):
    def program(torch):
        torch.manual_seed(0)
        x = numbers(torch, 5)
        seen = []

        def segment(a):
            noise = torch.rand(5, dtype=torch.float64)
            seen.append(noise)
            return a.sin() * noise

        out = utils(torch).checkpoint(segment, x, use_reentrant=use_reentrant)
        after = torch.rand(2)
        out.sum().backward()
        return x.grad, after, torch.rand(2), [bool((seen[0] == n).all()) for n in seen]

    same(program)


def test_random_numbers_are_not_repeated_when_not_asked_to():
    def program(torch):
        torch.manual_seed(0)
        x = numbers(torch, 5)
        checkpoint = utils(torch).checkpoint
        out = checkpoint(
            lambda a: a.sin() * torch.rand(5, dtype=torch.float64), x, use_reentrant=False, preserve_rng_state=False
        )
        out.sum().backward()
        return x.grad, torch.rand(2)

    same(program)


def test_keyword_arguments_and_other_values_pass_through():
    def program(torch):
        x = numbers(torch, 3)

        def segment(a, power, *, scale, flags):
            return {"out": (a**power) * scale, "flags": flags}

        out = utils(torch).checkpoint(segment, x, 3, scale=2.0, flags=[1, "a"], use_reentrant=False)
        out["out"].sum().backward()
        return out["flags"], x.grad

    same(program)


def test_nested_checkpoints():
    def program(torch):
        checkpoint = utils(torch).checkpoint
        x = numbers(torch, 3)
        calls = []

        def inner(a):
            calls.append("inner")
            return a.sin().exp()

        def outer(a):
            calls.append("outer")
            b = checkpoint(inner, a, use_reentrant=False)
            return checkpoint(inner, b * 2, use_reentrant=False).cos()

        checkpoint(outer, x, use_reentrant=False).sum().backward()
        return x.grad, calls

    same(program)


@pytest.mark.parametrize("early_stop", [True, False])
def test_recomputation_stops_early_unless_told_not_to(early_stop):
    def program(torch):
        reached = []

        def segment(a):
            b = a.sin()
            reached.append("middle")
            c = b + 1
            reached.append("end")
            return c

        results = []
        for given in ("argument", "block"):
            x = numbers(torch, 3)
            reached.clear()
            if given == "argument":
                out = utils(torch).checkpoint(segment, x, use_reentrant=False, early_stop=early_stop)
            else:
                with utils(torch).set_checkpoint_early_stop(early_stop):
                    out = utils(torch).checkpoint(segment, x, use_reentrant=False)
            out.sum().backward()
            results.append((list(reached), x.grad))
        return results

    same(program)


def test_a_retained_graph_runs_the_segment_once_per_backward():
    def program(torch):
        x = numbers(torch, 3)
        calls = []

        def segment(a):
            calls.append("run")
            return a.sin().exp()

        out = utils(torch).checkpoint(segment, x, use_reentrant=False).sum()
        out.backward(retain_graph=True)
        out.backward()
        return x.grad, calls

    same(program)


def test_double_backward():
    def program(torch):
        x = numbers(torch, 3)
        out = utils(torch).checkpoint(lambda a: a.sin().exp(), x, use_reentrant=False)
        (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return grad, torch.autograd.grad(grad.sum(), x)

    same(program)


def test_contexts_around_both_runs():
    def program(torch):
        seen = []

        class Note:
            def __init__(self, name):
                self.name = name

            def __enter__(self):
                seen.append("enter " + self.name)

            def __exit__(self, *error):
                seen.append("leave " + self.name)

        x = numbers(torch, 3)
        out = utils(torch).checkpoint(
            lambda a: a.sin(), x, use_reentrant=False, context_fn=lambda: (Note("first"), Note("second"))
        )
        out.sum().backward()
        return seen, x.grad

    same(program)


def test_a_different_number_of_saved_tensors_is_an_error():
    def program(torch):
        x = numbers(torch, 3)
        calls = []

        def segment(a):
            calls.append("run")
            out = a.sin().exp()
            return out if len(calls) > 1 else out.cos().sin()

        def more(a):
            calls.append("run")
            out = a.sin().exp()
            return out.cos().sin() if len(calls) > 1 else out

        fewer = utils(torch).checkpoint(segment, x, use_reentrant=False)
        first = attempt(lambda: fewer.sum().backward())
        calls.clear()
        with utils(torch).set_checkpoint_early_stop(False):
            longer = utils(torch).checkpoint(more, x, use_reentrant=False)
        return [first.text.split("Tip")[0], attempt(lambda: longer.sum().backward()).text.split("Tip")[0], first.kind]

    same(program)


def test_different_shapes_are_an_error_unless_unchecked():
    def program(torch):
        results = []
        for check in ("default", "none"):
            x = numbers(torch, 3)
            calls = []

            def segment(a, calls=calls):
                calls.append("run")
                return (a if len(calls) == 1 else a[:1].float()).sin().sum()

            out = utils(torch).checkpoint(segment, x, use_reentrant=False, determinism_check=check)
            outcome = attempt(lambda out=out: out.backward())
            results.append(outcome.text.split("Tip")[0] if outcome is not None else x.grad)
        return results[:1]

    same(program)


def test_debug_mode_lists_the_ops():
    def program(torch):
        x = numbers(torch, 3)
        calls = []

        def segment(a):
            calls.append("run")
            return a.sin().exp() if len(calls) == 1 else a.cos()

        out = utils(torch).checkpoint(segment, x, use_reentrant=False, debug=True)
        text = attempt(lambda: out.sum().backward()).text
        return text.splitlines()[:3], "sin" in text, "exp" in text, "cos" in text

    same(program)


def test_an_input_written_over_is_an_error():
    def program(torch):
        x = numbers(torch, 3)
        y = x * 2
        out = utils(torch).checkpoint(lambda a: a.sin(), y, use_reentrant=False)
        y.add_(1)
        return out.sum().backward()

    same(program)


def test_without_grad_nothing_is_kept():
    def program(torch):
        x = numbers(torch, 3)
        with torch.no_grad():
            return utils(torch).checkpoint(lambda a: a.sin(), x, use_reentrant=False)

    same(program)


def test_warnings_and_errors_of_arguments():
    def program(torch):
        checkpoint = utils(torch).checkpoint
        x = numbers(torch, 3)
        return [
            attempt(lambda: checkpoint(lambda a: a * 2, x)),
            attempt(lambda: checkpoint(lambda a: a * 2, x.detach(), use_reentrant=True)),
            attempt(lambda: checkpoint(lambda a: a * 2, x, use_reentrant=True, more=1)),
            attempt(lambda: checkpoint(lambda a: a * 2, x, use_reentrant=True, debug=True)),
            attempt(lambda: checkpoint(lambda a: a * 2, x, use_reentrant=False, determinism_check="all")),
            attempt(lambda: checkpoint(lambda a: a * 2, x, use_reentrant=False, debug=True, context_fn=lambda: None)),
            attempt(lambda: torch.autograd.grad(checkpoint(lambda a: a * 2, x, use_reentrant=True).sum(), x)),
            attempt(lambda: utils(torch).detach_variable([x])),
            attempt(lambda: utils(torch).checkpoint_sequential([torch.sin], 1, x)),
            attempt(lambda: utils(torch).checkpoint_sequential([torch.sin], 1, x, use_reentrant=True, more=1)),
        ]

    same(program)


@pytest.mark.parametrize("segments", [1, 2, 3])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_sequential_segments(use_reentrant, segments):
    def program(torch):
        x = numbers(torch, 3)
        functions = [torch.sin, torch.exp, torch.cos, lambda a: a * 2, torch.tanh]
        out = utils(torch).checkpoint_sequential(functions, segments, x, use_reentrant=use_reentrant)
        out.sum().backward()
        return out, x.grad

    same(program)


def test_saved_tensors_are_not_kept():
    def program(torch):
        import gc
        import weakref

        alive = []

        def segment(a):
            b = a.sin()
            alive.append(weakref.ref(b))
            return b.exp().cos()

        x = numbers(torch, 3)
        out = utils(torch).checkpoint(segment, x, use_reentrant=False)
        gc.collect()
        before = [ref() is not None for ref in alive]
        out.sum().backward()
        return before, x.grad

    same(program)
