"""What kernels do with tiles in shared memory on the simulated device: copies ahead, matrices as operands, rounding."""

from __future__ import annotations

import re

AHEAD = """
@sim_queue = internal global [196608 x i64] zeroinitializer
@sim_queued = internal global i64 0
@sim_left = internal global i64 0
define void @sim_copy(i64 %skipped, i64 %there, ptr %from, i32 %size, i32 %t) {
  %at = add i64 %there, %skipped
  %to = inttoptr i64 %at to ptr
  store <4 x i32> splat (i32 -1), ptr %to, align 16
  %n = load i64, ptr @sim_queued
  %k = mul i64 %n, 3
  %a = getelementptr i64, ptr @sim_queue, i64 %k
  %b = getelementptr i64, ptr %a, i64 1
  %c = getelementptr i64, ptr %a, i64 2
  store i64 %at, ptr %a
  %some = icmp ne i32 %size, 0
  %known = select i1 %some, ptr %from, ptr null
  store ptr %known, ptr %b
  %wide = zext i32 %t to i64
  store i64 %wide, ptr %c
  %more = add i64 %n, 1
  store i64 %more, ptr @sim_queued
  %l = load i64, ptr @sim_left
  %m = add i64 %l, 1
  store i64 %m, ptr @sim_left
  ret void
}
define void @sim_arrived(i32 %t) {
entry:
  %wide = zext i32 %t to i64
  %n = load i64, ptr @sim_queued
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %look, label %done
look:
  %k = mul i64 %i, 3
  %a = getelementptr i64, ptr @sim_queue, i64 %k
  %b = getelementptr i64, ptr %a, i64 1
  %c = getelementptr i64, ptr %a, i64 2
  %to = load ptr, ptr %a
  %owner = load i64, ptr %c
  %waits = icmp ne ptr %to, null
  %mine = icmp eq i64 %owner, %wide
  %both = and i1 %waits, %mine
  br i1 %both, label %copy, label %on
copy:
  %from = load ptr, ptr %b
  %none = icmp eq ptr %from, null
  br i1 %none, label %zeros, label %bytes
zeros:
  store <4 x i32> zeroinitializer, ptr %to, align 16
  br label %copied
bytes:
  %x = load <4 x i32>, ptr %from, align 16
  store <4 x i32> %x, ptr %to, align 16
  br label %copied
copied:
  store ptr null, ptr %a
  %l = load i64, ptr @sim_left
  %m = sub i64 %l, 1
  store i64 %m, ptr @sim_left
  br label %on
on:
  %next = add i64 %i, 1
  br label %head
done:
  %left = load i64, ptr @sim_left
  %all = icmp eq i64 %left, 0
  %count = select i1 %all, i64 0, i64 %n
  store i64 %count, ptr @sim_queued
  ret void
}
"""
"""Copies are done by the wait of the thread that asked for them, and until then there are nans."""


def matrices(turned: bool) -> str:
    """ldmatrix.x4: lane 8 j + i says where row i of matrix j begins, and gets two of the elements of each."""
    several, lines = "{i32, i32, i32, i32}", []
    for j in range(4):
        for k in range(2):  # which row, and which of its elements
            row, element = (f"%pair, {k}", "%group") if turned else ("%group, 0", f"%pair{k}")
            lines.append(f"""
  %r{j}{k} = add i32 {row}
  %s{j}{k} = add i32 %r{j}{k}, {8 * j}
  %l{j}{k} = add i32 %s{j}{k}, %warp
  %a{j}{k} = call ptr @sim_slot(ptr %sim, i32 %l{j}{k}, i32 0)
  %b{j}{k} = load volatile ptr, ptr %a{j}{k}, align 4
  %c{j}{k} = getelementptr i16, ptr %b{j}{k}, i32 {element}
  %d{j}{k} = load i16, ptr %c{j}{k}
  %e{j}{k} = zext i16 %d{j}{k} to i32""")
        lines.append(f"""
  %f{j} = shl i32 %e{j}1, 16
  %g{j} = or i32 %f{j}, %e{j}0
  %o{j + 1} = insertvalue {several} {f"%o{j}" if j else "poison"}, i32 %g{j}, {j}""")
    return f"""
define {several} @sim_matrices{"_turned" * turned}(i64 %skipped, i64 %base, ptr %sim, i32 %t) {{
  %at = add i64 %base, %skipped
  %place = inttoptr i64 %at to ptr
  %mine = call ptr @sim_slot(ptr %sim, i32 %t, i32 0)
  store volatile ptr %place, ptr %mine, align 4
  call void @sim_warp(ptr %sim, i32 %t)
  %warp = and i32 %t, -32
  %lane = and i32 %t, 31
  %group = lshr i32 %lane, 2
  %rest = and i32 %lane, 3
  %pair = shl i32 %rest, 1
  %pair0 = add i32 %pair, 0
  %pair1 = add i32 %pair, 1
{"".join(lines)}
  call void @sim_warp(ptr %sim, i32 %t)
  ret {several} %o4
}}
"""


