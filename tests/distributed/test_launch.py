# ruff: noqa: E501
"""`pullback launch`: ranks that find each other, fail together and are started anew."""

import os
import subprocess
import sys

import pytest

from tests.distributed.processes import ROOT

TRAIN = """
import os, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(2) * (dist.get_rank() + 1)
dist.all_reduce(x)
if dist.get_rank() == 0:
    print(sys.argv[1:], x.tolist(), os.environ["LOCAL_WORLD_SIZE"], os.environ["GROUP_RANK"], int(os.environ["OMP_NUM_THREADS"]) > 0)
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if "fail" in sys.argv and dist.get_rank() == 1 and attempt < 1:
    raise ValueError(f"attempt {attempt} fails")
dist.barrier()
if dist.get_rank() == 0:
    print("done", attempt)
"""


def launch(folder, *words, ok=True):
    (folder / "train.py").write_text(TRAIN)
    done = subprocess.run(
        [sys.executable, "-m", "pullback", "launch", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=600,
    )
    assert (done.returncode == 0) == ok, done.stderr
    return done


def test_ranks_find_each_other_and_see_the_arguments(tmp_path):
    done = launch(tmp_path, "-n", "2", "--prefix", "train.py", "--epochs", "3")
    assert done.stdout == "[rank 0] ['--epochs', '3'] [3.0, 3.0] 2 0 True\n[rank 0] done 0\n"


def test_the_traceback_of_the_rank_that_failed_comes_first_and_ends_the_job(tmp_path):
    done = launch(tmp_path, "-n", "2", "train.py", "fail", ok=False)
    assert done.returncode == 1 and "done" not in done.stdout
    assert done.stderr.startswith("Traceback") and done.stderr.count("Traceback") == 1
    lines = done.stderr.splitlines()
    assert lines[-2:] == [
        "ValueError: attempt 0 fails",
        "pullback: rank 1 ended with status 1; the others were stopped",
    ]


def test_a_job_that_failed_is_started_anew(tmp_path):
    done = launch(tmp_path, "-n", "2", "--restarts", "1", "train.py", "fail")
    assert done.stdout.splitlines()[-1] == "done 1" and "1 restarts left" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no sh")
def test_ranks_on_several_machines_are_started_through_ssh(tmp_path):
    (tmp_path / "ssh").write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    (tmp_path / "ssh").chmod(0o755)
    done = launch(
        tmp_path, "-n", "2", "--hosts", "127.0.0.1,localhost", "--ssh", str(tmp_path / "ssh"), "train.py", "a b"
    )
    assert done.stdout.splitlines()[0] == "['a b'] [3.0, 3.0] 1 0 True"


def test_a_program_that_is_not_there_and_ranks_that_cannot_be_divided_are_told(tmp_path):
    done = launch(tmp_path, "-n", "2", "nothing.py", ok=False)
    assert done.returncode == 2 and done.stderr == "pullback: there is no file nothing.py\n"
    done = launch(tmp_path, "-n", "3", "--hosts", "a,b", "train.py", ok=False)
    assert done.stderr == "pullback: 3 ranks cannot be divided among 2 machines\n"
