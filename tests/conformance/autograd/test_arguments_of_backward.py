"""Every argument of backward and grad, right and wrong, and what happens at the edges."""

import contextlib

from tests.conformance.both import attempt, on_both


@on_both
def test_empty_sequences(torch):
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    return (
        attempt(lambda: torch.autograd.backward([])),
        attempt(lambda: torch.autograd.grad([], x)),
        attempt(lambda: torch.autograd.grad(y, [])),
        attempt(lambda: torch.autograd.backward(y, inputs=[])),
        attempt(lambda: torch.autograd.grad((), ())),
    )


@on_both
def test_things_that_are_no_tensors(torch):
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    return (
        attempt(lambda: torch.autograd.backward(3)),
        attempt(lambda: torch.autograd.backward("ab")),
        attempt(lambda: torch.autograd.backward([y, 3])),
        attempt(lambda: torch.autograd.backward(None)),
        attempt(lambda: torch.autograd.grad(y, 3)),
        attempt(lambda: torch.autograd.grad(y, [3])),
        attempt(lambda: torch.autograd.grad(3, x)),
        attempt(lambda: torch.autograd.backward(y, inputs=3)),
        attempt(lambda: torch.autograd.backward(y, inputs=[3])),
    )


@on_both
def test_gradients_given_in_every_form(torch):
    x = torch.ones(2, requires_grad=True)

    def run(given, count=1):
        ys = [x * 2 for _ in range(count)]
        return torch.autograd.grad(ys if count > 1 else ys[0], x, given)

    one = torch.ones(2)
    return [
        attempt(lambda: run(one)),
        attempt(lambda: run([one])),
        attempt(lambda: run((one,))),
        attempt(lambda: run([one, one])),
        attempt(lambda: run([])),
        attempt(lambda: run(None)),
        attempt(lambda: run([None])),
        attempt(lambda: run(1.0)),
        attempt(lambda: run([1.0])),
        attempt(lambda: run([one, None], 2)),
        attempt(lambda: run([one, one], 2)),
        attempt(lambda: run([one], 2)),
        attempt(lambda: run(one, 2)),
        attempt(lambda: run(torch.ones(1))),
        attempt(lambda: run(torch.ones(2, dtype=torch.int64))),
        attempt(lambda: run(torch.ones(2, dtype=torch.complex64))),
        attempt(lambda: run(torch.ones(2, 1))),
        attempt(lambda: run(torch.ones(()))),
    ]


@on_both
def test_method_backward_in_every_form(torch):
    x = torch.ones(2, requires_grad=True)

    def run(*args, **kwargs):
        x.grad = None
        (x * 2).backward(*args, **kwargs)
        return x.grad

    one = torch.ones(2)
    return [
        attempt(lambda: run(one)),
        attempt(lambda: run(gradient=one)),
        attempt(lambda: run(one, True)),
        attempt(lambda: run(one, retain_graph=True, create_graph=False)),
        attempt(lambda: run()),
        attempt(lambda: run(2.0)),
        attempt(lambda: run([1.0, 1.0])),
        attempt(lambda: run(one, inputs=x)),
        attempt(lambda: run(one, inputs=[x])),
        attempt(lambda: run(one, inputs=(x,))),
        attempt(lambda: run(torch.ones(3))),
    ]


@on_both
def test_retain_graph_in_every_form(torch):
    x = torch.tensor([2.0], requires_grad=True)

    def twice(**kwargs):
        y = x * x
        torch.autograd.grad(y, x, **kwargs)
        return torch.autograd.grad(y, x)

    return (
        attempt(lambda: twice()),
        attempt(lambda: twice(retain_graph=True)),
        attempt(lambda: twice(create_graph=True)),
        attempt(lambda: twice(create_graph=True, retain_graph=False)),
        attempt(lambda: twice(retain_graph=None)),
        attempt(lambda: twice(retain_graph=False)),
    )


@on_both
def test_freeing_happens_node_by_node(torch):
    x = torch.tensor([2.0], requires_grad=True)
    a = x * x
    b = a * 3
    c = a.exp()
    b.backward()
    return attempt(lambda: c.backward()), x.grad


@on_both
def test_unused_and_materialized(torch):
    x = torch.ones(2, requires_grad=True)
    u = torch.ones(3, requires_grad=True)
    n = (x * 1).detach().requires_grad_()

    def run(**kwargs):
        return torch.autograd.grad((x * 2).sum(), [x, u, n], **kwargs)

    return (
        attempt(lambda: run()),
        attempt(lambda: run(allow_unused=True)),
        attempt(lambda: run(materialize_grads=True)),
        attempt(lambda: run(materialize_grads=True, allow_unused=False)),
        attempt(lambda: run(materialize_grads=True, create_graph=True)),
        attempt(lambda: run(allow_unused=None)),
    )


