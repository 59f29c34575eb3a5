"""One program for every layer: the same seed gives the same weights, output, gradients, text, keys and copies.

A layer is written as the text of its constructor, an input as the text of an expression in which

    x(2, 3) ......... numbers from a fixed generator, requiring gradients
    p(2, 3) ......... the same, between 0 and 1
    plain(2, 3) ..... numbers that require no gradients
    i(5, 2, 3) ...... integers below 5
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.conformance.both import same


def bits(tensor: Any) -> str:
    """A tensor to the last bit, as text."""
    array = tensor.detach().numpy()
    return f"{tensor.dtype} {tuple(tensor.shape)} {array.tobytes().hex()}"


class Inputs:
    """The functions inputs are made with, on one library."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.random = np.random.default_rng(7)

    def plain(self, *shape: int) -> Any:
        return self.torch.from_numpy(self.random.standard_normal(shape).astype(np.float32))

    def x(self, *shape: int) -> Any:
        return self.plain(*shape).requires_grad_()

    def p(self, *shape: int) -> Any:
        return self.torch.from_numpy(self.random.uniform(0.05, 0.95, shape).astype(np.float32)).requires_grad_()

    def i(self, below: int, *shape: int) -> Any:
        return self.torch.from_numpy(self.random.integers(0, below, shape))


def evaluate(torch: Any, text: str) -> Any:
    """The value of an expression that names the library, nn and the functions for inputs."""
    made = Inputs(torch)
    names = {"torch": torch, "nn": torch.nn, "x": made.x, "p": made.p, "i": made.i, "plain": made.plain}
    return eval(text, names)


def tensors_in(torch: Any, value: Any) -> list[Any]:
    """The tensors of a nested result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in tensors_in(torch, part)]
    return []


def layer_program(text: str, inputs: str, train: bool = True) -> Callable[[Any], Any]:
    """A program that tells everything about a layer that can be seen from outside."""

    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        layer = evaluate(torch, text).train(train)
        seen: dict[str, Any] = {"text": repr(layer)}
        if not any(isinstance(v, torch.nn.parameter.UninitializedTensorMixin) for v in layer.state_dict().values()):
            seen["first"] = {name: bits(value) for name, value in layer.state_dict().items()}
        args = evaluate(torch, f"({inputs},)")
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "LSTM with projections is not supported with oneDNN"
            )  # torch's own kernels
            results = tensors_in(torch, layer(*args))
        seen["results"] = results
        seen["nodes"] = [type(result.grad_fn).__name__ for result in results]
        loss = sum(
            [(r * torch.arange(1.0, r.numel() + 1).reshape(r.shape).cos()).sum() for r in results if r.requires_grad]
        )
        if isinstance(loss, torch.Tensor):
            loss.backward()
        seen["gradients"] = {name: param.grad for name, param in layer.named_parameters()}
        seen["input gradients"] = [a.grad for a in tensors_in(torch, args) if a.requires_grad]
        seen["after"] = dict(layer.state_dict())
        seen["text after"] = repr(layer)
        return seen

    return program


def same_layer(text: str, inputs: str, train: bool = True) -> None:
    """Assert that a layer is the same on both libraries."""
    same(layer_program(text, inputs, train))


def copies_agree(torch: Any, text: str, inputs: str) -> None:
    """Assert that a copied and a pickled layer do what the layer does."""
    torch.manual_seed(0)
    layer = evaluate(torch, text)
    args = [arg.detach() if isinstance(arg, torch.Tensor) else arg for arg in evaluate(torch, f"({inputs},)")]
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    torch.manual_seed(1)
    expected = tensors_in(torch, layer(*args))
    for other in copies:
        assert list(other.state_dict()) == list(copies[0].state_dict())
        for mine, its in zip(layer.parameters(), other.parameters(), strict=True):
            assert mine is not its
        torch.manual_seed(1)
        for a, b in zip(expected, tensors_in(torch, other(*args)), strict=True):
            assert bits(a) == bits(b)
