"""The profilers: same table, same calls, forward linked to backward, nothing left behind."""

import importlib
import json
import warnings

import pytest
import torch as reference

import pullback
from tests.conformance.both import attempt, same


def run_profile(torch, **options):
    """A small program under a profile; returns the profile and the result."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    w = torch.ones(3, requires_grad=True)
    with torch.autograd.profiler.profile(**options) as prof:
        for _ in range(2):
            with torch.autograd.profiler.record_function("the block"):
                y = (x * w).exp()
            y.sum().backward()
    return prof, x.grad


def counts(prof, wanted):
    """How often the named things were called."""
    return {event.key: event.count for event in prof.key_averages() if event.key in wanted}


CALLED = [
    "aten::mul",
    "aten::exp",
    "aten::sum",
    "the block",
    "ExpBackward0",
    "MulBackward0",
    "SumBackward0",
    "autograd::engine::evaluate_function: ExpBackward0",
    "torch::autograd::AccumulateGrad",
]


def test_forward_calls_and_backward_steps_are_counted():
    theirs = counts(run_profile(reference)[0], CALLED)
    ours = counts(run_profile(pullback)[0], CALLED)
    assert sorted(ours) == sorted(CALLED)
    once_in_both = {"aten::exp", "the block", "ExpBackward0", "SumBackward0", "torch::autograd::AccumulateGrad"}
    assert {k: ours[k] for k in once_in_both} == {k: theirs[k] for k in once_in_both}


def test_the_result_of_the_program_is_the_same():
    same(lambda torch: run_profile(torch)[1])


@pytest.mark.parametrize(
    "options", [{}, {"record_shapes": True}, {"profile_memory": True}, {"record_shapes": True, "profile_memory": True}]
)
@pytest.mark.parametrize("by_shape", [False, True])
def test_the_table_has_the_columns_and_widths_of_torch(options, by_shape):
    def rules(torch):
        averages = run_profile(torch, **options)[0].key_averages(group_by_input_shape=by_shape)
        lines = averages.table(sort_by="self_cpu_time_total", row_limit=3, max_shapes_column_width=20).splitlines()
        body = [line for line in lines if not line.startswith("Self CPU time total: ")]
        return lines[0], lines[1].split(), len(body), lines[0] == lines[2] == body[-1]

    theirs, ours = rules(reference), rules(pullback)
    assert ours[1:] == theirs[1:]
    if not by_shape:
        assert ours[0] == theirs[0]


def test_options_of_the_table():
    def program(torch):
        prof, _ = run_profile(torch)
        averages = prof.key_averages()
        short = averages.table(row_limit=2, header="A header", top_level_events_only=True, max_name_column_width=20)
        lines = short.splitlines()
        in_ms = averages.table(time_unit="ms", row_limit=1)
        return lines[0], lines[1], lines[3], lines[4], len(lines), in_ms.splitlines()[-1].endswith("ms")

    same(program)


def test_times_add_up():
    prof, _ = run_profile(pullback)
    events = prof.function_events
    for event in events:
        children = sum(child.cpu_time_total for child in event.cpu_children)
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - children)
        assert event.cpu_time_total >= children
    assert prof.self_cpu_time_total == pytest.approx(sum(e.self_cpu_time_total for e in events))
    assert prof.total_average().count == len(events)
    assert prof.total_average().key == "Total"


def test_ops_inside_a_block_are_its_children():
    prof, _ = run_profile(pullback)
    block = next(e for e in prof.function_events if e.name == "the block")
    assert [child.name for child in block.cpu_children] == ["aten::mul", "aten::exp"]


@pytest.mark.parametrize("torch", [reference, pullback], ids=["torch", "pullback"])
def test_a_forward_call_is_linked_to_its_backward_step(torch):
    prof, _ = run_profile(torch)
    forward = {e.sequence_nr for e in prof.function_events if e.name == "aten::exp"}
    backward = {e.sequence_nr for e in prof.function_events if e.name == "ExpBackward0"}
    assert len(forward) == 2 and forward == backward


def test_shapes_are_recorded_only_when_asked():
    def shapes(torch, **options):
        return [e.input_shapes for e in run_profile(torch, **options)[0].function_events if e.name == "aten::exp"]

    assert shapes(pullback, record_shapes=True) == shapes(reference, record_shapes=True) == [[[2, 3]]] * 2
    assert shapes(pullback) == shapes(reference)


def test_memory_of_results():
    def memory(torch):
        prof, _ = run_profile(torch, profile_memory=True)
        return [(e.cpu_memory_usage, e.count) for e in prof.key_averages() if e.key == "aten::exp"]

    assert memory(pullback) == memory(reference) == [(48, 2)]


def test_stacks_name_the_calling_line(tmp_path):
    prof, _ = run_profile(pullback, with_stack=True)
    event = next(e for e in prof.function_events if e.name == "aten::exp")
    assert "test_profiler.py" in event.stack[0] and "run_profile" in event.stack[0]
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    assert "run_profile" in (tmp_path / "stacks.txt").read_text()
    with pytest.raises(AssertionError):
        run_profile(pullback)[0].export_stacks(str(tmp_path / "none.txt"))


def test_the_trace_for_chrome(tmp_path):
    prof, _ = run_profile(pullback)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"aten::exp", "the block", "ExpBackward0"} <= {e["name"] for e in events}
    starts, ends = ([e["id"] for e in events if e["ph"] == ph] for ph in "sf")
    assert starts and sorted(starts) == sorted(ends)


def test_in_place_calls_and_functions_of_several_ops():
    prof_events = []
    x = pullback.ones(4, 3)
    with pullback.autograd.profiler.profile() as prof:
        x.add_(1)
        pullback.nn.functional.linear(x, pullback.ones(2, 3))
    prof_events = [e.name for e in prof.function_events]
    assert "aten::add_" in prof_events and "aten::linear" in prof_events


def test_nothing_is_left_behind():
    before = pullback.nn.functional.linear.__code__
    run_profile(pullback)
    assert pullback.nn.functional.linear.__code__ is before
    x = pullback.ones(2, requires_grad=True)
    prof, _ = run_profile(pullback)
    known = len(prof.function_events)
    (x * 2).sum().backward()
    assert len(prof.function_events) == known


def test_a_formula_first_compiled_under_a_profile_works_afterwards():
    source = """
