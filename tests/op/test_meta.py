"""The meta device: tensors of which only shape, strides and dtype exist."""

import copy
import io
import tracemalloc

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback._arrays.kinds import made_on

if np.lib.NumpyVersion(np.__version__) < "2.1.0":
    pytest.skip("the meta device needs NumPy 2.1", allow_module_level=True)
from pullback._meta.array import MetaArray


def meta(*shape, **options):
    return torch.empty(*shape, device="meta", **options)


def facts(tensor):
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device.type


# ------------------------------------------------------------------ making


MAKERS = [
    lambda d: torch.empty(2, 3, device=d),
    lambda d: torch.zeros(2, 3, dtype=torch.int32, device=d),
    lambda d: torch.ones((4,), dtype=torch.bool, device=d),
    lambda d: torch.full((2, 2), 7, device=d),
    lambda d: torch.eye(3, 4, device=d),
    lambda d: torch.arange(1, 9, 2, device=d),
    lambda d: torch.linspace(0, 1, 5, device=d),
    lambda d: torch.logspace(0, 1, 5, device=d),
    lambda d: torch.rand(2, 3, device=d),
    lambda d: torch.randn(2, 3, dtype=torch.float64, device=d),
    lambda d: torch.randint(5, (2, 3), device=d),
    lambda d: torch.randperm(5, device=d),
    lambda d: torch.normal(0.0, 1.0, (2, 3), device=d),
    lambda d: torch.empty_strided((2, 3), (1, 2), device=d),
    lambda d: torch.empty(2, 3, 4, 5, memory_format=torch.channels_last, device=d),
    lambda d: torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=d),
    lambda d: torch.as_tensor(np.ones((2, 3)), device=d),
    lambda d: torch.scalar_tensor(2.0, device=d),
    lambda d: torch.hann_window(5, device=d),
    lambda d: torch.zeros_like(torch.empty(3, 2).t(), device=d),
    lambda d: torch.randn_like(torch.empty(3, 2), device=d),
    lambda d: torch.ones(2).new_full((2, 3), 1, device=d),
    lambda d: torch.ones(2, 3).to(d),
    lambda d: torch.ones(2, 3).t().to(d, torch.int64),
]


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_made_on_the_meta_device_has_the_facts_it_has_on_the_cpu(make):
    shape, strides, dtype, _ = facts(make("cpu"))
    assert facts(make("meta")) == (shape, strides, dtype, "meta")


def test_nothing_is_drawn_for_tensors_on_the_meta_device():
    before = torch.get_rng_state()
    x = torch.randn(5, device="meta")
    x.normal_()
    x.uniform_()
    nn.init.kaiming_uniform_(meta(3, 4))
    F.dropout(x)
    F.rrelu(x, training=True)
    torch.bernoulli(x)
    torch.multinomial(x, 2)
    torch.rand_like(x)
    nn.LSTM(3, 4, device="meta")
    assert torch.equal(before, torch.get_rng_state())


def test_a_block_with_the_device_makes_everything_on_it():
    with torch.device("meta"):
        made = [torch.zeros(2), torch.tensor(3), nn.Linear(2, 3).weight, nn.BatchNorm1d(2).running_mean]
    assert all(t.is_meta for t in made)
    assert not torch.zeros(2).is_meta


# ------------------------------------------------------------------ computing


def test_results_have_the_facts_they_have_on_the_cpu():
    def program(x, w):
        y = (x @ w.t()).relu().softmax(-1)
        y = y.transpose(0, 1) + y.sum(0, keepdim=True).transpose(0, 1)
        z = torch.cat([y, y[:2]]).view(-1)[::3]
        return [
            y,
            z,
            z.sort()[1],
            y.max(0).values,
            (y > 0).any(),
            y.to(torch.float16) * 2,
            torch.einsum("ij,ik->jk", y, y),
        ]

    host = program(torch.ones(4, 3), torch.ones(5, 3))
    here = program(meta(4, 3), meta(5, 3))
    assert [facts(t)[:3] for t in here] == [facts(t)[:3] for t in host]
    assert all(t.is_meta for t in here)


def test_views_look_at_the_same_memory_and_writes_are_counted():
    x = meta(4, 6)
    row = x[1:, ::2].t()
    assert row._base is x
    assert (row.stride(), row.storage_offset()) == ((2, 6), 6)
    before = x._version
    row.add_(1)
    row[0] = 5
    assert x._version == before + 2
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x[0].add_(meta(3, 6))


