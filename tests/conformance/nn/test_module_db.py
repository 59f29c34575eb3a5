"""Every layer on the inputs torch tests it with: its own database of modules, run on both libraries."""

import warnings
from typing import Any

import pytest
import torch
from torch.testing._internal.common_modules import module_db

import pullback
from tests.conformance.both import difference, outcome
from tests.conformance.nn.layers import tensors_in

MOST = 8
"""How many inputs of a layer are tried, spread over all it has."""

INFOS = [info for info in module_db if info.module_cls.__module__.startswith("torch.nn.modules")]
LEFT_OUT = {
    "LinearCrossEntropyLoss": "thousands of inputs that differ in how torch cuts the computation into chunks",
    "TransformerEncoder": "takes a layer, not numbers; see test_transformer.py",
}


def translated(library: Any, value: Any, known: dict[int, Any]) -> Any:
    """An argument for one library: tensors are leaves, and the same tensor stays one tensor."""
    if isinstance(value, torch.Tensor):
        if id(value) not in known:
            copy = library.from_numpy(value.detach().clone().numpy())
            known[id(value)] = copy.requires_grad_() if value.requires_grad else copy
        return known[id(value)]
    if isinstance(value, torch.dtype):
        return getattr(library, str(value).split(".")[1])
    if isinstance(value, torch.device):
        return library.device("cpu")
    if type(value) in (tuple, list):
        return type(value)([translated(library, part, known) for part in value])
    if type(value) is dict:
        return {key: translated(library, part, known) for key, part in value.items()}
    if callable(value) and getattr(torch.nn.functional, getattr(value, "__name__", ""), None) is value:
        return getattr(library.nn.functional, value.__name__)
    return value


def what_it_does(library: Any, name: str, given: Any, train: bool) -> dict[str, Any]:
    """Everything seen of a layer that is made, called and differentiated."""
    library.manual_seed(0)
    known: dict[int, Any] = {}
    made_with, called_with = given.constructor_input, given.forward_input
    args, kwargs = (translated(library, part, known) for part in (tuple(made_with.args), dict(made_with.kwargs)))
    layer = getattr(library.nn, name)(*args, **kwargs).train(train).double()
    args, kwargs = (translated(library, part, known) for part in (tuple(called_with.args), dict(called_with.kwargs)))
    library.manual_seed(1)
    results = tensors_in(library, layer(*args, **kwargs))
    for result in results:
        if result.requires_grad:
            weights = library.arange(1.0, result.numel() + 1).double().reshape(result.shape).cos()
            result.backward(weights, retain_graph=True)
    inputs = tensors_in(library, [*args, *kwargs.values()])
    return {
        "text": repr(layer),
        "results": results,
        "nodes": [type(result.grad_fn).__name__ for result in results],
        "gradients": {key: param.grad for key, param in layer.named_parameters()},
        "input gradients": [tensor.grad for tensor in inputs if tensor.requires_grad],
        "state": dict(layer.state_dict()),
    }


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", INFOS, ids=[info.module_cls.__name__ for info in INFOS])
def test_a_layer_does_the_same_on_torchs_own_inputs(info, train):
    name = info.module_cls.__name__
    if name in LEFT_OUT:
        pytest.skip(LEFT_OUT[name])
    torch.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = list(
            info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=train)
        )
    inputs = [each for each in inputs if each.forward_input is not None]
    for each in inputs[:: -(-len(inputs) // MOST)]:
        expected = outcome(torch, lambda t, each=each: what_it_does(t, name, each, train))
        actual = outcome(pullback, lambda t, each=each: what_it_does(t, name, each, train))
        found = difference(expected["result"], actual["result"])
        made_with = (each.constructor_input.args, each.constructor_input.kwargs)
        assert found is None, f"{each.desc} {made_with}: {found}"
