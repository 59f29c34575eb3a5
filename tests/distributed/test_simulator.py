"""`pullback simulate-cluster`: the costs it adds up, and the command."""

import json
import os
import subprocess
import sys
from argparse import ArgumentTypeError, Namespace
from dataclasses import replace

import pytest

from pullback.distributed.simulator import command as simulator
from pullback.distributed.simulator.cluster import ALGORITHMS, Cluster, Plan, reduce_time, simulate
from pullback.distributed.simulator.command import seconds, speed
from pullback.distributed.simulator.recording import Recorder, Recording, pace
from tests.distributed.processes import ROOT

MB = 1_000_000
STEP = Recording(0.10, 0.09, [(10 * MB, 0.05), (10 * MB, 0.08)], 20 * MB, 40 * MB, 100 * MB, tensors=8)
WIDE = Cluster(8, 1, bandwidth=1e9, latency=1e-6)


def test_sums_take_what_their_formulas_say():
    assert reduce_time(WIDE, 8, 8 * MB, "ring") == pytest.approx(2 * 7 / 8 * 0.008 + 14e-6)
    assert reduce_time(WIDE, 8, 8 * MB, "tree") == pytest.approx(2 * 0.008 + 6e-6)
    both = replace(WIDE, ranks=4, local_bandwidth=4e9, local_latency=0.0)
    expected = 2 * 3 / 4 * 0.002 + 2 * 7 / 8 * 0.008 + 14e-6
    assert reduce_time(both, 32, 8 * MB, "hierarchical") == pytest.approx(expected)
    assert reduce_time(WIDE, 1, 8 * MB, "ring") == 0
    with pytest.raises(ValueError, match="there is no way 'star' to add up; there are ring, tree, hierarchical"):
        reduce_time(WIDE, 8, 8 * MB, "star")


def test_buckets_are_added_up_while_backward_runs_and_the_rest_is_waited_for():
    took = 2 * 7 / 8 * 0.01 + 14e-6
    assert simulate(STEP, WIDE, Plan()).step == pytest.approx(0.08 + took + 0.01)  # the first one is hidden
    alone = replace(WIDE, overlap=0.0)
    assert simulate(STEP, alone, Plan()).step == pytest.approx(0.10 + 2 * took)
    assert simulate(STEP, Cluster(1), Plan()).step == pytest.approx(0.10)
    quick = simulate(STEP, replace(WIDE, bandwidth=1e15, latency=0.0), Plan())
    assert quick.step == pytest.approx(0.10) and quick.efficiency == pytest.approx(1.0)


def test_more_of_the_model_is_spread_with_every_stage():
    memory = [simulate(STEP, WIDE, Plan(zero=stage)).memory / MB for stage in range(4)]
    assert memory == [180, 145, pytest.approx(137.5), pytest.approx(130)]
    split = simulate(STEP, replace(WIDE, bandwidth=1e15), Plan(tensor=2, pipeline=2, parts=4))
    assert split.memory == pytest.approx(45 * MB) and 0.025 < split.step < 0.05
    with pytest.raises(ValueError, match="8 ranks cannot be divided into parts of 3 x 1"):
        simulate(STEP, WIDE, Plan(tensor=3))


def test_failures_cost_more_on_more_machines_and_less_where_the_others_go_on():
    few, many = (simulate(STEP, replace(WIDE, nodes=nodes), Plan()) for nodes in (8, 8000))
    assert few.lost < many.lost and few.lost_elastic < few.lost and many.lost_elastic < many.lost
    assert all(simulate(STEP, WIDE, Plan(one)).lost == few.lost for one in ALGORITHMS)


def test_units_are_understood():
    assert (speed("100Gb"), speed("12.5GB"), speed("8Kb")) == (12.5e9, 12.5e9, 1000)
    assert (seconds("5us"), seconds("1ms"), seconds("2h"), seconds("3")) == pytest.approx((5e-6, 1e-3, 7200, 3))
    with pytest.raises(ArgumentTypeError, match="no bandwidth"):
        speed("fast")
    with pytest.raises(ArgumentTypeError, match="no time"):
        seconds("soon")


