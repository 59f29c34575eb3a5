"""Every module of nn, compiled: outputs, gradients and buffers are those of eager, in training and after it."""

import warnings

import pytest

import pullback as torch
from pullback import nn
from tests.compiler.support import exactly, same, seen


def images(*shape):
    return lambda: (torch.randn(*shape),)


def pair(*shape):
    return lambda: (torch.randn(*shape), torch.randn(*shape))


CLASSES = lambda: (torch.randn(4, 5), torch.randint(5, (4,)))
SEQUENCE = images(3, 4, 8)
LINE, PICTURE, VOLUME = images(2, 4, 9), images(2, 4, 6, 6), images(2, 4, 4, 4, 4)
TRIPLE = lambda: (torch.randn(4, 5), torch.randn(4, 5), torch.randn(4, 5))

MODULES = {
    "Linear(5, 3)": images(4, 5), "Bilinear(5, 5, 3)": pair(4, 5), "Identity()": images(4, 5),
    "Conv1d(4, 6, 3, padding=1)": LINE, "Conv2d(4, 6, 3, groups=2)": PICTURE, "Conv3d(4, 2, 2)": VOLUME,
    "ConvTranspose1d(4, 3, 3)": LINE, "ConvTranspose2d(4, 3, 3, stride=2)": PICTURE,
    "BatchNorm1d(4)": LINE, "BatchNorm2d(4)": PICTURE, "BatchNorm3d(4, momentum=None)": VOLUME,
    "InstanceNorm1d(4, affine=True, track_running_stats=True)": LINE, "InstanceNorm2d(4)": PICTURE,
    "LayerNorm(9)": LINE, "GroupNorm(2, 4)": PICTURE, "RMSNorm(9)": LINE, "LocalResponseNorm(2)": PICTURE,
    "Dropout(0.3)": images(4, 5), "Dropout2d(0.3)": PICTURE, "AlphaDropout(0.3)": images(4, 5),
    "FeatureAlphaDropout(0.3)": PICTURE,
    "MaxPool1d(2)": LINE, "MaxPool2d(2)": PICTURE, "AvgPool2d(2)": PICTURE, "AdaptiveAvgPool2d(3)": PICTURE,
    "AdaptiveMaxPool2d(2)": PICTURE, "LPPool2d(2, 2)": PICTURE, "FractionalMaxPool2d(2, output_size=3)": PICTURE,
    "ReLU()": images(4, 5), "ReLU(inplace=True)": images(4, 5), "ReLU6()": images(4, 5), "GELU()": images(4, 5),
    "ELU()": images(4, 5), "SELU()": images(4, 5), "CELU()": images(4, 5), "SiLU()": images(4, 5),
    "Mish()": images(4, 5), "Softplus()": images(4, 5), "Softsign()": images(4, 5), "Hardswish()": images(4, 5),
    "Hardsigmoid()": images(4, 5), "Hardtanh()": images(4, 5), "LeakyReLU(0.1)": images(4, 5),
    "PReLU(4)": PICTURE, "RReLU()": images(4, 5), "Sigmoid()": images(4, 5), "Tanh()": images(4, 5),
    "Tanhshrink()": images(4, 5), "Threshold(0.1, 2.0)": images(4, 5), "GLU()": images(4, 6),
    "Softmax(-1)": images(4, 5), "Softmin(-1)": images(4, 5), "LogSoftmax(-1)": images(4, 5), "Softmax2d()": PICTURE,
    "Embedding(7, 4)": lambda: (torch.randint(7, (3, 2)),),
    "EmbeddingBag(7, 4)": lambda: (torch.randint(7, (3, 2)),),
    "RNN(8, 5)": SEQUENCE, "LSTM(8, 5, num_layers=2, bidirectional=True)": SEQUENCE, "GRU(8, 5)": SEQUENCE,
    "RNNCell(5, 3)": images(4, 5), "LSTMCell(5, 3)": images(4, 5), "GRUCell(5, 3)": images(4, 5),
    "MultiheadAttention(8, 2, dropout=0.1)": lambda: (torch.randn(3, 4, 8),) * 3,
    "TransformerEncoderLayer(8, 2, 16)": SEQUENCE,
    "TransformerDecoderLayer(8, 2, 16)": pair(3, 4, 8),
    "Flatten()": PICTURE, "Unflatten(1, (2, 2))": PICTURE, "PixelShuffle(2)": PICTURE, "PixelUnshuffle(2)": PICTURE,
    "ChannelShuffle(2)": PICTURE, "Upsample(scale_factor=2)": PICTURE, "Fold((4, 4), 2)": images(2, 8, 9),
    "Unfold(2)": PICTURE, "ZeroPad2d(1)": PICTURE, "ReflectionPad2d(1)": PICTURE, "CircularPad1d(2)": LINE,
    "MSELoss()": pair(4, 5), "L1Loss()": pair(4, 5), "SmoothL1Loss()": pair(4, 5), "HuberLoss()": pair(4, 5),
    "CrossEntropyLoss(label_smoothing=0.1)": CLASSES, "NLLLoss()": CLASSES, "MultiMarginLoss()": CLASSES,
    "KLDivLoss(reduction='batchmean')": pair(4, 5), "BCEWithLogitsLoss()": pair(4, 5), "PoissonNLLLoss()": pair(4, 5),
    "CosineSimilarity()": pair(4, 5), "PairwiseDistance()": pair(4, 5), "TripletMarginLoss()": TRIPLE,
    "HingeEmbeddingLoss()": pair(4, 5),
    "Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.2), nn.Linear(4, 2))": images(4, 5),
}  # fmt: skip
RUN_AS_THEY_ARE = {
    "BatchNorm3d(4, momentum=None)": "it reads how many batches there were",
    "ReLU(inplace=True)": "it changes the history of its input",
}
ROUNDED = {"CosineSimilarity()": "eager code computes small ones in one function"}


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (tuple, list)) else []


