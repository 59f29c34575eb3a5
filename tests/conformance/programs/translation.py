"""A transformer learns to reverse sequences of tokens: padding, masks, warm-up and greedy decoding."""

import math

import torch
from torch import Tensor, nn
from torch.nn import Transformer

PAD, BOS, EOS, VOCAB = 0, 1, 2, 12


class PositionalEncoding(nn.Module):
    def __init__(self, size: int, dropout: float, longest: int = 50):
        super().__init__()
        frequency = torch.exp(-torch.arange(0, size, 2) * math.log(10000) / size)
        position = torch.arange(0, longest).reshape(longest, 1)
        table = torch.zeros((longest, size))
        table[:, 0::2] = torch.sin(position * frequency)
        table[:, 1::2] = torch.cos(position * frequency)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("table", table.unsqueeze(-2))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.dropout(tokens + self.table[: tokens.size(0), :])


class Translator(nn.Module):
    def __init__(self, size=16, heads=2):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, size, padding_idx=PAD)
        self.position = PositionalEncoding(size, 0.1)
        self.transformer = Transformer(size, heads, 1, 1, 32, dropout=0.1)
        self.generator = nn.Linear(size, VOCAB)
        self.scale = math.sqrt(size)

    def embed(self, tokens):
        return self.position(self.embedding(tokens.long()) * self.scale)

    def forward(self, src, tgt, tgt_mask, src_padding, tgt_padding):
        out = self.transformer(
            self.embed(src), self.embed(tgt), None, tgt_mask, None, src_padding, tgt_padding, src_padding
        )
        return self.generator(out)


def batch(n):
    sources, targets = [], []
    for _ in range(n):
        body = torch.randint(3, VOCAB, (int(torch.randint(2, 6, ())),))
        sources.append(torch.cat([torch.tensor([BOS]), body, torch.tensor([EOS])]))
        targets.append(torch.cat([torch.tensor([BOS]), body.flip(0), torch.tensor([EOS])]))
    pad = nn.utils.rnn.pad_sequence
    return pad(sources, padding_value=PAD), pad(targets, padding_value=PAD)


torch.manual_seed(1)
model = Translator()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 16**-0.5 * min((s + 1) ** -0.5, (s + 1) * 10**-1.5))
for step in range(15):
    src, tgt = batch(8)
    given, wanted = tgt[:-1], tgt[1:]
    mask = Transformer.generate_square_subsequent_mask(given.shape[0])
    logits = model(src, given, mask, (src == PAD).T, (given == PAD).T.float().masked_fill((given == PAD).T, -math.inf))
    loss = criterion(logits.reshape(-1, VOCAB), wanted.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    print(step, loss.item(), norm.item(), schedule.get_last_lr()[0])

model.eval()
with torch.no_grad():
    src, _ = batch(1)
    memory = model.transformer.encoder(model.embed(src))
    out = torch.full((1, 1), BOS)
    for _ in range(6):
        mask = Transformer.generate_square_subsequent_mask(out.size(0)).type(torch.bool)
        state = model.transformer.decoder(model.embed(out), memory, mask)
        best = model.generator(state[-1]).topk(2, dim=-1)
        out = torch.cat([out, best.indices[:, :1]])
    print(out.flatten().tolist(), best.values.tolist())
