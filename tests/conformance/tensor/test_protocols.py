"""Python's protocols on tensors: numbers, containers, copies, pickles, hashes, attributes."""

import copy
import gc
import math
import operator
import pickle
import weakref

from tests.conformance.both import attempt, on_both


def samples(torch):
    return [
        torch.tensor(2.5),
        torch.tensor(3),
        torch.tensor(True),
        torch.tensor(1 + 2j),
        torch.tensor([4.0]),
        torch.tensor([[5]]),
        torch.tensor([1.0, 2.0]),
        torch.tensor([]),
        torch.tensor(2.5, requires_grad=True),
        torch.tensor(2.5, dtype=torch.float16),
        torch.tensor(-1, dtype=torch.uint8) if False else torch.tensor(200, dtype=torch.uint8),
        torch.tensor(float("nan")),
        torch.tensor(float("inf")),
    ]


def converted(torch, function):
    def one(t):
        value = function(t)
        return [type(value).__name__, value]

    return [attempt(lambda t=t: one(t)) for t in samples(torch)]


@on_both
def test_bool(torch):
    return converted(torch, bool)


@on_both
def test_int(torch):
    return converted(torch, int)


@on_both
def test_float(torch):
    return converted(torch, float)


@on_both
def test_complex(torch):
    return converted(torch, complex)


@on_both
def test_index(torch):
    return converted(torch, operator.index)


@on_both
def test_item(torch):
    return converted(torch, lambda t: t.item())


@on_both
def test_tolist(torch):
    return converted(torch, lambda t: t.tolist())


@on_both
def test_len(torch):
    return converted(torch, len)


@on_both
def test_iteration(torch):
    return converted(torch, list)


@on_both
def test_format(torch):
    formats = ["", ".2f", "5", "d", "e", ">8"]
    return [attempt(lambda t=t, f=f: format(t, f)) for t in samples(torch) for f in formats]


@on_both
def test_round_floor_ceil_trunc(torch):
    t = torch.tensor([1.5, -2.5])
    return (
        attempt(lambda: round(t)),
        attempt(lambda: round(t, 1)),
        attempt(lambda: math.floor(torch.tensor(1.5))),
        attempt(lambda: math.ceil(torch.tensor(1.5))),
        attempt(lambda: math.trunc(torch.tensor(1.5))),
        attempt(lambda: divmod(t, 2)),
        attempt(lambda: abs(t)),
        attempt(lambda: math.sqrt(torch.tensor(4.0))),
    )


@on_both
def test_membership(torch):
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return [
        attempt(lambda v=v: v in t)
        for v in (
            1,
            5.0,
            torch.tensor(2.0),
            torch.tensor([1.0, 2.0]),
            torch.tensor([1.0, 9.0]),
            "text",
            None,
            True,
            [1.0],
        )
    ]


@on_both
def test_reversed(torch):
    return attempt(lambda: reversed(torch.tensor([1, 2, 3]))), attempt(lambda: reversed(torch.tensor(1)))


