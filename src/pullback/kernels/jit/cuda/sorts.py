"""Sorting rows for a grid of threads: blocks sort tiles, then neighbouring runs are merged until a row is one run.

Every element becomes an integer of 64 bits that is in the order wanted: floats by their bits, of which nan is the
largest and both zeros are one; for a descending order all bits are turned around. Tiles are sorted by these and by the
elements' places, so that equal elements keep their order. When two runs are merged, a thread finds how many elements of
the other run come before its own: that is where it goes.
"""

from __future__ import annotations

from pullback.kernels.jit.cuda.extrema import INTEGERS, number_at
from pullback.kernels.jit.cuda.grid import SHARED, THREADS, Grid
from pullback.kernels.jit.language.code import Value

TILE = 1024
"""Elements that a block sorts in shared memory."""
LAST = (1 << 63) - 1


def tile_name(element: str, descending: bool) -> str:
    """The name of the kernel that sorts tiles."""
    return f"sort_tiles_{element}_{'down' if descending else 'up'}"


MERGE = "sort_merge"


def key_of(code: Grid, value: Value) -> Value:
    """An integer whose order is that of the number."""
    if value.type == "i64":
        return value
    bits, most, width = ("i32", (1 << 31) - 1, 31) if value.type == "float" else ("i64", LAST, 63)
    raw = code.bitcast(value, bits)
    turned = raw ^ ((raw >> width) & most)
    turned = code.select(code.compare("eq", value, 0.0), 0, turned)
    return code.convert(code.select(code.compare("uno", value, value), most, turned), "i64")


