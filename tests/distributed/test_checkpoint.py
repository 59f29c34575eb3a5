# ruff: noqa: E501
"""Checkpoints of four ranks are loaded by two, by one, and refused if they are not whole."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import pullback as torch
from pullback.distributed import checkpoint
from pullback.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from tests.distributed.processes import ROOT, run_ranks

SAVE = """
from pullback.distributed import checkpoint
from pullback.distributed.device_mesh import init_device_mesh
from pullback.distributed.tensor import Partial, Replicate, Shard, DTensor, distribute_tensor
dist.init_process_group("gloo")
folder = os.environ["FOLDER"]
mesh = init_device_mesh("cpu", (WORLD,))
grid = init_device_mesh("cpu", (WORLD // 2, 2), mesh_dim_names=("a", "b"))
x = torch.arange(42.0).reshape(7, 6)
def state(scale):
    return {
        "rows": distribute_tensor(x * scale, mesh, [Shard(0)]), "columns": distribute_tensor(x * scale, mesh, [Shard(1)]), "both": distribute_tensor(x * scale, grid, [Shard(0), Shard(1)]),
        "few": distribute_tensor(torch.arange(2.0) * scale, mesh, [Shard(0)]), "same": distribute_tensor(x * scale, mesh, [Replicate()]), "half": (x * scale).to(torch.bfloat16),
        "nested": {"list": [torch.ones(2) * scale, {"deep": 3 * scale}], "numbers": [1, 2, scale]}, "step": 5 * scale, "number": torch.tensor(2.5 * scale), 3: "three" * scale,
    }
"""
SAVING = (
    SAVE
    + """
class Counter:
    def __init__(self): self.n = 0
    def state_dict(self): return {"n": self.n}
    def load_state_dict(self, state): self.n = state["n"]
counter = Counter()
counter.n = 7
saved = state(1)
saved["counter"] = counter
metadata = checkpoint.save(saved, checkpoint_id=f"{folder}/one")
records["names"] = sorted(metadata.state_dict_metadata)
records["files"] = sorted(os.listdir(f"{folder}/one"))
future = checkpoint.async_save(state(2), checkpoint_id=f"{folder}/later")
later = state(1)
dist.all_reduce(torch.ones(3))  # the program goes on meanwhile
records["later"] = type(future.result()).__name__
first = sorted(os.listdir(f"{folder}/later"))
dist.barrier()
checkpoint.save(state(3), checkpoint_id=f"{folder}/later")
records["anew"] = first, sorted(os.listdir(f"{folder}/later"))
def failing():
    try:
        checkpoint.save({"x": x if RANK else DTensor.from_local(x, mesh, [Partial()])}, checkpoint_id=f"{folder}/sum")
    except BaseException as error:
        return type(error).__name__, list(error.failures), str(error).splitlines()[-2]
record("one rank fails", failing)
"""
)
LOADING = (
    SAVE
    + """
loaded = state(0)
checkpoint.load(loaded, checkpoint_id=f"{folder}/one")
wanted = state(1)
def same(one, other):
    if isinstance(one, DTensor):
        return torch.equal(one, other) and one.placements == other.placements
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return all(same(one[key], other[key]) for key in other)
    return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other)) if isinstance(one, list) else one == other
records["same"] = same(loaded, wanted)
checkpoint.load(loaded, checkpoint_id=f"{folder}/later")
records["later"] = same(loaded, state(3))
def refused(path, state):
    try:
        checkpoint.load(state, checkpoint_id=path)
    except BaseException as error:
        return type(error).__name__, list(error.failures), str(error)
