"""`functorch` and `torch._vmap_internals`, which packages still import: on torch and on pullback."""

import importlib
import inspect
import warnings

import functorch as peer_functorch
import pytest
import torch as peer

from pullback.compat import functorch
from pullback.compat.install import ELSEWHERE
from tests.conformance.both import attempt, on_both

HOMES = {
    "functorch": "pullback.compat.functorch",
    "torch._functorch.make_functional": "pullback.compat.functorch.make_functional",
    "torch._functorch.deprecated": "pullback.compat.functorch.deprecated",
    "torch._vmap_internals": "pullback.compat.functorch.vmap_internals",
}


def home(torch, name):
    return importlib.import_module(name if torch is peer else HOMES[name])


def network(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))


@on_both
def test_a_module_becomes_a_function_of_its_parameters(torch):
    with warnings.catch_warnings(record=True):
        model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
        func, params = home(torch, "functorch").make_functional(model)
        _, untracked = home(torch, "functorch").make_functional(model, disable_autograd_tracking=True)
    x = torch.arange(6.0).reshape(2, 3)
    params = [torch.full_like(p, i + 1).requires_grad_() for i, p in enumerate(params)]
    out = func(params, x)
    grads = torch.autograd.grad(out.sum(), params)
    inside = [p.device.type for p in func.parameters()]
    names = func.param_names, func.names_map, list(func.state_dict()), repr(func)
    return (
        out,
        grads,
        inside,
        names,
        [p.requires_grad for p in untracked],
        torch.func.grad(lambda p: func(p, x).sum())(params),
    )


@on_both
def test_a_module_with_buffers_becomes_a_function_that_updates_those_it_is_given(torch):
    with warnings.catch_warnings(record=True):
        func, params, buffers = home(torch, "functorch").make_functional_with_buffers(network(torch))
    params = [torch.full_like(p, i + 1) for i, p in enumerate(params)]
    out = func(params, buffers, torch.arange(6.0).reshape(2, 3))
    return out, buffers, func.param_names, func.buffer_names, func.all_names_map


@on_both
def test_tied_parameters_are_one_argument(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    with warnings.catch_warnings(record=True):
        func, params = home(torch, "functorch").make_functional(model)
    return len(params), func.names_map, func([torch.ones_like(p) for p in params], torch.ones(1, 2))


@on_both
def test_models_of_an_ensemble_are_stacked_for_vmap(torch):
    with warnings.catch_warnings(record=True):
        models = [torch.nn.Linear(2, 1) for _ in range(3)]
        func, params, buffers = home(torch, "functorch").combine_state_for_ensemble(models)
    params = [torch.arange(float(p.numel())).reshape(p.shape) for p in params]
    return torch.vmap(func, (0, 0, None))(params, buffers, torch.ones(4, 2)), buffers, repr(func)


@on_both
def test_what_cannot_be_a_function_is_refused(torch):
    names = home(torch, "torch._functorch.make_functional")
    linear, eval_mode = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).eval()
    ensembles = [[], [linear, eval_mode], [linear, torch.nn.Identity()]]
    said = [attempt(lambda models=models: names.combine_state_for_ensemble(models)) for models in ensembles]
    return [*said, attempt(lambda: names.make_functional(network(torch)))]


@on_both
def test_weights_are_taken_out_of_a_module_and_put_back(torch):
    names = home(torch, "torch._functorch.make_functional")
    model = network(torch)
    weights, weight_names, names_map = names.extract_weights(model)
    buffers, buffer_names, _ = names.extract_buffers(model)
    kinds = [type(p).__name__ for p in model.parameters()]
    back = names.load_state(model, weights, weight_names, buffers, buffer_names)
    return kinds, names_map, list(buffer_names), back is model, model.eval()(torch.ones(1, 3)).shape, len(weights)


