"""Everything dies the moment nobody holds it, by reference counting: the collector is off in all of these tests."""

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import pullback as torch


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Dead:
    """Weak references to things that must be gone."""

    def __init__(self, *things: object) -> None:
        self.references = [(type(thing).__name__, weakref.ref(thing)) for thing in things]

    def check(self) -> None:
        alive = [name for name, reference in self.references if reference() is not None]
        assert not alive, f"still alive: {alive}"


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(*(shape or (3,)), requires_grad=True)


def test_a_graph_dies_with_its_last_tensor():
    x = leaf()
    y = x * x
    z = y.exp().sum()
    dead = Dead(y, z, y.grad_fn, z.grad_fn)
    del y, z
    dead.check()


def test_intermediate_tensors_nobody_needs_die_at_once():
    x = leaf()
    a = x + 1
    dead = Dead(a)
    b = a + 1
    del a
    dead.check()
    assert b.grad_fn is not None


def test_saved_inputs_live_as_long_as_the_graph_and_no_longer():
    x, a = leaf(), torch.ones(3)
    y = x * a
    dead = Dead(a)
    del a
    assert y.grad_fn._saved_other is not None
    y.sum().backward()
    dead.check()


def test_saved_outputs_do_not_keep_their_tensor():
    x = leaf()
    y = x.exp()
    node = y.grad_fn
    dead = Dead(y)
    del y
    dead.check()
    assert node._saved_result.tolist() == np.exp(np.ones(3, np.float32)).tolist()


def test_backward_frees_what_was_saved_even_while_the_result_lives():
    x, w = leaf(), torch.ones(3)
    y = (x * w).sum()
    dead = Dead(w)
    del w
    y.backward()
    dead.check()


def test_retained_graphs_die_with_their_result():
    x = leaf()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    dead = Dead(y, y.grad_fn)
    del y
    dead.check()


def test_gradients_with_a_graph_die_with_the_gradient():
    x = leaf()
    y = (x * x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    dead = Dead(y, y.grad_fn, g, g.grad_fn, h, h.grad_fn)
    del y, g, h
    dead.check()


def test_an_error_in_backward_keeps_nothing():
    x = leaf()
    y = x * x

    def fail(grad: torch.Tensor) -> None:
        raise ValueError("from the hook")

    y.register_hook(fail)
    z = y.sum()
    dead = Dead(y, z, y.grad_fn)
    with pytest.raises(ValueError, match="from the hook"):
        z.backward()
    del y, z
    dead.check()


def test_an_error_in_a_custom_backward_keeps_nothing():
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("bad")

    x = leaf()
    a = x * 1
    y = Bad.apply(a)
    dead = Dead(a, y, y.grad_fn)
    with pytest.raises(KeyError):
        y.sum().backward()
    del a, y
    dead.check()


def test_an_error_in_forward_keeps_nothing():
    x = leaf() * 1
    dead = Dead(x)
    with pytest.raises(RuntimeError, match="must match the size"):
        x * torch.ones(4)
    del x
    dead.check()


def test_hooks_die_with_their_tensor():
    class Hook:
        def __call__(self, grad: torch.Tensor) -> None: ...

    x = leaf()
    y = x * 2
    hook, prehook, posthook = Hook(), Hook(), Hook()
    handle = y.register_hook(hook)
    y.grad_fn.register_prehook(prehook)
    y.grad_fn.register_hook(lambda gi, go, keep=posthook: None)
    dead = Dead(hook, prehook, posthook, y, y.grad_fn)
    del hook, prehook, posthook, y
    dead.check()
    handle.remove()


def test_removed_hooks_die():
    class Hook:
        def __call__(self, grad: torch.Tensor) -> None: ...

    x = leaf()
    hook = Hook()
    handle = x.register_hook(hook)
    dead = Dead(hook)
    handle.remove()
    del hook
    dead.check()


def test_retain_grad_does_not_keep_the_tensor():
    x = leaf()
    y = x * 2
    y.retain_grad()
    z = y.sum()
    dead = Dead(y)
    del y
    dead.check()
    z.backward()
    assert x.grad.tolist() == [2.0] * 3


def test_looking_at_the_graph_keeps_nothing():
    x = leaf()
    y = x * x
    seen = y.grad_fn.next_functions
    _ = y.grad_fn._saved_self, y.grad_fn._raw_saved_self, y.grad_fn.metadata, y.grad_fn.name()
    dead = Dead(y, y.grad_fn, seen[0][0])
    del y, seen, _
    dead.check()


def test_a_leaf_and_its_accumulate_grad_die_together():
    x = leaf()
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    dead = Dead(x, node, y)
    del y, node
    (x * 3).sum().backward()
    del x
    dead.check()


def test_views_and_in_place_writes_die():
    x = leaf(2, 3)
    y = x * 1
    v = y[0]
    v.mul_(2)
    w = y.view(-1)
    dead = Dead(y, v, w, y.grad_fn, v.grad_fn, w.grad_fn)
    (y.sum() + v.sum()).backward()
    del y, v, w
    dead.check()


def test_a_custom_function_and_its_context_die():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x * x
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx, grad):
            x, _ = ctx.saved_tensors
            return 2 * x * grad

    x = leaf()
    y = Square.apply(x)
    dead = Dead(y, y.grad_fn)
    del y
    dead.check()
    z = Square.apply(x)
    z.sum().backward()
    dead = Dead(z, z.grad_fn)
    del z
    dead.check()


