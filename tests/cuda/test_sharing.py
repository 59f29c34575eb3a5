"""Memory of the device shared with other libraries: DLPack, and `__cuda_array_interface__`."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import pytest

import pullback as torch
from pullback.kernels.cuda import device, dlpack


class Other:
    """An array of another library: it knows nothing but the protocol."""

    def __init__(self, tensor: Any, refuses: tuple[str, ...] = ()) -> None:
        self.tensor, self.refuses, self.asked = tensor, refuses, {}

    def __dlpack_device__(self) -> tuple[int, int]:
        return tuple(map(int, self.tensor.__dlpack_device__()))  # type: ignore[return-value]

    def __dlpack__(self, **options: Any) -> Any:
        if refused := [name for name in self.refuses if name in options]:
            raise TypeError(f"unexpected keyword argument {refused[0]}")
        self.asked = options
        return self.tensor.__dlpack__(**options)


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex64])
@pytest.mark.parametrize("refuses", [(), ("max_version", "copy")])
def test_a_capsule_tells_where_elements_lie(dtype: Any, refuses: tuple[str, ...]) -> None:
    x = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype).cuda().t()[1:]
    other = Other(x, refuses)
    y = torch.from_dlpack(other)
    assert y.device == x.device and y.dtype is dtype and y.shape == x.shape and y.stride() == x.stride()
    assert y.data_ptr() == x.data_ptr() and y.cpu().tolist() == x.cpu().tolist()
    assert other.asked["stream"] == 1 and ("max_version" in other.asked) is not bool(refuses)
    again = torch.from_dlpack(Other(x, refuses), copy=True)
    assert again.data_ptr() != x.data_ptr() and again.cpu().tolist() == x.cpu().tolist()


def test_memory_lives_as_long_as_somebody_uses_it() -> None:
    before, allocated = len(dlpack.given), torch.cuda.memory_allocated()
    x = torch.arange(1000.0, device="cuda")
    y = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    y[1:3] = 7
    assert x[:4].tolist() == [0, 7, 7, 3] and len(dlpack.given) == before + 1
    del x
    gc.collect()
    assert y.sum().item() == 499500 - 3 + 14 and torch.cuda.memory_allocated() > allocated
    view = y[10:]
    del y
    assert view[0].item() == 10
    del view
    gc.collect()
    assert len(dlpack.given) == before and torch.cuda.memory_allocated() == allocated
    capsule = torch.ones(3, device="cuda").__dlpack__()  # which nobody takes
    assert "dltensor" in repr(capsule) and len(dlpack.given) == before + 1
    del capsule
    assert len(dlpack.given) == before


def test_a_capsule_is_taken_once_and_what_cannot_be_shared_is_refused() -> None:
    x = torch.ones(2, device="cuda")
    capsule = x.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule) and torch.from_dlpack(capsule).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        torch.from_dlpack(capsule)
    with pytest.raises(BufferError, match="that require gradient"):
        torch.ones(2, device="cuda", requires_grad=True).__dlpack__()
    with pytest.raises(AssertionError, match="device and copy kwargs not supported"):
        torch.from_dlpack(x.__dlpack__(), copy=True)
    with pytest.raises(ValueError, match=r"without copying\. Set copy=None or copy=True"):
        torch.from_dlpack(Other(x), device="cpu", copy=False)
    assert torch.from_dlpack(Other(x), device="cpu").device == torch.device("cpu")
    assert torch.from_dlpack(torch.ones(2).numpy(), device="cuda").device == x.device
    if torch.cuda.device_count() > 1:
        with torch.cuda.device(1), pytest.raises(BufferError, match="on a different CUDA device index"):
            x.__dlpack__(stream=1)


def test_the_stream_of_the_taker_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[tuple[int, int]] = []
    there, marks = device.required(), {}
    record, wait = there.record, there.stream_waits

    def recorded(index: int, event: int, stream: int) -> None:
        marks[event] = stream
        record(index, event, stream)

    def waited(index: int, stream: int, event: int) -> None:
        waits.append((marks[event], stream))
        wait(index, stream, event)

    monkeypatch.setattr(there, "record", recorded)
    monkeypatch.setattr(there, "stream_waits", waited)
    x, side = torch.ones(2, device="cuda"), torch.cuda.Stream()
    for stream in (-1, 1, None):
        x.__dlpack__(stream=stream)
    assert waits == []
    x.__dlpack__(stream=side.cuda_stream)
    with torch.cuda.stream(side):
        x.__dlpack__(stream=None)
        x.__dlpack__(stream=side.cuda_stream)
        other = Other(x)
        torch.from_dlpack(other)
        assert other.asked["stream"] == side.cuda_stream
    assert waits == [(0, side.cuda_stream), (side.cuda_stream, 0)]
    for stream, error in ((2, BufferError), (0, AssertionError), (1.5, TypeError)):
        with pytest.raises(error):
            x.__dlpack__(stream=stream)


def test_arrays_with_the_interface_of_cuda_become_tensors() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    for source in (x, x.t(), x[:, 1]):
        other = SimpleNamespace(__cuda_array_interface__=source.__cuda_array_interface__, kept=source)
        y = torch.as_tensor(other, device="cuda")
        assert y.data_ptr() == source.data_ptr() and y.stride() == source.stride() and y.tolist() == source.tolist()
        assert torch.as_tensor(other).is_cuda and torch.as_tensor(other, dtype=torch.int64).dtype is torch.int64
        assert torch.as_tensor(other, device="cpu").tolist() == source.tolist()
