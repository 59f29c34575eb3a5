"""Embeddings."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import copies_agree, same_layer

LAYERS = [
    ("nn.Embedding(5, 3)", "i(5, 2, 4)"),
    ("nn.Embedding(5, 3, padding_idx=1)", "torch.tensor([0, 1, 1, 4])"),
    ("nn.Embedding(5, 3, padding_idx=-1)", "torch.tensor([0, 4, 2])"),
    ("nn.Embedding(5, 3, max_norm=0.5, norm_type=1.0)", "i(5, 4)"),
    ("nn.Embedding(5, 3, scale_grad_by_freq=True)", "torch.tensor([0, 1, 1, 4])"),
    ("nn.Embedding(5, 3, _freeze=True)", "i(5, 4)"),
    ("nn.Embedding.from_pretrained(torch.arange(6.0).reshape(3, 2))", "i(3, 4)"),
    ("nn.Embedding.from_pretrained(torch.arange(6.0).reshape(3, 2), freeze=False, padding_idx=0)", "i(3, 4)"),
    ("nn.EmbeddingBag(5, 3)", "i(5, 2, 4)"),
    ("nn.EmbeddingBag(5, 3, mode='sum')", "i(5, 6), torch.tensor([0, 2, 2])"),
    ("nn.EmbeddingBag(5, 3, mode='sum')", "i(5, 2, 4), None, x(2, 4)"),
    ("nn.EmbeddingBag(5, 3, mode='max')", "i(5, 6), torch.tensor([0, 2])"),
    ("nn.EmbeddingBag(5, 3, padding_idx=0, include_last_offset=True)", "i(5, 6), torch.tensor([0, 3, 6])"),
    (
        "nn.EmbeddingBag(5, 3, max_norm=0.5, norm_type=3.0, scale_grad_by_freq=True)",
        "torch.tensor([4, 4, 1, 2]), torch.tensor([0, 3])",
    ),
    ("nn.EmbeddingBag.from_pretrained(torch.arange(6.0).reshape(3, 2), mode='sum')", "i(3, 2, 4)"),
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_an_embedding_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_copied_or_pickled_embedding_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


@on_both
def test_a_padding_row_out_of_range_is_refused(torch):
    nn = torch.nn
    return [
        [attempt(lambda p=p: nn.Embedding(3, 2, padding_idx=p)) for p in (3, -4)],
        [attempt(lambda p=p: nn.EmbeddingBag(3, 2, padding_idx=p)) for p in (3, -4)],
        attempt(lambda: nn.Embedding(3, 2, _weight=torch.ones(2, 2))),
        attempt(lambda: nn.Embedding.from_pretrained(torch.ones(2))),
        attempt(lambda: nn.EmbeddingBag.from_pretrained(torch.ones(2, 2, 2))),
    ]