@on_both
def test_unpacking_builds_unbind(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    a, b = x
    return a, b.grad_fn, a.output_nr, b.output_nr, [type(t.grad_fn).__name__ for t in x]


@on_both
def test_tensors_as_indices_and_ranges(torch):
    values = [10, 20, 30]
    return (
        values[torch.tensor(1)],
        list(range(torch.tensor(3))),
        attempt(lambda: values[torch.tensor(1.0)]),
        attempt(lambda: values[torch.tensor([1, 2])]),
        "ab" * torch.tensor(2) if False else None,
        values[torch.tensor([1]) : torch.tensor(3)],
    )


@on_both
def test_hash_is_identity(torch):
    a, b = torch.ones(2), torch.ones(2)
    return hash(a) == hash(a), hash(a) == hash(b), len({a, b, a}), {a: 1}[a], attempt(lambda: {a: 1}[b])


@on_both
def test_free_attributes(torch):
    x = torch.ones(2, requires_grad=True)
    x.note = "kept"
    y = x * 1
    return x.note, attempt(lambda: y.note), x.__dict__, hasattr(x.detach(), "note")


@on_both
def test_weak_references(torch):
    x = torch.ones(2)
    r = weakref.ref(x)
    alive = r() is x
    del x
    gc.collect()
    return alive, r() is None


@on_both
def test_comparison_with_other_things(torch):
    t = torch.tensor([1.0, 2.0])
    return (
        attempt(lambda: t is None),
        attempt(lambda: t == "a"),
        attempt(lambda: t != "a"),
        attempt(lambda: t < "a"),
        attempt(lambda: t == [1.0, 2.0]),
    )


@on_both
def test_operators_with_other_things(torch):
    t = torch.tensor([1.0, 2.0])
    operators = (
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.pow,
        operator.matmul,
        operator.and_,
    )
    return [attempt(lambda f=f, v=v: f(t, v)) for f in operators for v in (None, "a", [1.0, 2.0], object)]


@on_both
def test_copies_share_memory(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.note = [1]
    x.grad = torch.ones(2)
    y = copy.copy(x)
    with torch.no_grad():
        y.add_(1)
    return y is x, y, x, y.requires_grad, y.is_leaf, y.note is x.note, y.grad, y._version, x._version


@on_both
def test_copy_of_an_intermediate_result(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    return attempt(lambda: copy.copy(y)), attempt(lambda: copy.copy(y).grad_fn), attempt(lambda: copy.copy(y).is_leaf)


@on_both
def test_deep_copies_are_independent(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.note = [1]
    x.grad = torch.ones(2)
    y = copy.deepcopy(x)
    with torch.no_grad():
        y.add_(1)
    return y, x, y.requires_grad, y.note, y.note is x.note, y.grad, y.grad is x.grad, y._version


@on_both
def test_deep_copies_keep_aliasing(torch):
    base = torch.arange(6.0)
    data = {"base": base, "view": base[2:4], "same": base, "other": base.view(2, 3)}
    out = copy.deepcopy(data)
    out["view"].zero_()
    return (
        out["base"],
        out["other"],
        base,
        out["same"] is out["base"],
        out["view"]._is_view(),
        out["view"].storage_offset(),
    )


@on_both
def test_deep_copy_of_an_intermediate_result_is_an_error(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return attempt(lambda: copy.deepcopy(x * 2))


@on_both
def test_deep_copy_of_views_and_strides(torch):
    x = torch.arange(6.0).view(2, 3).t()
    y = copy.deepcopy(x)
    z = copy.deepcopy(torch.ones(1).expand(3, 4))
    return y, y.stride(), y.is_contiguous(), z.stride(), z


@on_both
def test_deep_copy_of_inference_tensors(torch):
    with torch.inference_mode():
        x = torch.ones(2)
        inside = copy.deepcopy(x).is_inference()
    return inside, copy.deepcopy(x).is_inference(), copy.copy(x).is_inference()


@on_both
def test_pickles_come_back(torch):
    out = []
    for t in samples(torch):
        back = pickle.loads(pickle.dumps(t))
        out.append([back, back.dtype is t.dtype, back.stride(), back.requires_grad])
    return out


@on_both
def test_pickle_keeps_strides_and_attributes(torch):
    x = torch.arange(6.0).view(2, 3).t()
    x.note = "kept"
    y = pickle.loads(pickle.dumps(x))
    return y, y.stride(), attempt(lambda: y.note)


@on_both
def test_pickle_of_an_intermediate_result(torch):
    y = torch.tensor([1.0, 2.0], requires_grad=True) * 2
    back = attempt(lambda: pickle.loads(pickle.dumps(y)))
    return getattr(back, "requires_grad", None), getattr(back, "is_leaf", None), getattr(back, "text", None)


@on_both
def test_pickled_views_bring_their_memory(torch):
    base = torch.arange(6.0)
    data = {"base": base, "view": base[2:4]}
    out = pickle.loads(pickle.dumps(data))
    out["view"].zero_()
    return out["base"], out["view"].storage_offset()


@on_both
def test_gradients_are_not_pickled(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.ones(2)
    y = pickle.loads(pickle.dumps(x))
    return y.grad, y.requires_grad


@on_both
def test_hooks_and_pickles(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(print)
    y = attempt(lambda: pickle.loads(pickle.dumps(x)))
    return y


@on_both
def test_parameters_are_copied_and_pickled_as_parameters(torch):
    p = torch.nn.Parameter(torch.ones(2))
    a, b, c = copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))
    return [(type(t).__name__, t.requires_grad, t.is_leaf) for t in (a, b, c)]


@on_both
def test_sizes_dtypes_and_devices_pickle(torch):
    things = [torch.Size([1, 2]), torch.float32, torch.device("cpu"), torch.strided, torch.channels_last]
    return [[str(pickle.loads(pickle.dumps(t))), copy.deepcopy(t) == t] for t in things]


@on_both
def test_data_attribute(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    d = x.data
    d.add_(1)
    before = x._version

    def assign(value):
        x.data = value

    return (
        d.requires_grad,
        x,
        before,
        attempt(lambda: assign(torch.tensor([1.0, 2.0, 3.0]))),
        x,
        attempt(lambda: assign(torch.tensor([1, 2]))),
        attempt(lambda: assign(3)),
        attempt(lambda: assign(torch.ones(2, dtype=torch.float64))),
        x.dtype,
    )


@on_both
def test_read_only_attributes(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    names = (
        "shape",
        "dtype",
        "grad_fn",
        "is_leaf",
        "output_nr",
        "ndim",
        "_version",
        "_base",
        "device",
        "layout",
        "name",
    )
    return [type(attempt(lambda n=n: setattr(x, n, None))).__name__ for n in names]


@on_both
def test_requires_grad_assignment(torch):
    x = torch.tensor([1.0, 2.0])

    def assign(t, value):
        t.requires_grad = value
        return t.requires_grad

    y = torch.ones(1, requires_grad=True) * 2
    return (
        attempt(lambda: assign(x, True)),
        attempt(lambda: assign(x, False)),
        attempt(lambda: assign(x, 1)),
        attempt(lambda: assign(x, None)),
        attempt(lambda: assign(y, True)),
        attempt(lambda: assign(y, False)),
        attempt(lambda: y.requires_grad_(False)),
        attempt(lambda: torch.tensor([1]).requires_grad_()),
        attempt(lambda: x.requires_grad_() is x),
    )


@on_both
def test_set_and_memory(torch):
    x = torch.tensor([1.0, 2.0, 3.0])
    y = torch.zeros(1)
    y.set_(x)
    y[0] = 9.0
    leaf = torch.zeros(1, requires_grad=True)
    return x, y, y._version, attempt(lambda: leaf.set_(x)), attempt(lambda: y.set_(torch.ones(2, dtype=torch.int64)))


def test_float_of_a_tensor_that_requires_grad_warns_once_per_process(run_python):
    source = """
import warnings
import {module} as torch
x = torch.tensor(2.5, requires_grad=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    int(x), float(x), float(x)
print([str(w.message).split(" (Triggered")[0] for w in caught])
"""
    assert run_python(source.format(module="torch")) == run_python(source.format(module="pullback"))
