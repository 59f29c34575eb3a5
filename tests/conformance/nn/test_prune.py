"""Pruning."""

import importlib

import pytest

from tests.conformance.both import attempt, on_both


def prune_of(torch):
    return importlib.import_module(torch.__name__ + ".nn.utils.prune")


def layer_of(torch):
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)


CALLS = [
    "identity(layer, 'weight')",
    "random_unstructured(layer, 'weight', amount=0.3)",
    "random_unstructured(layer, 'bias', amount=2)",
    "l1_unstructured(layer, 'weight', amount=5)",
    "l1_unstructured(layer, 'weight', amount=0.5, importance_scores=torch.arange(12.0).reshape(3, 4))",
    "random_structured(layer, 'weight', amount=0.5, dim=1)",
    "ln_structured(layer, 'weight', amount=0.4, n=2, dim=0)",
    "ln_structured(layer, 'weight', amount=1, n=float('inf'), dim=-1)",
    "custom_from_mask(layer, 'weight', torch.eye(3, 4))",
]


@pytest.mark.parametrize("call", CALLS)
def test_a_method_hides_the_same_elements(call):
    @on_both
    def program(torch):
        prune, layer = prune_of(torch), layer_of(torch)
        result = eval("prune." + call, {"prune": prune, "layer": layer, "torch": torch})
        out = layer(torch.ones(2, 4))
        out.sum().backward()
        return [
            result is layer, out, dict(layer.state_dict()), {name: p.grad for name, p in layer.named_parameters()},
            prune.is_pruned(layer), repr(layer), len(layer._forward_pre_hooks),
        ]  # fmt: skip

    program()


@on_both
def test_methods_add_up_and_can_be_removed(torch):
    prune, layer = prune_of(torch), layer_of(torch)
    prune.l1_unstructured(layer, "weight", amount=2)
    prune.ln_structured(layer, "weight", amount=1, n=1, dim=0)
    prune.random_unstructured(layer, "weight", amount=0.5)
    hook = next(iter(layer._forward_pre_hooks.values()))
    seen = [
        type(hook).__name__,
        len(hook),
        [type(m).__name__ for m in hook],
        type(hook[0]).__name__,
        layer.weight_mask,
        layer.weight,
    ]
    prune.remove(layer, "weight")
    return (
        seen,
        layer.weight,
        list(layer.state_dict()),
        prune.is_pruned(layer),
        isinstance(layer.weight, torch.nn.Parameter),
    )


@on_both
def test_several_parameters_are_pruned_as_one(torch):
    prune = prune_of(torch)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2))
    prune.l1_unstructured(net[0], "weight", amount=1)
    prune.global_unstructured([(net[0], "weight"), (net[1], "weight")], pruning_method=prune.L1Unstructured, amount=0.5)
    return dict(net.state_dict()), net(torch.ones(1, 3))


@on_both
def test_a_method_can_prune_a_tensor_by_itself(torch):
    prune = prune_of(torch)
    t = torch.arange(6.0).reshape(2, 3)
    return [
        prune.L1Unstructured(2).prune(t),
        prune.LnStructured(1, 2, 0).prune(t, default_mask=torch.ones(2, 3)),
        attempt(lambda: prune.L1Unstructured(2).prune(t, importance_scores=torch.ones(2))),
    ]


@on_both
def test_what_cannot_be_pruned_is_refused_and_left_as_it_was(torch):
    prune, layer = prune_of(torch), layer_of(torch)
    results = [
        attempt(lambda: prune.l1_unstructured(layer, "weight", amount="all")),
        attempt(lambda: prune.l1_unstructured(layer, "weight", amount=1.5)),
        attempt(lambda: prune.l1_unstructured(layer, "weight", amount=-1)),
        attempt(lambda: prune.l1_unstructured(layer, "weight", amount=100)),
        attempt(lambda: prune.ln_structured(layer, "bias", amount=1, n=2, dim=0)),
        attempt(lambda: prune.ln_structured(layer, "weight", amount=1, n=2, dim=5)),
        attempt(lambda: prune.custom_from_mask(layer, "weight", torch.ones(2))),
        attempt(lambda: prune.remove(layer, "weight")),
        attempt(lambda: prune.l1_unstructured(layer, "weight", 1, importance_scores=torch.ones(2))),
        attempt(lambda: prune.global_unstructured(3, prune.L1Unstructured)),
        attempt(
            lambda: prune.global_unstructured([(layer, "weight")], prune.L1Unstructured, importance_scores=3, amount=1)
        ),
        attempt(lambda: prune.global_unstructured([(layer, "weight")], prune.LnStructured, amount=1, n=2)).kind,
        attempt(lambda: prune.PruningContainer(prune.Identity())).kind,
    ]
    return results, list(layer.state_dict()), prune.is_pruned(layer)
