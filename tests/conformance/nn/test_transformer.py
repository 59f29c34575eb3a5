"""Attention and transformers."""

import warnings

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import copies_agree, same_layer

ATTENTION = [
    ("nn.MultiheadAttention(4, 2)", "*[x(3, 2, 4)] * 3"),
    ("nn.MultiheadAttention(4, 2)", "x(3, 2, 4), x(5, 2, 4), x(5, 2, 4)"),
    ("nn.MultiheadAttention(4, 2)", "x(3, 4), x(5, 4), x(5, 4)"),
    ("nn.MultiheadAttention(4, 2, bias=False, batch_first=True)", "x(2, 3, 4), x(2, 5, 4), x(2, 5, 4)"),
    ("nn.MultiheadAttention(4, 2, batch_first=True)", "*[x(2, 3, 4)] * 3"),
    ("nn.MultiheadAttention(4, 2, kdim=3, vdim=5)", "x(3, 2, 4), x(5, 2, 3), x(5, 2, 5)"),
    ("nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)", "x(3, 2, 4), x(5, 2, 4), x(5, 2, 4)"),
    ("nn.MultiheadAttention(4, 2)", "*[x(3, 2, 4)] * 3, torch.tensor([[False, False, True], [False, True, True]])"),
    ("nn.MultiheadAttention(4, 2)", "*[x(3, 2, 4)] * 3, None, True, torch.ones(3, 3).triu(1).bool(), False"),
    ("nn.MultiheadAttention(4, 2)", "*[x(3, 2, 4)] * 3, None, False"),
    ("nn.MultiheadAttention(4, 2, dropout=0.5)", "*[x(3, 2, 4)] * 3"),
]
LAYERS = [
    ("nn.TransformerEncoderLayer(4, 2, 8, 0.0)", "x(3, 2, 4)"),
    ("nn.TransformerEncoderLayer(4, 2, 8, 0.3)", "x(3, 2, 4)"),
    ("nn.TransformerEncoderLayer(4, 2, 8, 0.0, 'gelu', batch_first=True, norm_first=True)", "x(2, 3, 4)"),
    ("nn.TransformerEncoderLayer(4, 2, 8, 0.0, nn.Tanh(), bias=False)", "x(3, 2, 4)"),
    ("nn.TransformerDecoderLayer(4, 2, 8, 0.0)", "x(3, 2, 4), x(5, 2, 4)"),
    ("nn.TransformerDecoderLayer(4, 2, 8, 0.3, norm_first=True)", "x(3, 2, 4), x(5, 2, 4)"),
    (
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 2, nn.LayerNorm(4))",
        "x(2, 3, 4)",
    ),
    ("nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, 0.0), 2)", "x(3, 2, 4), x(5, 2, 4)"),
    ("nn.Transformer(4, 2, 1, 2, 8, 0.0)", "x(3, 2, 4), x(5, 2, 4)"),
    ("nn.Transformer(4, 2, 2, 1, 8, 0.2, batch_first=True)", "x(2, 3, 4), x(2, 5, 4)"),
]


@pytest.mark.parametrize(("layer", "inputs"), ATTENTION + LAYERS)
def test_the_layer_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), ATTENTION[:-1] + LAYERS)
def test_evaluation_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs, train=False)


@pytest.mark.parametrize(("layer", "inputs"), [ATTENTION[0], LAYERS[0], LAYERS[4]])
def test_a_copied_or_pickled_layer_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


@on_both
def test_masks_hide_what_lies_ahead_and_what_is_padding(torch):
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Transformer(4, 2, 1, 1, 8, 0.0)
    src, tgt = torch.randn(3, 2, 4), torch.randn(5, 2, 4)
    ahead = net.generate_square_subsequent_mask(5)
    padding = torch.tensor([[False, False, True], [False, True, True]])
    return [
        ahead,
        net(src, tgt, tgt_mask=ahead),
        net(src, tgt, tgt_mask=ahead, tgt_is_causal=True),
        net(src, tgt, src_key_padding_mask=padding, memory_key_padding_mask=padding),
        net(src, tgt, src_mask=net.generate_square_subsequent_mask(3)),
    ]


@on_both
def test_the_encoder_leaves_padding_out_in_evaluation_without_gradients(torch):
    torch.manual_seed(0)
    nn = torch.nn
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2, nn.LayerNorm(4)).eval()
    src = torch.randn(2, 3, 4)
    at_the_end = torch.tensor([[False, False, True], [False, False, False]])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")  # torch's way to leave padding out
        return [encoder(src), encoder(src, src_key_padding_mask=at_the_end)]


@on_both
def test_sizes_that_do_not_fit_are_refused(torch):
    nn = torch.nn
    net = nn.Transformer(4, 2, 1, 1, 8)
    return [
        attempt(lambda: net(torch.ones(3, 2, 4), torch.ones(3, 1, 4))),
        attempt(lambda: net(torch.ones(3, 2, 5), torch.ones(3, 2, 5))),
        attempt(lambda: nn.MultiheadAttention(4, 3)),
        attempt(lambda: nn.MultiheadAttention(0, 3)),
        attempt(lambda: nn.TransformerEncoderLayer(4, 2, activation="some")),
        attempt(
            lambda: nn.MultiheadAttention(4, 2)(*[torch.ones(3, 2, 4)] * 3, key_padding_mask=torch.ones(2, 3).long())
        ),
    ]


@on_both
def test_an_encoder_that_cannot_leave_padding_out_says_why(torch):
    nn = torch.nn
    layers = [
        nn.TransformerEncoderLayer(4, 2, 8),
        nn.TransformerEncoderLayer(4, 2, 8, norm_first=True),
        nn.TransformerEncoderLayer(4, 1, 8, batch_first=True),
        nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, activation=nn.Tanh()),
        nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, bias=False),
    ]
    return [nn.TransformerEncoder(layer, 1).use_nested_tensor for layer in layers]


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(("sizes", "bias"), [((1, 5, 16, 2), True), ((3, 7, 16, 4), True), ((1, 4, 8, 2), False)])
@pytest.mark.parametrize("is_causal", [True, False])
def test_attention_to_itself_is_the_same_without_a_history(batch_first, sizes, bias, is_causal):
    samples, places, features, heads = sizes
    results = {}
    for t in (peer, pullback):
        t.manual_seed(0)
        layer = t.nn.MultiheadAttention(features, heads, 0.5, bias=bias, batch_first=batch_first).eval()
        x = t.randn(*((samples, places) if batch_first else (places, samples)), features)
        mask = t.zeros(places, places) if is_causal else None
        given = {"need_weights": False, "attn_mask": mask, "is_causal": is_causal}
        recorded, _ = layer(x, x, x, **given)
        with t.no_grad():
            found, weights = layer(x, x, x, **given)
        assert weights is None and not found.requires_grad
        assert t is peer or found.stride() == recorded.stride()
        results[t.__name__] = found.numpy()
        np.testing.assert_allclose(found.numpy(), recorded.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results["pullback"], results["torch"], rtol=1e-5, atol=1e-6)
