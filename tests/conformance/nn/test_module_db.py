"""Every layer on the inputs torch tests it with: its own database of modules, run on both libraries."""

import warnings
from typing import Any

import pytest
import torch
from torch.testing._internal.common_modules import module_db

import pullback
from tests.conformance.core.both import difference, outcome
from tests.conformance.nn.layers import tensors_in

MOST = 24
"""How many inputs of a layer are tried, spread over all it has."""

INFOS = [info for info in module_db if info.module_cls.__module__.startswith("torch.nn.modules")]
LEFT_OUT = {
    "LinearCrossEntropyLoss": "thousands of inputs that differ in how torch cuts the computation into chunks",
    "TransformerEncoder": "takes a layer, not numbers; see test_transformer.py",
}


def translated(value: Any, known: dict[int, Any]) -> Any:
    """An argument for pullback: the same tensor stays one tensor."""
    if isinstance(value, torch.Tensor):
        if id(value) not in known:
            copy = pullback.from_numpy(value.detach().clone().numpy())
            known[id(value)] = copy.requires_grad_() if value.requires_grad else copy
        return known[id(value)]
    if isinstance(value, torch.dtype):
        return getattr(pullback, str(value).split(".")[1])
    if isinstance(value, torch.device):
        return pullback.device("cpu")
    if type(value) in (tuple, list):
        return type(value)([translated(part, known) for part in value])
    if type(value) is dict:
        return {key: translated(part, known) for key, part in value.items()}
    if callable(value) and getattr(torch.nn.functional, getattr(value, "__name__", ""), None) is value:
        return getattr(pullback.nn.functional, value.__name__)
    return value


def what_it_does(library: Any, name: str, made_with: tuple, called_with: tuple, train: bool) -> dict[str, Any]:
    """Everything seen of a layer that is made, called and differentiated."""
    library.manual_seed(0)
    layer = getattr(library.nn, name)(*made_with[0], **made_with[1]).train(train)
    library.manual_seed(1)
    results = tensors_in(library, layer(*called_with[0], **called_with[1]))
    for result in results:
        if result.requires_grad:
            weights = library.arange(1.0, result.numel() + 1).reshape(result.shape).cos()
            result.backward(weights, retain_graph=True)
    inputs = tensors_in(library, [*called_with[0], *called_with[1].values()])
    return {
        "text": repr(layer),
        "results": results,
        "nodes": [type(result.grad_fn).__name__ for result in results],
        "gradients": {key: param.grad for key, param in layer.named_parameters()},
        "input gradients": [tensor.grad for tensor in inputs if tensor.requires_grad and tensor.is_leaf],
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
            info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=train)
        )
    inputs = [each for each in inputs if each.forward_input is not None]
    for each in inputs[:: -(-len(inputs) // MOST)]:
        made_with = (each.constructor_input.args, each.constructor_input.kwargs)
        called_with = (each.forward_input.args, each.forward_input.kwargs)
        known: dict[int, Any] = {}
        others = [tuple([translated(part, known) for part in given]) for given in (made_with, called_with)]
        expected = outcome(torch, lambda t, a=made_with, b=called_with: what_it_does(t, name, a, b, train))
        actual = outcome(pullback, lambda t, a=others[0], b=others[1]: what_it_does(t, name, a, b, train))
        found = difference(expected["result"], actual["result"])
        assert found is None, f"{each.desc} {made_with}: {found}"
