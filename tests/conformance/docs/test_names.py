"""No public name of torch is missing: each works, or refuses with a reason; the page that lists them is up to date."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from docs.tools import names

ROOT = Path(__file__).parents[3]
STAND_INS = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/src"]
from docs.tools import names
from pullback.compat import install
install()
import torch
for path in ("torch.onnx.export", "torch.distributed.rpc.rpc_sync", "torch.utils.hipify", "torch.qint8"):
    module, _, name = path.rpartition(".")
    own = __import__(module, fromlist=["x"])
    assert names.look(own, module, name) not in (None, names.MISSING, ""), path
assert names.look(torch.Tensor, "torch.Tensor", "to_mkldnn") not in (None, names.MISSING)
assert names.look(torch.Tensor, "torch.Tensor", "no_such_name") == names.MISSING
assert names.look(torch, "torch", "no_such_name") == names.MISSING
assert names.look(torch.Tensor, "torch.Tensor", "add") is None
assert names.look(torch, "torch", "add") is None
"""


@pytest.fixture(scope="module")
def answers():
    command = [sys.executable, "-m", "docs.tools.names", "--json"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def test_no_public_name_of_torch_is_missing(answers):
    missing = [f"{path}.{name}" for path, found in answers.items() for name in found if found[name] == names.MISSING]
    assert not missing


def test_every_name_that_refuses_says_why(answers):
    silent = [f"{path}.{name}" for path, found in answers.items() for name in found if found[name] == ""]
    assert not silent


def test_the_page_of_names_is_up_to_date(answers):
    assert names.PAGE.read_text(encoding="utf-8") == names.page(answers, "2.13"), "run python -m docs.tools.names"


def test_torchs_modules_are_all_looked_at(answers):
    assert {"torch", "torch.nn.functional", "torch.linalg", "torch.utils.data", "torch.Tensor"} <= answers.keys()
    assert sum(map(len, answers.values())) > 7000


def test_what_stands_in_for_a_name_is_not_said_to_work():
    subprocess.run([sys.executable, "-c", STAND_INS, str(ROOT)], check=True)
