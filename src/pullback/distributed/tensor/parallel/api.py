"""`parallelize_module`: the parts of a module, each by its style."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from pullback import nn
from pullback.distributed.device_mesh import DeviceMesh, current_mesh
from pullback.distributed.tensor.parallel.style import ParallelStyle


def parallelize_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> nn.Module:
    """Cut a module, or those of its parts that a plan names (`"layers.*.w1": ColwiseParallel()`), over a mesh."""
    mesh = device_mesh or current_mesh()
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
            "parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if not path:
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        atoms = path.split(".")
        found = matching(module, atoms)
        if not found:
            warnings.warn(missing(module, path, atoms), stacklevel=2)
        for one in found:
            parallelize_module(one, mesh, style, src_data_rank=src_data_rank)
    return module


def matching(module: nn.Module, atoms: list[str]) -> list[nn.Module]:
    """The parts whose names fit a pattern."""
    if not atoms:
        return [module]
    parts: list[Any] = [part for name, part in module.named_children() if fnmatch(name, atoms[0])]
    return [one for part in parts for one in matching(part, atoms[1:])]


def missing(module: nn.Module, path: str, atoms: list[str]) -> str:
    """What is said of a pattern that fits nothing."""
    known = 0
    while known < len(atoms) and matching(module, atoms[: known + 1]):
        known += 1
    where = matching(module, atoms[:known])[0]
    return (
        f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{atoms[known]}' in module "
        f"{where}, skipping this plan entry."
    )
