"""Importing pullback loads little: what it costs is counted here, and timed by `python -m benchmarks --only import`."""

import pytest

MODULES = 272
SOURCE = 2_062_000
"""What `import pullback` may load: more modules or more source (in bytes) is a decision, not an accident."""

SLOW = {"ast", "asyncio", "doctest", "email", "hashlib", "html", "http", "importlib.metadata", "json"}
SLOW |= {"llvmlite", "logging", "ml_dtypes", "multiprocessing", "pickle", "pydoc", "random", "scipy", "sqlite3", "ssl"}
SLOW |= {"socket", "subprocess", "tempfile", "unittest", "urllib.request", "xml", "zipfile"}
"""Modules that take milliseconds, for what only some programs do."""

LOADED = """
import sys, numpy
before = set(sys.modules)
import pullback; pullback.Tensor  # an empty package is no import
print(*sorted(set(sys.modules) - before))
"""


def test_importing_loads_no_slow_module_that_numpy_has_not_loaded(run_python):
    assert SLOW & {*run_python(LOADED).split()} == set()


def test_importing_loads_few_modules_and_little_source(run_python, root):
    own = [name for name in run_python(LOADED).split() if name.partition(".")[0] == "pullback"]
    files = [root.joinpath("src", *name.split(".")) for name in own]
    size = sum((f / "__init__.py" if f.is_dir() else f.with_suffix(".py")).stat().st_size for f in files)
    assert 100 < len(own) <= MODULES, f"{len(own)} modules"
    assert size <= SOURCE, f"{size} bytes of source"


COMMON = """
import sys
import pullback as torch
from pullback import nn
x, y, labels = torch.randn(4, 8, requires_grad=True), torch.randn(4, 8), torch.randint(0, 8, (4,))
image = torch.randn(2, 4, 8, 8)
for layer in (
    nn.Linear(8, 4), nn.GELU(), nn.GELU("tanh"), nn.ReLU(), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.Softmax(-1),
    nn.ELU(), nn.SELU(), nn.Softplus(), nn.Mish(), nn.Hardswish(), nn.LeakyReLU(), nn.PReLU(), nn.LayerNorm(8),
    nn.RMSNorm(8), nn.Dropout(0.1), nn.GLU(), nn.TransformerEncoderLayer(8, 2, 16),
):
    layer(x).sum().backward()
for layer in (
    nn.Conv2d(4, 4, 3), nn.ConvTranspose2d(4, 4, 3), nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4),
    nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Upsample(scale_factor=2), nn.Flatten(),
):
    layer(image).sum()
nn.Embedding(10, 4)(labels).sum().backward(), nn.LSTM(8, 4)(x)[0].sum().backward(), nn.GRU(8, 4)(x)
for loss, target in (
    (nn.CrossEntropyLoss(), labels), (nn.MSELoss(), y), (nn.L1Loss(), y), (nn.HuberLoss(), y), (nn.SmoothL1Loss(), y),
    (nn.BCEWithLogitsLoss(), y.sigmoid()), (nn.PoissonNLLLoss(), y.exp()), (nn.KLDivLoss(reduction="sum"), y.exp()),
):
    loss(x, target).backward()
weight = torch.empty(8, 8)
for name in ("uniform_", "normal_", "eye_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"):
    getattr(nn.init, name)(weight)
for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
    kind([x], lr=0.1).step()
batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(y, labels), batch_size=2, shuffle=True)
assert len(list(batches)) == 2
torch.erf(x), torch.unique(labels), torch.sort(y), torch.topk(y, 2)
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "scipy" or name == "numpy.ma"))
"""


@pytest.mark.parametrize("kernels", ["llvm", "numpy"])
def test_common_layers_losses_initialisers_and_optimizers_load_no_scipy(run_python, kernels):
    program = f"import os; os.environ['PULLBACK_KERNELS'] = {kernels!r}\n" + COMMON
    assert run_python(program).strip() == ""


def test_modules_loaded_on_demand_add_no_method(run_python):
    code = (
        "import pullback, pullback.ops\n"
        "before = set(vars(pullback.Tensor))\n"
        "pullback.ops.load_all()\n"
        "print(*sorted(set(vars(pullback.Tensor)) - before))\n"
    )
    assert run_python(code).split() == []


def test_names_of_modules_loaded_on_demand_are_found(run_python):
    code = "import pullback; from pullback import conv2d; print(conv2d.__name__, hasattr(pullback, 'nothing'))"
    assert run_python(code).split() == ["conv2d", "False"]
