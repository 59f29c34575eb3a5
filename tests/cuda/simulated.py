"""A device whose kernels run on the host as they are written: the LLVM IR of each, compiled for this machine.

`PULLBACK_CUDA=simulate pytest tests/cuda` runs the tests on it. Every thread of a block has a stack of its own where a
kernel has barriers, and lets the next one go on when it reaches one: so sums, tiles and shuffles are computed by the
text that a GPU is given, and not by NumPy as on the emulated device. Small arrays only: a block takes a millisecond.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
from typing import Any

import llvmlite.binding as llvm

from pullback.kernels.cuda.emulated import Emulated

from .simulated_tiles import tiled

PARAMS = "i32 %sim_t, i32 %sim_x, i32 %sim_y, i32 %sim_z, i32 %sim_gx, i32 %sim_n, ptr %sim"
REGISTERS = {"tid.x": "t", "ctaid.x": "x", "ctaid.y": "y", "ctaid.z": "z", "nctaid.x": "gx", "ntid.x": "n"}
CONTEXT, STACK = 5120, 1 << 17
"""Bytes of a context of a thread (those of glibc, on any machine) and of its stack."""
MAIN, CONTEXTS = 64, 64 + CONTEXT
"""Where the context of whoever launched lies in the state, and where those of the threads begin; before them what the
block is told (arguments, place, sizes), after them 64 bytes for each thread, and a byte for each that is done."""
HELPERS = f"""
declare i32 @getcontext(ptr)
declare void @makecontext(ptr, ptr, i32, ...)
declare i32 @swapcontext(ptr, ptr)
declare i32 @setcontext(ptr)
define ptr @sim_context(ptr %sim, i32 %t) {{
  %a = mul i32 %t, {CONTEXT}
  %b = add i32 %a, {CONTEXTS}
  %p = getelementptr i8, ptr %sim, i32 %b
  ret ptr %p
}}
define i32 @sim_count(ptr %sim) {{
  %p = getelementptr i8, ptr %sim, i32 8
  %n = load i32, ptr %p
  ret i32 %n
}}
define ptr @sim_slot(ptr %sim, i32 %t, i32 %k) {{
  %n = call i32 @sim_count(ptr %sim)
  %s = call ptr @sim_context(ptr %sim, i32 %n)
  %a = mul i32 %t, 64
  %b = mul i32 %k, 4
  %c = add i32 %a, %b
  %p = getelementptr i8, ptr %s, i32 %c
  ret ptr %p
}}
define ptr @sim_done(ptr %sim, i32 %t) {{
  %n = call i32 @sim_count(ptr %sim)
  %s = call ptr @sim_slot(ptr %sim, i32 %n, i32 0)
  %p = getelementptr i8, ptr %s, i32 %t
  ret ptr %p
}}
define i32 @sim_next(ptr %sim, i32 %t, i32 %first, i32 %end) {{
entry:
  br label %search
search:
  %k = phi i32 [ %t, %entry ], [ %at, %search ]
  %up = add i32 %k, 1
  %over = icmp eq i32 %up, %end
  %at = select i1 %over, i32 %first, i32 %up
  %p = call ptr @sim_done(ptr %sim, i32 %at)
  %d = load volatile i8, ptr %p
  %busy = icmp eq i8 %d, 0
  %round = icmp eq i32 %at, %t
  %stop = or i1 %busy, %round
  br i1 %stop, label %found, label %search
found:
  ret i32 %at
}}
define void @sim_yield(ptr %sim, i32 %t, i32 %first, i32 %end) {{
entry:
  %k = call i32 @sim_next(ptr %sim, i32 %t, i32 %first, i32 %end)
  %alone = icmp eq i32 %k, %t
  br i1 %alone, label %back, label %other
other:
  %mine = call ptr @sim_context(ptr %sim, i32 %t)
  %theirs = call ptr @sim_context(ptr %sim, i32 %k)
  %r = call i32 @swapcontext(ptr %mine, ptr %theirs)
  br label %back
back:
  ret void
}}
define void @sim_block(ptr %sim, i32 %t) {{
  %n = call i32 @sim_count(ptr %sim)
  call void @sim_yield(ptr %sim, i32 %t, i32 0, i32 %n)
  ret void
}}
define void @sim_warp(ptr %sim, i32 %t) {{
  %first = and i32 %t, -32
  %end = add i32 %first, 32
  call void @sim_yield(ptr %sim, i32 %t, i32 %first, i32 %end)
  ret void
}}
define void @sim_thread(i32 %low, i32 %high, i32 %t) {{
entry:
  %a = zext i32 %low to i64
  %b = zext i32 %high to i64
  %c = shl i64 %b, 32
  %d = or i64 %a, %c
  %sim = inttoptr i64 %d to ptr
  %args = load ptr, ptr %sim
  %n = call i32 @sim_count(ptr %sim)
  %px = getelementptr i8, ptr %sim, i32 12
  %x = load i32, ptr %px
  %py = getelementptr i8, ptr %sim, i32 16
  %y = load i32, ptr %py
  %pz = getelementptr i8, ptr %sim, i32 20
  %z = load i32, ptr %pz
  %pg = getelementptr i8, ptr %sim, i32 24
  %gx = load i32, ptr %pg
  call void @sim_run(ptr %args, i32 %t, i32 %x, i32 %y, i32 %z, i32 %gx, i32 %n, ptr %sim)
  %mine = call ptr @sim_done(ptr %sim, i32 %t)
  store volatile i8 1, ptr %mine
  %k = call i32 @sim_next(ptr %sim, i32 %t, i32 0, i32 %n)
  %last = icmp eq i32 %k, %t
  %main = getelementptr i8, ptr %sim, i32 {MAIN}
  %theirs = call ptr @sim_context(ptr %sim, i32 %k)
  %to = select i1 %last, ptr %main, ptr %theirs
  %r = call i32 @setcontext(ptr %to)
  unreachable
}}
define void @sim_start(ptr %sim, ptr %stacks) {{
entry:
  %n = call i32 @sim_count(ptr %sim)
  %whole = ptrtoint ptr %sim to i64
  %low = trunc i64 %whole to i32
  %up = lshr i64 %whole, 32
  %high = trunc i64 %up to i32
  br label %make
make:
  %t = phi i32 [ 0, %entry ], [ %next, %make ]
  %done = call ptr @sim_done(ptr %sim, i32 %t)
  store volatile i8 0, ptr %done
  %context = call ptr @sim_context(ptr %sim, i32 %t)
  %g = call i32 @getcontext(ptr %context)
  %wide = zext i32 %t to i64
  %from = mul i64 %wide, {STACK}
  %stack = getelementptr i8, ptr %stacks, i64 %from
  %psp = getelementptr i8, ptr %context, i32 16
  store ptr %stack, ptr %psp
  %psize = getelementptr i8, ptr %context, i32 32
  store i64 {STACK}, ptr %psize
  call void (ptr, ptr, i32, ...) @makecontext(ptr %context, ptr @sim_thread, i32 3, i32 %low, i32 %high, i32 %t)
  %next = add i32 %t, 1
  %all = icmp eq i32 %next, %n
  br i1 %all, label %go, label %make
go:
  %main = getelementptr i8, ptr %sim, i32 {MAIN}
  %first = call ptr @sim_context(ptr %sim, i32 0)
  %r = call i32 @swapcontext(ptr %main, ptr %first)
  ret void
}}
"""
SHUFFLES = """
define i32 @sim_shuffle(ptr %sim, i32 %t, i32 %value, i32 %other) {
  %mine = call ptr @sim_slot(ptr %sim, i32 %t, i32 0)
  store volatile i32 %value, ptr %mine
  call void @sim_warp(ptr %sim, i32 %t)
  %at = xor i32 %t, %other
  %theirs = call ptr @sim_slot(ptr %sim, i32 %at, i32 0)
  %found = load volatile i32, ptr %theirs
  call void @sim_warp(ptr %sim, i32 %t)
  ret i32 %found
}
define i32 @sim_shuffle_up(ptr %sim, i32 %t, i32 %value, i32 %distance) {
  %lane = and i32 %t, 31
  %lower = sub i32 %t, %distance
  %has = icmp uge i32 %lane, %distance
  %from = select i1 %has, i32 %lower, i32 %t
  %other = xor i32 %from, %t
  %found = call i32 @sim_shuffle(ptr %sim, i32 %t, i32 %value, i32 %other)
  ret i32 %found
}
define float @sim_shuffle_float_up(ptr %sim, i32 %t, float %value, i32 %distance) {
  %a = bitcast float %value to i32
  %b = call i32 @sim_shuffle_up(ptr %sim, i32 %t, i32 %a, i32 %distance)
  %c = bitcast i32 %b to float
  ret float %c
}
define float @sim_shuffle_float(ptr %sim, i32 %t, float %value, i32 %other) {
  %a = bitcast float %value to i32
  %b = call i32 @sim_shuffle(ptr %sim, i32 %t, i32 %a, i32 %other)
  %c = bitcast i32 %b to float
  ret float %c
}
"""


def half_of(kind: str) -> str:
    """The function that reads one of the two halves of 32 bits as a float."""
    if kind == "bf16":
        body = "  %c = zext i16 %b to i32\n  %d = shl i32 %c, 16\n  %e = bitcast i32 %d to float"
    else:
        body = "  %c = bitcast i16 %b to half\n  %e = fpext half %c to float"
    return f"""
