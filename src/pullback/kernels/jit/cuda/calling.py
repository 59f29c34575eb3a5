"""The native entry for calls of the CUDA device that were prepared: from arrays to launch without Python in between.

    compute(x, y, 2.0) ........................ look it up, make the result, launch

A call is known by the dtypes, shapes and strides of its arrays and by its numbers. What to do for it, the recipe, was
written down by Python when it first came: see kernels/cuda/quick.py. What is not known, or fails, is handed on to
Python with the same arguments.
"""

from __future__ import annotations

from typing import Any

from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.cuda.launching import (
    ADDRESS,
    BASES,
    CLASS,
    COUNT,
    ENTRY,
    FLOAT,
    LAUNCH,
    LAUNCHES,
    LIST,
    MOST_ARGS,
    MOST_ITEMS,
    MOST_PARAMS,
    NDARRAY,
    PLACE,
    PLAIN,
    RECENT,
    RESULT,
    SAME,
    SIZE_CLASS,
    SIZES_FROM,
    TEMPORARIES,
    TEMPORARY,
    TUPLE,
    Slots,
    branch,
    draining,
    facts_of,
    field,
    freeing,
    giving,
    hand_on,
    is_alone,
    making,
    pointer,
    taking,
    void,
    written,
)
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime.calls import DATA, HEAD
from pullback.kernels.jit.small.viewing import ITEMS


