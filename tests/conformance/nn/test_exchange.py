"""Whole modules saved by one library and loaded by the other."""

import io

import pytest
import torch

import pullback
from tests.conformance.nn.layers import bits, evaluate

LAYERS = [
    "nn.Linear(2, 2)",
    "nn.Sequential(nn.Conv2d(1, 1, 3), nn.BatchNorm2d(1), nn.ReLU())",
    "nn.MultiheadAttention(4, 2)",
    "nn.LSTMCell(2, 2)",
    "nn.LSTM(2, 2, bidirectional=True)",
    "nn.TripletMarginLoss()",
    "nn.ParameterList([torch.ones(1)])",
    "nn.ParameterDict({'a': torch.ones(1)})",
    "nn.ModuleDict({'a': nn.ChannelShuffle(2)})",
    "nn.TransformerEncoderLayer(4, 2, 8)",
    "nn.Embedding(3, 2)",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3])",
]
LAZY = ["nn.LazyLinear(3)", "nn.LazyConv1d(2, 2)", "nn.LazyBatchNorm1d()"]


@pytest.mark.parametrize("text", LAYERS + LAZY)
@pytest.mark.parametrize(("writer", "reader"), [(torch, pullback), (pullback, torch)], ids=["to pullback", "to torch"])
def test_a_module_saved_by_one_library_is_loaded_by_the_other(writer, reader, text):
    writer.manual_seed(0)
    layer = evaluate(writer, text)
    file = io.BytesIO()
    writer.save(layer, file)
    file.seek(0)
    loaded = reader.load(file, weights_only=False)
    assert repr(loaded) == repr(layer)
    assert list(loaded.state_dict()) == list(layer.state_dict())
    if text not in LAZY:
        for mine, its in zip(layer.state_dict().values(), loaded.state_dict().values(), strict=True):
            assert bits(mine) == bits(its)


@pytest.mark.parametrize("name", torch.nn.modules.__all__)
def test_a_class_stands_where_torch_has_it(name):
    theirs, ours = getattr(torch.nn, name), getattr(pullback.nn, name)
    assert ours.__module__ == theirs.__module__.replace("torch", "pullback", 1)
