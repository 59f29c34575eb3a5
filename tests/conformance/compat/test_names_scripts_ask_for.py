"""What scripts ask of torch around their own work, on torch and with `import torch` finding pullback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullback

EXPRESSIONS = """torch.__version__ >= (2, 0); torch.__version__ < "1.9"
torch.torch_version.TorchVersion("2.10.0") > "2.9"
torch.accelerator.is_available(); torch.accelerator.current_accelerator(); torch.accelerator.device_count()
torch.amp.autocast_mode.autocast is torch.autocast; torch.cpu.amp.autocast(enabled=False).device
torch._assert(True, "")
torch._VF.tanh(torch.zeros(1)).item(); torch._jit_internal.is_scripting(); torch.storage.UntypedStorage.__name__
torch.cuda.is_available(); torch.backends.mps.is_available(); torch.cuda.device_count(); torch.version.cuda
torch.utils._pytree.tree_map(str, [1, (2,)]); torch.overrides.is_tensor_like(3)
torch.get_autocast_dtype("cpu").itemsize
torch.compile(lambda x: x + 1)(torch.zeros(1)).item(); torch.distributions.Normal(0.0, 1.0).mean.item()
torch.serialization.LoadEndianness.BIG.value; torch.nn.utils.skip_init(torch.nn.Linear, 2, 3).weight.shape[0]"""
TEXTS = [one.strip() for line in EXPRESSIONS.splitlines() for one in line.split(";")]
RUNNER = """
import json, sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "pullback":
    import pullback.compat
    pullback.compat.install()
import torch
print(json.dumps([repr(eval(text)) for text in json.loads(sys.argv[2])]))
"""


@pytest.fixture(scope="module")
def answers():
    environment = {**os.environ, "PYTHONPATH": str(Path(pullback.__file__).parents[1])}
    found = []
    for library in ("torch", "pullback"):
        command = [sys.executable, "-c", RUNNER, library, json.dumps(TEXTS)]
        result = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert result.returncode == 0, result.stderr
        found.append(dict(zip(TEXTS, json.loads(result.stdout))))
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_the_answer_is_torchs(text, answers):
    expected, got = answers
    assert got[text] == expected[text]
