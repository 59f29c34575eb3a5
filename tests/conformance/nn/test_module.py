"""Module: registration, the tree of modules, state, printing, conversion."""

import copy
import pickle

import pytest

import pullback
from tests.conformance.both import attempt, on_both


def net_of(torch):
    """A small network with everything a module can hold."""
    torch.manual_seed(0)
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor([2.0, 3.0]))
            self.register_parameter("nothing", None)
            self.register_buffer("seen", torch.zeros(2))
            self.register_buffer("scratch", torch.ones(1), persistent=False)
            self.register_buffer("absent", None)
            self.body = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))
            self.missing = None
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x, factor=1):
            return self.norm(self.body(x)) * self.scale * factor

    return Net()


# ------------------------------------------------------------------ registration


@on_both
def test_what_is_assigned_is_registered_by_its_kind(torch):
    nn = torch.nn
    m = nn.Module()
    m.w = nn.Parameter(torch.ones(1))
    m.b = nn.Buffer(torch.ones(2))
    m.c = nn.Buffer(torch.ones(2), persistent=False)
    m.t = torch.ones(3)
    m.child = nn.Linear(1, 1)
    before = [
        list(m._parameters),
        list(m._buffers),
        list(m._modules),
        sorted(m._non_persistent_buffers_set),
        "t" in m.__dict__,
    ]
    m.b = torch.zeros(2)
    m.w = None
    m.child = None
    return before, m.b, m.w, m.child, list(m.state_dict())


@on_both
def test_a_name_moves_to_the_table_of_what_it_stands_for(torch):
    nn = torch.nn
    m = nn.Module()
    m.x = nn.Linear(1, 1)
    m.x = nn.Parameter(torch.ones(1))
    first = [list(m._parameters), list(m._modules)]
    m.x = nn.Linear(1, 1)
    second = [list(m._parameters), list(m._modules)]
    m.plain = 3
    m.plain = nn.Parameter(torch.ones(1))
    del m.x
    return first, second, "plain" in m.__dict__, hasattr(m, "x")


@on_both
def test_wrong_registrations_are_refused(torch):
    nn = torch.nn
    m = nn.Module()
    m.w = nn.Parameter(torch.ones(1))
    m.child = nn.Linear(1, 1)
    m.register_buffer("buf", torch.ones(1))
    w = nn.Parameter(torch.ones(1))
    calls = [
        lambda: setattr(m, "w", torch.ones(1)),
        lambda: setattr(m, "w", 3),
        lambda: setattr(m, "child", torch.ones(1)),
        lambda: setattr(m, "buf", "text"),
        lambda: m.register_parameter("a.b", w),
        lambda: m.register_parameter("", w),
        lambda: m.register_parameter(3, w),
        lambda: m.register_parameter("forward", w),
        lambda: m.register_parameter("p", torch.ones(1)),
        lambda: m.register_parameter("p", w * 2),
        lambda: m.register_buffer("a.b", torch.ones(1)),
        lambda: m.register_buffer("", torch.ones(1)),
        lambda: m.register_buffer(3, torch.ones(1)),
        lambda: m.register_buffer("w", torch.ones(1)),
        lambda: m.register_buffer("c", 3),
        lambda: m.add_module("a.b", nn.Linear(1, 1)),
        lambda: m.add_module("", nn.Linear(1, 1)),
        lambda: m.add_module(3, nn.Linear(1, 1)),
        lambda: m.add_module("w", nn.Linear(1, 1)),
        lambda: m.add_module("d", torch.ones(1)),
        lambda: m.register_module("e", nn.Linear(1, 1)),
        lambda: m.no_such_thing,
        lambda: delattr(m, "no_such_thing"),
        lambda: m(3),
    ]
    return [attempt(call) for call in calls]


