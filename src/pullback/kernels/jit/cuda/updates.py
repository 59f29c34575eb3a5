"""Updates of many tuples of arrays in one launch: what kernels/jit/pointwise/update.py does, for a grid of threads.

A table has a row for each tuple: the addresses of its arrays, and how many elements they have. It is an argument of the
kernel, the last one: gradients lie elsewhere in every step, and nothing has to be copied for it. Blocks of one column
of the grid share a tuple.
"""

from __future__ import annotations

import hashlib

from pullback.kernels.jit.compiler.target import ELEMENTS, SIZES
from pullback.kernels.jit.cuda.ptx import DECLARATIONS
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.language.emit import emit_step
from pullback.kernels.jit.language.expression import Node
from pullback.kernels.jit.pointwise.update import parts_of

GLOBAL = "ptr addrspace(1)"
WORDS = (32, 128, 480)
"""How many words a table may have: all arguments of a kernel together may take 4096 bytes."""
EACH = 4
"""Elements of a thread, a block of threads apart."""
THREADS = 256


def text_of(dtype: str, arrays: int, results: dict[int, Node], words: int) -> tuple[str, str]:
    """The name of the kernel and its module. Arguments: a number for each of `parts_of`, and the table."""
    code, element = Code("kernel"), ELEMENTS[dtype]
    type, size = f"<1 x {element}>", SIZES[element]
    steps, numbers = parts_of(results.values())
    for short, register in (("t", "tid.x"), ("k", "ctaid.x"), ("y", "ctaid.y")):
        code.do(f"%{short}32 = call i32 @llvm.nvvm.read.ptx.sreg.{register}()")
        code.do(f"%{short} = zext i32 %{short}32 to i64")
    thread, block, row = [Value(code, f"%{name}", "i64") for name in ("t", "k", "y")]

    def word(place: int) -> Value:
        return code.load(Value(code, "%table", "ptr"), row * (arrays + 1) + place, "i64")

    bases = [code.emit(f"inttoptr {word(i)} to {GLOBAL}", GLOBAL) for i in range(arrays)]
    count = word(arrays)
    known = {}
    for nr, node in enumerate(numbers):
        known[id(node)] = code.splat(code.convert(Value(code, f"%n{nr}", "double"), element), 1)
    for turn in range(EACH):
        at = block * (THREADS * EACH) + thread + turn * THREADS
        with code.when(at < count):
            places = [code.emit(f"getelementptr {element}, {GLOBAL} {b.name}, i64 {at.name}", GLOBAL) for b in bases]
            values = dict(known)
            for node in steps:
                if node.op == "input":
                    place = places[node.value]
                    read = code.emit(f"load {element}, {GLOBAL} {place.name}, align {size}", element)
                    values[id(node)] = code.splat(read, 1)
                    continue
                args = [values.get(id(arg)) or code.const(arg.value, type) for arg in node.args]
                values[id(node)] = emit_step(code, node, args, type)
            for place, root in results.items():
                out = code.lane(values[id(root)], 0)
                code.do(f"store {out}, {GLOBAL} {places[place].name}, align {size}")
    declared = [line for line in sorted(code.declared) if line not in DECLARATIONS]
    body = "\n".join([*code.entry, *code.lines])
    name = f"updates_{words}_{hashlib.sha256(body.encode()).hexdigest()[:16]}"
    params = ", ".join([*[f"double %n{i}" for i in range(len(numbers))], f"ptr byval([{words} x i64]) align 8 %table"])
    head = f"define ptx_kernel void @{name}({params}) {{\nentry:"
    return name, "\n".join([DECLARATIONS, *declared, *code.functions, head, body, "  ret void\n}\n"])
