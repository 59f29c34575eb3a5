"""tensordict: trees of tensors with a batch, and a module that reads and writes them."""

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule

torch.manual_seed(0)
data = TensorDict({"x": torch.randn(4, 3), "inner": {"y": torch.ones(4, 2)}}, batch_size=[4])
module = TensorDictModule(torch.nn.Linear(3, 2), in_keys=["x"], out_keys=["z"])
out = module(data)
print(sorted(out.keys()), out["z"].sum().item(), out[1:3].batch_size, out["inner", "y"].shape)
print(torch.stack([data, data]).batch_size, data.apply(lambda x: x + 1)["x"].sum().item())
