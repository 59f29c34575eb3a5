"""What is heard of a run: by the native hook as by Python's own."""

import math

import pytest

import pullback as torch
from pullback._runtime.building import loaded
from pullback.compiler.watch import ENGINE, HOOK, UNASKING, Watch, suspended
from pullback.kernels.compiled import room
from pullback.nn import functional as F

pytestmark = pytest.mark.skipif(room("runtime.calls") is None, reason="kernels are not compiled here")


def helper(x, told):
    told.append(getattr(x, "ndim", None))
    return x * math.sqrt(2.0)


class Layer(torch.nn.Module):
    def forward(self, x):
        return F.gelu(helper(x, [])) + sum(i for i in range(3))


def user_function(x):
    layer = Layer()
    y = layer(x).softmax(-1)
    iterator = iter([1, 2])
    next(iterator)
    id(y)
    print(end="")
    return [helper(y, [])][0].sum()


def heard(native):
    """Everything a watch notes, and what it tells of builtins that take floats as they are."""
    watch = Watch()
    assert watch.hook is not None  # tests run with native code
    if not native:
        watch.hook = None
    asked = []
    watch.unasked = lambda how, frame: asked.append(how)
    with watch:
        user_function(torch.ones(2, 3))
        resume = suspended()
        math.sqrt(3.0)
        user_function(torch.ones(1))
        resume()
        helper(torch.ones(1), [])
    trails = [[(code.co_name, line) for code, line in trail][:2] for trail, _ in watch.trails]
    return set(watch.ran), watch.names, watch.dynamic, watch.why, trails, len(watch.iterated), asked


def test_the_native_hook_hears_what_that_of_python_hears():
    room("runtime.calls")
    __import__(ENGINE)
    heard(True)  # knows the library's code from here on
    expected, found = heard(False), heard(True)
    assert found == expected
    ran, _, dynamic, why, trails, iterated, asked = found
    assert {helper.__code__, user_function.__code__, Layer.forward.__code__} <= ran
    assert dynamic and why.startswith("id() is called at") and [t[0][0] for t in trails] == ["user_function"] * 2
    assert iterated == 1 and asked.count("math.sqrt()") == 3


def test_an_error_of_the_hook_is_raised():
    watch = Watch()
    watch.saw = lambda *args: 1 / 0
    with pytest.raises(ZeroDivisionError), watch:
        helper(torch.ones(1), [])


def test_a_table_of_addresses_finds_what_was_added_and_grows():
    module = loaded(HOOK)
    table, objects = module.Addresses(), [object() for _ in range(module.ROOM)]
    for one in objects:
        table.add(one)
    places = set(table.table.tolist()) - {0}
    assert places == {id(one) for one in objects} and len(table.table) == 2 * module.ROOM
    assert {one.__name__ for one in module.UNASKING} == UNASKING