@pytest.mark.parametrize("text", MODULES)
def test_a_module_gives_what_it_gives_eagerly(text):
    found, made = [], []
    for way in (lambda module: module, exactly, torch.compile):
        torch.manual_seed(5)
        module = eval(f"nn.{text}", {"nn": nn})
        function = way(module)
        made.append(function)
        steps = []
        for call in range(5):
            module.train(call < 3)
            inputs = MODULES[text]()
            inputs = tuple([x.requires_grad_() * 1 if x.is_floating_point() and call % 2 else x for x in inputs])
            steps.append(seen(passed_both_ways(function, inputs)))
            steps.append([None if p.grad is None else seen(p.grad) for p in module.parameters()])
            steps.append([seen(b) for b in module.buffers()])
            steps.append(torch.get_rng_state().numpy().copy())
        found.append(steps)
    eager, exact, native = found
    if text not in ROUNDED:
        same(exact, eager)
    same(native, eager, rounding=True)
    for function in made[1:]:
        reasons = [entry.why for entry in function._compiled.entries if entry.why]
        assert bool(reasons) == (text in RUN_AS_THEY_ARE), reasons


def passed_both_ways(function, inputs):
    """The result of a call, after a backward pass from all of it that wants gradients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = function(*inputs)
    wanting = [t for t in tensors_in(out) if t.requires_grad]
    if wanting:
        sum((t * 0.5).sum() for t in wanting).backward()
    return out


def resized(inputs, size):
    """The same inputs with a first dimension of another size, where they share one."""
    first = next((x.shape[0] for x in inputs if x.dim()), 0)
    return [x[torch.arange(size) % first] if x.dim() and x.shape[0] == first else x for x in inputs]


def called(function, module, inputs):
    """What a call and its backward leave: the result, gradients and buffers, or the error, but for where it was made,
    which only eager code tells."""
    inputs = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
    try:
        out = passed_both_ways(function, inputs)
    except (RuntimeError, ValueError, IndexError, AssertionError) as error:
        return [(type(error).__name__, str(error).partition("\n")[0])]
    grads = [None if p.grad is None else seen(p.grad) for p in (*inputs, *module.parameters())]
    left = [seen(out), grads, [seen(b) for b in module.buffers()]]
    module.zero_grad()
    return left


@pytest.mark.parametrize("text", MODULES)
def test_a_module_is_given_batches_of_other_sizes(text):
    """Each size a few times, so that all become native code, and all of them again; 0 and 1 among them."""
    found = []
    for way in (lambda module: module, torch.compile):
        torch.manual_seed(5)
        module = eval(f"nn.{text}", {"nn": nn})
        function = way(module)
        steps = []
        for size in (3, 3, 3, 1, 1, 1, 6, 6, 6, 0, 0, 0, 3, 0, 1, 6):
            steps += called(function, module, resized(MODULES[text](), size))
        found.append(steps)
    eager, native = found
    same(native, eager, rounding=True)
