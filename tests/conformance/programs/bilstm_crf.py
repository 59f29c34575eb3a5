"""A tagger of a bidirectional LSTM with a conditional random field: the forward algorithm and Viterbi by hand."""

import torch
import torch.nn as nn

START, STOP = "<START>", "<STOP>"


def log_sum_exp(vec):
    top = vec[0, torch.argmax(vec, 1).item()]
    return top + torch.log(torch.sum(torch.exp(vec - top.view(1, -1).expand(1, vec.size()[1]))))


class Tagger(nn.Module):
    def __init__(self, words, tags, size=5, hidden=4):
        super().__init__()
        self.hidden, self.tags = hidden, tags
        self.embeds = nn.Embedding(words, size)
        self.lstm = nn.LSTM(size, hidden // 2, num_layers=1, bidirectional=True)
        self.to_tag = nn.Linear(hidden, len(tags))
        self.transitions = nn.Parameter(torch.randn(len(tags), len(tags)))
        self.transitions.data[tags[START], :] = -10000
        self.transitions.data[:, tags[STOP]] = -10000
        self.first = (torch.randn(2, 1, hidden // 2), torch.randn(2, 1, hidden // 2))

    def features(self, sentence):
        out, _ = self.lstm(self.embeds(sentence).view(len(sentence), 1, -1), self.first)
        return self.to_tag(out.view(len(sentence), self.hidden))

    def partition(self, feats):
        alphas = torch.full((1, len(self.tags)), -10000.0)
        alphas[0][self.tags[START]] = 0.0
        for feat in feats:
            step = []
            for tag in range(len(self.tags)):
                emit = feat[tag].view(1, -1).expand(1, len(self.tags))
                step.append(log_sum_exp(alphas + self.transitions[tag].view(1, -1) + emit).view(1))
            alphas = torch.cat(step).view(1, -1)
        return log_sum_exp(alphas + self.transitions[self.tags[STOP]])

    def score(self, feats, tags):
        total = torch.zeros(1)
        tags = torch.cat([torch.tensor([self.tags[START]], dtype=torch.long), tags])
        for i, feat in enumerate(feats):
            total = total + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
        return total + self.transitions[self.tags[STOP], tags[-1]]

    def loss(self, sentence, tags):
        feats = self.features(sentence)
        return self.partition(feats) - self.score(feats, tags)

    def forward(self, sentence):
        back, best = [], torch.full((1, len(self.tags)), -10000.0)
        best[0][self.tags[START]] = 0
        for feat in self.features(sentence):
            scores = best + self.transitions
            top, index = scores.max(1)
            best = (top + feat).view(1, -1)
            back.append(index.tolist())
        path = [int((best + self.transitions[self.tags[STOP]]).argmax())]
        for pointers in reversed(back):
            path.append(pointers[path[-1]])
        return best.max().item(), path[::-1][1:]


torch.manual_seed(1)
data = [("the corporation made money", "B I O O"), ("georgia tech is in georgia", "B I O O B")]
words = {}
for sentence, _ in data:
    for word in sentence.split():
        words.setdefault(word, len(words))
tags = {"B": 0, "I": 1, "O": 2, START: 3, STOP: 4}
pairs = [(torch.tensor([words[w] for w in s.split()]), torch.tensor([tags[t] for t in ts.split()])) for s, ts in data]
model = Tagger(len(words), tags)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, weight_decay=1e-4)
with torch.no_grad():
    print(model(pairs[0][0]))
for epoch in range(8):
    for sentence, wanted in pairs:
        model.zero_grad()
        loss = model.loss(sentence, wanted)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
with torch.no_grad():
    print(model(pairs[0][0]))
