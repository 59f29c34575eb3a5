"""Streams: which one work goes to, forwards and backwards, and that nobody reads what is not there yet.

On a device that is late (deferred.py) a wait that is missing gives wrong numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.kernels import jit
from pullback.kernels.cuda import device
from pullback.kernels.cuda.memory import pools

from .deferred import Deferred, instead

pytestmark = pytest.mark.skipif(
    os.environ.get("PULLBACK_CUDA") == "1" or not jit.available(), reason="needs the simulated device"
)


@pytest.fixture(autouse=True, scope="module")
def loaded_late() -> Iterator[Deferred]:
    """A device that is late."""
    with instead(Deferred(2)) as there:
        yield there


@pytest.fixture
def late(loaded_late: Deferred) -> Iterator[Deferred]:
    """The same, with nothing left of the test before, and no stream left behind by this one."""
    loaded_late.synchronize(0)
    loaded_late.log.clear()
    loaded_late.synchronizations.clear()
    yield loaded_late
    assert device.streams.current == {} and device.aside[0] == 0


def test_the_device_of_these_tests_is_late(late: Deferred) -> None:
    x = torch.arange(4.0, device="cuda")
    late.synchronize(0)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = x + 1
    wrong = y.cpu()  # from the default stream, which waits for nothing
    assert wrong.tolist() != [1, 2, 3, 4] and not side.query()
    torch.cuda.current_stream().wait_stream(side)
    assert y.cpu().tolist() == [1, 2, 3, 4] and side.query()


def test_backward_runs_on_the_stream_of_the_forward(late: Deferred) -> None:
    x = torch.arange(4.0, device="cuda", requires_grad=True)
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    for stream in (first, second):
        stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(first):
        a = x.exp()
    with torch.cuda.stream(second):
        b = x * 3
    for stream in (first, second):
        torch.cuda.current_stream().wait_stream(stream)
    loss = (a * b).sum()
    late.log.clear()
    loss.backward()
    ran = late.streams_launched()
    assert set(ran) == {0, first.cuda_stream, second.cuda_stream} and ran[0] == 0
    host = np.arange(4.0)
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.exp(host) * 3 * (host + 1), 1e-6)


def test_nothing_waits_for_streams_where_there_is_only_one(late: Deferred) -> None:
    x = torch.ones(4, device="cuda", requires_grad=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        pass
    loss = (x * x).sum()
    late.log.clear()
    loss.backward()
    assert {entry[0] for entry in late.log} <= {"launch", "fill", "copy"}
    assert not late.synchronizations


def test_gradients_of_a_leaf_used_on_two_streams_are_summed_once_both_are_there(late: Deferred) -> None:
    for order in ((0, 1), (1, 0)):
        w = torch.ones(4, device="cuda", requires_grad=True)
        x = torch.arange(4.0, device="cuda")
        lanes = [torch.cuda.Stream(), torch.cuda.Stream()]
        parts: list[Any] = [None, None]
        for lane in lanes:
            lane.wait_stream(torch.cuda.current_stream())
        for nr in order:
            with torch.cuda.stream(lanes[nr]):
                parts[nr] = (w * x * (nr + 1)).exp()
        for lane in lanes:
            torch.cuda.current_stream().wait_stream(lane)
        for _ in range(2):  # the second time it is added to the first
            (parts[0].sum() + parts[1].sum()).backward(retain_graph=True)
        host = np.arange(4.0)
        expected = host * np.exp(host) + 2 * host * np.exp(2 * host)
        np.testing.assert_allclose(w.grad.cpu().numpy(), 2 * expected, 1e-6)


def test_a_gradient_is_summed_on_the_stream_of_the_node_it_is_for(late: Deferred) -> None:
    x = torch.arange(3.0, device="cuda", requires_grad=True)
    inner, one, two = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Stream()
    inner.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(inner):
        y = x * 2
    parts = []
    for lane in (one, two):
        lane.wait_stream(inner)
        with torch.cuda.stream(lane):
            parts.append(y * 5)
        torch.cuda.current_stream().wait_stream(lane)
    loss = (parts[0] + parts[1]).sum()
    late.log.clear()
    loss.backward()
    ran = late.streams_launched()
    # two products beside each other, their sum and the product before them on the stream of that one
    assert ran.count(one.cuda_stream) == ran.count(two.cuda_stream) == 1 and ran.count(inner.cuda_stream) >= 2
    assert x.grad.tolist() == [20, 20, 20]


def test_gradients_can_be_used_on_the_stream_that_backward_was_called_on(late: Deferred) -> None:
    x = torch.arange(4.0, device="cuda", requires_grad=True)
    caller, other = torch.cuda.Stream(), torch.cuda.Stream()
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        loss = (x * x).sum()
    caller.wait_stream(other)
    with torch.cuda.stream(caller):
        loss.backward()
        twice = x.grad * 2
        (again,) = torch.autograd.grad((x * 3).sum(), x)
        assert torch.cuda.current_stream() == caller
        assert twice.tolist() == [0, 4, 8, 12] and again.tolist() == [3, 3, 3, 3]
    assert not late.synchronizations.count("device")


def test_backward_on_default_streams_waits_for_the_stream_it_is_called_on(late: Deferred) -> None:
    x = torch.arange(4.0, device="cuda", requires_grad=True)
    loss = x * x
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        weights = torch.arange(4.0, device="cuda") + 1
        loss.backward(weights)
        assert x.grad.tolist() == [0, 4, 12, 24]
    assert set(late.streams_launched()) == {0, side.cuda_stream}


def test_hooks_and_custom_functions_run_on_the_stream_of_the_forward(late: Deferred) -> None:
    seen = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(torch.cuda.current_stream())
            return grad * 2

    x = torch.ones(3, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = Twice.apply(x)
        y.register_hook(lambda grad: seen.append(torch.cuda.current_stream()))
    torch.cuda.current_stream().wait_stream(side)
    y.sum().backward()
    assert seen == [side, side] and torch.cuda.current_stream() == torch.cuda.default_stream()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_failing_backward_leaves_the_stream_of_the_caller(late: Deferred) -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        y = x * 2

        def fail(grad: Any) -> None:
            raise ZeroDivisionError

        y.register_hook(fail)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_memory_of_a_gradient_is_not_reused_while_another_stream_reads_it(late: Deferred) -> None:
    x = torch.arange(300.0, device="cuda", requires_grad=True)
    w = torch.zeros(300, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    older = [(w * 3).exp() for _ in range(4)]
    with torch.cuda.stream(side):
        y = x * 2
    torch.cuda.current_stream().wait_stream(side)
    # The gradient of y is made on the default stream and read on the other, which does it last; meanwhile the default
    # one goes on with gradients of the same size.
    (sum([u.sum() for u in older]) + (y * y).sum()).backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 8 * np.arange(300.0))
    assert w.grad.tolist() == [12] * 300


def test_graphs_are_taken_backwards_with_create_graph_on_their_streams(late: Deferred) -> None:
    x = torch.arange(3.0, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * x * x
    torch.cuda.current_stream().wait_stream(side)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.tolist() == [0, 3, 12] and h.tolist() == [0, 6, 12]


def test_streams_of_other_threads_are_their_own(late: Deferred) -> None:
    import threading

    seen: list[Any] = []
    side = torch.cuda.Stream()

    def other() -> None:
        seen.append(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            seen.append((torch.ones(3, device="cuda") * 2).sum().item())

    with torch.cuda.stream(torch.cuda.Stream()):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [torch.cuda.default_stream(), 6.0]


# ------------------------------------------------------------------ streams and events of any kind


def test_streams_of_the_accelerator_are_streams_of_cuda(late: Deferred) -> None:
    stream = torch.Stream()
    assert (
        stream.device == torch.device("cuda:0")
        and stream.device_index == 0
        and not isinstance(stream, torch.cuda.Stream)
    )
    assert isinstance(torch.cuda.Stream(), torch.Stream) and isinstance(torch.cuda.Event(), torch.Event)
    begin, end = torch.Event(enable_timing=True), torch.Event("cuda", enable_timing=True)
    x = torch.ones(3, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with stream as same:
        assert same is stream and torch.cuda.current_stream().cuda_stream == stream.stream_id
        begin.record()
        y = x * 2
        end.record()
        with pytest.raises(ValueError, match="must be completed before"):
            begin.elapsed_time(end)
        with torch.Stream() as inner, inner:  # a stream may be entered again
            assert torch.cuda.current_stream().cuda_stream == inner.stream_id != stream.stream_id
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert not stream.query() and not end.query()
    end.wait()  # the default stream waits for the mark
    assert y.tolist() == [2, 2, 2] and end.query() and begin.elapsed_time(end) >= 0
    assert repr(stream) == f"torch.Stream device_type=cuda, device_index=0, stream_id={stream.stream_id}"
    assert stream.native_handle == stream.stream_id and not stream.is_capturing()


def test_a_device_has_as_many_streams_as_torchs(late: Deferred) -> None:
    handles = [torch.cuda.Stream().cuda_stream for _ in range(70)]
    assert len(set(handles)) == 32 and handles[:32] == handles[32:64] and 0 not in handles
    low, high = torch.cuda.Stream.priority_range()
    first = torch.cuda.Stream(priority=high - 5)
    assert first.priority == high and first.cuda_stream not in handles and torch.cuda.Stream(priority=9).priority == low


def test_the_device_of_a_stream_is_the_current_one_inside(late: Deferred) -> None:
    other = torch.cuda.Stream("cuda:1")
    with torch.cuda.stream(other):
        assert torch.cuda.current_device() == 1 and torch.cuda.current_stream() == other
        with torch.cuda.stream(torch.cuda.Stream("cuda:0")):
            assert torch.cuda.current_device() == 0 and torch.cuda.current_stream("cuda:1") == other
        assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0
    with torch.cuda.stream(None):
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
    event = torch.cuda.Event()
    event.record()
    with pytest.raises(RuntimeError, match="Event device 0 does not match recording stream's device 1"):
        event.record(other)


def test_a_pass_over_two_devices_uses_the_streams_of_both(late: Deferred) -> None:
    x = torch.arange(3.0, device="cuda:0", requires_grad=True)
    one, two = torch.cuda.Stream("cuda:0"), torch.cuda.Stream("cuda:1")
    one.wait_stream(torch.cuda.current_stream("cuda:0"))
    with torch.cuda.stream(one):
        y = x * 3
        z = y.to("cuda:1")
    two.wait_stream(torch.cuda.current_stream("cuda:1"))
    with torch.cuda.stream(two):
        loss = (z * z).sum()
        loss.backward()
    assert x.grad.tolist() == [0, 18, 36]


# ------------------------------------------------------------------ pools of memory


def test_memory_of_a_pool_is_its_own(late: Deferred) -> None:
    pool = torch.cuda.MemPool()
    assert pool.use_count() == 1 and pool.snapshot() == []
    with torch.cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        inside = torch.ones(1000, device="cuda") * 2
    outside = torch.ones(1000, device="cuda") * 2
    (segment,) = pool.snapshot()
    start, end = segment["address"], segment["address"] + segment["total_size"]
    assert segment["segment_pool_id"] == pool.id and start <= inside.data_ptr() < end
    assert not start <= outside.data_ptr() < end and inside.tolist() == outside.tolist()
    place = inside.data_ptr()
    del inside
    others = [torch.ones(1000, device="cuda") for _ in range(5)]
    assert place not in [t.data_ptr() for t in others]
    torch.cuda.empty_cache()  # which leaves it alone
    assert len(pool.snapshot()) == 1
    with torch.cuda.use_mem_pool(pool):
        again = torch.empty(1000, device="cuda")
    assert start <= again.data_ptr() < end
    name = pool.id
    del again, pool
    torch.cuda.empty_cache()
    assert torch.cuda.memory_snapshot(name) == [] and name not in pools[0].private
    for option in ("allocator", "use_on_oom", "no_split"):
        with pytest.raises(NotImplementedError, match=f"leave {option} out"):
            torch.cuda.MemPool(**{option: True})


def test_graphs_on_one_stream_have_memory_of_their_own_unless_they_share_it(late: Deferred) -> None:
    x, side = torch.ones(100, device="cuda"), torch.cuda.Stream()
    (x * 2, x * 3)
    torch.cuda.synchronize()
    first, second, third = (torch.cuda.CUDAGraph() for _ in range(3))
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        first.pool()
    with torch.cuda.graph(first, stream=side):
        a = x * 2
        assert side.is_capturing()
    with torch.cuda.graph(second, stream=side):
        b = x * 3
    with torch.cuda.graph(third, pool=first.pool(), stream=side):
        c = x * 2
    assert third.pool() == first.pool() != second.pool() and not side.is_capturing()
    with torch.cuda.stream(side):
        free = [torch.empty(100, device="cuda") for _ in range(4)]
    places = [t.data_ptr() for t in (a, b, c, *free)]
    assert len(set(places)) == len(places)
    for graph in (first, second, third):
        graph.replay()
    assert a.tolist() == c.tolist() == [2] * 100 and b.tolist() == [3] * 100
    pool = first.pool()
    first.reset()
    assert pools[0].private[pool] == 1
    third.reset()
    assert pool not in pools[0].private


def test_a_capture_that_fails_leaves_nothing_behind(late: Deferred) -> None:
    graph, before = torch.cuda.CUDAGraph(), dict(pools[0].private)
    with pytest.raises(ZeroDivisionError), torch.cuda.graph(graph):
        raise ZeroDivisionError
    graph.reset()
    assert not torch.cuda.is_current_stream_capturing() and pools[0].private == before and not pools[0].captured


# ------------------------------------------------------------------ copies


def test_a_copy_from_pinned_memory_is_waited_for_unless_asked_not_to(late: Deferred) -> None:
    host = torch.arange(6.0).reshape(2, 3).pin_memory()
    x = host.to("cuda")
    assert late.synchronizations == ["stream"]
    host += 1  # which the copy does not see
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    late.synchronizations.clear()
    for copy in (lambda: host.to("cuda", non_blocking=True), lambda: host.cuda(non_blocking=True),
                 lambda: torch.empty(2, 3, device="cuda").copy_(host, non_blocking=True)):  # fmt: skip
        host.copy_(torch.arange(6.0).reshape(2, 3))
        y = copy()
        assert not late.synchronizations
        host[0, 0] = 100  # too early: the device has not read it
        assert y.tolist() == [[100, 1, 2], [3, 4, 5]]
        late.synchronizations.clear()


def test_a_copy_from_memory_that_is_not_pinned_is_taken_at_once(late: Deferred) -> None:
    for how in (True, False):
        host = torch.arange(6.0)
        x = host.to("cuda", non_blocking=how)
        host += 1
        assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_columns_of_pinned_memory_are_waited_for_like_rows(late: Deferred) -> None:
    host = torch.arange(6.0).reshape(2, 3).pin_memory().t()
    x = host.to("cuda")
    host += 1
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]] and x.stride() == host.stride()


def test_a_copy_to_the_host_that_is_not_waited_for_is_pinned(late: Deferred) -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3).t()
    torch.cuda.synchronize()
    late.synchronizations.clear()
    host = x.to("cpu", non_blocking=True)
    doubles = x.to("cpu", torch.float64, non_blocking=True)
    target = torch.zeros(3, 2).t().contiguous().t().pin_memory()
    target.copy_(x, non_blocking=True)
    assert host.is_pinned() and doubles.is_pinned() and not late.synchronizations
    assert target.tolist() == [[0, 0]] * 3  # nothing there yet
    torch.cuda.current_stream().synchronize()
    assert host.tolist() == doubles.tolist() == [[0, 3], [1, 4], [2, 5]] and host.stride() == x.stride()
    assert target.tolist() == host.tolist() and doubles.dtype is torch.float64
    plain = torch.zeros(3, 2)
    plain.copy_(x, non_blocking=True)  # memory that is not pinned is waited for
    assert plain.tolist() == host.tolist() and not x.cpu().is_pinned()


def test_pinned_memory_is_not_used_again_before_its_copies_are_done(late: Deferred) -> None:
    side = torch.cuda.Stream()
    host = torch.arange(100.0).pin_memory()
    place = host.data_ptr()
    with torch.cuda.stream(side):
        x = host.to("cuda", non_blocking=True)
    del host
    others = [torch.full((100,), 7.0).pin_memory() for _ in range(3)]
    assert place not in [t.data_ptr() for t in others]
    side.synchronize()
    assert x.tolist() == list(range(100))
    del others
    again = [torch.full((100,), 7.0).pin_memory() for _ in range(4)]
    assert place in [t.data_ptr() for t in again]


def test_a_module_moves_without_waiting(late: Deferred) -> None:
    model = torch.nn.Linear(2, 2)
    for p in model.parameters():
        p.data = p.data.pin_memory()
    expected = model.weight.tolist()
    model.to("cuda", non_blocking=True)
    assert not late.synchronizations and model.weight.device == torch.device("cuda:0")
    assert model.weight.tolist() == expected
