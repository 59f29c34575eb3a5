"""Parametrizations, and weight and spectral normalization."""

import copy
import pickle

import pytest

import pullback
from tests.conformance.both import attempt, on_both


def symmetric(torch):
    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    return Symmetric()


@on_both
def test_a_parametrized_weight_is_computed_from_its_original(torch):
    torch.manual_seed(0)
    parametrize = torch.nn.utils.parametrize
    layer = torch.nn.Linear(3, 3)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", symmetric(torch))
    first = layer.weight
    layer(torch.ones(1, 3)).sum().backward()
    gradient = layer.parametrizations.weight.original.grad
    layer.weight = torch.arange(9.0).reshape(3, 3)
    return [
        first, gradient, layer.weight, repr(layer), list(layer.state_dict()), [n for n, _ in layer.named_parameters()],
        layer.parametrizations.weight.original is weight, parametrize.is_parametrized(layer),
        parametrize.is_parametrized(layer, "bias"), parametrize.type_before_parametrizations(layer).__name__,
        type(layer).__name__,
    ]  # fmt: skip


@pytest.mark.parametrize("leave", [True, False])
def test_a_parametrization_can_be_removed(leave):
    @on_both
    def program(torch):
        torch.manual_seed(0)
        parametrize = torch.nn.utils.parametrize
        layer = torch.nn.Linear(3, 3)
        parametrize.register_parametrization(layer, "weight", symmetric(torch))
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)
        return (
            layer.weight,
            type(layer).__name__,
            repr(layer),
            isinstance(layer.weight, torch.nn.Parameter),
            hasattr(layer, "parametrizations"),
        )

    program()


@on_both
def test_parametrizations_are_chained_and_cached(torch):
    class Counting(torch.nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x * 2

    torch.manual_seed(0)
    parametrize = torch.nn.utils.parametrize
    layer = torch.nn.Linear(2, 2)
    counting = Counting()
    parametrize.register_parametrization(layer, "weight", counting)
    parametrize.register_parametrization(layer, "weight", symmetric(torch))
    before = counting.calls
    with parametrize.cached():
        first, second = layer.weight, layer.weight
    after = counting.calls
    return (
        first,
        first is second,
        after - before,
        layer.weight is layer.weight,
        attempt(lambda: setattr(layer, "weight", torch.ones(2, 2))),
    )


@on_both
def test_a_buffer_and_several_originals_can_be_parametrized(torch):
    class Product(torch.nn.Module):
        def forward(self, a, b):
            return a * b

        def right_inverse(self, w):
            return w, torch.ones_like(w)

    torch.manual_seed(0)
    parametrize = torch.nn.utils.parametrize
    layer = torch.nn.Linear(2, 2)
    layer.register_buffer("extra", torch.eye(2))
    parametrize.register_parametrization(layer, "weight", Product())
    parametrize.register_parametrization(layer, "extra", symmetric(torch))
    layer.weight = torch.full((2, 2), 3.0)
    state = dict(layer.state_dict())
    refused = attempt(lambda: parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False))
    parametrize.remove_parametrizations(layer, "weight")
    return state, refused, layer.weight, list(layer.state_dict()), layer.extra


@on_both
def test_what_is_no_parametrization_is_refused(torch):
    class Wider(torch.nn.Module):
        def forward(self, x):
            return torch.cat([x, x])

    class Doubles(torch.nn.Module):
        def forward(self, x):
            return x.double()

    class Text(torch.nn.Module):
        def forward(self, x):
            return "text"

    class BadInverse(torch.nn.Module):
        def forward(self, x):
            return x

        def right_inverse(self, x):
            return 3

    class OtherDtype(torch.nn.Module):
        def forward(self, x):
            return x

        def right_inverse(self, x):
            return x.double()

    parametrize = torch.nn.utils.parametrize
    kinds = (Wider, Doubles, Text, BadInverse, OtherDtype)
    chained = torch.nn.Linear(2, 2)
    parametrize.register_parametrization(chained, "weight", torch.nn.Identity())
    return [
        [
            attempt(lambda k=k: parametrize.register_parametrization(torch.nn.Linear(2, 2), "weight", k()))
            for k in kinds
        ],
        [attempt(lambda k=k: parametrize.register_parametrization(chained, "weight", k())) for k in kinds],
        attempt(lambda: parametrize.register_parametrization(torch.nn.Linear(2, 2), "none", Wider())),
        attempt(lambda: parametrize.remove_parametrizations(torch.nn.Linear(2, 2), "weight")),
        attempt(lambda: parametrize.ParametrizationList([], torch.ones(1))),
        attempt(lambda: pickle.dumps(chained)),
    ]


@on_both
def test_a_parametrized_module_can_be_copied_and_its_parts_transferred(torch):
    torch.manual_seed(0)
    parametrize = torch.nn.utils.parametrize
    layer, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", symmetric(torch))
    copied = copy.deepcopy(layer)
    with torch.no_grad():
        copied.parametrizations.weight.original.zero_()
    parametrize.transfer_parametrizations_and_params(layer, other)
    return (
        layer.weight,
        copied.weight,
        other.weight,
        other.parametrizations.weight.original is layer.parametrizations.weight.original,
    )


