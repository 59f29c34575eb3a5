"""Random numbers for a grid of threads: Philox 4x32-10, drawn and spread over the elements as torch's kernels do it.

Every thread has a sequence of its own, four words a turn. Turn r of thread t of T gives `unroll` elements: those at
t + (unroll * r + k) * T for k = 0, 1, ...: `far`; or, where dropout and tosses of tensors draw, neighbours: `near`.
"""

from __future__ import annotations

import math

from pullback.kernels.jit.compiler.target import SIZES
from pullback.kernels.jit.cuda.ptx import DECLARATIONS
from pullback.kernels.jit.language.angles import cos, sin
from pullback.kernels.jit.language.code import Code, Value, count_of
from pullback.kernels.jit.language.code import element_of as vector_element
from pullback.kernels.jit.language.elementary import log

GLOBAL = "ptr addrspace(1)"
FACTORS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
KINDS = {"uniform": 4, "tosses": 4, "normal": 4, "integers": 4, "wide": 2, "uniform64": 2, "normal64": 2}
"""What is drawn, and how many numbers a turn gives."""


def element_of(kind: str) -> str:
    """The type of the results."""
    return "double" if kind.endswith("64") else "float" if kind in ("uniform", "tosses", "normal") else "i64"


def name_of(kind: str, near: bool) -> str:
    """The name of a kernel."""
    return f"philox_{kind}_{'near' if near else 'far'}"


def words(code: Code, counter: Value, thread: Value, seed: Value) -> list[Value]:
    """The four words of a turn, each in 64 bits."""
    low = (1 << 32) - 1
    state = [counter & low, counter.binary(code.const(32, "i64"), ("", "lshr")), thread & low, code.const(0, "i64")]
    keys = [seed & low, seed.binary(code.const(32, "i64"), ("", "lshr"))]
    for _ in range(ROUNDS):
        first, second = state[0] * FACTORS[0], state[2] * FACTORS[1]
        tops = [product.binary(code.const(32, "i64"), ("", "lshr")) for product in (first, second)]
        state = [tops[1] ^ state[1] ^ keys[0], second & low, tops[0] ^ state[3] ^ keys[1], first & low]
        keys = [(key + step) & low for key, step in zip(keys, STEPS, strict=True)]
    return state


def single(code: Code, word: Value, factor: float) -> Value:
    """A word as a float32 in (0, factor]."""
    number = code.convert(word, "float", unsigned=True)
    return code.fma(number, code.const(factor * 2.0**-32, "float"), code.const(factor * 2.0**-33, "float"))


def double(code: Code, low: Value, high: Value, factor: float) -> Value:
    """Two words as a float64 in (0, factor], of 53 bits."""
    number = code.convert(low ^ (high << 21), "double", unsigned=True)
    return code.fma(number, code.const(factor * 2.0**-53, "double"), code.const(factor * 2.0**-54, "double"))


def alone(code: Code, function: object, x: Value) -> Value:
    """A function of vectors of one number."""
    return code.lane(function(code, code.splat(x, 1)), 0)  # type: ignore[operator]


def radius(code: Code, u: Value) -> Value:
    """sqrt(-2 log u)"""
    return code.sqrt(alone(code, log, u) * -2.0)


def draws(code: Code, kind: str, x: list[Value]) -> list[Value]:
    """The numbers of one turn."""
    if kind == "integers":
        return x
    if kind == "wide":
        return [(x[0] << 32) | x[1], (x[2] << 32) | x[3]]
    if kind in ("uniform", "tosses"):
        return [single(code, word, 1.0) for word in x]
    if kind == "uniform64":
        return [double(code, x[0], x[1], 1.0), double(code, x[2], x[3], 1.0)]
    if kind == "normal64":
        size, angle = radius(code, double(code, x[0], x[1], 1.0)), double(code, x[2], x[3], 2.0) * math.pi
        return [size * alone(code, sin, angle), size * alone(code, cos, angle)]
    made = []
    for one, other in ((x[0], x[1]), (x[2], x[3])):
        size, angle = radius(code, single(code, one, 1.0)), single(code, other, TURN)
        made += [size * code.call(f"llvm.nvvm.{name}.approx.f", "float", angle) for name in ("sin", "cos")]
    return made


TURN = 6.2831855
"""2 pi as a float32."""


def put(code: Code, value: Value, at: Value) -> None:
    """Write one number, or neighbours that fill 16 bytes."""
    element = vector_element(value.type)
    where = code.emit(f"getelementptr {element}, {GLOBAL} %out, i64 {at.name}", GLOBAL)
    code.do(f"store {value}, {GLOBAL} {where.name}, align {SIZES[element] * count_of(value.type)}")


def put_together(code: Code, values: list[Value], places: list[Value], n: Value) -> None:
    """Write neighbours at once; at the end of the array those that exist."""
    whole = code.compare("lt", places[-1], n)
    with code.when(whole):
        several = Value(code, "poison", f"<{len(values)} x {values[0].type}>")
        for k, value in enumerate(values):
            several = code.emit(f"insertelement {several}, {value}, i64 {k}", several.type)
        put(code, several, places[0])
    for value, at in zip(values[:-1], places, strict=False):
        with code.when(code.select(whole, 0, code.compare("lt", at, n))):
            put(code, value, at)


def text_of(kind: str, near: bool) -> str:
    """The module. Arguments: the results, how many, the seed, the first counter, and what is made of a draw.

    That is `a` and `b`: draw * a + b of floats, where `stop` becomes b; draw % a + b of integers; of tosses, a for
    draws below `stop` and b for the others.
    """
    code, element, unroll = Code("kernel"), element_of(kind), KINDS[kind]
    number = "i64" if element == "i64" else "double"
    params = [
        f"{GLOBAL} %out",
        "i64 %n",
        "i64 %seed",
        "i64 %counter",
        f"{number} %a",
        f"{number} %b",
        f"{number} %stop",
    ]
    for short, register in (("t", "tid"), ("k", "ctaid"), ("w", "ntid"), ("g", "nctaid")):
        code.do(f"%{short}32 = call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")
        code.do(f"%{short} = zext i32 %{short}32 to i64")
    t, k, w, g, n, seed, counter = [Value(code, f"%{x}", "i64") for x in ("t", "k", "w", "g", "n", "seed", "counter")]
    a, b, stop = [code.convert(Value(code, f"%{x}", number), element) for x in ("a", "b", "stop")]
    thread, threads = k * w + t, w * g
    turns = (n - 1) // (threads * unroll) + 1
    with code.loop(0, turns) as turn:
        first, values = turn * threads * unroll, []
        for draw in draws(code, kind, words(code, counter + turn, thread, seed)):
            if element == "i64":
                values.append(code.emit(f"urem {draw}, {a.name}", "i64") + b)
            elif kind == "tosses":
                values.append(code.select(code.compare("lt", draw, stop), a, b))
            else:
                value = code.fma(draw, a, b)
                values.append(code.select(code.compare("eq", value, stop), b, value))
        places = [first + (thread * unroll + k if near else thread + threads * k) for k in range(unroll)]
        if near and unroll * SIZES[element] == 16:
            put_together(code, values, places, n)
        else:
            for value, at in zip(values, places, strict=True):
                with code.when(at < n):
                    put(code, value, at)
    declared = [line for line in sorted(code.declared) if line not in DECLARATIONS]
    head = f"define ptx_kernel void @{name_of(kind, near)}({', '.join(params)}) {{\nentry:"
    return "\n".join(
        [
            DECLARATIONS,
            *declared,
            *code.functions,
            head,
            *code.entry,
            *code.lines,
            "  ret void\n}\n",
        ]
    )
