"""The native entry for steps of optimizers on the device: all parameters are looked at and updated without Python.

    step(*arrays, *numbers, ...) .............. 1 if it was done

Its self is a tuple: who does it otherwise, the facts of the device (launching.py), and a plan, an array of words that
kernels/cuda/calls/steps.py writes. An array has to be of the device, with the dtype, shape and strides of the plan.
What differs is handed on, before anything is changed.
"""

from __future__ import annotations

from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.cuda import launching
from pullback.kernels.jit.cuda.launching import CLASS, GENERATION, PLACE, Slots, branch, facts_of, field, pointer
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime.calls import HEAD

ARGUMENTS, ITEMS, LAUNCHES, BORN, FACTS_FROM = range(5)
"""Words of a plan: how many arguments a call has, how many of them are arrays, how many launches there are, and which
device they are for. Then come three words for each array (its dtype, shape and strides) and one where its address is
put meanwhile; then the launches: the kernel, its grid in two, its threads, how many arrays a row has, of which number
the first argument is, how many numbers there are, how many words the table has; and for each row how many elements it
has."""
HEADING = 8
MOST_WORDS, EQUAL = 512, 2


def text(places: dict[str, int]) -> str:
    """The module of the entry, for arrays whose slots lie at places."""
    code, slots = Code("step"), Slots(places)
    argv, argc = Value(code, "%argv", "ptr"), Value(code, "%argc", "i64")
    facts, plan = facts_of(code, 1), facts_of(code, 2)
    branch(code, launching.is_alone(code, facts), "refuse")
    same = code.compare("eq", code.load(plan, BORN, "i64"), code.load(facts, GENERATION, "i64"))
    branch(code, same & code.compare("eq", code.load(plan, ARGUMENTS, "i64"), argc), "refuse")
    items, kind, place = code.load(plan, ITEMS, "i64"), *[code.load(facts, at, "i64") for at in (CLASS, PLACE)]
    apart = code.variable(code.const(0, "i64"))
    with code.loop(0, items) as i:
        value = pointer(code, code.load(argv, i, "i64"))
        known = code.at(plan, i * 4 + FACTS_FROM, "i64")
        branch(code, code.compare("eq", code.load(value, HEAD // 8 - 1, "i64"), kind), "refuse")
        apart.set(apart.get() | (field(code, value, slots.places["dtype"]) ^ code.load(known, 0, "i64")))
        for nr, name in ((1, "shape"), (2, "strides")):
            own, wanted = field(code, value, slots.places[name]), code.load(known, nr, "i64")
            with code.when(code.compare("ne", own, wanted)):  # another tuple, perhaps of the same numbers
                both = pointer(code, own), pointer(code, wanted), code.const(EQUAL, "i32")
                alike = code.compare("eq", code.call("PyObject_RichCompareBool", "i32", *both), 1)
                apart.set(apart.get() | code.select(alike, code.const(0, "i64"), 1))
        apart.set(apart.get() | (field(code, value, slots.places["device"]) ^ place))
        number = pointer(code, field(code, value, slots.places["address"]))
        code.store(code.call("PyLong_AsLongLong", "i64", number), known, 3)
    branch(code, code.compare("eq", apart.get(), 0), "refuse")
    params, size, extra = code.stack(MOST_WORDS, "i64"), code.stack(1, "i64"), code.stack(5, "i64")
    packed = [code.const(1, "i64"), code.address(params), code.const(2, "i64"), code.address(size)]
    for nr, word in enumerate([*packed, code.const(0, "i64")]):
        code.store(word, extra, nr)
    launch = pointer(code, code.load(facts, launching.LAUNCH, "i64"))
    item, at = code.variable(code.const(0, "i64")), code.variable(items * 4 + FACTS_FROM)
    failed = code.variable(code.const(0, "i32"))
    with code.loop(0, code.load(plan, LAUNCHES, "i64")):
        one = code.at(plan, at.get(), "i64")
        rows, many, first, numbers, words = [code.load(one, nr, "i64") for nr in (2, 4, 5, 6, 7)]
        with code.loop(0, numbers) as i:
            given = pointer(code, code.load(argv, first + i, "i64"))
            code.store(code.call("PyFloat_AsDouble", "double", given), params, i)
        with code.loop(0, rows) as row:
            target = code.at(params, numbers + row * (many + 1), "i64")
            with code.loop(0, many) as i:
                code.store(code.load(plan, (item.get() + i) * 4 + FACTS_FROM + 3, "i64"), target, i)
            code.store(code.load(one, row + HEADING, "i64"), target, many)
            item.set(item.get() + many)
        code.store((numbers + words) * 8, size, 0)
        at.set(at.get() + rows + HEADING)
        function = pointer(code, code.load(one, 0, "i64"))
        across, down, threads = [code.convert(code.load(one, nr, "i64"), "i32") for nr in (1, 2, 3)]
        status = code.emit(
            f"call i32 {launch.name}({function}, {across}, {down}, i32 1, {threads}, i32 1, i32 1, i32 0, ptr null, "
            f"ptr null, {extra})", "i32"
        )  # fmt: skip
        failed.set(failed.get() | status)
    branch(code, code.compare("eq", failed.get(), 0), "refuse")
    code.store(code.load(facts, launching.COUNT, "i64") + 1, facts, launching.COUNT)
    code.do(f"ret {code.call('PyLong_FromLongLong', 'ptr', code.const(1, 'i64'))}")
    code.block("refuse")
    self = Value(code, "%self", "ptr")
    launching.hand_on(code, pointer(code, code.load(self, launching.ITEMS // 8, "i64")), argv, argc)
    whole = launching.written(code, "ptr @pullback_cuda_step(ptr %self, ptr %argv, i64 %argc)")
    return "\n".join([*sorted(code.declared), whole])


def load(places: dict[str, int]) -> int:
    """The address of the entry."""
    return engine.load(text(places), ["pullback_cuda_step"])[0]
