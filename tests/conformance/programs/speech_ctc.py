"""Recognising tones with CTC: spectrograms, convolutions over time, a bidirectional GRU and greedy decoding."""

import math

import torch
from torch import nn

RATE = 400


def tone(word):
    parts = [torch.sin(2 * math.pi * (40 + 30 * c) * torch.arange(120) / RATE) * torch.hann_window(120) for c in word]
    signal = torch.cat([torch.zeros(20), *parts, torch.zeros(20)])
    return signal + 0.05 * torch.randn_like(signal)


def spectrogram(signal):
    found = torch.stft(signal, 64, hop_length=20, window=torch.hann_window(64), return_complex=True)
    return torch.log1p(found.abs().square())


class Recogniser(nn.Module):
    def __init__(self, classes, size=12):
        super().__init__()
        first, second = nn.Conv1d(33, size, 3, padding=1), nn.Conv1d(size, size, 3, padding=1)
        self.conv = nn.Sequential(first, nn.Hardtanh(0, 20), second)
        self.rnn = nn.GRU(size, size, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * size, classes)

    def forward(self, x):
        h, _ = self.rnn(self.conv(x).transpose(1, 2))
        return self.out(h).log_softmax(-1)


torch.manual_seed(0)
model = Recogniser(4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CTCLoss(blank=0, zero_infinity=True)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.5)
for step in range(10):
    words = [torch.randint(1, 4, (int(torch.randint(1, 4, (1,))),)) for _ in range(6)]
    sounds = [spectrogram(tone(w.tolist())) for w in words]
    lengths = torch.tensor([s.shape[1] for s in sounds])
    batch = nn.utils.rnn.pad_sequence([s.T for s in sounds], batch_first=True).transpose(1, 2)
    loss = criterion(model(batch).transpose(0, 1), torch.cat(words), lengths, torch.tensor([len(w) for w in words]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(step, loss.item(), schedule.get_last_lr())
with torch.no_grad():
    best = model(batch[:1, :, : lengths[0]]).argmax(-1)[0]
    print([int(v) for v in torch.unique_consecutive(best) if v != 0], words[0].tolist())
    window = torch.hann_window(64)
    again = torch.istft(torch.stft(tone([1]), 64, 16, return_complex=True, window=window), 64, 16, window=window)
    print(tuple(again.shape), again.abs().mean().item())
