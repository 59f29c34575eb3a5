"""Data loading: worker processes, samplers, collating, splits and iterable datasets."""

import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)


class Squares(Dataset):
    def __init__(self, n, transform=None):
        self.n, self.transform = n, transform

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        x = torch.tensor([float(i), i * 2.0])
        return {"x": self.transform(x) if self.transform else x, "y": i * i, "name": f"item {i}"}


class Counter(IterableDataset):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return iter(range(self.start, self.end))
        return iter(range(self.start + info.id, self.end, info.num_workers))


def double(x):
    return x * 2


def ragged(items):
    return torch.nn.utils.rnn.pad_sequence(items, batch_first=True), torch.tensor([len(item) for item in items])


def noise(worker_id):
    print("", end="")


class Noisy(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return torch.rand(()) + i


if __name__ == "__main__":
    torch.manual_seed(0)
    for workers in (0, 2):
        loader = DataLoader(Squares(7, double), batch_size=3, shuffle=True, num_workers=workers, worker_init_fn=noise)
        for batch in loader:
            print(workers, batch["x"].tolist(), batch["y"].tolist(), batch["name"])
    print(sorted(v for batch in DataLoader(Counter(3, 10), batch_size=2, num_workers=2) for v in batch.tolist()))
    print([batch.tolist() for batch in DataLoader(Counter(3, 10), batch_size=4, drop_last=True)])
    sequences = [torch.arange(n) for n in (3, 1, 2)]
    print([[t.tolist() for t in pair] for pair in DataLoader(sequences, batch_size=2, collate_fn=ragged)])
    sampler = WeightedRandomSampler([0.1, 0.7, 0.2], 8, replacement=True, generator=torch.Generator().manual_seed(5))
    print(list(sampler), list(BatchSampler(SequentialSampler(range(5)), 2, drop_last=False)))
    data = TensorDataset(torch.arange(10.0), torch.arange(10) % 2)
    train, valid = random_split(data, [0.7, 0.3], generator=torch.Generator().manual_seed(1))
    print(len(train), [int(valid[i][0]) for i in range(len(valid))], len(ConcatDataset([train, Subset(data, [1, 2])])))
    print(list(RandomSampler(data, num_samples=4, generator=torch.Generator().manual_seed(2))))
    loader = DataLoader(Noisy(), batch_size=3, num_workers=2, persistent_workers=True, prefetch_factor=2)
    for epoch in range(2):
        print(epoch, [batch.tolist() for batch in loader])
    total = 0.0
    model = torch.nn.Linear(1, 2)
    for x, y in DataLoader(train, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3)):
        total += torch.nn.functional.cross_entropy(model(x[:, None]), y, reduction="sum").item()
    print(total)
