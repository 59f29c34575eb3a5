"""Native entries of the CUDA device that take memory from free lists and give it back, and what all of them share.

    make(shape, strides, dtype, nbytes) ....... a new array of the device
    drain() ................................... the lists are emptied

Calls that were prepared are in calling.py.
"""

from __future__ import annotations

from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime.calls import DATA
from pullback.kernels.jit.small.viewing import ITEMS

SIDE, CLASS, PLACE, LAUNCH, FREE, MISSED, COUNT, HEADS, COUNTS, GENERATION, SPARE = range(11)
"""Words of the facts of a device; SIDE is where it stands how many threads use streams of their own."""
TYPES = 11
"""Where, among those, the classes of arguments begin."""
NDARRAY, FLOAT, SIZE_CLASS, LIST, *PLAIN = range(TYPES, TYPES + 11)
"""NumPy's arrays are known by their places, floats by their bits, sizes as the tuples they are, lists by how many items
they have and these, all else by value: ints, bools, None, tuples, strings, dtypes and memory formats."""
TUPLE = PLAIN[3]
ADDRESS, KEY, SIZE, REQUESTED, NEXT, FACTS, LARGE, BORN = range(8)
"""Words of a record, a block of memory."""
LAUNCHES, TEMPORARIES, SIZES_FROM = 0, 1, 2
"""Words of a recipe: how many launches there are, how many pieces of temporary memory, the bytes of the pieces, and
those of the results. Then come the launches: the kernel, its grid in three, its threads, bytes of shared memory, how
many words it is told, and for each what it is relative to and how far from there (kernels/cuda/recording.py).
Where the results are windows onto operands, there are -1 launches, and for each result follows which array it looks at,
and how far its first element lies from that one's; SAME for the array itself."""
SAME = 1 << 62
RESULT, TEMPORARY, BASES = 16, 32, 48
ROUND, SLOT_BITS, SPREAD = 9, 12, 997
SLOTS = 1 << SLOT_BITS
"""Blocks are multiples of 1 << ROUND bytes; free ones hang in this many lists, which sizes may share."""
MOST_ARGS, MOST_PARAMS = 15, 64
MOST_ITEMS = 5 * MOST_ARGS
"""Words of a key: three of an array, two of anything else, two more where a list begins."""
RECENT, ENTRY = 8, 2 + MOST_ITEMS
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
        nothing = Value(code, "@object_None", "ptr")
        void(code, "Py_IncRef", nothing)
        return self.filled(code, facts, (shape, strides, dtype), number, nothing, memory)

    def see(self, code: Code, facts: Value, source: Value, address: Value, facets: tuple[Value, ...]) -> Value:
        """A window onto an array, its first element at an address; goes to `raise` with an error of Python's."""
        base = field(code, source, self.places["base"])
        nothing = Value(code, "@object_None", "ptr")
        own = code.compare("eq", base, code.address(nothing))
        owner = pointer(code, code.select(own, code.address(source), base))
        number = code.call("PyLong_FromLongLong", "ptr", address)
        for value in (owner, nothing):
            void(code, "Py_IncRef", value)
        return self.filled(code, facts, facets, number, owner, nothing)

    def filled(
        self, code: Code, facts: Value, facets: tuple[Value, ...], address: Value, base: Value, memory: Value
    ) -> Value:
        """A new object with shape, strides and dtype; the address, the base and the memory are its own from now on."""
        kind, place = [pointer(code, code.load(facts, word, "i64")) for word in (CLASS, PLACE)]
        code.declare("PyType_GenericAlloc", "ptr", "ptr", "i64")
        made = code.emit(f"call ptr @PyType_GenericAlloc({kind}, i64 0)", "ptr")
        branch(code, code.emit(f"icmp ne {made}, null", "i1"), "raise")
        for value in (*facets, place):
            void(code, "Py_IncRef", value)
        held = dict(zip(("shape", "strides", "dtype"), facets, strict=True)) | {"device": place, "base": base}
        for name, value in (held | {"address": address, "memory": memory}).items():
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
