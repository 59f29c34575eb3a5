"""Modules that take their sizes from the first input."""

import copy
import pickle

from tests.conformance.both import attempt, on_both


@on_both
def test_a_lazy_module_becomes_an_ordinary_one(torch):
    torch.manual_seed(0)
    layer = torch.nn.LazyLinear(3)
    before = [
        type(layer).__name__,
        repr(layer),
        repr(layer.weight),
        layer.has_uninitialized_params(),
        len(layer._forward_pre_hooks),
    ]
    out = layer(torch.ones(2, 4))
    return before, type(layer).__name__, repr(layer), out, len(layer._forward_pre_hooks), layer.in_features


@on_both
def test_an_uninitialized_parameter_tells_that_it_is_one(torch):
    layer = torch.nn.LazyLinear(3)
    p = layer.weight
    return [
        attempt(lambda: p.shape),
        attempt(lambda: p + 1).kind,
        attempt(p.share_memory_),
        torch.nn.parameter.is_lazy(p),
        p.requires_grad,
        repr(p.double().dtype),
        repr(copy.deepcopy(p)),
        repr(pickle.loads(pickle.dumps(p))),
        repr(torch.nn.UninitializedBuffer()),
    ]


@on_both
def test_the_state_of_a_lazy_module_can_be_loaded(torch):
    torch.manual_seed(0)
    lazy, ordinary = torch.nn.LazyLinear(3), torch.nn.Linear(4, 3)
    lazy.load_state_dict(ordinary.state_dict())
    out = lazy(torch.ones(2, 4))
    untouched = torch.nn.LazyLinear(3)
    return (
        out,
        type(lazy).__name__,
        [repr(v) for v in untouched.state_dict().values()],
        str(untouched.load_state_dict(torch.nn.LazyLinear(3).state_dict())),
    )


@on_both
def test_a_lazy_module_cannot_be_loaded_into_an_ordinary_one(torch):
    torch.nn.Linear(4, 3).load_state_dict(torch.nn.LazyLinear(3).state_dict())


@on_both
def test_a_lazy_module_can_be_converted_before_it_has_sizes(torch):
    torch.manual_seed(0)
    layer = torch.nn.LazyLinear(3).double()
    return layer(torch.ones(1, 2).double())


@on_both
def test_a_lazy_module_can_be_copied_and_pickled_before_it_has_sizes(torch):
    layer = torch.nn.LazyLinear(2)
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    torch.manual_seed(0)
    return [[c(torch.ones(1, 3)), type(c).__name__] for c in copies]


@on_both
def test_a_module_of_ones_own_can_be_lazy(torch):
    nn = torch.nn

    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()
            self.seen = nn.UninitializedBuffer()

        def initialize_parameters(self, x):
            self.weight.materialize(x.shape[1:])
            self.seen.materialize((1,))
            with torch.no_grad():
                self.weight.fill_(2.0)
                self.seen.fill_(1.0)

        def forward(self, x):
            return x * self.weight + self.seen

    class Unready(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            pass

    class Forgetful(nn.modules.lazy.LazyModuleMixin, nn.Module):
        pass

    m = Scale()
    out = m(torch.ones(2, 3))
    return (
        out,
        type(m.weight).__name__,
        type(m.seen).__name__,
        attempt(lambda: Unready()(3)),
        attempt(lambda: Forgetful()(3)),
    )