@on_both
def test_nothing_can_be_assigned_before_init(torch):
    nn = torch.nn

    class Hasty(nn.Module):
        def __init__(self, value):
            self.value = value
            super().__init__()

    return [
        attempt(lambda v=v: Hasty(v)) for v in (nn.Parameter(torch.ones(1)), nn.Linear(1, 1), nn.Buffer(torch.ones(1)))
    ]


@on_both
def test_module_takes_no_arguments(torch):
    return [attempt(lambda: torch.nn.Module(3)), attempt(lambda: torch.nn.Module(a=3))]


@on_both
def test_super_is_called_where_a_class_asks_for_it(torch):
    class Base:
        def __init__(self, extra=None):
            self.extra = extra

    class Both(torch.nn.Module, Base):
        call_super_init = True

        def __init__(self):
            super().__init__(extra=5)

    return Both().extra


# ------------------------------------------------------------------ the tree


@on_both
def test_the_tree_is_walked_in_the_same_order(torch):
    net = net_of(torch)
    return {
        "modules": [(name, type(m).__name__) for name, m in net.named_modules()],
        "prefix": [name for name, _ in net.named_modules(prefix="net")],
        "children": [name for name, _ in net.named_children()],
        "parameters": [name for name, _ in net.named_parameters()],
        "own parameters": [name for name, _ in net.named_parameters(recurse=False, prefix="p")],
        "buffers": [name for name, _ in net.named_buffers()],
        "dir": [
            name for name in dir(net) if not name.startswith("__") and name in ("body", "scale", "seen", "training")
        ],
        "counts": [
            len(list(net.parameters())),
            len(list(net.buffers())),
            len(list(net.modules())),
            len(list(net.children())),
        ],
    }


@on_both
def test_shared_modules_and_parameters_are_named_once_unless_asked(torch):
    nn = torch.nn
    shared = nn.Linear(1, 1)
    net = nn.Sequential(shared, shared)
    tied = nn.Module()
    tied.a = nn.Parameter(torch.ones(1))
    tied.b = tied.a
    return [
        [name for name, _ in net.named_modules()],
        [name for name, _ in net.named_modules(remove_duplicate=False)],
        [name for name, _ in net.named_parameters()],
        [name for name, _ in net.named_parameters(remove_duplicate=False)],
        [name for name, _ in tied.named_parameters()],
        [name for name, _ in tied.named_parameters(remove_duplicate=False)],
        list(net.state_dict()),
        len(list(net.children())),
    ]


@on_both
def test_parts_are_found_by_their_dotted_names(torch):
    net = net_of(torch)
    return [
        net.get_submodule("") is net,
        type(net.get_submodule("body.0")).__name__,
        net.get_parameter("body.2.bias").shape,
        net.get_buffer("norm.running_mean"),
        attempt(lambda: net.get_submodule("body.7")),
        attempt(lambda: net.get_submodule("scale")),
        attempt(lambda: net.get_parameter("seen")),
        attempt(lambda: net.get_parameter("body.none")),
        attempt(lambda: net.get_buffer("scale")),
        attempt(lambda: net.get_buffer("none")),
    ]


@on_both
def test_a_submodule_can_be_put_in_the_place_of_another(torch):
    nn = torch.nn
    net = net_of(torch)
    net.set_submodule("body.1", nn.ReLU())
    net.set_submodule("head", nn.ReLU())
    return [
        repr(net),
        attempt(lambda: net.set_submodule("", nn.ReLU())),
        attempt(lambda: net.set_submodule("tail", nn.ReLU(), strict=True)),
        attempt(lambda: net.set_submodule("body.1", 3)),
        attempt(lambda: net.set_submodule("scale", nn.ReLU())),
    ]


@on_both
def test_apply_visits_children_before_their_parents(torch):
    seen = []
    net = net_of(torch)
    result = net.apply(lambda m: seen.append(type(m).__name__))
    return seen, result is net


@on_both
def test_train_and_eval_reach_everything_below(torch):
    net = net_of(torch)
    net.body.eval()
    first = [m.training for m in net.modules()]
    net.train()
    net.eval()
    return first, [m.training for m in net.modules()], attempt(lambda: net.train("yes"))