def test_a_graph_is_recorded_and_run_backwards():
    w = torch.randn(5, 3, device="meta", requires_grad=True)
    b = torch.zeros(5, device="meta", requires_grad=True)
    x = meta(7, 3)
    loss = F.gelu(F.linear(x, w, b)).pow(2).mean()
    assert loss.grad_fn.name() == "MeanBackward0"
    loss.backward()
    assert facts(w.grad) == facts(w) and facts(b.grad) == facts(b)
    (again,) = torch.autograd.grad(F.linear(x, w).exp().sum(), w, create_graph=True)
    assert again.requires_grad and again.is_meta


def test_writes_through_views_are_recorded_too():
    x = torch.zeros(4, 4, device="meta", requires_grad=True)
    y = x * 2
    y[0].mul_(3)
    y.sum().backward()
    assert x.grad.shape == (4, 4) and type(y.grad_fn).__name__ == "CopySlices"


def test_errors_about_shapes_are_those_of_the_cpu():
    for call in (lambda a, b: a + b, torch.mm, lambda a, b: a.view(7), lambda a, b: a.sum(3)):
        with pytest.raises((RuntimeError, IndexError)) as wanted:
            call(torch.ones(2, 3), torch.ones(4, 5))
        with pytest.raises(type(wanted.value)) as got:
            call(meta(2, 3), meta(4, 5))
        assert str(got.value).partition("\n")[0] == str(wanted.value).partition("\n")[0]


def test_what_depends_on_elements_says_so_and_names_the_op():
    for call, name in ((torch.nonzero, "nonzero"), (torch.unique, "unique"), (lambda t: t[t > 0], "index")):
        with pytest.raises(NotImplementedError, match=f"{name}.*depends on the elements"):
            call(meta(3))


# ------------------------------------------------------------------ elements that are not there


def test_reading_elements_is_refused_in_torchs_words():
    one, many = meta(1), meta(2, 3)
    for read in (lambda t: t.item(), bool, float, int):
        with pytest.raises(RuntimeError, match=r"Tensor\.item\(\) cannot be called on meta tensors"):
            read(one)
    with pytest.raises(RuntimeError, match="a Tensor with 6 elements cannot be converted to Scalar"):
        many.item()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(many)
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        many.numpy()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        np.asarray(many)
    for read in (torch.Tensor.tolist, torch.Tensor.cpu, lambda t: t.to("cpu"), lambda t: torch.ones(2, 3).copy_(t)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            read(many)


def test_operands_of_two_devices_are_refused_but_for_numbers():
    m, c = meta(2, 3), torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="Tensor on device cpu is not on the expected device meta!"):
        m + c
    with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cpu!"):
        c + m
    assert (m + torch.tensor(1.0)).is_meta and (m * 2).is_meta
    assert m[torch.tensor([0, 1, 0])].shape == (3, 3)
    assert m.copy_(c) is m
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        c.data = m


def test_it_prints_as_torch_prints_it():
    assert repr(meta(2, 3)) == "tensor(..., device='meta', size=(2, 3))"
    assert repr(meta(2, dtype=torch.int64)) == "tensor(..., device='meta', size=(2,), dtype=torch.int64)"
    assert repr(meta(2, requires_grad=True).sum()) == "tensor(..., device='meta', size=(), grad_fn=<SumBackward0>)"
    assert (
        repr(nn.Parameter(meta(2)))
        == "Parameter containing:\ntensor(..., device='meta', size=(2,), requires_grad=True)"
    )
    assert meta(2).type() == "torch.meta.FloatTensor"


# ------------------------------------------------------------------ modules


def test_a_module_is_built_moved_and_filled():
    layer = nn.Linear(3, 4, device="meta")
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.is_meta and layer.weight.requires_grad
    assert copy.deepcopy(layer).weight.is_meta
    with pytest.raises(NotImplementedError, match=r"use torch\.nn\.Module\.to_empty\(\) instead"):
        layer.to("cpu")
    layer.to_empty(device="cpu")
    assert layer.weight.device.type == "cpu" and layer(torch.ones(2, 3)).shape == (2, 4)
    assert layer.to("meta").weight.is_meta
    assert type(layer.weight)(torch.ones(2)).device.type == "cpu"


def test_load_state_dict_takes_over_what_it_cannot_copy():
    state = nn.Linear(3, 4).state_dict()
    layer = nn.Linear(3, 4, device="meta")
    with pytest.warns(UserWarning, match="which is a no-op"):
        layer.load_state_dict(state)
    assert layer.weight.is_meta
    layer.load_state_dict(state, assign=True)
    assert torch.equal(layer.weight, state["weight"]) and layer.weight.requires_grad


