"""How much memory a program holds at most, as it was recorded and as native code: counted, not measured."""

import random
import re

import pytest

import pullback as torch
from benchmarks.compiled import PROGRAMS
from pullback._runtime.building import loaded
from pullback.compiler.effects import arrived_at, taken_by
from pullback.compiler.replay import without_dead
from pullback.kernels.compiled import room

if room("runtime.calls") is not None:
    from pullback.compiler.native.products import most_threads
    from pullback.kernels.jit.gemm.tile import block_size

MORE = 1.15
"""All that a region gives is there from its beginning: gradients, before what they are computed of is let go."""
pytestmark = pytest.mark.skipif(room("runtime.calls") is None, reason="kernels are not compiled here")


def most_held(program, steps, wanted):
    """The most bytes of new memory that steps hold at once, each with what it makes and needs while it runs."""
    given = {external.slot.memory for external in program.externals} | set(program.constants)
    last = {slot.memory: at for at, step in enumerate(steps) for slot in step.reads()}
    arrived = [step.args[1] for step in steps if step.function in (arrived_at, taken_by)]  # they are gradients then
    last |= {slot.memory: len(steps) for slot in (*wanted, *arrived)}
    held: dict[int, int] = {}
    most = 0
    for at, step in enumerate(steps):
        for slot in step.outs:
            if slot is not None and slot.memory not in given:
                size = slot.dtype.itemsize
                for n in slot.shape:
                    size *= n
                held[slot.memory] = max(held.get(slot.memory, 0), size)
        between = re.search(r"(\d+) bytes in between", step.native)
        most = max(most, sum(held.values()) + (int(between[1]) if between else 0))
        held = {memory: size for memory, size in held.items() if last.get(memory, -1) > at}
    return most


def packed(entry):
    """Bytes in which large products pack what they read: eager ones have as many aside. Places begin at multiples of
    64, so that each of few numbers takes a little more."""
    large = any(["@" in text for text in entry.kernels()])
    return (block_size("float") * 4 * most_threads() if large else 0) + 4096


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_code_holds_hardly_more_memory_than_the_steps_it_does(name):
    torch.manual_seed(0)
    compiled = torch.compile(PROGRAMS[name][0](torch))
    compiled()
    (entry,) = compiled._compiled.entries
    _, wanted = entry.signature
    before = most_held(entry.program, without_dead(entry.steps, wanted), wanted)
    compiled()
    compiled()
    assert entry.kernels()
    after = most_held(entry.program, entry.steps, wanted)
    assert after <= MORE * before + packed(entry), (before, after)


def test_places_are_joined_and_cut():
    places = loaded("pullback.compiler.native.places").Places()
    first, second, third = (places.take(size) for size in (100, 1000, 64))
    assert (first, second, third, places.end) == (0, 128, 1152, 1216)
    places.give_back(second, 1000)
    assert places.take(500) == second  # cut
    places.give_back(first, 100)
    places.give_back(second, 500)  # joined on both sides
    assert places.free == [(0, 1152)] and places.take(1152) == 0
    places.give_back(third, 64)
    assert places.take(128) == third and places.end == 1280  # the end moves by what is missing


def test_places_that_are_taken_do_not_overlap():
    draw = random.Random(0)
    for _ in range(50):
        places, taken = loaded("pullback.compiler.native.places").Places(), []
        for _ in range(200):
            if taken and draw.random() < 0.5:
                places.give_back(*taken.pop(draw.randrange(len(taken))))
                continue
            size = draw.choice([1, 4, 64, 100, 1000, 4096])
            at = places.take(size)
            assert all([at + size <= other or other + length <= at for other, length in taken])
            assert at % 64 == 0 and at + size <= places.end
            taken.append((at, size))