def test_saved_tensor_hooks_keep_only_what_they_packed():
    x = leaf()
    a = x * 1
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
        y = a * a
    dead = Dead(a, y, y.grad_fn)
    del a
    y.sum().backward()
    del y
    dead.check()


def test_multi_output_ops_die():
    x = leaf(4, 2)
    parts = x.unbind(0)
    values, indices = x.max(1)
    dead = Dead(*parts, values, indices, values.grad_fn, parts[0].grad_fn)
    (parts[0].sum() + values.sum()).backward()
    del parts, values, indices
    dead.check()


def test_forward_mode_keeps_nothing_after_its_level():
    ad = torch.autograd.forward_ad
    x, t = torch.ones(3), torch.ones(3)
    with ad.dual_level():
        dual = ad.make_dual(x, t)
        y = dual * dual
        dead = Dead(dual, y, ad.unpack_dual(y).tangent)
        del dual, y
        dead.check()


def test_anomaly_mode_keeps_nothing():
    with torch.autograd.set_detect_anomaly(True):
        x = leaf()
        y = (x * x).sum()
        dead = Dead(y, y.grad_fn)
        y.backward()
        del y
        dead.check()


def test_autograd_grad_does_not_keep_the_graph():
    x = leaf()
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x)
    dead = Dead(y, y.grad_fn)
    del y
    dead.check()
    assert g.tolist() == [2.0] * 3


def test_a_gradient_stolen_by_its_leaf_is_held_by_nobody_else():
    x = leaf()
    (x * 3).sum().backward()
    first = x.grad
    dead = Dead(first)
    x.grad = None
    del first
    dead.check()


def test_deep_graphs_are_freed_without_recursion():
    x = leaf(1)
    z = x
    for _ in range(200_000):
        z = z + 1
    dead = Dead(z.grad_fn)
    del z
    dead.check()


def test_training_steps_leave_no_new_objects():
    x, w = torch.ones(4, 3), torch.ones(3, requires_grad=True)

    def step() -> None:
        loss = ((x * w).sum(1).exp() ** 2).sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=1e-9)
        w.grad = None

    for _ in range(300):  # until every op has the kernels it gets by being called often
        step()
    before = len(gc.get_objects())
    for _ in range(50):
        step()
    assert len(gc.get_objects()) <= before + 5