@on_both
def test_gradients_can_be_switched_off_and_zeroed(torch):
    net = net_of(torch)
    net(torch.ones(3, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    zeroed = [p.grad for p in net.parameters()]
    net.zero_grad()
    none = [p.grad for p in net.parameters()]
    net.requires_grad_(False)
    return zeroed, none, [p.requires_grad for p in net.parameters()]


# ------------------------------------------------------------------ state


@on_both
def test_a_state_dict_holds_parameters_and_persistent_buffers(torch):
    net = net_of(torch)
    state = net.state_dict()
    kept = net.state_dict(prefix="net.", keep_vars=True)
    return dict(state), list(kept), [v.requires_grad for v in kept.values()], dict(state._metadata)


@on_both
def test_a_state_dict_is_loaded_into_another_module(torch):
    net, other = net_of(torch), net_of(torch)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(1.0)
    result = other.load_state_dict(net.state_dict())
    return repr(result), dict(other.state_dict())


@on_both
def test_what_does_not_fit_a_state_dict_is_told(torch):
    net = net_of(torch)
    state = net.state_dict()
    missing = {k: v for k, v in state.items() if not k.startswith("body.0")}
    extra = {**state, "more": torch.ones(1), "body.9.weight": torch.ones(1)}
    wrong = {**state, "scale": torch.ones(3), "body.2.bias": "text"}
    return [
        attempt(lambda: net.load_state_dict(missing)),
        attempt(lambda: net.load_state_dict(extra)),
        attempt(lambda: net.load_state_dict(wrong)),
        attempt(lambda: net.load_state_dict({**extra, **wrong, "body.2.bias": torch.ones(7)})),
        attempt(lambda: net.load_state_dict(3)),
        [list(keys) for keys in net.load_state_dict({**missing, "more": torch.ones(1)}, strict=False)],
        attempt(lambda: net.load_state_dict(wrong, strict=False)),
    ]


@on_both
def test_a_state_dict_can_be_taken_over_instead_of_copied(torch):
    net = net_of(torch)
    state = {
        name: value.double() if value.is_floating_point() else value.clone() for name, value in net.state_dict().items()
    }
    net.scale.requires_grad_(False)
    net.load_state_dict(state, assign=True)
    return [
        [(name, str(p.dtype), p.requires_grad, type(p).__name__) for name, p in net.named_parameters()],
        net.scale.data_ptr() == state["scale"].data_ptr(),
        net.seen is state["seen"],
    ]


@on_both
def test_hooks_around_state_dict_and_loading_are_called(torch):
    seen = []
    net = torch.nn.Linear(1, 1)
    net.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(["before", prefix, keep]))
    net.register_state_dict_post_hook(
        lambda m, state, prefix, meta: seen.append(["after", list(state), prefix, dict(meta)])
    )
    net._register_state_dict_hook(lambda m, state, prefix, meta: {**state, "added": torch.ones(1)})
    net.register_load_state_dict_pre_hook(lambda m, state, *rest: state.pop("added", None))
    net.register_load_state_dict_post_hook(lambda m, keys: seen.append(["loaded", list(keys.missing_keys)]))
    state = net.state_dict()
    result = attempt(lambda: net.load_state_dict(state))
    return list(state), str(result), seen


@on_both
def test_post_hooks_that_return_something_are_refused(torch):
    net, other = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    net.register_state_dict_post_hook(lambda *args: 3)
    other.register_load_state_dict_post_hook(lambda *args: 3)
    return attempt(net.state_dict), attempt(lambda: other.load_state_dict(other.state_dict()))


@on_both
def test_extra_state_is_saved_and_loaded(torch):
    class Counting(torch.nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    m, other = Counting(), Counting()
    m.count = 5
    other.load_state_dict(m.state_dict())
    return (
        dict(m.state_dict()),
        other.count,
        attempt(lambda: other.load_state_dict({})),
        attempt(
            lambda: torch.nn.Linear(1, 1).load_state_dict({**torch.nn.Linear(1, 1).state_dict(), "_extra_state": 3})
        ),
    )


# ------------------------------------------------------------------ conversion


@on_both
def test_dtypes_are_converted_in_place(torch):
    net = net_of(torch)
    weight = net.body[0].weight
    steps = []
    for convert in (
        net.double,
        net.half,
        net.float,
        lambda: net.to(torch.float64),
        lambda: net.type(torch.float32),
        net.cpu,
    ):
        result = convert()
        steps.append(
            [result is net, net.body[0].weight is weight, str(net.seen.dtype), str(net.norm.num_batches_tracked.dtype)]
        )
    return steps


@on_both
def test_gradients_are_converted_with_their_parameters(torch):
    net = torch.nn.Linear(2, 1)
    net(torch.ones(1, 2)).sum().backward()
    net.double()
    return str(net.weight.grad.dtype), net.weight.grad


@on_both
def test_conversion_to_what_modules_cannot_be_is_refused(torch):
    net = torch.nn.Linear(1, 1)
    return [attempt(lambda: net.to(torch.int64)), attempt(lambda: str(net.to(torch.complex64).weight.dtype))]


@on_both
def test_a_module_can_be_given_empty_memory(torch):
    net = torch.nn.Linear(2, 2)
    return net.to_empty(device="cpu") is net, net.weight.shape, net.weight.requires_grad


# ------------------------------------------------------------------ printing and copying


@on_both
def test_modules_are_printed_as_a_tree(torch):
    class Told(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(1, 2)

        def extra_repr(self):
            return "two\nlines"

    return repr(net_of(torch)), repr(Told()), repr(torch.nn.Module()), repr(torch.nn.Sequential(Told(), Told()))


@on_both
def test_a_copied_module_keeps_its_values_and_nothing_else(torch):
    net = net_of(torch)
    other = copy.deepcopy(net)
    with torch.no_grad():
        other.scale.mul_(2)
    return net.scale, other.scale, other.body[0].weight is net.body[0].weight, dict(other.state_dict())


@on_both
def test_shared_parameters_stay_shared_in_a_copy_and_a_pickle(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    copies = [copy.deepcopy(net), pickle.loads(pickle.dumps(net))]
    return [c[0].weight is c[1].weight for c in copies], [isinstance(c[0].weight, nn.Parameter) for c in copies]


@on_both
def test_buffers_and_parameters_made_by_hand_are_what_they_say(torch):
    nn = torch.nn
    p, b = nn.Parameter(torch.ones(2), requires_grad=False), nn.Buffer(torch.ones(2))
    return [
        isinstance(p, nn.Parameter), isinstance(p, torch.Tensor), p.requires_grad,
        isinstance(b, nn.Buffer), isinstance(b, nn.Parameter), isinstance(torch.ones(1), nn.Buffer), b.persistent,
        repr(p), repr(b), nn.Parameter().shape, type(p + 1).__name__,
        repr(copy.deepcopy(p)), isinstance(pickle.loads(pickle.dumps(p)), nn.Parameter),
    ]  # fmt: skip


@on_both
def test_compiling_a_module_leaves_its_results_as_they_are(torch):
    net = net_of(torch)
    if torch.__name__ == "pullback":
        net.compile()
    return net.eval()(torch.arange(6.0).reshape(3, 2))


def test_calls_go_through_call_impl_too():
    net = pullback.nn.Linear(2, 1)
    x = pullback.ones(1, 2)
    assert net._call_impl(x).item() == net(x).item()


@pytest.mark.parametrize("name", ["ipu", "xpu", "mtia"])
def test_other_devices_raise_and_leave_the_module_alone(name):
    net = pullback.nn.Linear(2, 1)
    with pytest.raises((RuntimeError, NotImplementedError, AssertionError)):
        getattr(net, name)()
    assert net.weight.device.type == "cpu"
