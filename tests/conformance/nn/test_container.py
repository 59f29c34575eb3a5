"""Containers of modules and of parameters."""

import copy
import pickle
from collections import OrderedDict

import pytest

from tests.conformance.both import attempt, on_both


def names(module):
    return [(name, type(m).__name__) for name, m in module.named_children()]


@on_both
def test_a_sequential_is_a_list_of_layers(torch):
    nn = torch.nn
    net = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    named = nn.Sequential(OrderedDict([("a", nn.ReLU()), ("b", nn.Tanh())]))
    return [
        len(net),
        type(net[0]).__name__,
        type(net[-1]).__name__,
        repr(net[1:]),
        repr(named[:1]),
        type(named.b).__name__,
        [type(m).__name__ for m in net],
        attempt(lambda: net[3]),
        attempt(lambda: net[-4]),
        attempt(lambda: net["0"]),
        repr(nn.Sequential()),
        nn.Sequential()(torch.ones(1)),
        [name for name in dir(net) if name.isdigit()],
    ]


@on_both
def test_a_sequential_can_be_changed(torch):
    nn = torch.nn
    net = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    net[1] = nn.GELU()
    steps = [names(net)]
    del net[0]
    steps.append(names(net))
    net.append(nn.ELU()).extend([nn.CELU(), nn.SELU()])
    steps.append(names(net))
    net.insert(1, nn.Mish())
    net.insert(-1, nn.SiLU())
    steps.append(names(net))
    popped = net.pop(1)
    del net[1:3]
    steps.append([type(popped).__name__, names(net)])
    net += nn.Sequential(nn.Tanh())
    steps.append(names(net + nn.Sequential(nn.ReLU())))
    steps.append(names(net * 2))
    steps.append(names(2 * net))
    net *= 2
    steps.append(names(net))
    return steps


@on_both
def test_what_cannot_be_done_with_a_sequential_is_refused(torch):
    nn = torch.nn
    net = nn.Sequential(nn.ReLU())
    return [
        attempt(lambda: net + [nn.ReLU()]),
        attempt(lambda: net.__iadd__([nn.ReLU()])),
        attempt(lambda: net * 0).kind,
        attempt(lambda: net * 1.5).kind,
        attempt(lambda: net.__imul__(-1)).kind,
        attempt(lambda: net.insert(5, nn.ReLU())),
        attempt(lambda: nn.Sequential(3)),
        attempt(lambda: net.append("text")),
    ]


@on_both
def test_a_module_list_is_a_list(torch):
    nn = torch.nn
    items = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    steps = [len(items), names(items), repr(items[1:]), type(items[-1]).__name__]
    items.append(nn.GELU()).extend([nn.ELU()])
    items.insert(1, nn.Mish())
    items += [nn.SELU()]
    steps.append(names(items))
    items[0] = nn.Sigmoid()
    del items[1]
    del items[-2:]
    steps.append(names(items))
    steps.append(names(items + [nn.ReLU()]))
    steps.append(type(items.pop(0)).__name__)
    return [
        *steps,
        names(items),
        attempt(lambda: items[7]),
        attempt(lambda: items.extend(3)),
        attempt(lambda: items.append(3)),
        attempt(lambda: items(torch.ones(1))),
    ]


@on_both
def test_equal_neighbours_in_a_module_list_are_printed_once(torch):
    nn = torch.nn
    block = lambda: nn.Sequential(nn.Linear(1, 2), nn.ReLU())
    return [
        repr(nn.ModuleList()),
        repr(nn.ModuleList([nn.ReLU() for _ in range(3)])),
        repr(nn.ModuleList([block(), block(), nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3)])),
    ]


@on_both
def test_a_module_dict_is_a_dict(torch):
    nn = torch.nn
    items = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    items["c"] = nn.GELU()
    items.update([("d", nn.ELU()), ["e", nn.SELU()]])
    items.update(nn.ModuleDict({"f": nn.Mish()}))
    steps = [
        names(items),
        len(items),
        "a" in items,
        list(items),
        list(items.keys()),
        len(list(items.values())),
        repr(items),
    ]
    del items["a"]
    steps.append(type(items.pop("b")).__name__)
    steps.append([name for name, _ in items.items()])
    items.clear()
    return [
        *steps,
        len(items),
        attempt(lambda: items["none"]),
        attempt(lambda: items.update(3)),
        attempt(lambda: items.update([3])),
        attempt(lambda: items.update([(1, 2, 3)])),
        attempt(lambda: items.update({"x": 3})),
        attempt(lambda: items.pop("none")),
    ]


@on_both
def test_a_parameter_list_is_a_list(torch):
    nn = torch.nn
    items = nn.ParameterList([torch.ones(1), nn.Parameter(torch.zeros(2, 3))])
    items.append(torch.ones(2)).extend([3, "text"])
    items += [torch.ones(())]
    items[0] = torch.full((2,), 5.0)
    return [
        len(items),
        items[0],
        list(items[1:3]),
        items[-2],
        [name for name, _ in items.named_parameters()],
        repr(items),
        list(items.state_dict()),
        attempt(lambda: items[9]),
        attempt(lambda: items.extend(torch.ones(2))),
        attempt(lambda: items.extend(3)),
        attempt(items),
        [name for name in dir(items) if name.isdigit()],
    ]


@on_both
def test_a_parameter_dict_is_a_dict(torch):
    nn = torch.nn
    items = nn.ParameterDict({"b": torch.ones(1), "a": nn.Parameter(torch.zeros(2))})
    steps = [list(items), len(items), repr(items), [name for name, _ in items.named_parameters()]]
    items["c"] = "text"
    items.update([("d", torch.ones(2, 2))])
    steps += [
        list(items.keys()),
        list(reversed(items)),
        items.get("none", 5),
        items.setdefault("e", torch.ones(1)),
        "a" in items,
    ]
    other = items.copy()
    steps += [list(other.items()), list(items.fromkeys(["x", "y"], torch.ones(1)).keys())]
    steps += [
        list(items | nn.ParameterDict({"z": torch.ones(1)})),
        items.popitem(),
        items.pop("a"),
        list(items.values()),
    ]
    items |= nn.ParameterDict({"w": torch.ones(1)})
    del items["w"]
    steps.append(repr(items))
    items.clear()
    return [
        *steps,
        len(items),
        attempt(lambda: items[3]),
        attempt(lambda: items["none"]),
        attempt(lambda: items.update(3)),
        attempt(lambda: items.update([(1, 2, 3)])),
        attempt(lambda: items(3)),
        attempt(items.popitem),
    ]


@pytest.mark.parametrize("kind", ["Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"])
def test_a_copied_or_pickled_container_holds_the_same(kind):
    @on_both
    def program(torch):
        torch.manual_seed(0)
        nn = torch.nn
        made = {
            "Sequential": lambda: nn.Sequential(nn.Linear(1, 2), nn.ReLU()),
            "ModuleList": lambda: nn.ModuleList([nn.Linear(1, 2)]),
            "ModuleDict": lambda: nn.ModuleDict({"a": nn.Linear(1, 2)}),
            "ParameterList": lambda: nn.ParameterList([torch.ones(2)]),
            "ParameterDict": lambda: nn.ParameterDict({"a": torch.ones(2)}),
        }[kind]()
        copies = [copy.deepcopy(made), pickle.loads(pickle.dumps(made))]
        return [[repr(c), dict(c.state_dict()), len(c)] for c in copies]

    program()


@on_both
def test_container_warns_that_it_is_old(torch):
    return repr(torch.nn.Container(a=torch.nn.ReLU()))
