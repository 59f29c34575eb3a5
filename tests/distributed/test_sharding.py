# ruff: noqa: E501
"""Training in parts is training in one piece: fully_shard, FullyShardedDataParallel, and with tensor parallelism."""

from tests.distributed.processes import run_ranks

PROGRAM = """
import functools
from pullback.distributed.device_mesh import init_device_mesh
from pullback.distributed.fsdp import FSDPModule, FullyShardedDataParallel as FSDP, MixedPrecisionPolicy, ShardingStrategy, StateDictType, fully_shard
from pullback.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
from pullback.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_optimizer_state_dict, set_model_state_dict, set_optimizer_state_dict
from pullback.distributed.tensor import DTensor, Shard
from pullback.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
nn, F, checkpoint = torch.nn, torch.nn.functional, torch.utils.checkpoint.checkpoint
dist.init_process_group("gloo")
grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))

class MLP(nn.Module):
    def __init__(self, again=False):
        super().__init__()
        self.a, self.b, self.again = nn.Linear(6, 10), nn.Linear(10, 6), again
    def inside(self, x):
        return self.b(torch.tanh(self.a(x)))
    def forward(self, x):
        return x + (checkpoint(self.inside, x, use_reentrant=False) if self.again else self.inside(x))
def model(again=False):
    torch.manual_seed(0)
    return nn.Sequential(MLP(again), MLP(), nn.Linear(6, 3)).double()
torch.manual_seed(1)
data = torch.randn(4, 8, 6).double()

def train(net, rows, ranks=1, steps=range(4), make=lambda params: torch.optim.Adam(params, lr=0.01)):
    optimizer, found = make(net.parameters()), []
    for step in steps:
        loss = net(data[step][rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        if ranks > 1:
            dist.all_reduce(total)
        found.append(float(total) / ranks)
    return found, optimizer
def whole(net):
    return {name.replace("_fsdp_wrapped_module.", ""): one.full_tensor() if isinstance(one, DTensor) else one for name, one in net.state_dict().items()}
def off(one, other):
    return max(float((one[name] - other[name]).abs().max()) for name in other)

plain_net = model()
losses, plain_optimizer = train(plain_net, slice(None))
expected = plain_net.state_dict()
quarter, half = slice(2 * RANK, 2 * RANK + 2), slice(4 * (RANK // 2), 4 * (RANK // 2) + 4)
def compared(net, rows, ranks=4):
    found, optimizer = train(net, rows, ranks)
    return max(abs(a - b) for a, b in zip(found, losses)), off(whole(net), expected)
def cut(net, **options):
    for part in list(net)[:2]:
        fully_shard(part, **options)
    return fully_shard(net, **options)

records["fully_shard"] = compared(cut(model()), quarter)
records["kept"] = compared(cut(model(), reshard_after_forward=False), quarter)
records["on two between"] = compared(cut(model(), reshard_after_forward=2), quarter)
records["recomputed"] = compared(cut(model(again=True)), quarter)
records["columns"] = compared(cut(model(), shard_placement_fn=lambda param: Shard(param.ndim - 1)), quarter)
records["replicas"] = compared(cut(model(), mesh=grid), quarter)
def with_tensor_parallel():
    net = model()
    for part in list(net)[:2]:
        parallelize_module(part, grid["tp"], {"a": ColwiseParallel(), "b": RowwiseParallel()})
    return compared(cut(net, mesh=grid["dp"]), half)
records["tensor parallel too"] = with_tensor_parallel()
records["old class"] = compared(FSDP(model(), auto_wrap_policy=ModuleWrapPolicy({MLP})), quarter)
records["old class, nothing cut"] = compared(FSDP(model(), sharding_strategy=ShardingStrategy.NO_SHARD), quarter)
os.environ["LOCAL_WORLD_SIZE"] = "2"
records["old class, cut on each machine"] = compared(FSDP(model(), sharding_strategy=ShardingStrategy.HYBRID_SHARD), quarter)
records["old class, kept"] = compared(FSDP(model(), sharding_strategy=ShardingStrategy.SHARD_GRAD_OP), quarter)

def prefetched():
    net = cut(model())
    net[0].set_modules_to_forward_prefetch([net[1]])
    net[1].set_modules_to_backward_prefetch([net[0]])
    return compared(net, quarter)
records["prefetched"] = prefetched()

def after_an_error():
    net = cut(model())
    def bad(grad):
        raise ValueError("a bad day")
    y = net(data[0][quarter])
    y.register_hook(bad)
    try:
        y.sum().backward()
    except ValueError:
        net.reshard()
        return compared(net, quarter)
records["after an error"] = after_an_error()

def written_between():
    net = cut(model())
    weight = net[2].weight
    with torch.no_grad():
        before = net(data[0][quarter])  # the parameters of the root stay whole after it
        weight.mul_(2)
        after = net(data[0][quarter])
    return float((after - (2 * before - net[2].bias)).abs().max())
records["written between"] = written_between()

def memory():
    net = cut(model())
    inside = []
    net[1].a.register_forward_hook(lambda module, args, out: inside.append((type(net[0].a.weight).__name__, type(module.weight).__name__, module.weight._array.strides)))
    states = [part._get_fsdp_state() for part in (net, net[0], net[1])]
    y = net(data[0][quarter]).sum()
    between = [state.group.whole for state in states], states[1].group.params[0].unsharded._array.strides
    y.backward()
    return inside, between, [state.group.whole for state in states], [type(one.grad).__name__ for one in net.parameters()][:2]
records["memory"] = memory()

def low_precision():
    net = cut(model(), mp_policy=MixedPrecisionPolicy(param_dtype=torch.float32, reduce_dtype=torch.float64))
    seen = []
    net[0].a.register_forward_hook(lambda module, args, out: seen.append((str(args[0].dtype), str(module.weight.dtype))))
    return *compared(net, quarter), seen[0], str(net[0].a.weight.dtype), str(net(data[0][quarter]).dtype)
records["precision"] = low_precision()

def accumulated():
    one, two = cut(model()), cut(model())
    for step, last in ((0, False), (1, True)):
        one.set_requires_gradient_sync(last)
        one(data[step][quarter]).sum().backward()
        two(data[step][quarter]).sum().backward()
    return max(float((a.grad.full_tensor() - b.grad.full_tensor()).abs().max()) for a, b in zip(one.parameters(), two.parameters()))
records["accumulated"] = accumulated()

def old_class():
    net = FSDP(model(), auto_wrap_policy=functools.partial(size_based_auto_wrap_policy, min_num_params=100), sync_module_states=True)
    names, state = [name for name, _ in net.named_parameters()][:2], net.state_dict()
    with FSDP.summon_full_params(net):
        shape = tuple(net[0].a.weight.shape), type(net[0].a.weight).__name__
        with torch.no_grad():
            net[0].a.weight.add_(1)
    moved = float((net.state_dict()["0.a.weight"] - state["0.a.weight"]).mean())
    net.load_state_dict(state)
    back = off(net.state_dict(), state)
    with FSDP.state_dict_type(net, StateDictType.SHARDED_STATE_DICT):
        kinds = sorted({type(one).__name__ for one in net.state_dict().values()})
    with net.no_sync():
        net(data[0][quarter]).sum().backward()
        before = [one.grad for one in net.parameters()]
    net(data[0][quarter]).sum().backward()
    norm = float(net.clip_grad_norm_(1e9))
    own = model()
    (2 * own(data[0]).sum() / 4).backward()
    right = float(nn.utils.clip_grad_norm_(own.parameters(), 1e9))
    return len(FSDP.fsdp_modules(net)), names, shape, moved, back, kinds, all(one is None for one in before), abs(norm - right)
record("old class facts", old_class)

def states():
    net = cut(model())
    _, optimizer = train(net, quarter, 4, range(2))
    options = StateDictOptions(full_state_dict=True)
    kept, kept_optimizer = get_model_state_dict(net, options=options), get_optimizer_state_dict(net, optimizer, options=options)
    other = cut(model().requires_grad_())
    set_model_state_dict(other, kept, options=options)
    optimizer = torch.optim.Adam(other.parameters(), lr=1.0)
    set_optimizer_state_dict(other, optimizer, kept_optimizer, options=options)
    rest, _ = train(other, quarter, 4, range(2, 4), lambda params: optimizer)
    flat = get_optimizer_state_dict(other, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True))
    return max(abs(a - b) for a, b in zip(rest, losses[2:])), off(whole(other), expected), "state.0.a.weight.exp_avg" in flat, "param_groups.0.a.weight.lr" in flat
records["states"] = states()
record("copied", lambda: __import__("copy").deepcopy(cut(model())))
dist.barrier()
"""


