"""Scripted and traced programs give on pullback, where Python runs them, what they give in torch."""

import copy
import io
import warnings
from typing import Dict, List, Optional, Tuple, Union  # noqa: UP035

import pytest
import torch

import pullback
from tests.conformance.both import attempt, same

LIST, DICT = List[int], Dict[str, int]  # noqa: UP006


def quiet(program):
    """The program without torch's words about TorchScript's end, of which there are more in some calls than ours."""

    def run(t):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return program(t)

    return run


def doubled(x: torch.Tensor, n: int = 2) -> torch.Tensor:
    """Twice."""
    return x * n


class Net:
    """Makes the same small network in both libraries."""

    def __new__(cls, t):
        t.manual_seed(0)
        return t.nn.Sequential(t.nn.Linear(3, 4), t.nn.ReLU(), t.nn.Sequential(t.nn.Linear(4, 2)))


def functions(t):
    f = t.jit.script(doubled)
    g = t.jit.trace(doubled, (t.ones(2),))
    kinds = [type(f).__name__, type(g).__name__, isinstance(f, t.jit.ScriptFunction), t.jit.script(f) is f]
    return f(t.ones(2)), f(t.ones(2), 3), f(t.ones(2), n=4), g(t.ones(3)), kinds, f.name, f.qualified_name, f.__doc__


def modules(t):
    m = Net(t)
    s = t.jit.script(m)
    x = t.ones(1, 3)
    before = s(x)
    facts = [repr(s), s.original_name, [n for n, _ in s.named_modules()], list(s.state_dict()), s.training, len(s)]
    facts += [isinstance(s, t.nn.Module), isinstance(s, t.jit.ScriptModule), type(s).__name__, t.jit.script(s) is s]
    s.eval()
    modes = s.training, [c.training for c in s.children()]
    with t.no_grad():
        m[0].weight.zero_()
    s(x).sum().backward()
    return (
        before,
        facts,
        modes,
        s(x),
        m[2][0].weight.grad,
        [p.shape for p in s.parameters()],
        getattr(s, "0").weight,
    )


def traced_modules(t):
    m = Net(t)
    s = t.jit.trace(m, t.ones(1, 3))
    other = t.jit.trace_module(m, {"forward": t.ones(2, 3)})
    kinds = type(s).__name__, s.original_name, repr(s), isinstance(s, t.jit.ScriptModule), type(other).__name__
    return s(t.ones(2, 3)), kinds, list(s.state_dict()), other(t.ones(2, 3))


