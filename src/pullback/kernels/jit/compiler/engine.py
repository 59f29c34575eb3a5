"""From the text of a module to addresses: parsed, optimised and compiled once per machine, then kept on disk."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from pullback._runtime.building import inmost, made
from pullback.kernels.jit.compiler import cache
from pullback.kernels.jit.compiler.target import ENGINE, LAYOUT, MACHINE, TRIPLE

HEADER = f'target triple = "{TRIPLE}"\ntarget datalayout = "{LAYOUT}"\n'
FOOTER = """
attributes #0 = { nounwind "prefer-vector-width"="512" "no-trapping-math"="true" }
!0 = !{i32 1}
"""
if hasattr(getattr(llvm.ffi.lib, "_lock", None), "_lock"):
    inmost.append(llvm.ffi.lib._lock._lock)  # a child must not find it taken by a thread that it does not have
counts = {"compiled": 0, "loaded": 0}
"""How many modules were compiled, and how many were found in the cache."""


def load(text: str, names: list[str]) -> list[int]:
    """The addresses of functions of a module."""
    whole = HEADER + text + FOOTER

    def load_whole() -> list[int]:
        for name in re.findall(r"^@(\w+) = external global", text, re.MULTILINE):
            if not has_symbol(name):  # LLVM would put 0 in its place
                raise RuntimeError(f"kernels know nothing called {name}")
        key = cache.key_of(whole)
        found = cache.read(key)
        if found is None:
            found = compiled(whole)
            cache.write(key, found)
            counts["compiled"] += 1
        else:
            counts["loaded"] += 1
        ENGINE.add_object_file(llvm.object_file.ObjectFileRef.from_data(found))
        ENGINE.finalize_object()
        return [address_of(name) for name in names]

    return made(load_whole)


def address_of(name: str) -> int:
    """Where a loaded function stands."""
    address = int(ENGINE.get_function_address(name))
    if not address:
        raise RuntimeError(f"the compiled module has no function {name}")
    return address


def has_symbol(name: str) -> bool:
    """Whether kernels can call a function of this process by name."""
    return llvm.address_of_symbol(name) is not None


def compiled(text: str) -> bytes:
    """A module as an object file. Kernels are written as vectors already, so LLVM need not look for them."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    passes = llvm.create_pass_builder(MACHINE, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(MACHINE.emit_object(module))
