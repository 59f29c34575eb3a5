"""Patches of functions begin and end in any order: a mode, a profile, autocast and vmap inside of each other."""

import threading
from unittest import mock

import pytest

import pullback as torch
from pullback._op.declare import parameters_of
from pullback._op.patch import AUTOCAST, BATCHING, OVERRIDES, PROFILER, Patch, Site, sites, unpatched
from pullback._op.readings import reread
from pullback.ops.nn.activation.dropout import dropped

x = torch.arange(6.0).reshape(3, 2)


def patched():
    """The functions that have other code than their own, apart from those that ask overriding classes for ever."""
    return {
        site.function.__name__: [rank for rank, _, _ in site.actions]
        for site in sites.values()
        if any([rank != OVERRIDES for rank, _, _ in site.actions])
        or (not site.actions and site.function.__code__ is site.code)
    }


@pytest.fixture(autouse=True)
def nothing_stays():
    """Every test leaves each function as it was."""
    before = patched()
    yield
    assert patched() == before == {}


class Noting(torch.overrides.TorchFunctionMode):
    """Writes down what it is asked about."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.asked.append((func.__name__, args))
        return func(*args, **(kwargs or {}))


def names(prof):
    """The names of the events of a profile."""
    return [event.name for event in prof.function_events]


# ------------------------------------------------------------------ in fresh programs: nobody has asked before

CLASS_INSIDE_VMAP = """
import pullback as torch

asked = []

def body(v):
    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})
    body.Own = Own
    return v * 2