def computing(slots: Slots) -> tuple[str, set[str]]:
    """compute(*args); its self is a tuple: who computes otherwise, the recipes, the facts, a table of calls that were
    looked up lately, and a list that holds their keys and recipes."""
    code = Code("compute")
    argv, argc, self = Value(code, "%argv", "ptr"), Value(code, "%argc", "i64"), Value(code, "%self", "ptr")
    facts = facts_of(code, 2)
    branch(code, is_alone(code, facts), "refuse")
    branch(code, argc <= MOST_ARGS, "refuse")
    addresses, items = code.stack(MOST_ARGS, "i64"), code.stack(MOST_ITEMS, "i64")
    boxed, objects = code.stack(MOST_ITEMS, "i64"), code.stack(MOST_ARGS, "i64")
    many, arrays = code.variable(code.const(0, "i64")), code.variable(code.const(0, "i64"))
    low, leaves = code.variable(code.const(0, "i64")), code.variable(argc)
    names = (CLASS, PLACE, NDARRAY, FLOAT, SIZE_CLASS, LIST, *PLAIN)
    known = {name: code.load(facts, name, "i64") for name in names}
    # What an argument adds to the key: an array its dtype, shape and strides, all else its class and value.
    with code.loop(0, argc) as i:
        value = pointer(code, code.load(argv, i, "i64"))
        first, length = code.variable(code.address(code.at(argv, i, "i64"))), code.variable(code.const(1, "i64"))
        with code.when(code.compare("eq", code.load(value, HEAD // 8 - 1, "i64"), known[LIST])):
            length.set(code.load(value, HEAD // 8, "i64"))
            first.set(code.load(value, HEAD // 8 + 1, "i64"))
            leaves.set(leaves.get() + length.get())
            branch(code, leaves.get() <= MOST_ARGS, "clear")
            at = many.get()
            for nr, (word, whole) in enumerate(((known[LIST], 0), (length.get(), 1))):
                code.store(word, items, at + nr)
                code.store(code.const(whole, "i64"), boxed, at + nr)
            many.set(at + 2)
        with code.loop(0, length.get()) as k:
            item = pointer(code, code.load(pointer(code, first.get()), k, "i64"))
            add_item(code, slots, item, known, (items, boxed, many), (addresses, objects, arrays), low)
    # Arrays have to lie at multiples of 16 bytes, all on this device.
    branch(code, code.compare("eq", low.get() & 15, 0) & (arrays.get() > 0), "clear")
    recipe = recipe_for(code, items, boxed, many.get())
    table, several = [pointer(code, code.load(recipe, ITEMS // 8 + i, "i64")) for i in range(2)]
    words = pointer(code, code.load(table, DATA // 8, "i64"))
    bases, records = code.stack(BASES, "i64"), code.stack(BASES - TEMPORARY, "i64")
    pattern, outs = code.call("PyLong_AsLongLong", "i64", several), code.stack(MOST_ARGS, "i64")
    results = pattern & 255
    branch(code, code.load(words, LAUNCHES, "i64") >= 0, "see")
    pieces = code.load(words, TEMPORARIES, "i64")
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
    code.do("br label %give")
    code.block("give")
    branch(code, code.compare("ne", pattern >> 8, 0), "all")
    give_some(code, pattern, outs)
    code.block("all")
    branch(code, code.compare("ne", results, 1), "one")
    together = code.call("PyTuple_New", "ptr", results)
    with code.loop(0, results) as i:
        code.store(code.load(outs, i, "i64"), together, i + ITEMS // 8)
    code.do(f"ret {together}")
    code.block("one")
    code.do(f"ret {pointer(code, code.load(outs, 0, 'i64'))}")
    code.block("see")
    see_all(code, slots, facts, recipe, words, (objects, addresses, outs), results)
    void(code, "Py_DecRef", recipe)
    code.do("br label %give")
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


def add_item(code: Code, slots: Slots, value: Value, known: dict[int, Value], key: Any, places: Any, low: Any) -> None:
    """Add what is no list to the key, and an array to the arrays; `low` says whether native code can take it."""
    (items, boxed, many), (addresses, objects, arrays) = key, places
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
    code.store(code.address(value), objects, arrays.get())
    arrays.set(arrays.get() + 1)
    code.do(f"br label %{done}")
    code.block(number)
    at = many.get()
    kind = code.select(code.compare("eq", kind, known[SIZE_CLASS]), known[TUPLE], kind)
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
    for other_kind in PLAIN:
        right = right | code.compare("eq", kind, known[other_kind])
    low.set(low.get() | code.select(right, code.const(0, "i64"), 1))
    code.do(f"br label %{done}")
    code.block(done)


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


def see_all(
    code: Code, slots: Slots, facts: Value, recipe: Value, words: Value, places: tuple[Value, ...], results: Value
) -> None:
    """Make the results that are windows onto operands."""
    objects, addresses, outs = places
    with code.loop(0, results) as i:
        nr, skip = code.load(words, i * 2 + 1, "i64"), code.load(words, i * 2 + 2, "i64")
        source = pointer(code, code.load(objects, nr, "i64"))
        itself, window, done = code.label(), code.label(), code.label()
        code.do(f"br {code.compare('eq', skip, SAME)}, label %{itself}, label %{window}")
        code.block(itself)
        void(code, "Py_IncRef", source)
        code.store(code.address(source), outs, i)
        code.do(f"br label %{done}")
        code.block(window)
        facets = tuple([pointer(code, code.load(recipe, i * 3 + ITEMS // 8 + d, "i64")) for d in (3, 4, 5)])
        made = slots.see(code, facts, source, code.load(addresses, nr, "i64") + skip, facets)
        code.store(code.address(made), outs, i)
        code.do(f"br label %{done}")
        code.block(done)


def give_some(code: Code, pattern: Value, outs: Value) -> None:
    """Return a tuple in which some of the results are None: bits of the pattern say which are there."""
    together, bits = code.call("PyTuple_New", "ptr", (pattern >> 8) & 255), pattern >> 16
    nothing, at = Value(code, "@object_None", "ptr"), code.variable(code.const(0, "i64"))
    with code.loop(0, (pattern >> 8) & 255) as i:
        there, absent, done = code.label(), code.label(), code.label()
        shifted = code.emit(f"lshr {bits}, {i.name}", "i64") & 1
        code.do(f"br {code.compare('eq', shifted, 1)}, label %{there}, label %{absent}")
        code.block(there)
        code.store(code.load(outs, at.get(), "i64"), together, i + ITEMS // 8)
        at.set(at.get() + 1)
        code.do(f"br label %{done}")
        code.block(absent)
        void(code, "Py_IncRef", nothing)
        code.store(code.address(nothing), together, i + ITEMS // 8)
        code.do(f"br label %{done}")
        code.block(done)
    code.do(f"ret {together}")


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