import pullback as torch
z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
with torch.autograd.profiler.profile():
    (z * z.conj()).real.sum().backward()
first = z.grad.clone()
z.grad = None
(z * z.conj()).real.sum().backward()
assert torch.equal(first, z.grad), (first, z.grad)
"""
    exec(compile(source, "program", "exec"), {})


def test_a_profile_that_has_not_run():
    def program(torch):
        prof = torch.autograd.profiler.profile()
        disabled = torch.autograd.profiler.profile(enabled=False)
        with disabled:
            torch.ones(2) * 2
        with prof:
            pass
        return [
            str(torch.autograd.profiler.profile()),
            repr(torch.autograd.profiler.profile()),
            attempt(lambda: prof.__enter__()),
        ]

    same(program)


def test_record_function_as_decorator():
    def program(torch):
        @torch.autograd.profiler.record_function("named")
        def work(x):
            return x * 2

        with torch.autograd.profiler.profile() as prof:
            out = work(torch.ones(2))
        return out, [e.count for e in prof.key_averages() if e.key == "named"]

    same(program)


# ------------------------------------------------------------------ torch.profiler


def profiler_of(torch):
    return importlib.import_module(f"{torch.__name__}.profiler")


def test_schedules():
    def program(torch):
        p = profiler_of(torch)
        plans = [
            p.schedule(wait=1, warmup=1, active=2),
            p.schedule(wait=1, warmup=1, active=2, repeat=2),
            p.schedule(wait=2, warmup=1, active=1, skip_first=3),
            p.schedule(wait=2, warmup=1, active=1, skip_first=1, skip_first_wait=1),
        ]
        return [[plan(step).name for step in range(14)] for plan in plans], attempt(
            lambda: p.schedule(wait=-1, warmup=0, active=1)
        )

    same(program)


def test_rounds_are_handed_to_the_handler():
    def program(torch):
        p = profiler_of(torch)
        rounds = []

        def ready(prof):
            rounds.append((prof.step_num, {e.key: e.count for e in prof.key_averages() if e.key == "aten::exp"}))

        with p.profile(
            activities=[p.ProfilerActivity.CPU],
            schedule=p.schedule(wait=1, warmup=1, active=2, repeat=2),
            on_trace_ready=ready,
        ) as prof:
            for _ in range(9):
                torch.ones(3).exp()
                prof.step()
        return rounds

    same(program)


def test_without_a_schedule_everything_is_recorded(tmp_path):
    def program(torch):
        p = profiler_of(torch)
        with p.profile(activities=[p.ProfilerActivity.CPU]) as prof, p.record_function("part"):
            torch.ones(3).exp()
        prof.export_chrome_trace(str(tmp_path / f"{torch.__name__}.json"))
        return {e.key: e.count for e in prof.key_averages() if e.key in ("part", "aten::exp")}

    same(program)
    assert (tmp_path / "pullback.json").stat().st_size


def test_the_tensorboard_handler_writes_a_file(tmp_path):
    p = profiler_of(pullback)
    with p.profile(on_trace_ready=p.tensorboard_trace_handler(str(tmp_path / "log"), "worker")):
        pullback.ones(3).exp()
    (file,) = (tmp_path / "log").iterdir()
    assert file.name.startswith("worker.") and file.name.endswith(".pt.trace.json")


def test_marks_for_devices_are_not_available():
    with pytest.raises(NotImplementedError):
        pullback.autograd.profiler.emit_nvtx()


@pytest.mark.parametrize("options", [{"use_cuda": True}, {"use_device": "cuda"}, {"use_device": "toaster"}])
def test_a_device_that_is_not_there_is_not_measured(options):
    said = []
    for torch in (reference, pullback):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with torch.autograd.profiler.profile(**options) as prof:
                torch.ones(3).exp()
        said.append([(w.category, str(w.message)) for w in found])
        assert prof.use_device is None and "CUDA" not in prof.key_averages().table()
    assert said[0] == said[1]


def test_operations_are_counted():
    def program(torch):
        F = importlib.import_module(f"{torch.__name__}.nn.functional")
        a, b = torch.ones(3, 4), torch.ones(4, 5)
        image, weight = torch.ones(2, 3, 9, 8), torch.ones(6, 3, 3, 2)
        with torch.autograd.profiler.profile(with_flops=True) as prof:
            torch.mm(a, b)
            torch.addmm(torch.ones(5), a, b)
            torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
            a * a
            F.conv2d(image, weight, stride=2, padding=1)
        counted = {e.key: e.flops for e in prof.key_averages() if e.flops}
        header = prof.key_averages().table(row_limit=1).splitlines()[1].split()
        return {k: counted[k] for k in sorted(counted)}, header[-2:]

    same(program)
