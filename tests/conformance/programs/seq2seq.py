"""An encoder and decoder of GRUs with attention over packed sequences, teacher forcing and tied embeddings."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

VOCAB, PAD, START = 10, 0, 1


class Encoder(nn.Module):
    def __init__(self, embedding, size):
        super().__init__()
        self.embedding = embedding
        self.rnn = nn.GRU(embedding.embedding_dim, size, bidirectional=True, batch_first=True)
        self.join = nn.Linear(2 * size, size)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        out, hidden = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return self.join(out), torch.tanh(self.join(torch.cat([hidden[0], hidden[1]], 1)))[None]


class Decoder(nn.Module):
    def __init__(self, embedding, size):
        super().__init__()
        self.embedding = embedding
        self.rnn = nn.GRU(embedding.embedding_dim + size, size)
        self.out = nn.Linear(size, VOCAB)
        self.dropout = nn.Dropout(0.1)

    def forward(self, token, hidden, memory, mask):
        embedded = self.dropout(self.embedding(token))[None]
        scores = torch.bmm(memory, hidden[-1][:, :, None]).squeeze(2).masked_fill(mask, -1e9)
        context = torch.bmm(scores.softmax(1)[:, None], memory).transpose(0, 1)
        out, hidden = self.rnn(torch.cat([embedded, context], 2), hidden)
        return self.out(out[0]), hidden


random.seed(1)
torch.manual_seed(9)
embedding = nn.Embedding(VOCAB, 8, padding_idx=PAD)
encoder, decoder = Encoder(embedding, 12), Decoder(embedding, 12)
parameters = list({id(p): p for m in (encoder, decoder) for p in m.parameters()}.values())
optimizer = torch.optim.RAdam(parameters, lr=1e-2)
criterion = nn.NLLLoss(ignore_index=PAD, reduction="sum")
for step in range(12):
    words = [torch.randint(2, VOCAB, (n,)) for n in torch.randint(1, 6, (6,)).tolist()]
    tokens = pad_sequence(words, batch_first=True)
    lengths = torch.tensor([len(w) for w in words])
    memory, hidden = encoder(tokens, lengths)
    mask = torch.arange(memory.shape[1])[None] >= lengths[:, None]
    token, loss = torch.full((6,), START), 0.0
    forced = random.random() < 0.5
    for t in range(tokens.shape[1]):
        logits, hidden = decoder(token, hidden, memory, mask)
        loss = loss + criterion(logits.log_softmax(1), tokens[:, t])
        token = tokens[:, t] if forced else logits.topk(1)[1].squeeze(1).detach()
    optimizer.zero_grad()
    (loss / lengths.sum()).backward()
    optimizer.step()
    print(step, forced, (loss / lengths.sum()).item(), embedding.weight.grad[PAD].abs().sum().item())
