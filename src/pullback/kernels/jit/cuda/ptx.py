"""From LLVM IR to PTX: LLVM's NVPTX target, which llvmlite brings along."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from pullback._runtime.building import made
from pullback.kernels.jit.language.expression import Untraceable

TRIPLE = "nvptx64-nvidia-cuda"
DECLARATIONS = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
"""
KNOWN = ((7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))
"""The compute capabilities PTX is written for; newer devices run what was written for an older one."""


@cache
def machine(capability: tuple[int, int], alone: bool = False) -> Any:
    """LLVM's idea of a device; `alone`, with what no other generation has: 9.0's wgmma."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    major, minor = max([known for known in KNOWN if known <= capability], default=KNOWN[0])
    version = "+ptx87" if (major, minor) >= (12, 0) else "+ptx80" if (major, minor) < (10, 0) else "+ptx86"
    cpu = f"sm_{major}{minor}{'a' if alone else ''}"
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, features=version, opt=3)


def compiled(text: str, capability: tuple[int, int] = (9, 0)) -> str:
    """The PTX of a module of LLVM IR, verified by LLVM and optimised."""

    def work() -> str:
        there = machine(capability, "wgmma" in text)
        head = f'target triple = "{TRIPLE}"\ntarget datalayout = "{there.target_data}"\n'
        module = llvm.parse_assembly(head + text)
        module.verify()
        builder = llvm.create_pass_builder(there, llvm.create_pipeline_tuning_options(3))
        builder.getModulePassManager().run(module, builder)
        return str(there.emit_assembly(module))

    ptx = made(work)
    missing = re.search(r"\.extern \.func.*?(\w+)\s*\n?\(", ptx, re.S)
    if missing:  # a function of the host's libraries
        raise Untraceable(f"{missing[1]} on a CUDA device")
    return ptx
