"""More of what `torch.cuda` and tensors on it answer: files, storages, transforms, streams, memory, mixed devices."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback.kernels.cuda import device
from pullback.kernels.cuda.memory import pool_of

CUDA = torch.device("cuda:0")


def several() -> bool:
    return torch.cuda.device_count() > 1


@pytest.mark.parametrize("zipped", [True, False])
def test_files_are_loaded_where_a_map_says(zipped: bool) -> None:
    x = torch.arange(3.0, device="cuda")
    file = io.BytesIO()
    torch.save(x, file, _use_new_zipfile_serialization=zipped)
    seen = []

    def note(storage: Any, location: str) -> Any:
        seen.append((storage.device, location))
        return storage.cuda(0)

    cpu = torch.device("cpu")
    for wanted, place in ((None, CUDA), ("cpu", cpu), ({"cuda:0": "cpu"}, cpu), (lambda s, l: s, cpu),
                          (lambda s, l: None, CUDA), (note, CUDA), (CUDA, CUDA)):  # fmt: skip
        file.seek(0)
        back = torch.load(file, map_location=wanted)
        assert back.device == place and back.tolist() == [0, 1, 2]
    assert seen == [(cpu, "cuda:0")]


def test_storages_move_between_devices() -> None:
    x = torch.arange(3.0, device="cuda")
    storage = x.untyped_storage()
    assert storage.is_cuda and storage.device == CUDA and storage.cuda() is storage and storage.nbytes() == 12
    there = storage.cpu()
    assert not there.is_cuda and there.tolist() == list(x.cpu().numpy().tobytes())
    assert there.to(device="cuda").device == CUDA and "device=cuda:0" in repr(storage)
    assert x.is_shared() and x.share_memory_() is x


def test_types_name_devices() -> None:
    x = torch.ones(2)
    y = x.type("torch.cuda.DoubleTensor")
    assert y.device == CUDA and y.dtype is torch.float64 and y.type() == "torch.cuda.DoubleTensor"
    assert y.type("torch.FloatTensor").device == torch.device("cpu") and x.type(torch.cuda.HalfTensor).is_cuda
    assert isinstance(y, torch.cuda.DoubleTensor) and not isinstance(y, torch.DoubleTensor)
    assert torch.cuda.FloatTensor([1, 2]).tolist() == [1, 2] and torch.cuda.LongTensor(2, 3).device == CUDA
    assert y.new([1.0]).device == CUDA and y.new(2).dtype is torch.float64


def test_transforms_know_the_device() -> None:
    x = torch.arange(1.0, 4.0, device="cuda")
    seen = []

    def cubes(a: Any) -> Any:
        seen.append((a.device, torch.ones_like(a).device, a.new_zeros(2).device, a.get_device()))
        return (a**3).sum()

    assert torch.func.hessian(cubes)(x).tolist() == [[6, 0, 0], [0, 12, 0], [0, 0, 18]]
    assert torch.vmap(torch.func.grad(cubes))(torch.stack([x, x])).device == CUDA
    assert set(seen) == {(CUDA, CUDA, CUDA, 0)}
    y = torch.tensor([0.3, 1.2], dtype=torch.float64, device="cuda", requires_grad=True)
    for quick in (False, True):
        assert torch.autograd.gradcheck(torch.sin, y, fast_mode=quick, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda t: t.exp() * t, y)


def test_the_state_of_an_optimizer_follows_its_parameters() -> None:
    p = nn.Parameter(torch.ones(2, device="cuda"))
    optimizer = torch.optim.Adam([p])
    p.grad = torch.ones_like(p)
    optimizer.step()
    q = nn.Parameter(torch.ones(2))
    other = torch.optim.Adam([q])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[q]["exp_avg"].device == torch.device("cpu")
    q.grad = torch.ones_like(q)
    other.step()
    optimizer.load_state_dict(other.state_dict())
    assert optimizer.state[p]["exp_avg"].device == CUDA
    optimizer.step()
    with pytest.raises(NotImplementedError, match=r"use Adam or AdamW, or capture .* call step\(\) after each replay"):
        torch.optim.NAdam([p], capturable=True).step()
    graphs = __import__("pullback.cuda.graphs", fromlist=["capturing"])
    graphs.capturing.append(None)
    try:
        with pytest.raises(RuntimeError, match="capture of step\\(\\) for an instance of Adam but param_groups' capt"):
            optimizer.step()
    finally:
        graphs.capturing.clear()


def test_compiled_functions_of_the_device_run_as_they_are() -> None:
    twice = torch.compile(lambda a: a * 2 + 1)
    assert twice(torch.ones(2, device="cuda")).tolist() == [3, 3] and twice(torch.ones(2)).tolist() == [3, 3]


def test_more_operands_on_different_devices_are_refused_in_torchs_words() -> None:
    x = torch.ones(2, 3, device="cuda")
    image, kernel = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    for text, call in (
        ("invalid gradient at index 0 - expected device cuda:0 but got cpu",
         lambda: x.clone().requires_grad_().exp().backward(torch.ones(2, 3))),
        ("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
         lambda: torch.add(x, x, out=torch.empty(2, 3))),
        ("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
         lambda: torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=torch.empty(2, 2, device="cuda"))),
        ("expected self and mask to be on the same device, but got mask on cpu and self on cuda:0",
         lambda: x.masked_fill(torch.ones(2, 3) > 0, 1.0)),
        ("Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should "
         "be a MKLDNN tensor and weight is a dense tensor", lambda: nn.functional.conv2d(image, kernel.cuda())),
        ("Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
         lambda: nn.functional.conv2d(image.cuda(), kernel)),
    ):  # fmt: skip
        with pytest.raises(RuntimeError) as raised:
            call()
        assert str(raised.value) == text
    y = torch.tensor(2.0, device="cuda", requires_grad=True)
    (y * 3).backward(torch.tensor(1.0))  # without dimensions it is moved
    assert y.grad.item() == 3


# ------------------------------------------------------------------ memory and streams


def test_memory_that_another_stream_uses_is_kept_until_it_has_done_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    there, done = device.required(), []
    if not hasattr(there, "faults"):
        pytest.skip("a real device is done when it is done")
    monkeypatch.setattr(there, "has_happened", lambda index, event: bool(done))
    x = torch.ones(300, device="cuda")
    place = x.data_ptr()
    x[10:].record_stream(torch.cuda.Stream())
    del x
    others = [torch.ones(300, device="cuda") for _ in range(3)]
    torch.cuda.memory_stats()
    others += [torch.ones(300, device="cuda") for _ in range(3)]
    assert place not in [other.data_ptr() for other in others] and len(pool_of(0).lent) == 1
    done.append(True)
    torch.cuda.memory_stats()
    assert not pool_of(0).lent
    del others
    with pytest.raises(NotImplementedError, match="which has no streams"):
        torch.ones(2).record_stream(torch.cuda.Stream())


def test_memory_is_told_of_in_several_ways() -> None:
    x = torch.ones(1000, device="cuda")
    flat, deep = torch.cuda.memory_stats(), torch.cuda.memory_stats_as_nested_dict()
    assert deep["allocated_bytes"]["all"]["current"] == flat["allocated_bytes.all.current"] > 0
    segments = [s for s in torch.cuda.memory_snapshot() if s["device"] == 0]
    assert sum(s["total_size"] for s in segments) == torch.cuda.memory_reserved()
    assert sum(s["active_size"] for s in segments) == torch.cuda.memory_allocated()
    assert all(sum(b["size"] for b in s["blocks"]) == s["total_size"] for s in segments)
    owner = [b for s in segments for b in s["blocks"] if b["address"] == x.data_ptr()]
    assert [b["state"] for b in owner] == ["active_allocated"]
    before = torch.cuda.memory_allocated()
    place = torch.cuda.caching_allocator_alloc(5000)
    assert torch.cuda.memory_allocated() - before == 5120
    torch.cuda.caching_allocator_delete(place)
    assert torch.cuda.memory_allocated() == before
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        torch.cuda.caching_allocator_delete(place)


def test_the_accelerator_is_the_device() -> None:
    assert torch.accelerator.is_available() and torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.device_count() == torch.cuda.device_count()
    assert torch.accelerator.current_device_index() == 0
    stream = torch.cuda.Stream()
    torch.accelerator.set_stream(stream)
    try:
        assert torch.accelerator.current_stream() == stream == torch.cuda.current_stream()
    finally:
        torch.cuda.set_stream(torch.cuda.default_stream())
    torch.accelerator.synchronize()
    low, high = torch.cuda.Stream.priority_range()
    assert high <= low == 0 and torch.cuda.Stream(priority=high).priority == high
    assert torch.cuda.default_generators[0].device == CUDA and torch.cuda.get_gencode_flags()
    number = torch.cuda.nvtx.range_start("step")
    torch.cuda.nvtx.range_end(number)
    if several():
        with torch.accelerator.device_index(1):
            assert torch.accelerator.current_device_index() == 1


def test_anomaly_mode_and_hooks_work_on_the_device() -> None:
    x = torch.tensor([-1.0], device="cuda", requires_grad=True)
    with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"), torch.autograd.set_detect_anomaly(True):
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
            x.sqrt().sum().backward()
    seen = []
    model = nn.Linear(1, 1, device="cuda")
    model.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0].device, go[0].device)))
    model.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.device))
    model(torch.ones(1, 1, device="cuda", requires_grad=True)).sum().backward()
    assert sorted(map(str, seen)) == sorted(map(str, [(CUDA, CUDA), CUDA]))


def test_what_save_on_cpu_keeps_is_on_the_host() -> None:
    x = torch.ones(300, 300, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = x.exp()
        node, place = y.grad_fn, y.data_ptr()
        y = y.sum()
    assert torch.cuda.memory_allocated() - before < 300 * 300 * 4  # the result of exp is not kept there
    del node, place
    y.backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.exp(np.ones((300, 300))), 1e-6)


def test_factories_make_tensors_in_pinned_memory() -> None:
    x = torch.ones(2)
    made = [
        torch.empty(3, pin_memory=True), torch.zeros(3, pin_memory=True), torch.full((3,), 2.0, pin_memory=True),
        torch.tensor([1.0], pin_memory=True), torch.rand(3, pin_memory=True), torch.randn(3, pin_memory=True),
        torch.randint(3, (2,), pin_memory=True), torch.empty_like(x, pin_memory=True), x.new_ones(3, pin_memory=True),
        torch.ones_like(x, pin_memory=True), torch.empty_strided((2, 2), (1, 2), pin_memory=True),
        x.new_tensor([1], pin_memory=True),
    ]  # fmt: skip
    assert all(t.is_pinned() for t in made) and made[2].tolist() == [2, 2, 2] and made[-2].stride() == (1, 2)
    assert not torch.zeros(3).is_pinned()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.zeros(3, device="cuda", pin_memory=True)


# ------------------------------------------------------------------ the profiler


def test_the_profiler_measures_the_device_too() -> None:
    x = torch.ones(40, 40, device="cuda", requires_grad=True)
    with torch.autograd.profiler.profile(use_device="cuda", profile_memory=True) as prof:
        (x @ x).exp().sum().backward()
    averages = {event.key: event for event in prof.key_averages()}
    assert {"aten::exp", "aten::sum", "ExpBackward0"} <= averages.keys()
    for event in prof.function_events:
        assert 0 <= event.self_device_time_total <= event.device_time_total == event.cuda_time_total
    exp = averages["aten::exp"]
    assert exp.device_time > 0 and exp.self_device_memory_usage == 6400 and exp.self_cpu_memory_usage == 0
    lines = prof.key_averages().table(sort_by="self_cuda_time_total").splitlines()
    for title in ("Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg", "CUDA Mem", "Self CUDA Mem"):
        assert title in lines[1]
    assert lines[-1].startswith("Self CUDA time total: ")
    with pytest.warns(FutureWarning, match="The attribute `use_cuda` will be deprecated soon"):
        prof = torch.autograd.profiler.profile(use_cuda=True)
    assert prof.use_device == "cuda"
    activities = torch.profiler.ProfilerActivity
    assert torch.profiler.supported_activities() == {activities.CPU, activities.CUDA}
    with torch.profiler.profile(activities=[activities.CPU, activities.CUDA]) as measured:
        x.detach() * 2
    assert "Self CUDA" in measured.key_averages().table()
    with torch.profiler.profile(activities=[activities.CPU]) as measured:
        x.detach() * 2
    assert "CUDA" not in measured.key_averages().table()