torch.vmap(body)(torch.ones(3, 2))
own = torch.ones(3).as_subclass(body.Own)
torch.rand_like(own), torch.randn_like(own), torch.bernoulli(own), torch.atleast_2d(own)
print(asked)
"""


def test_a_class_first_defined_inside_vmap_is_asked_afterwards(run_python):
    assert run_python(CLASS_INSIDE_VMAP).strip() == "['rand_like', 'randn_like', 'bernoulli', 'atleast_2d']"


def test_what_is_first_read_while_it_is_patched_is_read_as_it_was_written():
    own = dropped.__code__

    def body(v):
        assert dropped.__code__ is not own
        assert reread(dropped).__code__ is own
        assert parameters_of(unpatched(dropped))[0].name == "name"
        return v

    torch.vmap(body)(x)


# ------------------------------------------------------------------ interleavings


def test_a_profile_stopped_inside_a_vmapped_function_leaves_nothing_behind():
    prof = torch.autograd.profiler.profile()

    def body(v):
        out = v + torch.rand(2)
        prof.__exit__(None, None, None)
        return out + torch.rand(2)

    prof.__enter__()
    torch.vmap(body, randomness="different")(x)
    assert names(prof).count("aten::rand") == 1
    assert patched() == {}
    count = len(prof.function_events)
    torch.rand(2), torch.vmap(lambda v: v + torch.rand(2), randomness="same")(x)
    assert len(prof.function_events) == count


def test_a_profile_started_inside_a_vmapped_function_goes_on_outside():
    prof = torch.autograd.profiler.profile()

    def body(v):
        prof.__enter__()
        return v + torch.rand(2)

    out = torch.vmap(body, randomness="different")(x)
    assert out.shape == (3, 2)
    torch.rand(4)
    prof.__exit__(None, None, None)
    assert names(prof).count("aten::rand") == 2


def test_vmap_still_draws_for_each_entry_after_a_profile_ended_inside():
    def body(v):
        with torch.autograd.profiler.profile():
            torch.rand(2)
        return v + torch.rand(2)

    torch.manual_seed(0)
    out = torch.vmap(body, randomness="different")(torch.zeros(3, 2))
    assert len(set(out.flatten().tolist())) == 6


def test_a_mode_entered_inside_vmap_and_left_outside_is_asked_until_then():
    mode = Noting()

    def body(v):
        mode.__enter__()
        return v + torch.rand(2)

    torch.vmap(body, randomness="different")(x)
    torch.rand(4)
    mode.__exit__(None, None, None)
    torch.rand(5)
    assert [args for name, args in mode.asked if name == "rand"] == [(2,), (4,)]


def test_a_mode_around_vmap_sees_what_the_program_wrote():
    for _ in range(2):  # functions ask from the first mode on, so the second finds them asking
        with Noting() as mode:
            torch.vmap(lambda v: v + torch.rand(2), randomness="different")(x)
        assert [args for name, args in mode.asked if name == "rand"] == [(2,)]


@pytest.mark.parametrize("first", [0, 1])
def test_profiles_may_end_in_any_order(first):
    profiles = [torch.autograd.profiler.profile() for _ in range(2)]
    for prof in profiles:
        prof.__enter__()
    torch.rand(2)
    profiles[first].__exit__(None, None, None)
    torch.rand(2)
    profiles[1 - first].__exit__(None, None, None)
    torch.rand(2), x * 2
    assert names(profiles[first]).count("aten::rand") == 1
    assert names(profiles[1 - first]).count("aten::rand") == 2
    assert torch._modes.modes.profiler is None


def test_autocast_begun_in_a_profile_goes_on_after_it():
    prof, cast = torch.autograd.profiler.profile(), torch.autocast("cpu")
    prof.__enter__()
    cast.__enter__()
    prof.__exit__(None, None, None)
    assert torch.nn.functional.linear(x, x).dtype is torch.bfloat16
    cast.__exit__(None, None, None)
    assert torch.nn.functional.linear(x, x).dtype is torch.float32


def test_a_mocked_name_is_mocked_beside_every_patch():
    own = torch.rand
    with torch.autograd.profiler.profile() as prof, mock.patch("pullback.rand", lambda *size: torch.ones(*size)):
        out = torch.vmap(lambda v: v + torch.rand(2), randomness="error")(x)
        assert out.equal(x + 1)
    assert torch.rand is own and names(prof).count("aten::rand") == 0
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(lambda v: v + torch.rand(2))(x)

    def body(v):
        with mock.patch("pullback.rand", lambda *size: torch.ones(*size)):
            return v + torch.rand(2)

    assert torch.vmap(body)(x).equal(x + 1)


def test_two_threads_in_vmap_and_a_profile_disturb_nobody():
    failures = []

    def work(number):
        try:
            for _ in range(30):
                if number % 2:
                    out = torch.vmap(lambda v: v + torch.rand(2), randomness="different")(torch.zeros(3, 2))
                    assert len(set(out.flatten().tolist())) == 6
                else:
                    with torch.autocast("cpu"):
                        assert torch.nn.functional.linear(x, x).dtype is torch.bfloat16
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        with torch.autograd.profiler.profile():
            torch.rand(2)
    for thread in threads:
        thread.join()
    assert not failures


# ------------------------------------------------------------------ the mechanism itself


def double(a, b=1):
    """A function to be patched."""
    return 2 * a + b


def adding(amount, log):
    """An action that adds to the result."""

    def run(original, args, kwargs):
        log.append((amount, original.__name__))
        return original(*args, **kwargs) + amount

    return run


def test_patches_are_asked_in_their_order_whatever_began_first():
    log, own = [], double.__code__
    patches = {rank: Patch(rank, lambda rank=rank: [(double, adding(10**rank, log))]) for rank in range(4)}
    for order in ([3, 1, 0, 2], [0, 1, 2, 3], [2, 3, 1, 0]):
        for rank in order:
            patches[rank].hold("me")
        log.clear()
        assert double(1, b=2) == 4 + 1111
        assert log == [(1, "double"), (10, "double"), (100, "double"), (1000, "double")]
        assert unpatched(double)(1) == 3
        left = set(range(4))
        for rank in order[::-1] if order[0] else order:
            patches[rank].drop("me")
            left.discard(rank)
            assert double(1) == 3 + sum(10**r for r in left)
        assert double.__code__ is own and unpatched(double) is double
    assert (OVERRIDES, PROFILER, AUTOCAST, BATCHING) == (0, 1, 2, 3)


def test_a_patch_lasts_until_the_last_holder_has_dropped_it():
    patch = Patch(BATCHING, lambda: [(double, adding(5, []))])
    for who in "ab":
        patch.hold(who)
        patch.hold(who)
    patch.drop("a")
    assert double(1) == 8
    patch.drop("a")
    assert double(1) == 8
    patch.drop("b")
    assert double(1) == 3
    other = Patch(BATCHING, lambda: [(double, adding(7, []))])
    other.hold("c")
    patch.drop("b")
    assert double(1) == 10
    other.drop("c")
    assert double(1) == 3


def test_a_patch_interrupted_halfway_is_completed_by_the_next_holder():
    def other(a):
        return a

    def first():
        yield double, adding(5, [])
        yield other, adding(5, [])

    patch = Patch(BATCHING, first)
    add, calls = Site.add, []

    def interrupted(site, *args):
        calls.append(site)
        if len(calls) == 2:
            raise KeyboardInterrupt
        add(site, *args)

    with mock.patch.object(Site, "add", interrupted), pytest.raises(KeyboardInterrupt):
        patch.hold("interrupted")
    patch.hold("another")
    patch.drop("interrupted")
    assert (double(1), other(1)) == (8, 6)
    patch.drop("another")
    assert (double(1), other(1)) == (3, 1)


def test_a_function_first_called_while_it_is_patched_has_its_own_code_afterwards(run_python):
    program = """
import pullback as torch
from pullback._op.patch import stub
op = torch.baddbmm.op.call
assert op.__code__ is stub.__code__
with torch.autograd.profiler.profile(), torch.autocast("cpu"):
    a = torch.ones(1, 2, 2)
    print(torch.baddbmm(a, a, a).dtype)
print(torch.baddbmm(a, a, a).dtype, op.__code__.co_varnames[:2], op.__code__ is stub.__code__)
"""
    assert run_python(program).splitlines() == [
        "torch.bfloat16",
        "torch.float32 ('input', 'batch1') False",
    ]


def test_show_prints_the_declaration_of_a_function_that_is_patched(capsys):
    with Noting(), torch.autograd.profiler.profile():
        torch.show(torch.randint)
    assert "def randint" in capsys.readouterr().out


def test_an_error_of_a_patched_function_is_its_own():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    with Mode(), pytest.raises(IndexError, match="index out of range in self"):
        torch.nn.functional.embedding(torch.tensor([1, 4]), torch.ones(4, 3))
