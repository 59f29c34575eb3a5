"""The hooks of modules."""

import pytest

from tests.conformance.both import attempt, on_both


def two(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))


@on_both
def test_forward_hooks_see_and_replace_arguments_and_outputs(torch):
    seen = []
    net = two(torch)
    net[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    net[0].register_forward_pre_hook(lambda m, args: seen.append(args[0]))
    net[0].register_forward_pre_hook(lambda m, args: args[0] + 1)
    net[0].register_forward_hook(lambda m, args, out: seen.append([args[0], out]))
    handle = net[2].register_forward_hook(lambda m, args, out: out * 10)
    first = net(torch.ones(1, 2))
    handle.remove()
    return first, net(torch.ones(1, 2)), seen


@on_both
def test_hooks_may_want_keyword_arguments(torch):
    class Adding(torch.nn.Module):
        def forward(self, x, *, more=0):
            return x + more

    seen = []
    m = Adding()
    m.register_forward_pre_hook(lambda m, args, kwargs: (args, {"more": kwargs["more"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    m.register_forward_hook(lambda m, args, out: seen.append("second"))
    m.register_forward_hook(lambda m, args, out: seen.append("first"), prepend=True)
    result = m(torch.ones(1), more=2)
    m.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    return result, seen, attempt(lambda: m(torch.ones(1), more=2))


@on_both
def test_hooks_that_are_always_called_run_after_an_error(torch):
    class Failing(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    seen = []
    m = Failing()
    m.register_forward_hook(lambda m, args, out: seen.append(["always", out]), always_call=True)
    m.register_forward_hook(lambda m, args, out: seen.append("only after success"))

    def failing_hook(m, args, out):
        raise KeyError("hook")

    m.register_forward_hook(failing_hook, always_call=True)
    return attempt(lambda: m(torch.ones(1))), seen


@on_both
def test_full_backward_hooks_see_the_gradients_of_inputs_and_outputs(torch):
    seen = []
    net = two(torch)
    for i in (0, 1, 2):
        net[i].register_full_backward_hook(lambda m, gi, go, i=i: seen.append([i, list(gi), list(go)]))
    x = torch.ones(1, 2, requires_grad=True)
    net(x).sum().backward()
    return seen, x.grad


@on_both
def test_full_backward_hooks_can_replace_gradients(torch):
    net = two(torch)
    net[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
    net[2].register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    x = torch.ones(1, 2, requires_grad=True)
    out = net(x)
    node = type(out.grad_fn).__name__
    out.sum().backward()
    return x.grad, net[2].weight.grad, node


@on_both
def test_a_hook_that_returns_too_many_gradients_is_refused(torch):
    net = two(torch)
    net[1].register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    other = two(torch)
    other[1].register_full_backward_pre_hook(lambda m, go: (go[0], go[0]))
    x = torch.ones(1, 2, requires_grad=True)
    return attempt(lambda: net(x).sum().backward()), attempt(lambda: other(x).sum().backward())


@on_both
def test_full_and_old_backward_hooks_do_not_mix(torch):
    a, b = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    a.register_full_backward_hook(lambda *args: None)
    b.register_backward_hook(lambda *args: None)
    return attempt(lambda: a.register_backward_hook(print)), attempt(lambda: b.register_full_backward_hook(print))


@on_both
def test_old_backward_hooks_hang_on_the_last_node_and_warn(torch):
    seen = []
    net = torch.nn.Linear(2, 1)
    with torch.no_grad():
        net.weight.fill_(2.0)
        net.bias.fill_(0.0)
    net.register_backward_hook(lambda m, gi, go: seen.append([len(gi), list(go)]))
    x = torch.ones(1, 2, requires_grad=True)
    net(x * 1).sum().backward()
    return seen


@on_both
def test_a_full_backward_hook_without_gradients_of_inputs_warns_and_is_called(torch):
    seen = []
    net = torch.nn.Linear(2, 1)
    net.register_full_backward_hook(lambda m, gi, go: seen.append([list(gi), list(go)]))
    net(torch.ones(1, 2)).sum().backward()
    return seen


@on_both
def test_an_output_that_is_neither_tensor_nor_tuple_cannot_have_backward_hooks(torch):
    class Dict(torch.nn.Module):
        def forward(self, x):
            return {"out": x * 2}

    m = Dict()
    m.register_full_backward_hook(lambda *args: None)
    return m(torch.ones(1, requires_grad=True))


@on_both
def test_several_inputs_and_outputs_keep_their_places(torch):
    class Many(torch.nn.Module):
        def forward(self, a, n, b):
            return a * n, b * 2, n

    seen = []
    m = Many()
    m.register_full_backward_hook(lambda m, gi, go: seen.append([list(gi), list(go)]))
    a, b = torch.ones(2, requires_grad=True), torch.ones(2)
    out = m(a, 3, b)
    out[0].sum().backward()
    return seen, a.grad, out[2]


@pytest.mark.parametrize("kind", ["forward_pre", "forward", "full_backward", "full_backward_pre", "backward"])
def test_hooks_of_all_modules_run_before_the_modules_own(kind):
    @on_both
    def program(torch):
        seen = []
        modules = torch.nn.modules.module
        net = two(torch)
        handle = getattr(modules, f"register_module_{kind}_hook")(
            lambda m, *rest: seen.append(["all", type(m).__name__])
        )
        if kind != "backward":
            getattr(net[0], f"register_{kind}_hook")(lambda m, *rest: seen.append(["own", type(m).__name__]))
        try:
            net(torch.ones(1, 2, requires_grad=True)).sum().backward()
        finally:
            handle.remove()
        count = len(seen)
        net(torch.ones(1, 2))
        return seen[:count]

    program()


@pytest.mark.parametrize("kind", ["parameter", "buffer", "module"])
def test_hooks_on_registration_can_replace_what_is_registered(kind):
    @on_both
    def program(torch):
        seen = []
        nn = torch.nn

        def hook(module, name, value):
            seen.append([type(module).__name__, name, type(value).__name__])
            if kind == "parameter" and value is not None:
                return nn.Parameter(value.detach() * 0)

        handle = getattr(nn.modules.module, f"register_module_{kind}_registration_hook")(hook)
        try:
            net = nn.Sequential(nn.BatchNorm1d(1))
            net.extra = nn.Parameter(torch.ones(1))
        finally:
            handle.remove()
        return seen, net.extra

    program()
