"""The models of the library: torchvision's sizes, and torch's numbers."""

import numpy as np
import pytest
import torch as peer

import pullback
from pullback import models
from pullback.models import gpt, resnet


@pytest.mark.parametrize(
    ("name", "count", "tensors"),
    [("resnet18", 11_689_512, 122), ("resnet34", 21_797_672, 218), ("resnet50", 25_557_032, 320)],
)
def test_a_resnet_has_the_parameters_of_torchvisions(name, count, tensors):
    model = getattr(models, name)()
    assert sum(p.numel() for p in model.parameters()) == count
    assert len(model.state_dict()) == tensors
    names = list(model.state_dict())
    assert names[:3] == ["conv1.weight", "bn1.weight", "bn1.bias"] and names[-2:] == ["fc.weight", "fc.bias"]
    assert "layer2.0.downsample.1.running_var" in names


def on_torch(module):
    """The same source with torch in place of pullback."""
    from pathlib import Path

    source = Path(module.__file__).read_text()
    source = source.replace("import pullback as torch", "import torch").replace("from pullback", "from torch")
    namespace = {"__name__": module.__name__}
    exec(compile(source, module.__file__, "exec"), namespace)
    return namespace


def test_a_resnet_starts_and_computes_as_on_torch():
    results = []
    for torch, names in ((peer, on_torch(resnet)), (pullback, vars(resnet))):
        torch.manual_seed(0)
        model = names["resnet18"](num_classes=10)
        x = torch.randn(2, 3, 64, 64)
        loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 2]))
        loss.backward()
        results.append((model.state_dict(), loss.item(), model.conv1.weight.grad.numpy(), model.fc.weight.grad.numpy()))
    (state, loss, first, last), (own_state, own_loss, own_first, own_last) = results
    for name, value in own_state.items():
        if "running" not in name:
            assert np.array_equal(value.numpy(), state[name].numpy()), name
    assert own_loss == pytest.approx(loss, rel=1e-4)
    assert np.allclose(own_first, first, rtol=1e-2, atol=1e-4) and np.allclose(own_last, last, rtol=1e-3, atol=1e-5)


def test_a_gpt_learns_as_on_torch():
    curves = []
    for torch, names in ((peer, on_torch(gpt)), (pullback, vars(gpt))):
        torch.manual_seed(0)
        config = names["GPTConfig"](vocab_size=32, block_size=16, n_layer=2, n_head=2, n_embd=32)
        model = names["GPT"](config)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        losses = []
        for _ in range(20):
            tokens = torch.randint(0, 32, (4, 17))
            _, loss = model(tokens[:, :-1], tokens[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        losses.append(model.generate(tokens[:1, :4], 5, top_k=8).tolist())
        curves.append(losses)
    assert np.allclose(curves[0][:-1], curves[1][:-1], rtol=1e-4)
    assert curves[0][-1] == curves[1][-1]


def test_trained_weights_are_refused_clearly():
    with pytest.raises(NotImplementedError, match="load_state_dict"):
        models.resnet18(weights="IMAGENET1K_V1")
