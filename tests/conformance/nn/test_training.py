"""Whole networks, trained for a few steps from the same seed: the same losses and the same weights."""

import pytest

from tests.conformance.both import same


def mlp(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))
    return net, torch.randn(12, 6), torch.randint(3, (12,)), nn.CrossEntropyLoss(label_smoothing=0.1)


def convnet(torch):
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2, groups=2),
        nn.GroupNorm(2, 6),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 2),
    )
    return net, torch.randn(5, 1, 10, 10), torch.randint(2, (5,)), nn.CrossEntropyLoss()


def residual(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.body = nn.ModuleList(
                [nn.Conv1d(channels, channels, 3, padding=1), nn.InstanceNorm1d(channels, affine=True)]
            )
            self.gain = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            out = x
            for layer in self.body:
                out = layer(out)
            return x + self.gain * nn.functional.leaky_relu(out, 0.1)

    net = nn.Sequential(Block(3), nn.AvgPool1d(2), Block(3), nn.ConvTranspose1d(3, 1, 4, stride=2, padding=1))
    return net, torch.randn(4, 3, 8), torch.randn(4, 1, 8), nn.SmoothL1Loss()


def sequence(torch):
    nn = torch.nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 5, padding_idx=0)
            self.rnn = nn.LSTM(5, 6, num_layers=2, bidirectional=True, dropout=0.1, batch_first=True)
            self.head = nn.Linear(12, 4)

        def forward(self, words):
            lengths = (words != 0).sum(1)
            packed = nn.utils.rnn.pack_padded_sequence(
                self.embed(words), lengths, batch_first=True, enforce_sorted=False
            )
            out, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
            return self.head(out).transpose(1, 2)

    words = torch.tensor([[1, 2, 3, 0], [4, 5, 6, 1], [2, 2, 0, 0]])
    return Tagger(), words, torch.randint(4, (3, 4)), nn.CrossEntropyLoss(ignore_index=3)


def transformer(torch):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(9, 8)
            self.place = nn.Parameter(torch.randn(6, 8) * 0.02)
            layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, activation="gelu", batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), enable_nested_tensor=False)
            self.head = nn.Linear(8, 9, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens):
            mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
            x = self.body(self.embed(tokens) + self.place, mask=mask, is_causal=True)
            return self.head(x).flatten(0, 1)

    tokens = torch.randint(9, (4, 6))
    return Model(), tokens, torch.randint(9, (24,)), nn.CrossEntropyLoss()


def trained(torch, build):
    """The losses of four steps of gradient descent, and the network after them."""
    torch.manual_seed(0)
    net, inputs, targets, criterion = build(torch)
    losses = []
    for _ in range(4):
        loss = criterion(net(inputs), targets)
        net.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        with torch.no_grad():
            for param in net.parameters():
                param.sub_(0.05 * param.grad)
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        final = net(inputs)
    return repr(net), losses, final, {name: value.double().sum() for name, value in net.state_dict().items()}


@pytest.mark.parametrize("build", [mlp, convnet, residual, sequence, transformer], ids=lambda f: f.__name__)
def test_a_network_learns_the_same(build):
    def program(torch):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # four steps of float32 would show the order of sums
        try:
            return trained(torch, build)
        finally:
            torch.set_default_dtype(before)

    same(program)
