"""A character model of two LSTM layers, trained on windows with a carried state, and sampled from."""

import torch
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. " * 4
chars = sorted(set(TEXT))
codes = torch.tensor([chars.index(c) for c in TEXT])


class CharModel(nn.Module):
    def __init__(self, vocabulary, size=24):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.embed = nn.Embedding(vocabulary, size)
        self.rnn = nn.LSTM(size, size, num_layers=2, dropout=0.2)
        self.out = nn.Linear(size, vocabulary)
        self.out.weight = self.embed.weight

    def forward(self, tokens, state):
        out, state = self.rnn(self.drop(self.embed(tokens)), state)
        return self.out(self.drop(out)), state


torch.manual_seed(12)
model = CharModel(len(chars))
print(len(list(model.parameters())), sorted(model.state_dict())[:3], sum(p.numel() for p in model.parameters()))
data = codes[: len(codes) // 4 * 4].view(4, -1).t().contiguous()
optimizer = torch.optim.Adamax(model.parameters(), lr=1e-2)
for epoch in range(2):
    state, total = None, 0.0
    for start in range(0, len(data) - 1 - 12, 12):
        x, y = data[start : start + 12], data[start + 1 : start + 13]
        logits, state = model(x, state)
        state = tuple(s.detach() for s in state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        print(epoch, start, loss.item())
model.eval()
token, state, written = torch.tensor([[codes[0]]]), None, ""
with torch.no_grad():
    for _ in range(20):
        logits, state = model(token, state)
        token = torch.multinomial((logits[-1] / 0.8).softmax(-1), 1)
        written += chars[token.item()]
print(repr(written))
