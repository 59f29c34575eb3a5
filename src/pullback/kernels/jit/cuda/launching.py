"""Native entries of the CUDA device: memory from free lists, and pointwise calls from arrays to launch without Python.

    make(shape, strides, dtype, nbytes) ....... a new array of the device
    compute(x, y, 2.0) ........................ a call that was prepared: look it up, make the result, launch

A pointwise call is known by the dtypes, shapes and strides of its arrays and by its numbers. What to do for it, the
recipe, was written down by Python when it first came: see kernels/cuda/quick.py, which also says what the words of
`Facts`, `Record` and `Recipe` mean. What is not known, or fails, is handed on to Python with the same arguments.
"""

from __future__ import annotations

from typing import Any

from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime.calls import DATA, HEAD
from pullback.kernels.jit.small.viewing import ITEMS

SIDE, CLASS, PLACE, LAUNCH, FREE, MISSED, COUNT, HEADS, COUNTS, GENERATION, SPARE = range(11)
"""Words of the facts of a device; SIDE is where it stands how many threads use streams of their own."""
TYPES = 11
"""Where, among those, the classes of arguments begin: ndarray, float, and those that are looked up as they are."""
NDARRAY, FLOAT, INT, BOOL, NONE, TUPLE, STR = range(TYPES, TYPES + 7)
ADDRESS, KEY, SIZE, REQUESTED, NEXT, FACTS, LARGE, BORN = range(8)
"""Words of a record, a block of memory."""
LAUNCHES, TEMPORARIES, SIZES_FROM = 0, 1, 2
"""Words of a recipe: how many launches there are, how many pieces of temporary memory, the bytes of the pieces, and
those of the results. Then come the launches: the kernel, its grid in three, its threads, bytes of shared memory, how
many words it is told, and for each what it is relative to and how far from there (kernels/cuda/recording.py)."""
RESULT, TEMPORARY, BASES = 16, 32, 48
ROUND, SLOT_BITS, SPREAD = 9, 12, 997
SLOTS = 1 << SLOT_BITS
"""Blocks are multiples of 1 << ROUND bytes; free ones hang in this many lists, which sizes may share."""
MOST_ARGS, MOST_PARAMS = 15, 64
RECENT, ENTRY = 8, 2 + 3 * MOST_ARGS
"""Calls of a function that were looked up lately, and the words of one: how long its key is, its recipe, its key."""


def pointer(code: Code, word: Value) -> Value:
    """A number as a pointer."""
    return code.emit(f"inttoptr {word} to ptr", "ptr")