def tile_text(element: str, descending: bool) -> str:
    """The module. Arguments: what is read, the keys, the places; the length of rows, how many tiles each has, and how
    often runs have to be joined until all that is there is one run."""
    code = Grid(tile_name(element, descending), "x keys places", "length tiles stages")
    code.for_blocks_of(THREADS)
    length, tiles, thread = code["length"], code["tiles"], code["thread"]
    row = code.emit(f"udiv {code['x']}, {tiles.name}", "i64")
    first, base = (code["x"] - row * tiles) * TILE, row * length
    keys, places = code.shared("tile_keys", TILE, "i64"), code.shared("tile_places", TILE, "i64")
    for k in range(TILE // THREADS):
        at = thread + k * THREADS
        place = first + at
        inside = place < length
        value = number_at(code, "%x", base + code.select(inside, place, length - 1), element)
        key = key_of(code, value)
        key = key ^ -1 if descending else key
        # What lies beyond the end has the largest key and larger places than all, so that it stays there.
        code.write(code.select(inside, key, LAST), keys, at, "i64", SHARED)
        code.write(place, places, at, "i64", SHARED)
    with code.loop(1, code["stages"] + 1) as stage, code.loop(0, stage) as step:
        one = code.number(1)
        code.wait()
        for k in range(TILE // 2 // THREADS):
            exchange(code, keys, places, thread + k * THREADS, one << stage, one << (stage - 1 - step))
    code.wait()
    for k in range(TILE // THREADS):
        at = thread + k * THREADS
        with code.when(first + at < length):
            for room, out in ((keys, "%keys"), (places, "%places")):
                code.write(code.read(room, at, "i64", space=SHARED), out, base + first + at, "i64")
    return code.whole()


def exchange(code: Grid, keys: str, places: str, pair: Value, run: Value, distance: Value) -> None:
    """One step of a bitonic sort: two elements so far apart, in the order of the run they are in."""
    low = ((pair & (0 - distance)) << 1) + (pair & (distance - 1))
    high = low + distance
    (a, i), (b, j) = ([code.read(room, at, "i64", space=SHARED) for room in (keys, places)] for at in (low, high))
    later = code.compare("gt", a, b)
    tied = code.emit(f"and i1 {code.compare('eq', a, b).name}, {code.compare('gt', i, j).name}", "i1")
    later = code.emit(f"or i1 {later.name}, {tied.name}", "i1")
    up = code.compare("eq", low & run, 0)
    with code.when(code.compare("eq", later, up)):
        for room, one, other in ((keys, a, b), (places, i, j)):
            code.write(other, room, low, "i64", SHARED)
            code.write(one, room, high, "i64", SHARED)


def merge_text() -> str:
    """The module. Arguments: keys and places as they are, and as they will be; how many elements there are, the length
    of rows, and that of the runs which are sorted already."""
    code = Grid(MERGE, "keys places new_keys new_places", "count length run")
    length, run = code["length"], code["run"]
    index = code["x"] * THREADS + code["thread"]
    with code.when(index < code["count"]):
        row = code.emit(f"udiv {index}, {length.name}", "i64")
        base = row * length
        place = index - base
        both = run * 2
        start = code.emit(f"udiv {place}, {both.name}", "i64") * both
        middle, end = start + run, start + both
        middle = code.select(middle < length, middle, length)
        end = code.select(end < length, end, length)
        left = place < middle
        key = code.read("%keys", index, "i64")
        # Of equal elements those of the left run come first: one of the left counts smaller ones, one of the right all.
        low, high = code.variable(code.select(left, middle, start)), code.variable(code.select(left, end, middle))
        begin = low.get()
        head, body, done = code.label(), code.label(), code.label()
        code.do(f"br label %{head}")
        code.block(head)
        more = low.get() < high.get()
        code.do(f"br {more}, label %{body}, label %{done}")
        code.block(body)
        half = low.get() + ((high.get() - low.get()) >> 1)
        other = code.read("%keys", base + half, "i64")
        smaller = code.compare("lt", other, key)
        equal = code.emit(f"xor i1 {left.name}, true", "i1")
        equal = code.emit(f"and i1 {code.compare('eq', other, key).name}, {equal.name}", "i1")
        before = code.emit(f"or i1 {smaller.name}, {equal.name}", "i1")
        old_low, old_high = low.get(), high.get()
        low.set(code.select(before, half + 1, old_low))
        high.set(code.select(before, old_high, half))
        code.do(f"br label %{head}")
        code.block(done)
        rank = low.get() - begin
        target = base + code.select(left, place, place - (middle - start)) + rank
        code.write(key, "%new_keys", target, "i64")
        code.write(code.read("%places", index, "i64"), "%new_places", target, "i64")
    return code.whole()


def search_name(element: str, right: bool) -> str:
    """The name of the kernel that looks for places."""
    return f"sort_search_{element}_{'right' if right else 'left'}"


def search_text(element: str, right: bool) -> str:
    """The module. Arguments: sorted rows, values, and their places; how many values there are, the length of rows, and
    how many values belong to each row, or 0 where all belong to one."""
    code = Grid(search_name(element, right), "x values places", "count length each")
    index, length = code["x"] * THREADS + code["thread"], code["length"]
    with code.when(index < code["count"]):
        several = code.compare("ne", code["each"], 0)
        row = code.emit(f"udiv {index}, {code.select(several, code['each'], 1).name}", "i64")
        base = code.select(several, row * length, 0)
        key = key_of(code, number_at(code, "%values", index, element))
        low, high = code.variable(code.number(0)), code.variable(length)
        head, body, done = code.label(), code.label(), code.label()
        code.do(f"br label %{head}")
        code.block(head)
        code.do(f"br {low.get() < high.get()}, label %{body}, label %{done}")
        code.block(body)
        old_low, old_high = low.get(), high.get()
        half = old_low + ((old_high - old_low) >> 1)
        other = key_of(code, number_at(code, "%x", base + half, element))
        before = code.compare("le" if right else "lt", other, key)
        low.set(code.select(before, half + 1, old_low))
        high.set(code.select(before, old_high, half))
        code.do(f"br label %{head}")
        code.block(done)
        code.write(low.get(), "%places", index, "i64")
    return code.whole()


ELEMENTS = ("float", "double", "half", "bfloat", *INTEGERS)
