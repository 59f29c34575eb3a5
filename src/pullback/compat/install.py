"""`install()`: for this process, `import torch` finds pullback."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from pullback import Tensor, dtype
from pullback.compat.missing import TorchModule, own_dict, torch_modules
from pullback.compat.torch_version import TorchVersion
from pullback.nn import Parameter

OPTIMIZERS = ["_adafactor", "adadelta", "adagrad", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop"]
"""Modules of torch that hold an optimizer and its step as a function: those of Adam and SGD are ours, too."""
ELSEWHERE = {
    "functorch": "pullback.compat.functorch",
    "functorch._src.make_functional": "pullback.compat.functorch.make_functional",
    "functorch._src.vmap": "pullback.func",
    "functorch.experimental": "pullback.func",
    "torch._C": "pullback.compat.c_names",
    "torch.__config__": "pullback.compat.config",
    "torch._C._functorch": "pullback.compat.functorch.wrappers",
    "torch._VF": "pullback",
    "torch._dynamo": "pullback.compat.compiling",
    "torch._functorch.apis": "pullback.func",
    "torch._functorch.deprecated": "pullback.compat.functorch.deprecated",
    "torch._functorch.eager_transforms": "pullback.func",
    "torch._functorch.functional_call": "pullback.func",
    "torch._functorch.make_functional": "pullback.compat.functorch.make_functional",
    "torch._functorch.vmap": "pullback.func",
    "torch._jit_internal": "pullback.jit.marks",
    "torch._library.custom_ops": "pullback.library.custom_ops",
    "torch._library.infer_schema": "pullback.library.infer",
    "torch._ops": "pullback.library.overloads",
    "torch._tensor_str": "pullback.printing",
    "torch._utils": "pullback.compat.private_utils",
    "torch._vmap_internals": "pullback.compat.functorch.vmap_internals",
    "torch.accelerator": "pullback.compat.accelerator",
    "torch.amp.autocast_mode": "pullback.amp",
    "torch.compiler": "pullback.compat.compiling",
    "torch.futures": "pullback.compat.futures",
    "torch.hub": "pullback.compat.hub",
    "torch.multiprocessing": "pullback.distributed.multiprocessing",
    "torch.multiprocessing.reductions": "pullback.distributed.multiprocessing.reductions",
    "torch.multiprocessing.spawn": "pullback.distributed.multiprocessing.spawn",
    "torch.nested._internal": None,
    "torch.nested._internal.nested_tensor": "pullback.nested.jagged",
    "torch.onnx": None,
    **{f"torch.optim.{name}": "pullback.optim._functional" for name in OPTIMIZERS},
    "torch.ops": "pullback.compat.op_spaces",
    "torch.storage": "pullback.ops.create.storage",
    "torch.torch_version": "pullback.compat.torch_version",
    "torch.utils._contextlib": "pullback.compat.context_names",
    "torch.utils.data._utils": None,
    "torch.utils.data._utils.collate": "pullback.utils.data.collate",
    "torch.utils.data._utils.fetch": "pullback.utils.data.fetch",
    "torch.utils.data._utils.worker": "pullback.utils.data.worker",
    "torch.types": "pullback.compat.types",
    "torchvision": None,
    "torchvision.models": "pullback.models",
    "torchvision.models.resnet": "pullback.models.resnet",
    "safetensors": "pullback.serialization.safetensors",
    "safetensors.torch": "pullback.serialization.safetensors",
}
"""Modules whose names here are not torch's; None for those that only hold others."""
TORCHS = {"functorch", "torch"}
"""The packages that a torch brings."""
VALUES = (str, int, float, complex, tuple, list, dict, set, frozenset, dtype)
VERSION = TorchVersion("2.13.0+pullback")
TOP_LEVEL = "".join(f"{name}\n" for name in sorted(TORCHS))
METADATA = f"""Metadata-Version: 2.1
Name: torch
Version: {VERSION}
Summary: The name torch, answered by pullback.
Requires-Dist: pullback
"""