record("too large", lambda: refused(f"{folder}/one", {"rows": torch.zeros(8, 6)}))
"""
)


@pytest.fixture(scope="module")
def folder():
    """A folder with checkpoints that four ranks have saved, and what they recorded."""
    with tempfile.TemporaryDirectory() as path:
        yield path, run_ranks(SAVING, 4, FOLDER=path)


def test_four_ranks_save_and_two_load_what_they_need(folder):
    path, saved = folder
    names = [
        "3",
        "both",
        "columns",
        "counter.n",
        "few",
        "half",
        "nested.list.0",
        "nested.list.1.deep",
        "nested.numbers",
        "number",
        "rows",
        "same",
        "step",
    ]
    for records in saved:
        assert records["names"] == names
        assert records["files"] == [".metadata", *[f"__{rank}_0.distcp" for rank in range(4)]]
        assert records["later"] == "Metadata"
        assert records["anew"] == [[".metadata", *[f"__{rank}_{n}.distcp" for rank in range(4)]] for n in (0, 1)]
        assert (
            records["one rank fails"][:2] == ["CheckpointException", [0]]
            and "redistribute it" in records["one rank fails"][2]
        )
    for records in run_ranks(LOADING, 2, FOLDER=path):
        assert records["same"] and records["later"]
        kind, ranks, text = records["too large"]
        assert (kind, ranks) == ("CheckpointException", [0, 1])
        assert (
            "ValueError: Size mismatch between saved torch.Size([7, 6]) and current: torch.Size([8, 6]) for rows"
            in text
        )


def test_one_process_loads_what_four_ranks_saved(folder, tmp_path):
    path = f"{folder[0]}/one"
    x = torch.arange(42.0).reshape(7, 6)
    state = {
        "rows": torch.zeros(7, 6),
        "both": torch.zeros(7, 6),
        "nested": {"list": [torch.zeros(2), {"deep": 0}]},
        "counter": {"n": 0},
    }
    rows = state["rows"]
    checkpoint.load(state, checkpoint_id=path)
    assert state["rows"] is rows and torch.equal(rows, x) and torch.equal(state["both"], x)
    assert state["nested"]["list"][1] == {"deep": 3} and state["counter"] == {"n": 7}
    dcp_to_torch_save(path, tmp_path / "whole.pt")
    whole = torch.load(tmp_path / "whole.pt")
    assert torch.equal(whole["columns"], x) and whole["nested"]["numbers"] == [1, 2, 1] and whole["3"] == "three"
    assert torch.equal(whole["nested"]["list"][0], torch.ones(2)) and whole["half"].dtype is torch.bfloat16
    torch_save_to_dcp(tmp_path / "whole.pt", tmp_path / "again")
    again = {"columns": torch.zeros(7, 6)}
    checkpoint.load(again, checkpoint_id=tmp_path / "again")
    assert torch.equal(again["columns"], x)


def test_checkpoints_that_are_not_whole_are_refused_by_name_and_change_nothing(tmp_path):
    def refused(path, state=None):
        target = {"a": torch.zeros(3), "b": torch.zeros(2)} if state is None else state
        with pytest.raises(checkpoint.CheckpointException) as error:
            checkpoint.load(target, checkpoint_id=path)
        assert not target["a"].any() and not target["b"].any()
        return str(error.value)

    path = tmp_path / "saved"
    checkpoint.save({"a": torch.ones(3), "b": torch.full((2,), 2.0)}, checkpoint_id=path)
    data, metadata = path / "__0_0.distcp", path / ".metadata"
    assert "RuntimeError: Missing key in checkpoint state_dict: q." in refused(
        path, {"a": torch.zeros(3), "q": 1, "b": torch.zeros(2)}
    )
    whole, told = data.read_bytes(), metadata.read_bytes()
    data.write_bytes(whole[:-10])
    assert f"{data} is corrupt: it has {len(whole) - 10} bytes, its metadata says {len(whole)}" in refused(path)
    place = whole.index(torch.full((2,), 2.0).numpy().tobytes())
    data.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
    assert f"{data} is corrupt where b is" in refused(path)
    data.unlink()
    assert f"{data} is missing: the checkpoint is not complete" in refused(path)
    data.write_bytes(whole)
    metadata.write_bytes(told[: len(told) // 2])
    assert f"{metadata} is corrupt" in refused(path)
    metadata.write_bytes(b"cos\nsystem\n(S'touch /tmp/never'\ntR.")
    assert "names os.system, which is none of its words" in refused(path)
    metadata.unlink()
    assert f"{path} is no complete checkpoint: it has no .metadata, which is written last" in refused(path)
    metadata.write_bytes(told)
    state = {"a": torch.zeros(3)}
    checkpoint.load(state, checkpoint_id=path)
    assert state["a"].tolist() == [1, 1, 1]


def test_a_checkpoint_stays_until_the_next_one_is_complete(tmp_path, monkeypatch):
    path = tmp_path / "saved"
    checkpoint.save({"a": torch.ones(3)}, checkpoint_id=path)
    replace = os.replace

    def killed(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save({"a": torch.zeros(3)}, checkpoint_id=path)
    monkeypatch.setattr(os, "replace", replace)
    state = {"a": torch.full((3,), 5.0)}
    checkpoint.load(state, checkpoint_id=path)
    assert state["a"].tolist() == [1, 1, 1]
    checkpoint.save({"a": torch.zeros(3)}, checkpoint_id=path)
    assert sorted(one.name for one in Path(path).iterdir()) == [".metadata", "__0_2.distcp"]
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        checkpoint.save({})
    with pytest.raises(checkpoint.CheckpointException, match=r"Checkpoint already exists and self.overwrite=False\."):
        checkpoint.save({}, storage_writer=checkpoint.FileSystemWriter(path, overwrite=False))


def test_the_program_of_the_page_goes_on_with_one_rank_where_two_have_stopped(tmp_path):
    page = (ROOT / "docs" / "distributed.md").read_text()
    program = re.search(r"```py\n(# shards\.py\n.*?)```", page, re.DOTALL)[1]
    (tmp_path / "shards.py").write_text(program)
    said = []
    for ranks in ("2", "1"):
        command = [sys.executable, "-m", "pullback", "launch", "-n", ranks, "shards.py"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        said.append(re.findall(r"step (\d+), loss ([\d.]+)", done.stdout))
    assert [len(one) for one in said] == [2, 1]
    assert {step for step, _ in said[0]} == {"20"} and {step for step, _ in said[1]} == {"40"}
    assert max(float(loss) for _, loss in said[1]) < min(float(loss) for _, loss in said[0])
