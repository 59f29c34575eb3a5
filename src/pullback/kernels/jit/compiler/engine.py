"""From the text of a module to addresses: parsed, optimised and compiled once per machine, then kept on disk."""

from __future__ import annotations

import zlib

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
SHORT = 1 << 14
"""Characters of a module in which a call of one function by another counts, as in entries of small kernels. What longer
ones compute takes its time, and so does LLVM where it asks what one function could tell about another."""
counts = {"compiled": 0, "loaded": 0}
"""How many modules were compiled, and how many were found in the cache."""
writes_all = False
"""Whether nothing is recalled, and what is written by one recipe is compared: tests do that."""


def load(text: str, names: list[str], recipe: str = "") -> list[int]:
    """The addresses of functions of a module. A recipe that says all about its text lets others `recall` it."""

    def load_whole() -> list[int]:
        key = cache.key_of(HEADER + text + FOOTER)
        if recipe:
            remember(recipe, key, text)
        return placed(text, key, names)

    return made(load_whole)


def recall(recipe: str, names: list[str]) -> tuple[list[int], bytes] | None:
    """The addresses of functions of a module, and its text, packed, if a process with the same sources has made it.

    To write a text takes longer than to load what it was compiled to.
    """

    def load_whole() -> tuple[list[int], bytes] | None:
        found = None if writes_all else cache.read(note_of(recipe), ".note")
        if found is None:
            return None
        head, _, packed = found.partition(b"\n")
        key, *outside = head.decode().split()
        compiled = cache.read(key)
        if compiled is None or not all([has_symbol(name) for name in outside]):
            return None
        counts["loaded"] += 1
        return linked(compiled, names), packed

    return made(load_whole)


def remember(recipe: str, key: str, text: str) -> None:
    """Note what a recipe stands for."""
    if writes_all and (before := cache.read(note_of(recipe), ".note")) is not None:
        if unpacked(before.partition(b"\n")[2]) != text:
            raise AssertionError(f"two texts by one recipe: {recipe}")
        return
    cache.write(note_of(recipe), " ".join([key, *outside_names(text)]).encode() + b"\n" + packed(text), ".note")


def note_of(recipe: str) -> str:
    """The name under which it is noted what a recipe stands for."""
    return cache.key_of(f"{cache.sources()} {recipe}")


def packed(text: str) -> bytes:
    """A text in a tenth of its bytes."""
    return zlib.compress(text.encode(), 1)


def unpacked(data: bytes) -> str:
    """The text again."""
    return zlib.decompress(data).decode()


def outside_names(text: str) -> list[str]:
    """What a module refers to that is not a function."""
    return [line[1:].partition(" ")[0] for line in text.split("\n") if line[:1] == "@" and " = external global" in line]


def placed(text: str, key: str, names: list[str]) -> list[int]:
    """The addresses of functions of a module, compiled if the cache does not have it."""
    for name in outside_names(text):
        if not has_symbol(name):  # LLVM would put 0 in its place
            raise RuntimeError(f"kernels know nothing called {name}")
    found = cache.read(key)
    if found is None:
        found = compiled(HEADER + text + FOOTER)
        cache.write(key, found)
        counts["compiled"] += 1
    else:
        counts["loaded"] += 1
    return linked(found, names)


def linked(compiled: bytes, names: list[str]) -> list[int]:
    """The addresses of functions of an object file."""
    ENGINE.add_object_file(llvm.object_file.ObjectFileRef.from_data(compiled))
    ENGINE.finalize_object()
    return [address_of(name) for name in names]


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
    if len(text) <= SHORT:
        passes.getModulePassManager().run(module, passes)
    else:
        simplify = passes.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                simplify.run(function, passes)
    return bytes(MACHINE.emit_object(module))
