"""Message passing on random graphs: gather, index_add, scatter_reduce, segment softmax, hooks."""

import torch
from torch import nn


def segment_softmax(values, index, n):
    top = torch.full((n,), -torch.inf).scatter_reduce(0, index, values, "amax", include_self=False)
    weights = (values - top[index]).exp()
    return weights / torch.zeros(n).index_add(0, index, weights)[index].clamp_min(1e-9)


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.maps = nn.ModuleDict({"message": nn.Linear(size, size, bias=False), "own": nn.Linear(size, size)})
        self.scores = nn.ParameterList([nn.Parameter(torch.randn(size) * 0.1) for _ in range(2)])

    def forward(self, h, edges):
        source, target = edges
        m = self.maps["message"](h)
        score = nn.functional.leaky_relu(
            (m * self.scores[0]).sum(-1)[source] + (m * self.scores[1]).sum(-1)[target], 0.2
        )
        weight = segment_softmax(score, target, h.shape[0])
        gathered = torch.zeros_like(m).index_add_(0, target, weight[:, None] * m[source])
        return torch.nn.functional.elu(gathered + self.maps["own"](h))


class Net(nn.Module):
    def __init__(self, kinds=5, size=8):
        super().__init__()
        self.embed = nn.Embedding(kinds, size, max_norm=2.0)
        self.layers = nn.ModuleList(Attention(size) for _ in range(2))
        self.norm = nn.LayerNorm(size)
        self.out = nn.Linear(size * 2, 2)

    def forward(self, kinds, edges, graph, count):
        h = self.embed(kinds)
        for layer in self.layers:
            h = self.norm(h + layer(h, edges))
        index = graph[:, None].expand_as(h)
        mean = torch.zeros(count, h.shape[1]).scatter_reduce(0, index, h, "mean", include_self=False)
        most = torch.zeros(count, h.shape[1]).scatter_reduce(0, index, h, "amax", include_self=False)
        return self.out(torch.cat([mean, most], 1))


def graphs(n):
    kinds, edges, graph, labels, offset = [], [], [], [], 0
    for i in range(n):
        size = int(torch.randint(3, 7, (1,)))
        adjacency = torch.bernoulli(torch.full((size, size), 0.4)).triu(1)
        found = (adjacency + adjacency.T + torch.eye(size)).nonzero().T
        kinds.append(torch.randint(0, 5, (size,)))
        edges.append(found + offset)
        graph += [i] * size
        labels.append(int(found.shape[1] > 2.2 * size))
        offset += size
    return torch.cat(kinds), torch.cat(edges, 1), torch.tensor(graph), torch.tensor(labels)


torch.manual_seed(4)
net, seen = Net(), []
handle = net.layers[1].register_forward_hook(lambda module, args, out: seen.append(out.detach().abs().mean().item()))
net.out.register_full_backward_hook(lambda module, gin, gout: seen.append(gout[0].norm().item()))
optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)
for step in range(15):
    kinds, edges, graph, labels = graphs(8)
    logits = net(kinds, edges, graph, 8)
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), seen[-2:])
handle.remove()
net(*graphs(2)[:3], 2)
print(len(seen), {name: tuple(p.shape) for name, p in net.named_parameters() if "scores" in name})
