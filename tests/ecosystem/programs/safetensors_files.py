"""safetensors: files of tensors, written and read by the package itself."""

import os
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

torch.manual_seed(0)
tensors = {
    str(kind): (torch.randn(3, 4) * 5).to(kind) for kind in (torch.float32, torch.float16, torch.bfloat16, torch.int64)
}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.safetensors")
    save_file(tensors, path, metadata={"format": "pt"})
    print(os.path.getsize(path))
    for name, value in sorted(load_file(path).items()):
        print(name, value.dtype, value.double().sum().item(), torch.equal(value, tensors[name]))
    with safe_open(path, framework="pt") as file:
        print(sorted(file.keys()), file.metadata(), file.get_slice("torch.float32")[1:, :2].tolist())
    print(sorted(load(save(tensors))) == sorted(tensors))
    model, other = (torch.nn.Linear(4, 2) for _ in range(2))
    save_model(model, path)
    load_model(other, path)
    print(torch.equal(model.weight, other.weight), other.weight.sum().item())
