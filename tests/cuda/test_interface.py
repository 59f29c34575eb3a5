"""Tensors, modules and optimizers on the CUDA device, and what `cuda` says of it."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback.kernels import jit
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.device import required


def on(place: str = "cuda:0") -> Any:
    return torch.device(place)


def test_a_tensor_says_that_it_is_on_the_device() -> None:
    x = torch.tensor([1.0, 2.0], device="cuda")
    assert x.device == on() and x.is_cuda and not x.is_cpu and x.get_device() == 0
    assert repr(x) == "tensor([1., 2.], device='cuda:0')"
    assert repr(torch.tensor([], device="cuda")) == "tensor([], device='cuda:0')"
    assert repr(torch.ones((), device="cuda", requires_grad=True)) == "tensor(1., device='cuda:0', requires_grad=True)"
    assert x.type() == "torch.cuda.FloatTensor" and x.data_ptr() > 0
    assert f"{torch.tensor(2.5, device='cuda'):.2f}" == "2.50"
    assert type(x) is not torch.Tensor and isinstance(x, torch.Tensor) and type(x).__name__ == "Tensor"


def test_tensors_move_there_and_back_with_their_values_strides_and_gradients() -> None:
    x = torch.arange(12.0).reshape(3, 4).t().requires_grad_()
    y = x.cuda()
    assert y.stride() == x.stride() and y.cuda() is y and y.to("cuda") is y and y.to("cuda:0") is y
    assert y.to(x.device).tolist() == x.tolist() and y.cpu().device == torch.device("cpu")
    (y * 2).sum().backward()
    assert x.grad.device == torch.device("cpu") and (x.grad == 2).all()
    half = x.detach().to("cuda", torch.float64)
    assert half.dtype is torch.float64 and half.device == on()
    assert torch.ones(2).to(half).dtype is torch.float64
    assert torch.ones(3, device="cuda").to("cpu", non_blocking=True).tolist() == [1, 1, 1]


def test_factories_make_tensors_on_the_device() -> None:
    with torch.device("cuda"):
        assert torch.zeros(2).device == on()
    made = [
        torch.zeros(2, device="cuda"), torch.ones(2, device="cuda"), torch.empty(2, device="cuda"),
        torch.full((2,), 3.0, device="cuda"), torch.arange(3, device="cuda"), torch.linspace(0, 1, 3, device="cuda"),
        torch.eye(2, device="cuda"), torch.rand(2, device="cuda"), torch.randn(2, device="cuda"),
        torch.randint(3, (2,), device="cuda"), torch.randperm(3, device="cuda"), torch.tensor(1, device="cuda"),
        torch.as_tensor(np.ones(2), device="cuda"), torch.hann_window(3, device="cuda"), torch.zeros(2, device=on()),
        torch.empty_strided((2, 2), (1, 2), device="cuda"), torch.tril_indices(2, 2, device="cuda"),
    ]  # fmt: skip
    assert all(tensor.device == on() for tensor in made)
    x = made[0]
    like = [
        torch.zeros_like(x),
        torch.rand_like(x),
        x.new_ones(2),
        x.new_tensor([1.0]),
        x.clone(),
        torch.full_like(x, 2),
    ]
    assert all(tensor.device == on() for tensor in like)


@pytest.mark.skipif(not jit.available(), reason="without a compiler no kernel fills it")
@pytest.mark.parametrize("make", [
    lambda: torch.empty(1000, device="cuda"),
    lambda: torch.empty(2, 5, 10, 10, device="cuda", memory_format=torch.channels_last),
    lambda: torch.empty_strided((10, 100), (1, 10), dtype=torch.bfloat16, device="cuda"),
    lambda: torch.full((40, 25), -2.5, device="cuda"),
    lambda: torch.full((1000,), 300, dtype=torch.int16, device="cuda"),
    lambda: torch.ones(2, device="cuda").new_full((1000,), 1e-3),
])  # fmt: skip
def test_new_memory_is_not_copied_from_the_host(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, there, sizes = make(), required(), []
    upload = there.upload
    monkeypatch.setattr(there, "upload", lambda *args: (sizes.append(args[2].nbytes), upload(*args))[1])
    made = make()
    assert sum(sizes) <= 16
    assert (made.shape, made.stride(), made.dtype) == (wanted.shape, wanted.stride(), wanted.dtype)


def test_arrays_of_one_number_have_that_number() -> None:
    for value, dtype in ((2.5, None), (-7, None), (True, None), (1 + 2j, None), (300, torch.int16), (3.7, torch.half)):
        host, there = (torch.full((3, 4), value, dtype=dtype, device=place) for place in ("cpu", "cuda"))
        assert there.dtype is host.dtype and torch.equal(there.cpu(), host)
    with pytest.raises(RuntimeError):
        torch.full((2, 3), 300, dtype=torch.uint8, device="cuda")


def test_views_share_memory_on_the_device() -> None:
    x = torch.zeros(3, 4, device="cuda")
    x[1:, ::2] += 1
    x.t()[0] = 5
    x.view(-1)[-1:].fill_(7)
    assert x.tolist() == [[5, 0, 0, 0], [5, 0, 1, 0], [5, 0, 1, 7]]
    y = x.expand(2, 3, 4)
    assert y.data_ptr() == x.data_ptr() and x.data_ptr() + 16 == x[1].data_ptr()
    assert x[1].storage_offset() == 4 and y.stride() == (0, 4, 1)


def test_operands_on_different_devices_are_refused_in_torchs_words() -> None:
    x, y = torch.ones(2, device="cuda"), torch.ones(2)
    text = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    for call in (lambda: x + y, lambda: y + x, lambda: x.add_(y), lambda: torch.where(x > 0, x, y)):
        with pytest.raises(RuntimeError) as raised:
            call()
        assert str(raised.value) == text
    m, i = torch.ones(2, 2), torch.tensor([0, 1])
    for name, its, others, method, call in (
        ("mat2", "cpu", "cuda:0", "mm", lambda: m.cuda() @ m),
        ("mat2", "cuda:0", "cpu", "mm", lambda: m @ m.cuda()),
        ("tensors", "cpu", "cuda:0", "cat", lambda: torch.cat([x, y])),
        ("index", "cpu", "cuda:0", "gather", lambda: m.cuda().gather(0, i[None])),
        ("index", "cpu", "cuda:0", "_index_select", lambda: nn.functional.embedding(i, m.cuda())),
    ):
        with pytest.raises(RuntimeError) as raised:
            call()
        assert str(raised.value) == (
            f"Expected all tensors to be on the same device, but got {name} is on {its}, different from other tensors "
            f"on {others} (when checking argument in method wrapper_CUDA_{method})"
        )
    with pytest.raises(RuntimeError, match=r"indices should be either on cpu or .* the indexed tensor \(cpu\)"):
        m[i.cuda()]
    assert m.cuda()[i].device == on()
    assert (x + torch.tensor(2.0)).tolist() == [3, 3] and (torch.tensor(2.0) * x).device == on()
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(2, device="cuda:9")


def test_numbers_are_read_from_the_device() -> None:
    x = torch.tensor([3], device="cuda")
    assert x.item() == 3 and int(x) == 3 and float(x) == 3.0 and bool(x) and [0, 1, 2, 3, 4][x[0]] == 3
    assert x.tolist() == [3] and (x == 3).all() and torch.equal(x, x.clone()) and torch.allclose(x * 1.0, x * 1.0)
    assert x.detach().cpu().numpy().tolist() == [3] and x.numpy(force=True).tolist() == [3]


def test_a_module_trains_on_the_device_as_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # else convolutions round as torch's do
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Linear(4 * 36, 5))
    x, target = torch.randn(6, 1, 8, 8), torch.randint(5, (6,))
    losses = []
    for place in ("cpu", "cuda"):
        own = copy.deepcopy(model).to(place)
        optimizer = torch.optim.Adam(own.parameters(), lr=0.01)
        found = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(own(x.to(place)), target.to(place))
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        assert all(p.device.type == place and p.grad.device.type == place for p in own.parameters())
        assert all(b.device.type == place for b in own.buffers())
        assert all(type(p) is not torch.Tensor and isinstance(p, nn.Parameter) for p in own.parameters())
        losses.append(found)
    np.testing.assert_allclose(losses[1], losses[0], 1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Adadelta", "Rprop", "LBFGS"])
def test_an_optimizer_steps_on_the_device_as_on_the_host(name: str) -> None:
    ends = []
    for place in ("cpu", "cuda"):
        p = nn.Parameter(torch.tensor([1.0, -2.0, 3.0], device=place))
        optimizer = getattr(torch.optim, name)([p], lr=0.1)

        def closure(optimizer: Any = optimizer, p: Any = p) -> Any:
            optimizer.zero_grad()
            loss = (p**2).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        state = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor) and v.ndim]
        assert all(v.device.type == place for v in state)
        ends.append(p.detach().cpu().numpy())
    np.testing.assert_allclose(ends[1], ends[0], 1e-5)


@pytest.mark.parametrize("layer", [
    lambda: nn.LSTM(3, 4), lambda: nn.GRU(3, 4, bidirectional=True), lambda: nn.LayerNorm(3),
    lambda: nn.GroupNorm(1, 5),
    lambda: nn.TransformerEncoderLayer(3, 1, 8, dropout=0.0), lambda: nn.MultiheadAttention(3, 1),
])  # fmt: skip
def test_a_layer_computes_on_the_device_what_it_computes_on_the_host(layer: Any) -> None:
    torch.manual_seed(1)
    module, x = layer(), torch.randn(2, 5, 3)
    found = []
    for place in ("cpu", "cuda"):
        own, given = copy.deepcopy(module).to(place), x.clone().to(place).requires_grad_()
        out = own(given, given, given) if isinstance(own, nn.MultiheadAttention) else own(given)
        out = out[0] if isinstance(out, tuple) else out
        out.sum().backward()
        assert out.device.type == given.grad.device.type == place
        found.append(
            [out.detach().cpu().numpy(), given.grad.cpu().numpy(), *[p.grad.cpu().numpy() for p in own.parameters()]]
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, 1e-4, 1e-5)


def test_tensors_of_the_device_are_saved_and_loaded() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    model = nn.Linear(2, 2, device="cuda")
    file = io.BytesIO()
    torch.save({"x": x.t(), "model": model.state_dict()}, file)
    file.seek(0)
    back = torch.load(file)
    assert back["x"].device == on() and back["x"].tolist() == x.t().tolist() and back["x"].stride() == (1, 3)
    assert back["model"]["weight"].device == on()
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].device == torch.device("cpu")
    host = io.BytesIO()
    torch.save(torch.ones(2), host)
    host.seek(0)
    assert torch.load(host, map_location="cuda").device == on()
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert again.device == on() and again.tolist() == x.tolist()
    parameter = copy.deepcopy(model).weight
    assert isinstance(parameter, nn.Parameter) and parameter.device == on() and parameter.requires_grad


def test_autograd_works_on_the_device() -> None:
    x = torch.tensor([0.5, 1.5], device="cuda", requires_grad=True)
    y = (x.exp() * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    host = x.detach().cpu().numpy()
    np.testing.assert_allclose(g.detach().cpu().numpy(), np.exp(host) * (1 + host), 1e-6)
    np.testing.assert_allclose(h.cpu().numpy(), np.exp(host) * (2 + host), 1e-6)
    jacobian = torch.func.jacrev(lambda t: t * t)(x.detach())
    assert jacobian.device == on() and torch.func.vmap(lambda t: t * 2)(x.detach()).device == on()
    _, tangent = torch.func.jvp(torch.sin, (x.detach(),), (torch.ones(2, device="cuda"),))
    np.testing.assert_allclose(tangent.cpu().numpy(), np.cos(host), 1e-6)
    x.register_hook(lambda grad: grad * 2)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6, 6] and x.grad.device == on()


def test_custom_functions_and_checkpoints_and_saved_tensor_hooks_work_on_the_device() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x, x + 1

        @staticmethod
        def backward(ctx: Any, grad: Any, unused: Any) -> Any:
            assert unused.device == on() and not unused.any()
            return 2 * grad * ctx.saved_tensors[0]

    x = torch.tensor([3.0], device="cuda", requires_grad=True)
    Square.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [6]
    x.grad = None
    torch.utils.checkpoint.checkpoint(lambda t: (t * t).exp(), x, use_reentrant=False).sum().backward()
    np.testing.assert_allclose(x.grad.item(), 6 * np.exp(9), 1e-6)
    x.grad = None
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    assert y.grad_fn._raw_saved_self is not None
    y.sum().backward()
    assert x.grad.tolist() == [6] and x.grad.device == on()
    with pytest.raises(RuntimeError, match="a gradient with device type 'cpu' to a tensor with device type 'cuda'"):
        x.grad = torch.ones(1)


def test_autocast_and_the_gradient_scaler_work_on_the_device() -> None:
    x, w = torch.randn(4, 4, device="cuda"), torch.randn(4, 4, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = x @ w
        assert y.dtype is torch.bfloat16 and (torch.ones(4, 4) @ torch.ones(4, 4)).dtype is torch.float32
    assert (x @ w).dtype is torch.float32
    with torch.autocast("cuda"):
        assert (x @ w).dtype is torch.float16
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
    assert scaler.is_enabled()
    optimizer = torch.optim.SGD([w], lr=0.1)
    scaler.scale((x @ w).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_cuda_says_what_devices_there_are() -> None:
    assert torch.cuda.is_available() and torch.cuda.device_count() >= 1 and torch.cuda.current_device() == 0
    assert torch.cuda.get_device_name() and torch.cuda.get_device_properties(0).total_memory > 0
    assert torch.cuda.get_device_capability() >= (7, 0)
    if torch.cuda.device_count() > 1:
        with torch.cuda.device(1):
            assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device == on("cuda:1")
        x, y = torch.ones(2, device="cuda:1"), torch.ones(2, device="cuda:0")
        with pytest.raises(RuntimeError, match="found at least two devices, cuda:1 and cuda:0!"):
            x + y
        assert (x + y.to("cuda:1")).device == on("cuda:1") and x.cuda(0).device == on()
    assert torch.cuda.current_device() == 0


def test_streams_and_events_measure_time() -> None:
    stream, begin, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        x = torch.ones(10, device="cuda") * 2
        end.record()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != stream
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    assert begin.query() and end.query() and stream.query() and begin.elapsed_time(end) >= 0 and x.sum().item() == 20
    with pytest.raises(ValueError, match="enable_timing=True"):
        begin.elapsed_time(torch.cuda.Event())


def test_what_goes_through_the_host_is_counted_and_can_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(3, 3, device="cuda")
    torch.cuda.reset_fallbacks()
    torch.linalg.svdvals(x)
    assert sum(torch.cuda.fallbacks().values()) >= 1
    monkeypatch.setenv("PULLBACK_CUDA_FALLBACK", "error")
    with pytest.raises(NotImplementedError, match="PULLBACK_CUDA_FALLBACK=error"):
        torch.linalg.svdvals(x)


def test_memory_is_counted_as_torch_counts_it() -> None:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    x = torch.empty(100, device="cuda")
    assert torch.cuda.memory_allocated() - before == 512
    y = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_reserved() - reserved in (20 << 20, 22 << 20)
    view = y[10:]
    del y
    assert torch.cuda.memory_allocated() - before == 512 + (3 << 20)
    del view
    assert torch.cuda.memory_allocated() - before == 512 and torch.cuda.max_memory_allocated() >= before + (3 << 20)
    del x
    assert torch.cuda.memory_allocated() == before
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


def test_a_full_device_says_so_and_can_be_used_on() -> None:
    torch.cuda.set_per_process_memory_fraction(0.25)
    total = torch.cuda.get_device_properties(0).total_memory
    try:
        with pytest.raises(
            torch.cuda.OutOfMemoryError, match=r"^CUDA out of memory. Tried to allocate .* GPU 0 has a total"
        ):
            torch.empty(total // 2, dtype=torch.uint8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert issubclass(torch.cuda.OutOfMemoryError, RuntimeError) and torch.ones(2, device="cuda").sum().item() == 2


def test_the_array_behind_is_an_array_of_the_device() -> None:
    assert type(torch.ones(2, device="cuda")._array) is DeviceArray


def test_pinned_memory_is_copied_from_and_kept_for_the_next_tensor() -> None:
    x = torch.arange(6.0).reshape(2, 3).t()
    assert not x.is_pinned()
    y = x.pin_memory()
    assert y.is_pinned() and y[1:].is_pinned() and y.tolist() == x.tolist() and y.stride() == x.stride()
    assert y.pin_memory() is y and y.to("cuda", non_blocking=True).tolist() == x.tolist()
    place = y.data_ptr()
    del y
    assert torch.ones(100).pin_memory().data_ptr() == place
    with pytest.raises(RuntimeError, match=r"cannot pin 'CudaFloatType' only dense CPU tensors can be pinned"):
        torch.ones(2, device="cuda").pin_memory()


def test_a_loader_pins_its_batches() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(6.0), torch.arange(6))
    for x, y in torch.utils.data.DataLoader(data, 2, pin_memory=True):
        assert x.is_pinned() and y.is_pinned() and x.tolist() == y.tolist()
    batches = torch.utils.data.DataLoader([{"a": torch.ones(1), "b": "text"}], None, pin_memory=True)
    for batch in batches:
        assert batch["a"].is_pinned() and batch["b"] == "text"


def test_other_libraries_are_told_where_elements_lie() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    told = x.__cuda_array_interface__
    assert told == {"typestr": "<f4", "shape": (2, 3), "strides": None, "data": (x.data_ptr(), False), "version": 2}
    assert x.t().__cuda_array_interface__["strides"] == (4, 12)
    with pytest.raises(RuntimeError, match="on Variable that requires grad"):
        x.requires_grad_().__cuda_array_interface__
    with pytest.raises(TypeError, match="bfloat16 has no name"):
        torch.ones(2, dtype=torch.bfloat16, device="cuda").__cuda_array_interface__


def test_parameters_stay_the_same_when_a_module_moves() -> None:
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3), "c": nn.BatchNorm1d(3)})
    model["b"].weight = model["a"].weight
    held = model["a"].weight
    held.grad = torch.ones(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    start = held.tolist()
    for place in ("cuda", "cpu", "cuda"):
        assert model.to(place) is model
        assert model["a"].weight is model["b"].weight is held is optimizer.param_groups[0]["params"][0]
        assert held.device.type == held.grad.device.type == place and isinstance(held, nn.Parameter)
        assert type(held) is type(nn.Parameter(torch.ones(1, device=place))) and held.tolist() == start
        assert all(b.device.type == place for b in model.buffers())
    optimizer.step()
    assert held.tolist() == (torch.tensor(start) - 1).tolist() and held.device == on()


def test_data_may_be_that_of_another_device() -> None:
    x = torch.ones(2, requires_grad=True)
    x.data = torch.full((3,), 2.0, device="cuda")
    assert x.device == on() and x.shape == (3,) and x.requires_grad and x.is_leaf and not isinstance(x, nn.Parameter)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2] and x.grad.device == on()
    x.data = torch.ones(3)
    assert type(x) is torch.Tensor and x.device == torch.device("cpu")
    assert torch._has_compatible_shallow_copy_type(x, torch.ones(2, device="cuda"))
    for other in (torch.ones(2, device="meta"), torch.ones(2, 2).to_sparse()):
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            x.data = other