@on_both
def test_batched_gradients(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = torch.tensor([2.0, 2.0, 2.0], requires_grad=True)

    def run(given, **kwargs):
        return torch.autograd.grad(x * x * w, [x, w], given, is_grads_batched=True, **kwargs)

    return (
        attempt(lambda: run(torch.eye(3))),
        attempt(lambda: run(torch.eye(3)[:2])),
        attempt(lambda: run(torch.ones(2, 2))),
        attempt(lambda: run(torch.ones(3))),
        attempt(lambda: run([torch.eye(3)])),
    )


@on_both
def test_roots_that_share_a_graph(torch):
    x = torch.tensor([2.0], requires_grad=True)
    y = x * x
    z = y * x
    torch.autograd.backward([z, y, z, x])
    return x.grad


@on_both
def test_root_inside_another_root_with_hooks(torch):
    seen = []
    x = torch.tensor([2.0], requires_grad=True)
    y = x * x
    z = y * 3
    y.register_hook(lambda g: seen.append(g.clone()))
    y.retain_grad()
    torch.autograd.backward([z, y])
    return seen, y.grad, x.grad


@on_both
def test_same_output_of_a_node_twice(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    a, b = x.unbind(0)
    return torch.autograd.grad([a, b, a], x, [torch.ones(2), torch.ones(2) * 10, torch.ones(2) * 100])


@on_both
def test_root_without_history_beside_one_with(torch):
    x = torch.tensor([2.0], requires_grad=True)
    return (
        attempt(lambda: torch.autograd.backward([x * 2, torch.ones(1)])),
        attempt(lambda: torch.autograd.backward([torch.ones(1), x * 2])),
        x.grad,
    )


@on_both
def test_inputs_beyond_inputs(torch):
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    z = y * y
    w = z * 5
    return torch.autograd.grad(w, [w, z, y, x])


@on_both
def test_inputs_off_the_way(torch):
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    side = y * 7
    z = y * y
    return torch.autograd.grad(z, [x, side, y], allow_unused=True)


@on_both
def test_backward_with_inputs_of_every_kind(torch):
    x = torch.tensor([2.0], requires_grad=True)
    u = torch.tensor([2.0], requires_grad=True)
    y = x * 3
    z = (y * y * u).sum()
    z.backward(inputs=[y, u])
    return x.grad, y.grad, u.grad, y.retains_grad, attempt(lambda: z.backward(inputs=[torch.ones(1)]))


@on_both
def test_double_backward_in_pieces(torch):
    x = torch.tensor([2.0], requires_grad=True)
    w = torch.tensor([3.0], requires_grad=True)
    y = (x**3) * w
    gx, gw = torch.autograd.grad(y, [x, w], create_graph=True)
    gxx, gxw = torch.autograd.grad(gx, [x, w], create_graph=True)
    gxxx = torch.autograd.grad(gxx, x)
    return gx, gw, gxx, gxw, gxxx, gx.grad_fn, gxx.requires_grad


@on_both
def test_gradient_that_requires_grad(torch):
    x = torch.tensor([2.0], requires_grad=True)
    v = torch.tensor([3.0], requires_grad=True)
    (g,) = torch.autograd.grad(x * x, x, v, create_graph=True)
    plain = torch.autograd.grad(x * x, x, v)
    return torch.autograd.grad(g, [x, v]), plain[0].requires_grad


@on_both
def test_results_of_grad_and_their_history(torch):
    x = torch.tensor([2.0], requires_grad=True)
    (a,) = torch.autograd.grad(x * 3, x, create_graph=True)
    (b,) = torch.autograd.grad(x + 1, x, create_graph=True)
    (c,) = torch.autograd.grad(x.sum(), x)
    return a.requires_grad, a.grad_fn, b.requires_grad, c.requires_grad, c


@on_both
def test_grad_enabled_after_everything(torch):
    x = torch.tensor([2.0], requires_grad=True)
    with torch.no_grad():
        with contextlib.suppress(RuntimeError):
            (x * 2).backward()
        inside = torch.is_grad_enabled()
    with torch.enable_grad():
        torch.autograd.grad(x * 2, x)
    return inside, torch.is_grad_enabled()


@on_both
def test_create_graph_under_no_grad(torch):
    x = torch.tensor([2.0], requires_grad=True)
    y = x * x
    with torch.no_grad():
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g.requires_grad, torch.autograd.grad(g, x)


@on_both
def test_deleting_grad(torch):
    x = torch.tensor([2.0], requires_grad=True)
    (x * 2).backward()
    del x.grad
    return x.grad


@on_both
def test_accumulated_gradient_is_the_same_object(torch):
    x = torch.tensor([2.0], requires_grad=True)
    (x * 2).backward()
    g = x.grad
    (x * 3).backward()
    return g is x.grad, g, g._version


@on_both
def test_accumulating_into_gradients_of_other_layouts(torch):
    x = torch.ones(2, 3, requires_grad=True)
    x.grad = torch.zeros(3, 2).t()
    (x * 2).sum().backward()
    y = torch.ones(2, 2, requires_grad=True)
    y.grad = torch.zeros(1).expand(2, 2)
    return x.grad.stride(), x.grad, attempt(lambda: (y * 2).sum().backward())


@on_both
def test_accumulating_where_the_gradient_has_history(torch):
    x = torch.tensor([2.0], requires_grad=True)
    w = torch.tensor([3.0], requires_grad=True)
    x.grad = w * 1
    (x * 2).backward()
    first = x.grad, x.grad.grad_fn
    x.grad = torch.ones(1, requires_grad=True)
    return first, attempt(lambda: (x * 2).backward()), x.grad


@on_both
def test_gradients_of_zero_size_and_zero_dims(torch):
    x = torch.ones(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    y = torch.tensor(2.0, requires_grad=True)
    (y * y).backward()
    return x.grad, x.grad.shape, y.grad, y.grad.shape


@on_both
def test_number_types_through_a_graph(torch):
    h = torch.tensor([1.5], dtype=torch.float16, requires_grad=True)
    d = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    i = torch.tensor([3])
    c = torch.tensor([1 + 1j], requires_grad=True)
    ((h * d * i).double() * c).real.sum().backward()
    return h.grad, d.grad, c.grad


def test_gradients_of_another_layout_warn_once_per_process(run_python):
    source = """
import warnings
import {module} as torch
x = torch.ones(2, 3, requires_grad=True)
x.grad = torch.zeros(3, 2).t()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    (x * 2).sum().backward()
    (x * 2).sum().backward()
print([str(w.message).split(" (Triggered")[0] for w in caught])
"""
    assert run_python(source.format(module="torch")) == run_python(source.format(module="pullback"))