def own_script_modules(t):
    class Scale(t.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.w = t.nn.Parameter(t.ones(2) * 3)

        @t.jit.script_method
        def forward(self, x):
            return x * self.w

    m = Scale()
    return m(t.ones(2)), list(m.state_dict()), isinstance(m, t.nn.Module)


def marks(t):
    jit = t.jit

    @jit.ignore
    def ignored(x):
        return x + 1

    @jit.ignore()
    def ignored_too(x):
        return x + 2

    @jit.unused
    def unused(x):
        return x + 3

    @jit.export
    def exported(x):
        return x + 4

    @jit.script_if_tracing
    def perhaps(x):
        return x + 5

    marked = [f._torchscript_modifier for f in (ignored, ignored_too, unused, exported)]
    results = [f(1) for f in (ignored, ignored_too, unused, exported, perhaps)]
    answers = jit.is_scripting(), jit.is_tracing(), jit.annotate(LIST, [1]), str(jit.Attribute(3, int))
    return marked, results, answers, attempt(lambda: jit.ignore(drop=3)), attempt(lambda: jit.interface(3))


def tracing_state(t):
    seen = []

    def program(x):
        seen.append(t.jit.is_tracing())
        return x + 1

    traced = t.jit.trace(program, (t.ones(1),), check_trace=False)
    return list(seen), t.jit.is_tracing(), traced(t.ones(2))


def types(t):
    check = t.jit.isinstance
    values = [[1, 2], [1, "a"], {"a": 1}, {1: "a"}, (1, "a"), None, 3, [[1]], t.ones(1)]
    kinds = [LIST, DICT, Tuple[int, str], Optional[int], Union[int, str], (int, str), List[LIST], t.Tensor, list[int]]  # noqa: UP006, UP045, UP007
    answers = [[check(value, kind) for kind in kinds] for value in values]
    bare = [attempt(lambda kind=kind: check([1], kind)) for kind in (List, Dict, list, dict, tuple, "int")]  # noqa: UP006
    return answers, bare, check([], LIST)


def futures(t):
    future = t.jit.fork(doubled, t.ones(2), n=3)
    results = (
        t.jit.wait(future),
        future.wait(),
        future.value(),
        future.done(),
        future.then(lambda f: f.value() + 1).wait(),
    )

    def failing():
        raise ValueError("no")

    own = t.jit.Future()
    own.set_result(4)
    return (
        results,
        attempt(lambda: t.jit.fork(failing)),
        attempt(lambda: t.jit.wait(3)),
        own.wait(),
        isinstance(own, t.jit.Future),
    )


def frozen(t):
    m = Net(t)
    s = t.jit.script(m)
    refused = [
        attempt(lambda: t.jit.freeze(m)),
        attempt(lambda: t.jit.freeze(s)),
        attempt(lambda: t.jit.optimize_for_inference(m)),
    ]
    f = t.jit.freeze(s.eval())
    with t.no_grad():
        m[0].weight.zero_()
    x = t.ones(1, 3)
    return refused, f(x), s(x), isinstance(f, t.jit.ScriptModule)


def settings(t):
    before = t.jit.set_fusion_strategy([("DYNAMIC", 3)])
    then = t.jit.set_fusion_strategy(before)
    with t.jit.strict_fusion(), t.jit.optimized_execution(True):
        inside = 1
    return before, then, inside, attempt(lambda: t.jit.set_fusion_strategy("x"))


def refused_scripts(t):
    class Mine(t.nn.Module):
        pass

    return [attempt(lambda o=o: t.jit.script(o)) for o in (t.nn.Linear, 3, "a")], attempt(
        lambda: t.jit.trace_module(3, {})
    )


def copies(t):
    s = t.jit.script(Net(t))
    other = copy.deepcopy(s)
    with t.no_grad():
        getattr(s, "0").weight.zero_()
    x = t.ones(1, 3)
    return s(x), other(x), other.original_name, attempt(lambda: t.save(s, io.BytesIO())).kind


def saved(t):
    s = t.jit.script(Net(t))
    file, extra = io.BytesIO(), {"note.txt": ""}
    t.jit.save(s, file, _extra_files={"note.txt": "hello"})
    file.seek(0)
    again = t.jit.load(file, _extra_files=extra)
    x = t.ones(1, 3)
    note = extra["note.txt"]
    missing = attempt(lambda: t.jit.load("/nowhere/at/all.pt"))
    return (
        again(x),
        s(x),
        list(again.state_dict()),
        again.original_name,
        note if isinstance(note, str) else note.decode(),
        missing,
    )


def state(t):
    s = t.jit.script(Net(t))
    other = Net(t)
    with t.no_grad():
        for p in other.parameters():
            p.fill_(0.5)
    s.load_state_dict(other.state_dict())
    s.double()
    return s(t.ones(1, 3, dtype=t.float64)), [p.dtype for p in s.parameters()], getattr(s, "0").weight


PROGRAMS = [
    *[functions, modules, traced_modules, own_script_modules, marks, tracing_state, types, futures, frozen, settings],
    *[refused_scripts, copies, saved, state],
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_scripts_and_traces_do_as_in_torch(program):
    same(quiet(program))


def test_a_torchscript_file_is_refused_with_what_to_do_instead(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(Net(torch)), tmp_path / "m.pt")
        with pytest.raises(NotImplementedError, match=r"TorchScript archive.*state_dict"):
            pullback.jit.load(tmp_path / "m.pt")


def test_an_interface_is_a_class_or_a_module_and_inherits_nothing_else():
    def program(torch):
        class Plain:
            def run(self, x: torch.Tensor) -> torch.Tensor:
                pass

        class Layer(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                pass

        class Deeper(torch.nn.Linear):
            pass

        class Further(Plain):
            pass

        interface = torch.jit.interface
        same = interface(Plain) is Plain, interface(Layer) is Layer
        return same, attempt(lambda: interface(Deeper)), attempt(lambda: interface(Further))

    same(quiet(program))