def test_files_are_loaded_without_their_elements_and_keep_tensors_without_any():
    file = io.BytesIO()
    torch.save({"w": torch.ones(3, 4).t(), "m": meta(2, 3), "p": nn.Parameter(meta(5))}, file)
    file.seek(0)
    found = torch.load(file)
    assert found["m"].is_meta and isinstance(found["p"], nn.Parameter) and not found["w"].is_meta
    file.seek(0)
    found = torch.load(file, map_location="meta")
    assert facts(found["w"]) == ((4, 3), (1, 4), torch.float32, "meta")


def test_an_optimizer_steps_on_the_meta_device():
    layer = nn.Linear(3, 4, device="meta")
    for kind in (torch.optim.SGD, torch.optim.AdamW):
        optimizer = kind(layer.parameters(), lr=0.1)
        layer(meta(2, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.drop = heads, nn.Dropout(0.1)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(self.first(x)).split(c, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.drop(self.out(y))
        return x + self.drop(self.down(F.gelu(self.up(self.second(x)))))


class Gpt(nn.Module):
    def __init__(self, words, length, width, heads, depth):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, index):
        x = self.words(index) + self.places(torch.arange(index.shape[1], device=index.device))
        scores = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(scores.view(-1, scores.size(-1)), index.view(-1))


class Residual(nn.Module):
    def __init__(self, given, made, stride):
        super().__init__()
        self.one, self.two = (
            nn.Conv2d(given, made, 3, stride, 1, bias=False),
            nn.Conv2d(made, made, 3, 1, 1, bias=False),
        )
        self.norm_one, self.norm_two = nn.BatchNorm2d(made), nn.BatchNorm2d(made)
        fits = stride == 1 and given == made
        down = nn.Sequential(nn.Conv2d(given, made, 1, stride, bias=False), nn.BatchNorm2d(made))
        self.down = nn.Identity() if fits else down

    def forward(self, x):
        y = self.norm_two(self.two(F.relu(self.norm_one(self.one(x)))))
        return F.relu(y + self.down(x))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    given = 64
    for made, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(given, made, stride), Residual(made, made, 1)]
        given = made
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def gpt_step():
    model = Gpt(50304, 2048, 4096, 32, 2)
    return model, model(torch.zeros(64, 2048, dtype=torch.long))


def resnet_step():
    model = resnet18()
    return model, F.cross_entropy(model(torch.randn(4096, 3, 224, 224)), torch.zeros(4096, dtype=torch.long))


@pytest.mark.parametrize("step", [gpt_step, resnet_step])
def test_a_step_of_a_model_takes_no_memory_for_elements(step):
    meta(2).add_(1)  # the kind is loaded, and with it its code
    tracemalloc.start()
    try:
        with torch.device("meta"):
            model, loss = step()
        loss.backward()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(facts(p.grad) == facts(p) for p in model.parameters())
    assert peak < 64 * 2**20  # on the CPU it would be tens of gigabytes


# ------------------------------------------------------------------ the kind


def test_a_function_without_a_rule_says_so():
    meta(1)  # loads the kind
    with pytest.raises(NotImplementedError, match=r"np\.kron has no rule for arrays without elements"):
        np.kron(MetaArray((2, 2), np.float32), np.ones((2, 2)))


def test_numpys_protocols_lead_to_the_rules():
    a = meta(4, 1, 3)._array
    assert isinstance(a, np.ndarray) and type(a) is MetaArray
    assert np.add(a, np.ones((2, 1), np.float64)).shape == (4, 2, 3)
    assert np.add(a, 1.0).dtype == np.float32
    assert np.add.reduce(a, axis=(0, 2)).shape == (1,)
    assert np.concatenate([a, a], 1).shape == (4, 2, 3)
    assert made_on("meta", np.zeros, (2, 3), np.int16).dtype == np.int16


def test_what_is_kept_of_shapes_on_meta_is_not_what_the_cpu_finds():
    index = torch.tensor([[0, 1], [1, 0], [2, 2]])
    for shape in ((3, 7), (5, 3, 2)):
        x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
        places = index.reshape(index.shape + (1,) * (len(shape) - 2))
        torch.gather(x.to("meta"), 0, places.to("meta"))
        expected = [x[(i, *rest)] for i, rest in zip(places.flatten().tolist(), where(places), strict=True)]
        assert torch.gather(x, 0, places).flatten().tolist() == [float(value) for value in expected]


def where(places):
    """The place of each element along all dimensions but the first."""
    return [tuple(place[1:]) for place in np.ndindex(*places.shape)]
