"""torch.utils.benchmark beside torch: what it says of times that are given, and that it measures."""

import re

import pytest
import torch.utils.benchmark as theirs

from pullback.utils import benchmark as ours

BOTH = pytest.mark.parametrize("bench", [theirs, ours], ids=["torch", "pullback"])
STEADY = [1.0e-4, 1.01e-4, 1.02e-4, 1.0e-4, 1.015e-4]
SPREAD = [1.0e-4, 2.0e-4, 1.5e-4, 3.0e-4, 1.1e-4]


def task(bench, **options):
    return bench.TaskSpec(**{"stmt": "x + y", "setup": "pass", **options})


def measured(bench, times, number=10, **options):
    return bench.Measurement(number_per_run=number, raw_times=list(times), task_spec=task(bench, **options))


@pytest.mark.parametrize("times", [STEADY, SPREAD, [2.5], [1e-8, 1.2e-8, 1.1e-8], [0.5, 0.6, 0.7, 0.8]])
def test_statistics_are_torchs(times):
    found = []
    for bench in (theirs, ours):
        one = measured(bench, times)
        found.append([one.median, one.mean, one.iqr, *one.times])
        found[-1] += [one.significant_figures, one.has_warnings, one.meets_confidence(0.5)]
    assert found[1] == pytest.approx(found[0])


@pytest.mark.parametrize(
    "options",
    [{}, dict(label="Add", sub_label="float", description="n=4"), dict(stmt="a = x\nb = a"), dict(setup="x = 1"),
     dict(setup="x = 1\ny = 2", num_threads=4), dict(stmt="a = x\nb = a", sub_label="int")],
)  # fmt: skip
@pytest.mark.parametrize("times", [STEADY, SPREAD, [2.5], [1.0, 1.3, 1.15, 1.2, 1.0]])
def test_measurements_are_printed_as_torch_prints_them(options, times):
    texts = [repr(measured(bench, times, **options)).split("\n", 1) for bench in (theirs, ours)]
    assert texts[0][1] == texts[1][1]
    assert re.fullmatch(r"<.*Measurement object at 0x[0-9a-f]+>", texts[1][0])


def results(bench, envs=(None,)):
    found = []
    for env in envs:
        for threads in (1, 4):
            for row, factor in (("mul/sum", 1.0), ("bmm", 7.3)):
                for column, more in (("n=1", 1.0), ("n=64", 12.0)):
                    if (row, column, threads) == ("bmm", "n=64", 4):
                        continue
                    times = [t * factor * more for t in (SPREAD if row == "bmm" else STEADY)]
                    options = dict(label="Batched dot", sub_label=row, description=column, num_threads=threads, env=env)
                    found.append(measured(bench, times, **options))
    return [*found, measured(bench, STEADY, label="Other", description="n=1")]


WAYS = {
    "plain": lambda table: None,
    "trimmed": lambda table: table.trim_significant_figures(),
    "marked": lambda table: table.highlight_warnings(),
    "coloured": lambda table: table.colorize(),
    "coloured by rows": lambda table: table.colorize(rowwise=True),
    "all": lambda table: (table.trim_significant_figures(), table.highlight_warnings(), table.colorize()),
}


@pytest.mark.parametrize("envs", [(None,), ("base", "branch one")])
@pytest.mark.parametrize("way", WAYS)
def test_tables_are_torchs(way, envs):
    texts = []
    for bench in (theirs, ours):
        table = bench.Compare(results(bench, envs) if envs != (None,) else results(bench))
        table.extend_results(results(bench, envs)[:2])
        WAYS[way](table)
        texts.append(str(table))
    assert texts[0] == texts[1]


@BOTH
def test_a_statement_is_measured(bench, capsys):
    timer = bench.Timer("\n    x + y", "x = torch.ones(2); y = x", label="add", description="small")
    one = timer.timeit(100)
    assert one.number_per_run == 100 and len(one.raw_times) == 1 and one.median > 0 and one.stmt == "    x + y"[4:]
    seen = []
    many = timer.blocked_autorange(callback=lambda number, taken: seen.append(number), min_run_time=0.01)
    assert sum(many.raw_times) >= 0.01 and len(seen) == len(many.raw_times) and set(seen) == {many.number_per_run}
    until = timer.adaptive_autorange(threshold=1e9, min_run_time=0.001, max_run_time=0.5)
    assert len(until.raw_times) > 3 or sum(until.raw_times) > 0.5
    bench.Compare([one, many]).print()
    assert "[-" in capsys.readouterr().out


WRONG = ["bench.Timer(3)", "bench.Timer(language='rust')", "bench.Timer(global_setup='x')", "bench.Compare([3])",
         "bench.Timer().repeat()", "bench.Timer().autorange()", "bench.trim_sigfig(3.14159, 2)",
         "bench.trim_sigfig(1.0, 1.5)", "bench.select_unit(3e-5)", "bench.select_unit(2.0)", "bench.select_unit(1e-12)",
         "bench.unit_to_english('us')", "bench.ordered_unique([3, 1, 3])"]  # fmt: skip


@pytest.mark.parametrize("call", WRONG)
def test_answers_and_errors_are_torchs(call):
    said = []
    for bench in (theirs, ours):
        try:
            said.append(repr(eval(call, {"bench": bench})))
        except Exception as error:
            said.append((type(error).__name__, str(error)))
    assert said[0] == said[1]


def test_what_needs_a_compiler_says_so():
    with pytest.raises(NotImplementedError, match="collect_callgrind is not available"):
        ours.Timer().collect_callgrind()
    with pytest.raises(NotImplementedError, match="no C\\+\\+ here"):
        ours.Timer("int x = 1;", language="cpp")