TRAIN = """
import torch
net = torch.nn.Linear(100, 50)
optimizer = torch.optim.Adam(net.parameters())
for step in range(5):
    optimizer.zero_grad()
    net(torch.ones(8, 100)).square().mean().backward()
    optimizer.step()
print("done")
"""


def test_a_program_is_recorded_and_replayed(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    command = [sys.executable, "-m", "pullback", "simulate-cluster", "--nodes", "1000", "--json", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=600)
    rows = json.loads(done.stdout)
    assert [row["plan"] for row in rows] == [*ALGORITHMS, "ring, ZeRO 1", "ring, ZeRO 2", "ring, ZeRO 3"]
    assert "done" in done.stderr and rows[0]["memory"] >= 4 * 5050 * 4
    assert all(0 < row["efficiency"] <= 1 and row["step"] > 0 for row in rows)


def test_copies_side_by_side_are_replayed_beside_a_run_of_as_many_ranks(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(TRAIN.replace("range(5)", "range(15)"))
    monkeypatch.setattr(simulator, "TURNS", 1)
    monkeypatch.setattr(simulator.os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    given = Namespace(measure="3", script=str(tmp_path / "train.py"), arguments=[])
    (row,) = simulator.compare(given, tmp_path)
    assert row["ranks"] == 3 and row["simulated"] > 0 and row["measured"] > 0
    assert row["error"] == row["simulated"] / row["measured"] - 1


SEED = """
import os, sys
import torch
torch.manual_seed(int(os.environ["RANK"]))
{}
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
for step in range(3):
    optimizer.zero_grad()
    net(torch.full((1, 4), float(os.environ["RANK"]))).sum().backward()
    optimizer.step()
    if step:
        print("gradients", net.weight.grad[0].tolist(), file=sys.stderr)
"""


@pytest.mark.parametrize("own", ["", 'torch.distributed.init_process_group("gloo")'])
def test_ranks_that_are_measured_average_gradients_unless_the_program_has_its_own_group(own, tmp_path):
    (tmp_path / "train.py").write_text(SEED.format(own))
    words = [str(tmp_path / "0.json"), "1", "1", str(tmp_path / "train.py")]
    command = [sys.executable, "-m", "pullback", "launch", "-n", "2", "-m", "pullback.distributed.simulator.recorded"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([*command, *words], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    said = sorted(line for line in done.stderr.splitlines() if line.startswith("gradients"))
    assert said == [f"gradients {[each] * 4}" for each in ([0.0, 0.0, 1.0, 1.0] if own else [0.5] * 4)]


def test_a_step_of_ranks_is_that_of_the_slowest_core_in_the_quickest_stretch():
    one, other = [Recording(steps=[1.0] * 10 + [times] * 10) for times in (0.2, 0.3)]
    assert pace([one], 2) == pytest.approx(0.2)
    assert pace([one, other], 2) == pytest.approx(0.3)
    assert pace([one, other, one, one], 2) == pytest.approx(0.5)
    assert pace([one, other, one], 1) == pytest.approx(0.7)
    short = [Recording(steps=[0.001, 0.003] * 500)]
    assert pace(short, 1) == pytest.approx(0.002, rel=0.01)
    with pytest.raises(ValueError, match="the program has to make 12 steps at least, and made 5"):
        pace([Recording(steps=[0.1] * 3)], 1)


def test_a_recorded_step_is_stretched():
    longer = STEP.lasting(0.2)
    assert (longer.step, longer.backward) == pytest.approx((0.2, 0.18))
    assert longer.buckets == [(10 * MB, pytest.approx(0.1)), (10 * MB, pytest.approx(0.16))]


def test_the_quickest_step_is_found_beside_the_times_of_all():
    recorder = Recorder()
    recorder.found = [Recording(step) for step in (3.0, 1.0, 5.0)]
    recorder.steps = [7.0, 8.0, 3.0, 1.0, 5.0]
    assert recorder.best == Recording(1.0, steps=[3.0, 1.0, 5.0])