class TorchDistribution(Distribution):
    """What `importlib.metadata` says of torch."""

    def read_text(self, filename: str) -> str | None:
        """The text of a file of the metadata."""
        return {"METADATA": METADATA, "INSTALLER": "pullback\n", "top_level.txt": TOP_LEVEL}.get(filename)

    def locate_file(self, path: Any) -> Any:
        """No file of its own."""
        raise FileNotFoundError(f"torch is answered by pullback in this process: there is no {path}")


class TorchFinder(MetaPathFinder, Loader):
    """Makes a module for every name below torch and functorch; for others of ELSEWHERE where they are not installed."""

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}
        self.roots = TORCHS | {root for root in ("torchvision", "safetensors") if PathFinder.find_spec(root) is None}

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Answer for torch's names only, and not for those that are no modules: `torch.Tensor` is a class."""
        root = fullname.partition(".")[0]
        if root not in self.roots or (root == "safetensors" and fullname not in ELSEWHERE):
            return None
        own = self.own(fullname)
        if is_value(own) or (own is None and root in TORCHS and fullname not in {*torch_modules(), *ELSEWHERE}):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    @staticmethod
    def find_distributions(context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """The metadata of torch, for those who ask for it by name or for all."""
        return [TorchDistribution()] if context is None or context.name in (None, "torch") else []

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of this name, on ours where there is one."""
        module = TorchModule(spec.name, self.own(spec.name), self.modules, ELSEWHERE)
        if spec.name == "torch":
            own_dict(module)["__version__"] = VERSION
        self.modules[spec.name] = module
        return module

    def own(self, name: str) -> Any:
        """What has this name here: a module, or an object that stands for one, as `backends.cudnn`; None if nothing."""
        own = own_name(name)
        if own and exists(own):
            return importlib.import_module(own)
        parent, _, last = name.rpartition(".")
        above = getattr(self.modules.get(parent), "_pullback_target", None)
        return None if above is None else getattr(above, last, None)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: the module is ours."""


def is_value(own: Any) -> bool:
    """Whether something is a class, a function or a value, and neither a module nor what stands for one."""
    return not isinstance(own, ModuleType) and (callable(own) or isinstance(own, VALUES))


def own_name(name: str) -> str | None:
    """The module of ours that has a name of torch's; None where there can be none."""
    if name in ELSEWHERE or name.partition(".")[0] != "torch":
        return ELSEWHERE.get(name)
    return "pullback" + name.removeprefix("torch")


def exists(name: str) -> bool:
    """Whether there is such a module."""
    parent = name.rpartition(".")[0]
    if parent and not (parent in sys.modules or exists(parent)):
        return False
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


finder: TorchFinder | None = None
HOMES = {Tensor: ("torch", Tensor.__module__), Parameter: ("torch.nn.parameter", Parameter.__module__)}
"""Classes that say they are torch's while torch is answered here: packages choose by that what to call. And ours."""


def install() -> None:
    """Let `import torch`, `import torch.nn.functional`, `from torchvision.models import resnet18` find pullback.

    What pullback has not is imported as a stand-in that raises NotImplementedError with its name when it is used.
    """
    global finder
    if finder is not None:
        return
    loaded = sys.modules.get("torch")
    if loaded is not None:
        raise RuntimeError(
            "torch itself is already imported in this process; call pullback.compat.install() before that"
        )
    finder = TorchFinder()
    sys.meta_path.insert(0, finder)
    for kind, (home, _) in HOMES.items():
        kind.__module__ = home


def take_over(name: str) -> None:
    """Put the module of pullback in the place of the one that is being imported: what the shim's `torch` does."""
    sys.modules.pop(name, None)
    install()
    importlib.import_module(name)


def uninstall() -> None:
    """Take the names away again."""
    global finder
    if finder is None:
        return
    sys.meta_path.remove(finder)
    for kind, (_, home) in HOMES.items():
        kind.__module__ = home
    for name in finder.modules:
        sys.modules.pop(name, None)
    finder = None