def field(code: Code, object: Value, at: int) -> Value:
    """A pointer that an object keeps at a place."""
    return code.load(object, at // 8, "i64")


def void(code: Code, function: str, *values: Value) -> None:
    """Call a function of Python's that gives nothing."""
    code.declare(function, "void", *[value.type for value in values])
    code.do(f"call void @{function}({', '.join(map(str, values))})")


def branch(code: Code, condition: Value, otherwise: str) -> None:
    """Go on if a condition holds, else elsewhere."""
    onward = code.label()
    code.do(f"br {condition}, label %{onward}, label %{otherwise}")
    code.block(onward)


def written(code: Code, head: str) -> str:
    """A whole function."""
    return "\n".join([f"define {head} {{", *code.entry, "  br label %start", "start:", *code.lines, "}\n"])


def count(code: Code, facts: Value, record: Value, sign: int) -> None:
    """Add a block to the statistics, or take it off: its number, its bytes, the bytes asked for; of all and its pool.

    The rows have four words: now, at most, all that came, all that went.
    """
    table = pointer(code, code.load(facts, COUNTS, "i64"))
    amounts = [code.const(1, "i64"), code.load(record, SIZE, "i64"), code.load(record, REQUESTED, "i64")]
    pool = code.load(record, LARGE, "i64") + 1
    for nr, amount in enumerate(amounts):
        for kind in (code.const(0, "i64"), pool):
            row = (kind + nr * 3) * 4
            now = code.load(table, row, "i64")
            total = now + amount if sign > 0 else now - amount
            code.store(total, table, row)
            if sign > 0:
                most = code.load(table, row + 1, "i64")
                code.store(code.select(total > most, total, most), table, row + 1)
            place = row + (2 if sign > 0 else 3)
            code.store(code.load(table, place, "i64") + amount, table, place)


def slot_of(size: Value) -> Value:
    """The list that blocks of a size hang in; multiples of 2 MB, which are frequent, hang in lists of their own."""
    units = size >> ROUND
    return (units + (units >> SLOT_BITS) * SPREAD) & (SLOTS - 1)


def taking() -> tuple[str, set[str]]:
    """take(facts, nbytes): the record of a block, or null after an error of Python's."""
    code = Code("take")
    facts, nbytes = Value(code, "%facts", "ptr"), Value(code, "%nbytes", "i64")
    whole = (nbytes + ((1 << ROUND) - 1)) >> ROUND
    size = code.select(whole < 1, 1, whole) << ROUND
    link = code.variable(code.load(facts, HEADS, "i64") + slot_of(size) * 8)
    found = code.variable(code.const(0, "i64"))
    code.do("br label %look")
    code.block("look")
    place = pointer(code, link.get())
    found.set(code.load(place, 0, "i64"))
    branch(code, code.compare("ne", found.get(), 0), "miss")
    record = pointer(code, found.get())
    link.set(found.get() + NEXT * 8)
    branch(code, code.compare("eq", code.load(record, KEY, "i64"), size), "look")
    code.store(code.load(record, NEXT, "i64"), place, 0)
    code.do("br label %have")
    code.block("miss")
    number = code.call("PyLong_FromLongLong", "ptr", nbytes)
    arguments = code.stack(1, "ptr")
    code.do(f"store {number}, {arguments}")
    missed = pointer(code, code.load(facts, MISSED, "i64"))
    code.declare("PyObject_Vectorcall", "ptr", "ptr", "ptr", "i64", "ptr")
    made = code.emit(f"call ptr @PyObject_Vectorcall({missed}, {arguments}, i64 1, ptr null)", "ptr")
    void(code, "Py_DecRef", number)
    branch(code, code.emit(f"icmp ne {made}, null", "i1"), "failed")
    found.set(code.call("PyLong_AsLongLong", "i64", made))
    void(code, "Py_DecRef", made)
    code.do("br label %have")
    code.block("have")
    block = pointer(code, found.get())
    code.store(nbytes, block, REQUESTED)
    count(code, facts, block, 1)
    code.do(f"ret {block}")
    code.block("failed")
    code.do("ret ptr null")
    return written(code, "internal ptr @pullback_cuda_take(ptr %facts, i64 %nbytes)"), code.declared


def freeing() -> tuple[str, set[str]]:
    """free(capsule): its block hangs in its list again, unless the device it is of has been forgotten."""
    code = Code("free")
    code.declare("PyCapsule_GetPointer", "ptr", "ptr", "ptr")
    record = code.emit("call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)", "ptr")
    facts = pointer(code, code.load(record, FACTS, "i64"))
    same = code.compare("eq", code.load(record, BORN, "i64"), code.load(facts, GENERATION, "i64"))
    with code.when(same):
        code.do(f"call void @pullback_cuda_give({facts}, {record})")
    code.do("ret void")
    return written(code, "void @pullback_cuda_free(ptr %capsule)"), code.declared


def giving() -> tuple[str, set[str]]:
    """give(facts, record): a block hangs in its list again."""
    code = Code("give")
    facts, record = Value(code, "%facts", "ptr"), Value(code, "%record", "ptr")
    count(code, facts, record, -1)
    heads = pointer(code, code.load(facts, HEADS, "i64"))
    slot = slot_of(code.load(record, KEY, "i64"))
    code.store(code.load(heads, slot, "i64"), record, NEXT)
    code.store(code.address(record), heads, slot)
    code.do("ret void")
    return written(code, "internal void @pullback_cuda_give(ptr %facts, ptr %record)"), code.declared


class Slots:
    """Where an array of the device keeps what."""

    def __init__(self, places: dict[str, int]) -> None:
        self.places = places

    def make(self, code: Code, facts: Value, nbytes: Value, shape: Value, strides: Value, dtype: Value) -> Value:
        """A new array; goes to `raise` with an error of Python's."""
        record = code.emit(f"call ptr @pullback_cuda_take({facts}, {nbytes})", "ptr")
        branch(code, code.emit(f"icmp ne {record}, null", "i1"), "raise")
        free = pointer(code, code.load(facts, FREE, "i64"))
        code.declare("PyCapsule_New", "ptr", "ptr", "ptr", "ptr")
        memory = code.emit(f"call ptr @PyCapsule_New({record}, ptr null, {free})", "ptr")
        branch(code, code.emit(f"icmp ne {memory}, null", "i1"), "raise")
        address = code.load(record, ADDRESS, "i64")
        number = code.call("PyLong_FromLongLong", "ptr", address)
        kind = pointer(code, code.load(facts, CLASS, "i64"))
        code.declare("PyType_GenericAlloc", "ptr", "ptr", "i64")
        made = code.emit(f"call ptr @PyType_GenericAlloc({kind}, i64 0)", "ptr")
        branch(code, code.emit(f"icmp ne {made}, null", "i1"), "raise")
        place = pointer(code, code.load(facts, PLACE, "i64"))
        nothing = Value(code, "@object_None", "ptr")
        for value in (shape, strides, dtype, place, nothing):
            void(code, "Py_IncRef", value)
        held = {"shape": shape, "strides": strides, "dtype": dtype, "device": place, "base": nothing}
        for name, value in (held | {"address": number, "memory": memory}).items():
            code.do(f"store {value}, {code.at(made, self.places[name] // 8, 'i64')}")
        return made


def hand_on(code: Code, otherwise: Value, argv: Value, argc: Value) -> None:
    """Return what a function of Python's makes of the same arguments."""
    code.declare("PyObject_Vectorcall", "ptr", "ptr", "ptr", "i64", "ptr")
    code.do(f"ret {code.emit(f'call ptr @PyObject_Vectorcall({otherwise}, {argv}, {argc}, ptr null)', 'ptr')}")


def facts_of(code: Code, place: int) -> Value:
    """The facts of the device: the data of an array in the tuple that is the builtin's self."""
    self = Value(code, "%self", "ptr")
    array = pointer(code, code.load(self, ITEMS // 8 + place, "i64"))
    return pointer(code, code.load(array, DATA // 8, "i64"))


def is_alone(code: Code, facts: Value) -> Value:
    """True while all work goes to the default stream, which the memory of the lists belongs to."""
    return code.compare("eq", code.load(pointer(code, code.load(facts, SIDE, "i64")), 0, "i64"), 0)


def draining() -> tuple[str, set[str]]:
    """drain(): the lists are empty, and what hung in them hangs in the spare ones; at once, whatever threads do."""
    code = Code("drain")
    facts = facts_of(code, 0)
    heads, spare = [pointer(code, code.load(facts, word, "i64")) for word in (HEADS, SPARE)]
    with code.loop(0, SLOTS) as i:
        code.store(code.load(heads, i, "i64"), spare, i)
        code.store(code.const(0, "i64"), heads, i)
    void(code, "Py_IncRef", Value(code, "@object_None", "ptr"))
    code.do("ret ptr @object_None")
    return written(code, "ptr @pullback_cuda_drain(ptr %self, ptr %argv, i64 %argc)"), code.declared


def making(slots: Slots) -> tuple[str, set[str]]:
    """make(shape, strides, dtype, nbytes); its self is a tuple: the facts, and who makes arrays on other streams."""
    code = Code("make")
    argv, argc, self = Value(code, "%argv", "ptr"), Value(code, "%argc", "i64"), Value(code, "%self", "ptr")
    facts = facts_of(code, 0)
    branch(code, is_alone(code, facts), "refuse")
    shape, strides, dtype, number = [pointer(code, code.load(argv, i, "i64")) for i in range(4)]
    nbytes = code.call("PyLong_AsLongLong", "i64", number)
    made = slots.make(code, facts, nbytes, shape, strides, dtype)
    code.do(f"ret {made}")
    code.block("raise")
    code.do("ret ptr null")
    code.block("refuse")
    hand_on(code, pointer(code, code.load(self, ITEMS // 8 + 1, "i64")), argv, argc)
    return written(code, "ptr @pullback_cuda_make(ptr %self, ptr %argv, i64 %argc)"), code.declared


def computing(slots: Slots) -> tuple[str, set[str]]:
    """compute(*args); its self is a tuple: who computes otherwise, the recipes, the facts, a table of calls that were
    looked up lately, and a list that holds their keys and recipes."""
    code = Code("compute")
    argv, argc, self = Value(code, "%argv", "ptr"), Value(code, "%argc", "i64"), Value(code, "%self", "ptr")
    facts = facts_of(code, 2)
    branch(code, is_alone(code, facts), "refuse")
    branch(code, argc <= MOST_ARGS, "refuse")
    addresses, items = code.stack(MOST_ARGS, "i64"), code.stack(MOST_ARGS * 3, "i64")
    boxed = code.stack(MOST_ARGS * 3, "i64")
    many, arrays = code.variable(code.const(0, "i64")), code.variable(code.const(0, "i64"))
    low = code.variable(code.const(0, "i64"))
    known = {name: code.load(facts, name, "i64") for name in (CLASS, PLACE, *range(TYPES, TYPES + 7))}
    # What an argument adds to the key: an array its dtype, shape and strides, all else its class and value.
    with code.loop(0, argc) as i:
        value = pointer(code, code.load(argv, i, "i64"))
        kind = code.load(value, HEAD // 8 - 1, "i64")
        array, number, done = code.label(), code.label(), code.label()
        code.do(f"br {code.compare('eq', kind, known[CLASS])}, label %{array}, label %{number}")
        code.block(array)
        at = many.get()
        for nr, name in enumerate(("dtype", "shape", "strides")):
            code.store(field(code, value, slots.places[name]), items, at + nr)
            code.store(code.const(0, "i64"), boxed, at + nr)
        many.set(at + 3)
        here = code.compare("eq", field(code, value, slots.places["device"]), known[PLACE])
        held = field(code, value, slots.places["address"])
        address = code.call("PyLong_AsLongLong", "i64", pointer(code, held))
        low.set(low.get() | address | code.select(here, code.const(0, "i64"), 1))
        code.store(address, addresses, arrays.get())
        arrays.set(arrays.get() + 1)
        code.do(f"br label %{done}")
        code.block(number)
        at = many.get()
        code.store(kind, items, at)
        code.store(code.const(0, "i64"), boxed, at)
        many.set(at + 2)
        floating = code.compare("eq", kind, known[FLOAT])
        given = code.compare("eq", kind, known[NDARRAY])
        # A float is known by its bits, an array of NumPy's by its place.
        bits = code.load(value, code.select(floating, code.const(HEAD // 8, "i64"), 0), "i64")
        code.store(code.select(floating, bits, code.address(value)), items, at + 1)
        code.store(code.select(floating | given, code.const(1, "i64"), 0), boxed, at + 1)
        right = floating | given
        for other_kind in (INT, BOOL, NONE, TUPLE, STR):
            right = right | code.compare("eq", kind, known[other_kind])
        low.set(low.get() | code.select(right, code.const(0, "i64"), 1))
        code.do(f"br label %{done}")
        code.block(done)
    # Arrays have to lie at multiples of 16 bytes, all on this device.
    branch(code, code.compare("eq", low.get() & 15, 0) & (arrays.get() > 0), "clear")
    recipe = recipe_for(code, items, boxed, many.get())
    table, several = [pointer(code, code.load(recipe, ITEMS // 8 + i, "i64")) for i in range(2)]
    words = pointer(code, code.load(table, DATA // 8, "i64"))
    bases, records = code.stack(BASES, "i64"), code.stack(BASES - TEMPORARY, "i64")
    pieces = code.load(words, TEMPORARIES, "i64")
    results, outs = code.call("PyLong_AsLongLong", "i64", several), code.stack(MOST_ARGS, "i64")
    keep_apart(code, recipe, results, addresses, arrays.get())
    with code.loop(0, results) as i:
        shape, strides, dtype = [pointer(code, code.load(recipe, i * 3 + ITEMS // 8 + d, "i64")) for d in (3, 4, 5)]
        made = slots.make(code, facts, code.load(words, pieces + i + SIZES_FROM, "i64"), shape, strides, dtype)
        code.store(code.address(made), outs, i)
        number = pointer(code, field(code, made, slots.places["address"]))
        code.store(code.call("PyLong_AsLongLong", "i64", number), bases, i + RESULT)
    code.store(code.const(0, "i64"), bases, 0)
    with code.loop(0, arrays.get()) as i:
        code.store(code.load(addresses, i, "i64"), bases, i + 1)
    held = code.variable(code.const(0, "i64"))
    with code.loop(0, pieces) as i:
        size = code.load(words, i + SIZES_FROM, "i64")
        record = code.emit(f"call ptr @pullback_cuda_take({facts}, {size})", "ptr")
        branch(code, code.emit(f"icmp ne {record}, null", "i1"), "full")
        code.store(code.address(record), records, i)
        code.store(code.load(record, ADDRESS, "i64"), bases, i + TEMPORARY)
        held.set(i + 1)
    params, size, extra = code.stack(MOST_PARAMS, "i64"), code.stack(1, "i64"), code.stack(5, "i64")
    packed = [code.const(1, "i64"), code.address(params), code.const(2, "i64"), code.address(size)]
    for nr, word in enumerate([*packed, code.const(0, "i64")]):
        code.store(word, extra, nr)
    launch = pointer(code, code.load(facts, LAUNCH, "i64"))
    failed = code.variable(code.const(0, "i32"))
    at = code.variable(pieces + results + SIZES_FROM)
    with code.loop(0, code.load(words, LAUNCHES, "i64")):
        start = at.get()
        one = code.at(words, start, "i64")
        total = code.load(one, 6, "i64")
        with code.loop(0, total) as k:
            base = code.load(bases, code.load(one, k * 2 + 7, "i64"), "i64")
            code.store(base + code.load(one, k * 2 + 8, "i64"), params, k)
        code.store(total * 8, size, 0)
        at.set(start + total * 2 + 7)
        grid = ", ".join(str(code.convert(code.load(one, d, "i64"), "i32")) for d in range(1, 5))
        function = pointer(code, code.load(one, 0, "i64"))
        shared = code.convert(code.load(one, 5, "i64"), "i32")
        status = code.emit(
            f"call i32 {launch.name}({function}, {grid}, i32 1, i32 1, {shared}, ptr null, ptr null, {extra})", "i32"
        )
        failed.set(failed.get() | status)
    give_all(code, facts, records, held)
    void(code, "Py_DecRef", recipe)
    branch(code, code.compare("eq", failed.get(), 0), "again")
    code.store(code.load(facts, COUNT, "i64") + 1, facts, COUNT)
    branch(code, code.compare("ne", results, 1), "one")
    together = code.call("PyTuple_New", "ptr", results)
    with code.loop(0, results) as i:
        code.store(code.load(outs, i, "i64"), together, i + ITEMS // 8)
    code.do(f"ret {together}")
    code.block("one")
    code.do(f"ret {pointer(code, code.load(outs, 0, 'i64'))}")
    code.block("full")
    give_all(code, facts, records, held)
    drop_all(code, outs, results)
    code.do("br label %raise")
    code.block("raise")
    void(code, "Py_DecRef", recipe)
    code.do("ret ptr null")
    code.block("meet")
    void(code, "Py_DecRef", recipe)
    code.do("br label %refuse")
    code.block("again")
    drop_all(code, outs, results)
    code.do("br label %refuse")
    code.block("clear")
    void(code, "PyErr_Clear")
    code.do("br label %refuse")
    code.block("refuse")
    hand_on(code, pointer(code, code.load(self, ITEMS // 8, "i64")), argv, argc)
    return written(code, "ptr @pullback_cuda_compute(ptr %self, ptr %argv, i64 %argc)"), code.declared


def recipe_for(code: Code, items: Value, boxed: Value, many: Value) -> Value:
    """The recipe of a key, with a reference; goes to `clear` if there is none.

    What was looked up lately stands in a table, by its words: the same dtypes, shapes and strides are the same objects
    mostly. The table holds the keys, so that other objects have other places.
    """
    recent, held = [pointer(code, code.load(Value(code, "%self", "ptr"), ITEMS // 8 + i, "i64")) for i in (3, 4)]
    recent = pointer(code, code.load(recent, DATA // 8, "i64"))
    hash = code.variable(code.const(0, "i64"))
    with code.loop(0, many) as i:
        hash.set(hash.get() * 31 + (code.load(items, i, "i64") >> 4))
    turn = (hash.get() + (hash.get() >> 9)) & (RECENT - 1)
    entry = code.at(recent, turn * ENTRY, "i64")
    other = code.variable(code.load(entry, 0, "i64") - many)
    with code.loop(0, many) as i:
        apart = code.load(entry, i + 2, "i64") - code.load(items, i, "i64")
        other.set(other.get() | apart)
    result = code.variable(code.load(entry, 1, "i64"))
    lookup, over = code.label(), code.label()
    code.do(f"br {code.compare('eq', other.get(), 0)}, label %{over}, label %{lookup}")
    code.block(lookup)
    key = code.call("PyTuple_New", "ptr", many)
    with code.loop(0, many) as i:
        item = code.variable(code.load(items, i, "i64"))
        plain, box, ready = code.label(), code.label(), code.label()
        code.do(f"br {code.compare('eq', code.load(boxed, i, 'i64'), 0)}, label %{plain}, label %{box}")
        code.block(plain)
        void(code, "Py_IncRef", pointer(code, item.get()))
        code.do(f"br label %{ready}")
        code.block(box)
        item.set(code.address(code.call("PyLong_FromLongLong", "ptr", item.get())))
        code.do(f"br label %{ready}")
        code.block(ready)
        code.store(item.get(), key, i + ITEMS // 8)
    recipes = pointer(code, code.load(Value(code, "%self", "ptr"), ITEMS // 8 + 1, "i64"))
    code.declare("PyDict_GetItemWithError", "ptr", "ptr", "ptr")
    found = code.emit(f"call ptr @PyDict_GetItemWithError({recipes}, {key})", "ptr")
    result.set(code.address(found))
    known, unknown = code.label(), code.label()
    code.do(f"br {code.compare('ne', result.get(), 0)}, label %{known}, label %{unknown}")
    code.block(unknown)
    void(code, "Py_DecRef", key)
    code.do("br label %clear")
    code.block(known)
    code.store(many, entry, 0)
    code.store(result.get(), entry, 1)
    with code.loop(0, many) as i:
        code.store(code.load(items, i, "i64"), entry, i + 2)
    void(code, "Py_IncRef", found)
    places = pointer(code, code.load(held, ITEMS // 8, "i64"))
    before = [code.load(places, turn * 2 + i, "i64") for i in (0, 1)]
    code.store(code.address(key), places, turn * 2)
    code.store(result.get(), places, turn * 2 + 1)
    for old in before:
        void(code, "Py_DecRef", pointer(code, old))
    code.do(f"br label %{over}")
    code.block(over)
    recipe = pointer(code, result.get())
    void(code, "Py_IncRef", recipe)  # its dictionary may be cleared while memory is looked for
    return recipe


def keep_apart(code: Code, recipe: Value, results: Value, addresses: Value, arrays: Value) -> None:
    """Go to `meet` if the first array is to be written, and others share some of its memory, but lie otherwise."""
    writes, onward = code.label(), code.label()
    code.do(f"br {code.compare('eq', results, 0)}, label %{writes}, label %{onward}")
    code.block(writes)
    spans = pointer(code, code.load(pointer(code, code.load(recipe, ITEMS // 8 + 3, "i64")), DATA // 8, "i64"))
    own, meet = code.load(addresses, 0, "i64"), code.variable(code.const(0, "i64"))
    low, high = own + code.load(spans, 0, "i64"), own + code.load(spans, 1, "i64")
    with code.loop(1, arrays) as i:
        other = code.load(addresses, i, "i64")
        begins, ends = [other + code.load(spans, i * 3 + end, "i64") for end in (0, 1)]
        alike = code.compare("eq", other, own) & code.compare("eq", code.load(spans, i * 3 + 2, "i64"), 1)
        apart = alike | (begins >= high) | (ends <= low)
        meet.set(meet.get() | code.select(apart, code.const(0, "i64"), 1))
    branch(code, code.compare("eq", meet.get(), 0), "meet")
    code.do(f"br label %{onward}")
    code.block(onward)


def give_all(code: Code, facts: Value, records: Value, held: Any) -> None:
    """Give temporary memory back: what is launched later, and takes it, comes later on the device too."""
    with code.loop(0, held.get()) as i:
        code.do(f"call void @pullback_cuda_give({facts}, {pointer(code, code.load(records, i, 'i64'))})")


def drop_all(code: Code, outs: Value, results: Value) -> None:
    """Let results go."""
    with code.loop(0, results) as i:
        void(code, "Py_DecRef", pointer(code, code.load(outs, i, "i64")))


def load(places: dict[str, int]) -> dict[str, int]:
    """The addresses of `compute`, `make`, `drain` and `free`, for arrays whose slots lie at places."""
    slots = Slots(places)
    texts, declared = [], set()
    for text, names in (taking(), giving(), freeing(), draining(), making(slots), computing(slots)):
        texts.append(text)
        declared |= names
    whole = "\n".join(["@object_None = external global i8", *sorted(declared), *texts])
    wanted = ("compute", "make", "drain", "free")
    found = engine.load(whole, [f"pullback_cuda_{name}" for name in wanted])
    return dict(zip(wanted, found, strict=True))
