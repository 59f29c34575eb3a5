"""Every layer and every loss, trained for fifty steps: the same first weights bit for bit, the same loss curve.

A row is the constructor of a layer and its inputs. What is trained are the weights of the layer and those of its
inputs that are parameters, so that layers without weights learn too: `param(2, 3)` is a parameter, `unit(2, 3)` one
between 0 and 1, `data(2, 3)` numbers, `ids(5, 2, 3)` integers below five.
"""

import warnings

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.nn.layers import bits

STEPS = 50
MAPS = "param(2, 4, 6)", "param(2, 4, 6, 6)", "param(2, 4, 4, 4, 4)"
POINTWISE = [
    "CELU",
    "ELU",
    "GELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "RReLU",
    "SELU",
    "Sigmoid",
    "SiLU",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Identity",
    "Dropout",
    "AlphaDropout",
    "Flatten",
]
LAYERS = [
    *[(f"{name}()", "param(3, 5)") for name in POINTWISE],
    ("Threshold(0.1, 0.2)", "param(3, 5)"),
    ("GLU()", "param(3, 6)"),
    *[(f"{name}(1)", "param(3, 5)") for name in ("Softmax", "Softmin", "LogSoftmax")],
    ("Softmax2d()", "param(2, 3, 2, 2)"),
    ("Linear(5, 3)", "data(4, 5)"),
    ("Bilinear(3, 4, 2)", "data(5, 3), data(5, 4)"),
    ("LazyLinear(3)", "data(4, 5)"),
    ("Embedding(6, 3, padding_idx=0)", "ids(6, 4, 2)"),
    ("Embedding(6, 3, max_norm=1.0, scale_grad_by_freq=True)", "ids(6, 4, 2)"),
    *[(f"EmbeddingBag(6, 3, mode={mode!r})", "ids(6, 4, 3)") for mode in ("sum", "mean", "max")],
    *[
        row
        for n, maps in enumerate(MAPS, 1)
        for row in [
            (f"Conv{n}d(4, 2, 3, padding=1)", maps),
            (f"Conv{n}d(4, 4, 2, stride=2, groups=2, dilation=2, bias=False)", maps),
            (f"ConvTranspose{n}d(4, 2, 3, stride=2, output_padding=1)", maps),
            (f"LazyConv{n}d(2, 3)", maps),
            (f"LazyConvTranspose{n}d(2, 3)", maps),
            (f"MaxPool{n}d(2)", maps),
            (f"MaxUnpool{n}d(2)", f"{maps}, ids(8, {maps[6:-1]})"),
            (f"AvgPool{n}d(3, 2, padding=1)", maps),
            (f"LPPool{n}d(2, 2)", maps.replace("param", "unit")),
            (f"AdaptiveAvgPool{n}d(3)", maps),
            (f"AdaptiveMaxPool{n}d(3)", maps),
            (f"ConstantPad{n}d(1, 0.5)", maps),
            (f"ZeroPad{n}d(1)", maps),
            (f"ReflectionPad{n}d(1)", maps),
            (f"ReplicationPad{n}d(1)", maps),
            (f"CircularPad{n}d(1)", maps),
            (f"BatchNorm{n}d(4)", maps),
            (f"LazyBatchNorm{n}d()", maps),
            (f"InstanceNorm{n}d(4, affine=True, track_running_stats=True)", maps),
            (f"LazyInstanceNorm{n}d()", maps),
            (f"Dropout{n}d(0.4)", maps),
        ]
    ],
    ("Conv2d(4, 2, 3, padding='same', padding_mode='reflect')", MAPS[1]),
    ("FractionalMaxPool2d(2, output_size=3)", MAPS[1]),
    ("FractionalMaxPool3d(2, output_size=2)", MAPS[2]),
    ("FeatureAlphaDropout(0.4)", MAPS[1]),
    ("LayerNorm((4, 6))", MAPS[0]),
    ("RMSNorm(6)", MAPS[0]),
    ("GroupNorm(2, 4)", MAPS[1]),
    ("LocalResponseNorm(2)", MAPS[1]),
    ("CrossMapLRN2d(2)", MAPS[1]),
    ("Upsample(scale_factor=2)", MAPS[1]),
    ("Upsample(scale_factor=1.5, mode='bilinear')", MAPS[1]),
    ("Upsample(size=9, mode='bicubic', align_corners=True)", MAPS[1]),
    ("UpsamplingNearest2d(scale_factor=2)", MAPS[1]),
    ("UpsamplingBilinear2d(scale_factor=2)", MAPS[1]),
    ("PixelShuffle(2)", MAPS[1]),
    ("PixelUnshuffle(2)", MAPS[1]),
    ("ChannelShuffle(2)", MAPS[1]),
    ("Unflatten(1, (2, 2))", MAPS[1]),
    ("Unfold(2)", MAPS[1]),
    ("Fold((3, 3), 2)", "param(2, 8, 4)"),
    ("CosineSimilarity()", "param(3, 5), data(3, 5)"),
    ("PairwiseDistance()", "param(3, 5), data(3, 5)"),
    *[(f"{cell}(3, 4)", "data(2, 3), param(2, 4)") for cell in ("RNNCell", "GRUCell")],
    ("LSTMCell(3, 4)", "data(2, 3)"),
    ("RNN(3, 4, nonlinearity='relu')", "data(5, 2, 3)"),
    *[(f"{kind}(3, 4, num_layers=2, bidirectional=True)", "data(5, 2, 3)") for kind in ("RNN", "LSTM", "GRU")],
    ("LSTM(3, 4, proj_size=2, batch_first=True)", "data(5, 2, 3)"),
    ("MultiheadAttention(4, 2)", "data(5, 2, 4), data(3, 2, 4), data(3, 2, 4)"),
    ("TransformerEncoderLayer(4, 2, 8)", "data(5, 2, 4)"),
    ("TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2)", "data(5, 2, 4)"),
    ("TransformerDecoderLayer(4, 2, 8)", "data(5, 2, 4), data(3, 2, 4)"),
    ("TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2)", "data(5, 2, 4), data(3, 2, 4)"),
    ("Transformer(4, 2, 1, 1, 8)", "data(5, 2, 4), data(3, 2, 4)"),
    ("Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))", "data(4, 5)"),
]
LOSSES = [
    *[(f"{name}()", "param(4, 3), data(4, 3)") for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss")],
    ("CrossEntropyLoss(label_smoothing=0.1)", "param(4, 3), ids(3, 4)"),
    ("NLLLoss()", "param(4, 3), ids(3, 4)"),
    ("NLLLoss2d()", "param(4, 3, 2, 2), ids(3, 4, 2, 2)"),
    ("PoissonNLLLoss()", "param(4, 3), share(4, 3)"),
    ("GaussianNLLLoss()", "param(4, 3), data(4, 3), share(4, 3)"),
    ("KLDivLoss(reduction='batchmean')", "param(4, 3), share(4, 3)"),
    ("BCELoss()", "unit(4, 3), share(4, 3)"),
    ("BCEWithLogitsLoss()", "param(4, 3), share(4, 3)"),
    ("MarginRankingLoss(0.5)", "param(4), data(4), signs(4)"),
    ("HingeEmbeddingLoss()", "param(4), signs(4)"),
    ("CosineEmbeddingLoss(0.1)", "param(4, 3), data(4, 3), signs(4)"),
    ("SoftMarginLoss()", "param(4, 3), signs(4, 3)"),
    ("MultiMarginLoss()", "param(4, 3), ids(3, 4)"),
    ("MultiLabelMarginLoss()", "param(2, 3), ids(3, 2, 3)"),
    ("MultiLabelSoftMarginLoss()", "param(4, 3), share(4, 3).round()"),
    ("TripletMarginLoss()", "param(4, 3), data(4, 3), data(4, 3)"),
    ("TripletMarginWithDistanceLoss()", "param(4, 3), data(4, 3), data(4, 3)"),
    ("CTCLoss()", "param(6, 2, 4).log_softmax(2), ids(3, 2, 3) + 1, torch.tensor([6, 5]), torch.tensor([3, 2])"),
    ("AdaptiveLogSoftmaxWithLoss(5, 9, [3, 6])", "data(4, 5), ids(9, 4)"),
    ("LinearCrossEntropyLoss(5, 3)", "data(4, 5), ids(3, 4)"),
]
OTHERS = {"Container", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "DataParallel"}
OTHERS |= {"RNNBase", "RNNCellBase", "SyncBatchNorm"}
"""Modules that hold others, are there to derive from, or need several processes."""


class Inputs:
    """The functions inputs are made with, on one library and in one dtype."""

    def __init__(self, torch, dtype):
        self.torch, self.dtype = torch, dtype
        self.random = np.random.default_rng(11)
        self.parameters = []

    def data(self, *shape):
        return self.torch.from_numpy(self.random.standard_normal(shape)).to(self.dtype)

    def share(self, *shape):
        return self.torch.from_numpy(self.random.uniform(0.2, 0.8, shape)).to(self.dtype)

    def signs(self, *shape):
        return self.torch.from_numpy(self.random.choice([-1.0, 1.0], shape)).to(self.dtype)

    def ids(self, below, *shape):
        return self.torch.from_numpy(self.random.integers(0, below, shape))

    def trained(self, tensor):
        self.parameters.append(self.torch.nn.Parameter(tensor))
        return self.parameters[-1]

    def param(self, *shape):
        return self.trained(self.data(*shape))

    def unit(self, *shape):
        return self.trained(self.share(*shape))


def first_tensor(torch, value):
    """The tensor a layer's result is judged by."""
    while not isinstance(value, torch.Tensor):
        value = value.loss if hasattr(value, "loss") else value[0]
    return value


def curve(torch, dtype, layer_text, inputs_text, is_loss):
    """The first weights, the losses of fifty steps and the last weights."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        made = Inputs(torch, getattr(torch, dtype))
        names = {name: getattr(made, name) for name in ("data", "share", "signs", "ids", "param", "unit")}
        code = compile(f"({inputs_text},)", "<inputs>", "eval")
        eval(code, {"torch": torch, **names})
        leaves, first = iter(()), made.parameters

        def inputs():
            """The inputs again, with the parameters made at first: an expression of them is computed in each step."""
            nonlocal leaves
            leaves = iter(first)
            made.random = np.random.default_rng(11)
            again = {**names, "param": lambda *s: (made.data(*s), next(leaves))[1]}
            again["unit"] = lambda *s: (made.share(*s), next(leaves))[1]
            return eval(code, {"torch": torch, **again})

        torch.manual_seed(3)
        layer = eval(f"nn.{layer_text}", {"nn": torch.nn})
        if layer_text.startswith("Lazy"):  # its weights are made when it sees its first input
            layer(*inputs())
        weights = [bits(value) for value in layer.parameters()]
        target = None
        optimizer = torch.optim.SGD([*layer.parameters(), *first], lr=0.05, momentum=0.5)
        losses = []
        for _ in range(STEPS):
            out = first_tensor(torch, layer(*inputs()))
            if target is None:
                target = torch.from_numpy(np.random.default_rng(5).standard_normal(tuple(out.shape))).to(out.dtype)
            loss = out if is_loss else (out - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        last = [value.detach().numpy() for value in (*layer.parameters(), *first)]
        return weights, np.array(losses), last
    finally:
        torch.set_default_dtype(before)


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors this small are slower on several threads, and torch's would wait for each other."""
    before = peer.get_num_threads()
    peer.set_num_threads(1)
    yield
    peer.set_num_threads(before)


TABLE = [(*row, False) for row in LAYERS] + [(*row, True) for row in LOSSES]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("layer", "inputs", "is_loss"), TABLE, ids=[row[0] for row in TABLE])
def test_a_layer_learns_the_same_for_fifty_steps(layer, inputs, is_loss, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, losses, last = curve(peer, dtype, layer, inputs, is_loss)
        own_first, own_losses, own_last = curve(pullback, dtype, layer, inputs, is_loss)
    assert own_first == first
    assert np.ptp(losses) > 0, "it learns something"
    np.testing.assert_allclose(own_losses, losses, rtol=1e-4, atol=1e-8)
    for own, theirs in zip(own_last, last, strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-3, atol=1e-5)


def test_every_layer_of_torch_is_in_the_table():
    rows = {row[0].partition("(")[0] for row in TABLE}
    layers = {
        name for name, kind in vars(peer.nn).items() if isinstance(kind, type) and issubclass(kind, peer.nn.Module)
    }
    assert layers - OTHERS - rows == set()