define float @sim_{kind}(i32 %two, i32 %which) {{
  %s = mul i32 %which, 16
  %a = lshr i32 %two, %s
  %b = trunc i32 %a to i16
{body}
  ret float %e
}}
"""


NAMES = {"bf16": "bf16", "f16": "f32.f32", "tf32": "tf32"}


def mma(kind: str) -> tuple[str, str]:
    """mma.m16n8k16 of halves, or m16n8k8 of tf32: every lane tells the others its parts and computes its results."""
    narrow = kind == "tf32"
    regs, depth = (4, 8) if narrow else (4, 16)
    shape = "m16n8k8" if narrow else "m16n8k16"
    type = "{float, float, float, float}"
    word = "<2 x half>" if kind == "f16" else "i32"
    names = [f"{word} %x{k}" for k in range(regs + 2)] + [f"float %c{k}" for k in range(4)]
    lines = [f"define {type} @sim_mma_{kind}({', '.join(names)}, ptr %sim, i32 %t) {{"]
    lines += [f"  %{name} = bitcast {word} %x{k} to i32" for k, name in enumerate(["a0", "a1", "a2", "a3", "b0", "b1"])]
    made = 0

    def emit(text: str) -> str:
        nonlocal made
        made += 1
        lines.append(f"  %v{made} = {text}")
        return f"%v{made}"

    def slot(lane: str, reg: int | str) -> str:
        return emit(f"call ptr @sim_slot(ptr %sim, i32 {lane}, i32 {reg})")

    for k, name in enumerate(["a0", "a1", "a2", "a3", "b0", "b1"]):
        lines.append(f"  store volatile i32 %{name}, ptr {slot('%t', k)}")
    lines.append("  call void @sim_warp(ptr %sim, i32 %t)")
    warp, lane = emit("and i32 %t, -32"), emit("and i32 %t, 31")
    group, pair = emit(f"lshr i32 {lane}, 2"), emit(f"and i32 {lane}, 3")
    sums = []
    for result in range(4):
        total = f"%c{result}"
        column = emit(f"shl i32 {pair}, 1")
        column = emit(f"add i32 {column}, {result % 2}")
        for k in range(depth):
            within = k % 4 if narrow else k % 8 // 2
            a_lane = emit(f"shl i32 {group}, 2")
            a_lane = emit(f"add i32 {a_lane}, {within}")
            a_lane = emit(f"add i32 {a_lane}, {warp}")
            b_lane = emit(f"shl i32 {column}, 2")
            b_lane = emit(f"add i32 {b_lane}, {within}")
            b_lane = emit(f"add i32 {b_lane}, {warp}")
            high = int(k >= depth // 2)
            a = emit(f"load volatile i32, ptr {slot(a_lane, result // 2 + 2 * high)}")
            b = emit(f"load volatile i32, ptr {slot(b_lane, 4 + high)}")
            if narrow:
                a, b = (emit(f"and i32 {x}, -8192") for x in (a, b))  # of whose bits the cores read 19
                a, b = emit(f"bitcast i32 {a} to float"), emit(f"bitcast i32 {b} to float")
            else:
                a, b = (emit(f"call float @sim_{kind}(i32 {x}, i32 {k % 2})") for x in (a, b))
            term = emit(f"fmul float {a}, {b}")
            total = emit(f"fadd float {total}, {term}")
        sums.append(total)
    lines.append("  call void @sim_warp(ptr %sim, i32 %t)")
    out = "poison"
    for k, total in enumerate(sums):
        out = emit(f"insertvalue {type} {out}, float {total}, {k}")
    lines += [f"  ret {type} {out}", "}\n"]
    return ("" if narrow else half_of(kind)) + "\n".join(lines), f"llvm.nvvm.mma.{shape}.row.col.{NAMES[kind]}"


def translated(text: str) -> tuple[str, bool]:
    """The IR of a kernel for this machine, and whether its threads wait for each other."""
    text = re.sub(r" addrspace\([13]\)", "", text)
    waits = re.search(r"call .*(barrier\.cta|shfl\.sync|nvvm\.mma)", text) is not None
    helpers = HELPERS + SHUFFLES if waits else ""
    for register, short in REGISTERS.items():
        text = re.sub(rf"declare i32 @llvm\.nvvm\.read\.ptx\.sreg\.{re.escape(register)}\(\)\n", "", text)
        text = text.replace(f"call i32 @llvm.nvvm.read.ptx.sreg.{register}()", f"add i32 %sim_{short}, 0")
    text = re.sub(r"llvm\.nvvm\.(sin|cos)\.approx\.f\b", r"llvm.\1.f32", text)
    text = text.replace("@llvm.nvvm.ex2.approx.ftz.f(", "@llvm.exp2.f32(")
    text = re.sub(r"declare void @llvm\.nvvm\.barrier.*\n", "", text)
    text = text.replace(
        "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)", "call void @sim_block(ptr %sim, i32 %sim_t)"
    )
    text = re.sub(r"declare \w+ @llvm\.nvvm\.shfl.*\n", "", text)
    for name, function in (("i32", "sim_shuffle"), ("float", "sim_shuffle_float")):
        suffix = "i32" if name == "i32" else "f32"
        text = re.sub(
            rf"call {name} @llvm\.nvvm\.shfl\.sync\.bfly\.{suffix}\(i32 -1, ({name} \S+), (i32 \S+), i32 31\)",
            rf"call {name} @{function}(ptr %sim, i32 %sim_t, \1, \2)",
            text,
        )
        text = re.sub(
            rf"call {name} @llvm\.nvvm\.shfl\.sync\.up\.{suffix}\(i32 -1, ({name} \S+), (i32 \S+), i32 0\)",
            rf"call {name} @{function}_up(ptr %sim, i32 %sim_t, \1, \2)",
            text,
        )
    for kind in ("bf16", "f16", "tf32"):
        if f".row.col.{NAMES[kind]}(" in text:
            helper, name = mma(kind)
            text = re.sub(rf"declare .*@{re.escape(name)}\(.*\n", "", text)
            text = re.sub(rf"@{re.escape(name)}\((.*)\)\n", rf"@sim_mma_{kind}(\1, ptr %sim, i32 %sim_t)\n", text)
            helpers += helper
    text, more = tiled(text)
    helpers += more
    found = re.search(r"define ptx_kernel void @(\w+)\(((?:byval\(.*?\)|[^()])*)\)[^{\n]*\{", text)
    assert found is not None
    name, params = found[1], [p.strip() for p in found[2].split(",")]
    types = [re.sub(r"\b(noalias|align \d+)\b|byval\(.*?\)", "", p.rsplit(" ", 1)[0]).strip() for p in params]
    plain = [re.sub(r"byval\(.*?\)", "", p) for p in params]
    text = text.replace(found[0], f"define internal void @{name}({', '.join(plain)}, {PARAMS}) {{")
    calls = []
    for k, type in enumerate(types):
        place = f"getelementptr i64, ptr %args, i64 {k}"
        whole = "byval" in params[k]  # the argument itself lies there
        calls.append(f"  %x{k} = {place}" if whole else f"  %p{k} = {place}\n  %x{k} = load {type}, ptr %p{k}")
    given = ", ".join(f"{type} %x{k}" for k, type in enumerate(types))
    entry = f"define void @sim_run(ptr %args, {PARAMS}) {{\n" + "\n".join(calls)
    own = ", ".join(p for p in PARAMS.split(", "))
    entry += f"\n  call void @{name}({given}, {own})\n  ret void\n}}\n"
    return helpers + text + entry, waits


class Simulated(Emulated):
    """Memory, streams and events of the emulated device; kernels run."""

    emulated = False

    def __init__(self, count: int = 1) -> None:
        super().__init__(count)
        for device in self.devices:  # what tensor cores take from shared memory in 9.0 is not simulated
            device.attributes["major"] = 8
        self.engines: list[Any] = []
        self.stacks: list[mmap.mmap] = []
        """Stacks of the threads of a block, those that nobody uses now."""

    def program(self, index: int, name: str, text: str) -> Any:
        """A kernel, instead of launch.program."""
        assert f"define ptx_kernel void @{name}(" in text  # by which a driver would look for it
        assert f"@{name}(" in text, f"a kernel is asked for by the name {name}, which is another's"
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        body, waits = translated(text)
        libc = ctypes.CDLL(None)
        for name in ("getcontext", "makecontext", "swapcontext", "setcontext"):
            llvm.add_symbol(name, ctypes.cast(getattr(libc, name), ctypes.c_void_p).value)
        module = llvm.parse_assembly(body)
        module.verify()
        features = llvm.get_host_cpu_features().flatten()  # without them halves are converted by a library
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=1)
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        self.engines.append(engine)
        if waits:
            start = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
            return start(engine.get_function_address("sim_start")), True
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int32] * 6, ctypes.c_void_p)
        return run(engine.get_function_address("sim_run")), False

    def launch(
        self, index: int, function: Any, grid: Any, threads: int, stream: int, arguments: bytes, shared: int = 0
    ) -> None:
        """Run all threads of all blocks."""
        run, waits = function
        packed = ctypes.create_string_buffer(arguments, len(arguments))
        places = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
        if not waits:
            for x, y, z in places:
                for t in range(threads):
                    run(packed, t, x, y, z, grid[0], threads, None)
            return
        state = bytearray(CONTEXTS + threads * (CONTEXT + 64 + 1) + 64)
        base = ctypes.addressof(ctypes.c_char.from_buffer(state))
        skip = -base % 64
        stacks = self.stacks.pop() if self.stacks else mmap.mmap(-1, 1024 * STACK)
        for x, y, z in places:
            told = struct.pack("<QIIIII", ctypes.addressof(packed), threads, x, y, z, grid[0])
            state[skip : skip + len(told)] = told
            run(base + skip, ctypes.addressof(ctypes.c_char.from_buffer(stacks)))
        self.stacks.append(stacks)