ROUNDED = """
define i16 @sim_rounded(float %x) {
  %a = bitcast float %x to i32
  %b = lshr i32 %a, 16
  %c = and i32 %b, 1
  %d = add i32 %c, 32767
  %e = add i32 %a, %d
  %f = lshr i32 %e, 16
  %nan = fcmp uno float %x, %x
  %g = select i1 %nan, i32 32767, i32 %f
  %h = trunc i32 %g to i16
  ret i16 %h
}
define <2 x bfloat> @sim_pack_bf16(float %high, float %low) {
  %a = call i16 @sim_rounded(float %high)
  %b = call i16 @sim_rounded(float %low)
  %c = insertelement <2 x i16> poison, i16 %b, i64 0
  %d = insertelement <2 x i16> %c, i16 %a, i64 1
  %e = bitcast <2 x i16> %d to <2 x bfloat>
  ret <2 x bfloat> %e
}
define <2 x half> @sim_pack_f16(float %high, float %low) {
  %a = insertelement <2 x float> poison, float %low, i64 0
  %b = insertelement <2 x float> %a, float %high, i64 1
  %c = fptrunc <2 x float> %b to <2 x half>
  ret <2 x half> %c
}
"""


def tiled(text: str) -> tuple[str, str]:
    """The text of a kernel with calls of functions in place of such instructions, and these functions."""
    helpers = ""
    if "@rooms = external" in text:  # as much as a block may ask for
        text = text.replace("@rooms = external global [0 x i8]", "@rooms = internal global [232448 x i8] undef")
    if "cp.async.cg" in text:
        text = text.replace("declare void @llvm.nvvm.cp.async.wait.all()\n", "")
        text = text.replace("@llvm.nvvm.cp.async.wait.all()", "@sim_arrived(i32 %sim_t)")
        asm = r'asm sideeffect "cp\.async\.cg\.shared\.global \[\$0\+(\d+)\], \[\$1\], 16, \$2;", "[^"]*"\('
        text = re.sub(asm + r"(.*)\)\n", r"@sim_copy(i64 \1, \2, i32 %sim_t)\n", text)
        helpers += AHEAD
    text = text.replace("declare void @llvm.nvvm.bar.warp.sync(i32)\n", "")
    text = text.replace("@llvm.nvvm.bar.warp.sync(i32 -1)", "@sim_warp(ptr %sim, i32 %sim_t)")
    for turned in (False, True):
        kind = re.escape("ldmatrix.sync.aligned.m8n8.x4" + ".trans" * turned + ".shared.b16")
        asm = rf'asm sideeffect "{kind} [^+"]*\+(\d+)\];", "[^"]*"'
        if re.search(asm, text):
            made = f"sim_matrices{'_turned' * turned}"
            text = re.sub(asm + r"\((.*)\) convergent", rf"@{made}(i64 \1, \2, ptr %sim, i32 %sim_t)", text)
            helpers += matrices(turned)
    for kind in ("bf16", "f16"):
        if f"llvm.nvvm.ff2{kind}x2.rn" in text:
            text = re.sub(rf"declare .*@llvm\.nvvm\.ff2{kind}x2\.rn\(.*\n", "", text)
            text = text.replace(f"@llvm.nvvm.ff2{kind}x2.rn(", f"@sim_pack_{kind}(")
            helpers += ROUNDED
    return text, helpers