def test_training_in_parts_is_training_in_one_piece():
    for records in run_ranks(PROGRAM, 4):
        for name in (
            "fully_shard",
            "kept",
            "recomputed",
            "columns",
            "replicas",
            "tensor parallel too",
            "old class",
            "old class, kept",
            "old class, nothing cut",
            "old class, cut on each machine",
            "on two between",
            "prefetched",
            "after an error",
        ):
            assert max(records[name]) < 1e-8, (name, records[name])
        inside, (between, strides), after, kinds = records["memory"]
        assert inside == [["DTensor", "Parameter", [48, 8]]], "only the module that runs is whole"
        assert between == [True, False, False] and strides == [0, 0], (
            "the parts of the root are; the others have no memory"
        )
        assert after == [False, False, False] and kinds == ["DTensor", "DTensor"]
        loss, params, seen, kept, out = records["precision"]
        assert (
            loss < 1e-4
            and params < 0.1
            and seen == ["torch.float32", "torch.float32"]
            and (kept, out) == ("torch.float64", "torch.float32")
        )
        assert records["accumulated"] < 1e-12
        assert records["written between"] < 1e-12
        wrapped, names, shape, moved, back, kinds, none, norm = records["old class facts"]
        assert wrapped == 3 and names == ["0.a.weight", "0.a.bias"] and shape == [[10, 6], "Parameter"]
        assert abs(moved - 1) < 1e-12 and back == 0 and kinds == ["DTensor"] and none and norm < 1e-9
        assert max(records["states"][:2]) < 1e-8 and records["states"][2:] == [True, True]
        assert (
            records["copied"]
            == "AssertionError: FSDP does not support deepcopy. Please use state dict for serialization."
        )