CALLS = {
    "vmap": lambda f, torch: f(torch.sin)(torch.arange(3.0)),
    "grad": lambda f, torch: f(lambda x: x.sin().sum())(torch.arange(3.0)),
    "grad_and_value": lambda f, torch: f(lambda x: (x * x).sum())(torch.arange(3.0)),
    "vjp": lambda f, torch: f(torch.sin, torch.arange(3.0))[0],
    "jvp": lambda f, torch: f(torch.sin, (torch.arange(3.0),), (torch.ones(3),)),
    "jacrev": lambda f, torch: f(torch.sin)(torch.arange(3.0)),
    "jacfwd": lambda f, torch: f(torch.sin)(torch.arange(3.0)),
    "hessian": lambda f, torch: f(lambda x: (x**3).sum())(torch.arange(3.0)),
    "functionalize": lambda f, torch: f(torch.sin)(torch.arange(3.0)),
    "make_functional": lambda f, torch: len(f(torch.nn.Linear(1, 1))[1]),
    "make_functional_with_buffers": lambda f, torch: len(f(torch.nn.Linear(1, 1))[1]),
    "combine_state_for_ensemble": lambda f, torch: len(f([torch.nn.Linear(1, 1)])[1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_functorch_says_where_it_is_now_on_the_line_that_calls_it(name):
    @on_both
    def program(torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out = CALLS[name](getattr(home(torch, "functorch"), name), torch)
        first = caught[0]  # torch may warn of its own use of torch.jit.script after that
        return out, str(first.message), first.category.__name__, first.filename == __file__

    program()


def test_functorch_has_torchs_names():
    assert {name for name in dir(peer_functorch) if name[0] != "_"} - set(dir(functorch)) == {"make_fx", "torch"}


@pytest.mark.parametrize("name", ["vmap", "grad", "vjp", "make_functional", "combine_state_for_ensemble"])
def test_the_functions_have_torchs_parameters(name):
    own, theirs = (inspect.signature(getattr(home, name)) for home in (functorch, peer_functorch))
    assert list(own.parameters) == list(theirs.parameters)


@on_both
def test_the_old_vmap_maps_over_functions_of_tensors(torch):
    vmap = home(torch, "torch._vmap_internals")._vmap
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = (x**3).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    rows = vmap(lambda v: torch.autograd.grad(first, x, v, retain_graph=True)[0])(torch.eye(6).reshape(6, 2, 3))
    several = vmap(lambda a, b: (a + b, a), (0, None), (1, 0))(torch.ones(2, 3), torch.arange(3.0))
    nothing = vmap(lambda a: (a, None), allow_none_pass_through=True)(torch.ones(2))
    lone = vmap(lambda a, b: (a * b,), (1, 0))(torch.ones(2, 3), torch.arange(3.0))
    return rows, several, nothing, lone, vmap(lambda a: torch.ones(2))(torch.ones(3))


@on_both
def test_the_old_vmap_refuses_what_are_no_tensors(torch):
    vmap = home(torch, "torch._vmap_internals")._vmap
    x = torch.ones(2, 3)
    calls = [
        lambda: vmap(named(torch, [x]))(x),
        lambda: vmap(named(torch, (x, None)))(x),
        lambda: vmap(named(torch, x), out_dims=None)(x),
        lambda: vmap(named(torch, x), out_dims=(0, "a"))(x),
        lambda: vmap(named(torch, (x, x)), out_dims=(0, 1, 0))(x),
        lambda: vmap(named(torch, x))(),
        lambda: vmap(named(torch, x), 4.0)(x),
        lambda: vmap(named(torch, x), (0, 1))(x),
        lambda: vmap(named(torch, x), ("a",))(x),
        lambda: vmap(named(torch, x), (0, 1))(x, x),
    ]
    return [attempt(call) for call in calls]


def named(torch, result):
    def function(*args):
        return result

    return function


@on_both
def test_the_old_vmap_warns_by_its_public_name(torch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = home(torch, "torch._vmap_internals").vmap(torch.sin)(torch.ones(2))
    return out.shape, [(str(one.message), one.category.__name__, one.filename == __file__) for one in caught]


def test_the_table_of_homes_is_that_of_the_importer():
    assert HOMES.items() <= ELSEWHERE.items()