# ------------------------------------------------------------------ weight norm


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_learns_length_and_direction(dim):
    @on_both
    def program(torch):
        torch.manual_seed(0)
        new = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2), dim=dim)
        torch.manual_seed(0)
        old = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2), dim=dim)
        results = []
        for layer in (new, old):
            layer(torch.arange(6.0).reshape(2, 3)).square().sum().backward()
            results.append(
                [repr(layer), dict(layer.state_dict()), {name: p.grad for name, p in layer.named_parameters()}]
            )
        new.load_state_dict(old.state_dict())
        torch.nn.utils.remove_weight_norm(old)
        return results, old.weight, repr(old), list(old.state_dict())

    program()


@on_both
def test_weight_norm_of_a_convolution_with_a_dimension_in_the_middle(torch):
    torch.manual_seed(0)
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(2, 3, 2), dim=1)
    layer(torch.arange(8.0).reshape(1, 2, 4)).square().sum().backward()
    return layer.weight, {name: p.grad for name, p in layer.named_parameters()}


@on_both
def test_weight_norm_twice_or_of_nothing_is_refused(torch):
    utils = torch.nn.utils
    layer = utils.weight_norm(torch.nn.Linear(2, 2))
    return [
        attempt(lambda: utils.weight_norm(layer)),
        attempt(lambda: utils.remove_weight_norm(torch.nn.Linear(2, 2))),
        attempt(lambda: utils.weight_norm(torch.nn.LazyLinear(2))),
    ]


def test_the_second_derivative_of_weight_norm_passes_gradgradcheck():
    v = pullback.arange(6.0, dtype=pullback.float64).reshape(2, 3).sin().requires_grad_()
    g = pullback.tensor([[1.5], [0.5]], dtype=pullback.float64, requires_grad=True)
    weights = pullback.arange(6.0, dtype=pullback.float64).reshape(2, 3).cos()

    def gradient_of_v(v):
        out = (pullback._weight_norm(v, g, 0) ** 2 * weights).sum()
        return pullback.autograd.grad(out, v, create_graph=True)[0]

    def total(v):
        return (gradient_of_v(v) * weights).sum()

    (analytic,) = pullback.autograd.grad(total(v), v)
    step = 1e-6
    for i in range(2):
        for j in range(3):
            moved = pullback.zeros(2, 3, dtype=pullback.float64)
            moved[i, j] = step
            up, down = (total((v + sign * moved).detach().requires_grad_()).item() for sign in (1, -1))
            assert (up - down) / (2 * step) == pytest.approx(analytic[i, j].item(), rel=1e-5, abs=1e-7)


# ------------------------------------------------------------------ spectral norm


@pytest.mark.parametrize("build", ["Linear(3, 2)", "Conv2d(2, 3, 2)", "ConvTranspose2d(2, 3, 2)"])
@pytest.mark.parametrize("new", [True, False])
def test_spectral_norm_divides_by_the_largest_singular_value(build, new):
    @on_both
    def program(torch):
        torch.manual_seed(0)
        home = torch.nn.utils.parametrizations if new else torch.nn.utils
        layer = home.spectral_norm(eval("nn." + build, {"nn": torch.nn}), n_power_iterations=2)
        x = torch.arange(6.0).reshape(2, 3) if "Linear" in build else torch.arange(18.0).reshape(1, 2, 3, 3).sin()
        outputs = [layer(x), layer(x)]
        outputs[1].square().sum().backward()
        layer.eval()
        outputs.append(layer(x))
        return outputs, dict(layer.state_dict()), {name: p.grad for name, p in layer.named_parameters()}, repr(layer)

    program()


@on_both
def test_spectral_norm_can_be_removed_and_loaded(torch):
    torch.manual_seed(0)
    utils = torch.nn.utils
    layer = utils.spectral_norm(torch.nn.Linear(3, 2))
    layer(torch.ones(1, 3))
    other = utils.spectral_norm(torch.nn.Linear(3, 2))
    other.load_state_dict(layer.state_dict())
    twice = attempt(lambda: utils.spectral_norm(layer))
    utils.remove_spectral_norm(layer)
    return [
        layer.weight,
        repr(layer),
        list(layer.state_dict()),
        dict(other.state_dict()),
        twice,
        attempt(lambda: utils.remove_spectral_norm(layer)),
        attempt(lambda: utils.spectral_norm(torch.nn.Linear(2, 2), n_power_iterations=0)),
        attempt(lambda: utils.parametrizations.spectral_norm(torch.nn.Linear(2, 2), dim=5)),
        attempt(lambda: utils.parametrizations.spectral_norm(torch.nn.Linear(2, 2), "none")),
    ]


# ------------------------------------------------------------------ orthogonal


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivialization", [True, False])
def test_an_orthogonal_weight_stays_orthogonal(shape, kind, trivialization):
    @on_both
    def program(torch):
        torch.manual_seed(0)
        layer = torch.nn.Linear(shape[1], shape[0], bias=False)
        torch.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivialization)
        first = layer.weight
        layer(torch.ones(1, shape[1])).square().sum().backward()
        return first, layer.parametrizations.weight.original.grad, list(layer.state_dict())

    program()


@on_both
def test_what_cannot_be_orthogonal_is_refused(torch):
    orthogonal = torch.nn.utils.parametrizations.orthogonal
    return [
        attempt(lambda: orthogonal(torch.nn.Linear(2, 2), "bias")),
        attempt(lambda: orthogonal(torch.nn.Linear(2, 2), "none")),
        attempt(lambda: orthogonal(torch.nn.Linear(2, 2), orthogonal_map="some")),
    ]
