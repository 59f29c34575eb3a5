"""What a program depends on changes, one thing at a time: the compiled function gives what the function gives."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from tests.compiler.support import exactly, same, seen

FACTOR = 2.0
TABLE = [1.0, 2.0]
SETTINGS = {"alpha": 0.5}
CONFIG = SimpleNamespace(beta=3.0)
WEIGHT = torch.ones(3)


def helper(x):
    return x * 2


def other_helper(x):
    return x * 5


HELPER = helper


class Scaled(nn.Module):
    scale = 4.0

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.power = 2
        self.factors = [1.0, 2.0]
        self.options = {"bias": 1.0}
        self.register_buffer("shift", torch.zeros(3))

    def forward(self, x):
        y = self.drop(self.inner(x)) ** self.power * self.scale + self.shift
        return y * self.factors[0] + self.options["bias"]


def agree(compiled, plain, *args, **kwargs):
    """Both give the same, with the same random numbers."""
    for _ in range(2):  # the recording, and the program
        torch.manual_seed(1)
        expected = seen(plain(*args, **kwargs))
        torch.manual_seed(1)
        same(seen(compiled(*args, **kwargs)), expected)


X = torch.tensor([0.5, -1.0, 2.0])


def changes_of_arguments():
    yield "shape", lambda: (torch.ones(4),)
    yield "number of dimensions", lambda: (torch.ones(2, 3),)
    yield "dtype", lambda: (torch.ones(3, dtype=torch.float64),)
    yield "strides", lambda: (torch.arange(6.0)[::2],)
    yield "stretched", lambda: (torch.ones(1).expand(3),)
    yield "requires_grad", lambda: (torch.ones(3, requires_grad=True),)
    yield "a tensor with history", lambda: (torch.ones(3, requires_grad=True) * 2,)
    yield "a parameter", lambda: (nn.Parameter(torch.ones(3)),)
    yield "a number in place of a tensor", lambda: (2.0,)
    yield "a view", lambda: (torch.ones(2, 3)[1],)
    yield "integers", lambda: (torch.tensor([1, 2, 3]),)


@pytest.mark.parametrize(
    ("name", "make"), list(changes_of_arguments()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_another_tensor(name, make):
    def plain(x):
        return x * 2 + 1

    compiled = exactly(plain)
    agree(compiled, plain, X)
    agree(compiled, plain, *make())
    agree(compiled, plain, X)


@pytest.mark.parametrize(
    "pair", [(1, 2), (1, 1.0), (True, 1), (0.0, -0.0), (None, 3), ("a", "b"), (math.nan, 1.0), (1j, 2j)]
)
def test_another_plain_argument(pair):
    def plain(x, value):
        if value is None or isinstance(value, str):
            return x * (2 if value in (None, "a") else 3)
        return torch.full((2,), 1.0) / value if isinstance(value, float) else x * value

    compiled = exactly(plain)
    for value in (*pair, *pair):
        agree(compiled, plain, X, value)


def test_other_containers_of_arguments():
    def plain(items, scale=1.0, **more):
        return [item * scale for item in items], sum(more.values())

    compiled = exactly(plain)
    for args, kwargs in [
        (([X, X],), {}),
        (([X, X + 1],), {}),
        (([X],), {}),
        (((X,),), {}),
        (([X],), {"scale": 2.0}),
        (([X],), {"a": X, "b": X + 1}),
        (([X],), {"b": X, "a": X + 1}),
    ]:
        agree(compiled, plain, *args, **kwargs)


def test_two_arguments_that_are_one():
    def plain(x, y):
        x.add_(1)
        return x * y

    compiled = exactly(plain)
    for same_one in (False, True, False):
        for function in (plain, compiled):
            x = torch.ones(3)
            y = x if same_one else torch.ones(3)
            result = function(x, y)
            np.testing.assert_array_equal(result.numpy(), [4.0 if same_one else 2.0] * 3)


def test_an_argument_that_is_a_view_of_another_one_that_is_written():
    def plain(x, y):
        x.add_(1)
        return x * y

    compiled = exactly(plain)
    for shared in (False, False, True, False):
        for function in (plain, compiled):
            x = torch.ones(3)
            y = x.view(3) if shared else torch.ones(3)
            np.testing.assert_array_equal(function(x, y).numpy(), [4.0 if shared else 2.0] * 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.update(FACTOR=3.0),
        lambda g: g["TABLE"].__setitem__(1, 7.0),
        lambda g: g["TABLE"].append(1.0),
        lambda g: g["SETTINGS"].update(alpha=2.5),
        lambda g: g["SETTINGS"].update(more=1.0),
        lambda g: setattr(g["CONFIG"], "beta", 5.0),
        lambda g: g.update(HELPER=other_helper),
        lambda g: setattr(helper, "__code__", other_helper.__code__),
        lambda g: g.update(WEIGHT=torch.ones(3) * 9),
        lambda g: g["WEIGHT"].mul_(3),
    ],
    ids=["factor", "item", "append", "value", "key", "attribute", "function", "code", "tensor", "elements"],
)
def test_another_global(change):
    space = globals()
    kept = {name: space[name] for name in ("FACTOR", "HELPER", "WEIGHT")}
    code, weight = helper.__code__, WEIGHT.clone()

    def plain(x):
        return HELPER(x) * FACTOR + sum(TABLE) + len(TABLE) + sum(SETTINGS.values()) + CONFIG.beta * WEIGHT

    compiled = exactly(plain)
    try:
        agree(compiled, plain, X)
        change(space)
        agree(compiled, plain, X)
    finally:
        space.update(kept)
        helper.__code__ = code
        kept["WEIGHT"].copy_(weight)
        TABLE[:] = [1.0, 2.0]
        SETTINGS.clear()
        SETTINGS["alpha"] = 0.5
        CONFIG.beta = 3.0


STEP = 0


def test_a_global_that_has_the_name_of_an_attribute_is_none_of_the_functions():
    holder = SimpleNamespace(STEP=lambda x: x + 1)
    compiled = exactly(lambda x: holder.STEP(x))
    for k in range(4):
        globals()["STEP"] = k
        np.testing.assert_array_equal(compiled(X).numpy(), X.numpy() + 1)
    assert len(compiled._compiled.entries) == 1


def test_another_closure_and_other_defaults():
    scale = 2.0

    def inner(x, by=1.0, *, plus=0.0):
        return x * by + plus

    def plain(x):
        return inner(x) * scale

    compiled = exactly(plain)
    agree(compiled, plain, X)
    scale = 3.0
    agree(compiled, plain, X)
    inner.__defaults__ = (4.0,)
    agree(compiled, plain, X)
    inner.__kwdefaults__ = {"plus": 1.0}
    agree(compiled, plain, X)


CHANGES = {
    "training": lambda m: m.eval(),
    "training of a part": lambda m: m.drop.eval(),
    "an attribute": lambda m: setattr(m, "power", 3),
    "an attribute of a part": lambda m: setattr(m.drop, "p", 0.25),
    "an attribute of the class": lambda m: setattr(Scaled, "scale", 8.0),
    "an item of a list": lambda m: m.factors.__setitem__(0, 5.0),
    "an item of a dict": lambda m: m.options.update(bias=2.0),
    "another parameter": lambda m: setattr(m.inner, "weight", nn.Parameter(torch.ones(3, 3))),
    "no parameter": lambda m: setattr(m.inner, "bias", None),
    "elements of a parameter": lambda m: m.inner.weight.data.mul_(2),
    "memory of a parameter": lambda m: setattr(m.inner.weight, "data", torch.ones(3, 3)),
    "a parameter in the table": lambda m: m.inner._parameters.update(weight=nn.Parameter(torch.ones(3, 3))),
    "a frozen parameter": lambda m: m.inner.weight.requires_grad_(False),
    "another buffer": lambda m: setattr(m, "shift", torch.ones(3)),
    "another part": lambda m: setattr(m, "inner", nn.Linear(3, 3, bias=False)),
    "another class": lambda m: setattr(m, "drop", nn.Identity()),
    "a forward hook": lambda m: m.inner.register_forward_hook(lambda module, args, out: out * 2),
    "a hook before": lambda m: m.register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
    "another forward": lambda m: setattr(m.inner, "forward", lambda x: x * 3),
    "a dtype": lambda m: m.double(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_module_that_changes(name):
    torch.manual_seed(0)
    model = Scaled()
    compiled = exactly(model)
    agree(compiled, model, X)
    try:
        CHANGES[name](model)
        x = X.double() if name == "a dtype" else X
        agree(compiled, model, x)
        expected = model(x)
        if expected.requires_grad:
            grads = []
            for function in (model, compiled):
                torch.manual_seed(2)
                model.zero_grad()
                function(x).sum().backward()
                grads.append([None if p.grad is None else p.grad.numpy().copy() for p in model.parameters()])
            same(*grads)
    finally:
        Scaled.scale = 4.0


def test_modes():
    layer = nn.Linear(3, 3)

    def plain(x):
        return layer(x) * torch.ones(3)

    compiled = exactly(plain)
    agree(compiled, plain, X)
    with torch.no_grad():
        agree(compiled, plain, X)
        assert not compiled(X).requires_grad
    with torch.inference_mode():
        agree(compiled, plain, X)
        assert compiled(X).is_inference()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        agree(compiled, plain, X)
        assert plain(X).dtype == compiled(X).dtype
    torch.set_default_dtype(torch.float64)
    try:
        agree(compiled, plain, X)
    finally:
        torch.set_default_dtype(torch.float32)
    agree(compiled, plain, X)


def test_a_hook_on_a_parameter_runs():
    weight = torch.ones(3, requires_grad=True)

    def step(x):
        weight.grad = None
        (weight * x).sum().backward()

    compiled = exactly(step)
    compiled(X)
    compiled(X)
    seen_by_hook = []
    handle = weight.register_hook(lambda grad: seen_by_hook.append(1) or grad * 2)
    compiled(X)
    np.testing.assert_array_equal(weight.grad.numpy(), 2 * X.numpy())
    assert seen_by_hook == [1]
    handle.remove()
    compiled(X)
    np.testing.assert_array_equal(weight.grad.numpy(), X.numpy())


@pytest.mark.parametrize(
    "name", ["print", "append", "attribute", "global", "item", "bool", "numpy", "iterator", "random"]
)
def test_what_cannot_be_repeated_runs_as_it_is(name, capsys):
    import random

    log, holder, stream = [], SimpleNamespace(count=0), iter(range(100))

    def plain(x):
        if name == "print":
            print("here")
        if name == "append":
            log.append(1)
        if name == "attribute":
            holder.count += 1
        if name == "global":
            SETTINGS["alpha"] += 1.0
        if name == "item":
            return x * x.sum().item()
        if name == "bool":
            return x if x.sum() > 0 else -x
        if name == "numpy":
            return torch.from_numpy(np.sin(x.numpy()))
        if name == "iterator":
            return x * next(stream)
        if name == "random":
            return x * random.random()
        return x + 1

    compiled = exactly(plain)
    for k in range(3):
        compiled(X * (k - 1))
    if name == "print":
        assert capsys.readouterr().out == "here\n" * 3
    if name == "append":
        assert log == [1, 1, 1]
    if name == "attribute":
        assert holder.count == 3
    if name == "global":
        assert SETTINGS["alpha"] == 3.5
        SETTINGS["alpha"] = 0.5
    if name in ("item", "bool", "numpy"):
        for k in range(3):
            np.testing.assert_array_equal(compiled(X * (k - 1)).numpy(), plain(X * (k - 1)).numpy())
    if name == "iterator":
        assert next(stream) == 3
    with pytest.raises(RuntimeError):
        torch.compile(plain, fullgraph=True)(X)
    SETTINGS["alpha"] = 0.5


def test_tensors_that_objects_of_the_library_hold():
    center, weight = torch.zeros(3), torch.ones(3, requires_grad=True)
    normal = torch.distributions.Normal(center, torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=1.0)

    def plain(x):
        optimizer.zero_grad()
        return x + normal.mean * 2

    compiled = exactly(plain)
    for change in (lambda: None, lambda: center.add_(1), lambda: setattr(normal, "loc", torch.full((3,), 5.0))):
        change()
        for _ in range(3):
            weight.grad = torch.ones(3)
            agree(compiled, plain, X)
            weight.grad = torch.ones(3)
            compiled(X)
            assert weight.grad is None


def test_two_tensors_of_one_array():
    def plain(x, y):
        x.add_(1)
        return x * y + 1

    compiled = exactly(plain)
    for _ in range(3):
        x = torch.ones(3)
        assert compiled(x, x.detach()).tolist() == [5.0] * 3
        assert compiled(x, x.clone()).tolist() == [7.0] * 3


def with_gradients(w, v, optimizer):
    """Functions of two leaves and an optimizer that look at gradients, forget them, or do neither."""

    def loss(x):
        out = (w * x).tanh().sum() + (v * v).sum()
        out.backward()
        return out

    def forgets(x):
        optimizer.zero_grad()
        return loss(x)

    def forgets_one(x):
        w.grad = None
        return loss(x)

    def deletes(x):
        del w.grad
        del v.grad
        return loss(x)

    def zeroes(x):
        optimizer.zero_grad(set_to_none=False)
        return loss(x)

    def asks(x):
        return x * 2 if w.grad is None else x + w.grad

    def asks_and_forgets(x):
        absent = v.grad is None
        optimizer.zero_grad()
        return loss(x) * (2 if absent else 3)

    def updates_first(x):
        optimizer.step()
        optimizer.zero_grad()
        return loss(x)

    def clips_first(x):
        norm = nn.utils.clip_grad_norm_([w, v], 0.5)
        optimizer.zero_grad()
        return loss(x) + norm

    def trains(x):
        optimizer.zero_grad()
        out = loss(x)
        optimizer.step()
        return out

    def gives(x):
        w.grad = None
        loss(x)
        return w.grad * 2

    def neither(x):
        return (w * x + v).tanh()

    return {
        f.__name__: f
        for f in (loss, forgets, forgets_one, deletes, zeroes, asks, asks_and_forgets, updates_first, clips_first,
                  trains, gives, neither)
    }  # fmt: skip


LOOK_AT_NONE = {"forgets", "deletes", "trains", "neither"}
"""Those for which it is all one whether there are gradients."""


@pytest.mark.parametrize("name", with_gradients(None, None, None))
@pytest.mark.parametrize("native", [True, False])
def test_gradients_that_come_and_go(name, native):
    """Each call finds other gradients: those of the call before, none (0), or others at one leaf or at both."""
    order = ["", "", "", "", "0", "", "0", "wv", "", "w", "", "v", "0", "0", "wv", "w", "0v", "0w", ""]
    sides = []
    for compiles in (False, True):
        w, v = torch.tensor([0.5, -1.0, 2.0], requires_grad=True), torch.ones(3, requires_grad=True)
        function = with_gradients(w, v, torch.optim.SGD([w, v], lr=0.1))[name]
        if compiles:
            function = torch.compile(function) if native else exactly(function)
        found = []
        for call, given in enumerate(order):
            if "0" in given:
                w.grad = v.grad = None
            for leaf, letter in ((w, "w"), (v, "v")):
                if letter in given:
                    leaf.grad = torch.full((3,), 0.25 * (call % 3))
            result = function(X)
            found.append([seen(result), *[None if p.grad is None else seen(p.grad) for p in (w, v)], seen(w), seen(v)])
        sides.append(found)
    same(*sides, rounding=True)
    if name in LOOK_AT_NONE:
        assert len(function._compiled.entries) == 1


def test_a_gradient_of_a_tensor_that_wants_none():
    w = torch.ones(3)

    def plain(x):
        return x if w.grad is None else x + w.grad

    compiled = exactly(plain)
    for grad in (None, None, torch.ones(3), torch.ones(3) * 2, None):
        w.grad = grad
        agree(compiled, plain, X)
