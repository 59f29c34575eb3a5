"""A small GPT learns sonnets letter by letter, and writes some lines of its own."""

import support
import torch
from torch import nn
from torch.nn import functional as F

given = support.arguments(__doc__, steps=300, picture="char_gpt.svg")
torch.manual_seed(0)
text = support.sonnets()
letters = sorted(set(text))
tokens = torch.tensor([letters.index(letter) for letter in text])
context, width, heads = 48, 64, 4


class Block(nn.Module):
    """Attention to what came before, then a layer for each place."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Letters and places as vectors, three blocks, scores of the next letter."""

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(letters), width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block() for _ in range(3)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, len(letters))

    def forward(self, x):
        x = self.letters(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.blocks(x)))


model = GPT().to(given.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
losses = []
for _ in support.progress(given.steps, lambda: f"loss {losses[-1]:.4f}"):
    starts = torch.randint(0, len(tokens) - context - 1, (12,))
    x = torch.stack([tokens[s : s + context] for s in starts])
    y = torch.stack([tokens[s + 1 : s + context + 1] for s in starts])
    loss = F.cross_entropy(model(x.to(given.device)).flatten(0, 1), y.to(given.device).flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())

with torch.no_grad():
    written = tokens[:1][None].to(given.device)
    for _ in range(200):
        chances = F.softmax(model(written[:, -context:])[0, -1] / 0.8, dim=0)
        written = torch.cat([written, torch.multinomial(chances, 1)[None]], dim=1)
print("".join(letters[i] for i in written[0].tolist()))
support.finish(given, losses, support.lines("GPT on sonnets", ("training loss", losses)))
