"""torch-geometric: graph convolutions and attention on a small graph."""

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool

torch.manual_seed(0)
edges = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
graph = Data(x=torch.randn(4, 3), edge_index=edges, y=torch.tensor([0, 1, 0, 1]))
batch = Batch.from_data_list([graph, graph])
for kind in (GCNConv, SAGEConv, GATConv):
    torch.manual_seed(0)
    first, second = kind(3, 8), kind(8, 2)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
    for _ in range(3):
        out = second(first(batch.x, batch.edge_index).relu(), batch.edge_index)
        loss = torch.nn.functional.cross_entropy(out, batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(kind.__name__, loss.item())
    print(global_mean_pool(out, batch.batch).tolist())
