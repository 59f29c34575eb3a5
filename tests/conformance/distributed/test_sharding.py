# ruff: noqa: E501
"""Meshes, DTensors, tensor-parallel modules, fully_shard and checkpoints on 2 and 4 ranks are those of torch with gloo."""

import tempfile

import pullback
from pullback.distributed.checkpoint.items import flattened
from pullback.distributed.checkpoint.loading import read_everything
from tests.distributed.processes import close, run_ranks

PROGRAM = """
import contextlib, datetime, logging
from importlib import import_module
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(1)
nn, F, r = torch.nn, torch.nn.functional, RANK
part = lambda name: import_module(f"{torch.__name__}.distributed.{name}")
T, TP, FS, DC = part("tensor"), part("tensor.parallel"), part("fsdp"), part("checkpoint")
SD = part("checkpoint.state_dict")
DeviceMesh, init_device_mesh = part("device_mesh").DeviceMesh, part("device_mesh").init_device_mesh
Shard, Replicate, Partial, DTensor = T.Shard, T.Replicate, T.Partial, T.DTensor
place = T.distribute_tensor
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=400))
grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
four, two = init_device_mesh("cpu", (4,)), grid["tp"]

def facts(mesh):
    return repr(mesh), mesh.ndim, list(mesh.shape), mesh.size(), mesh.mesh, mesh.mesh_dim_names, list(mesh.get_coordinate()), mesh.device_type
for name, mesh in (("grid", grid), ("four", four), ("dp", grid["dp"]), ("tp", two), ("both", grid["dp", "tp"])):
    record(f"mesh {name}", lambda: facts(mesh))
record("mesh ranks", lambda: (grid.get_local_rank("tp"), grid.get_local_rank(0), dist.get_process_group_ranks(grid.get_group("dp")), grid.get_rank()))
record("mesh equal", lambda: (four == init_device_mesh("cpu", (4,)), hash(four) == hash(init_device_mesh("cpu", (4,))), grid == four))
record("mesh flat", lambda: (repr(grid._flatten("all")), repr(grid["all"]), dist.get_process_group_ranks(grid["all"].get_group())))
for name, call in {
    "name": lambda: grid["x"], "no names": lambda: four["x"], "group": lambda: grid.get_group(), "rank": lambda: grid.get_local_rank(),
    "group name": lambda: grid.get_group("zz"), "too large": lambda: init_device_mesh("cpu", (8,)), "names": lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a",)),
    "same names": lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a")), "index": lambda: init_device_mesh("cpu:0", (4,)),
    "from group": lambda: repr(DeviceMesh.from_group(dist.group.WORLD, "cpu")),
}.items():
    record(f"mesh error {name}", call)

x = torch.arange(20.0).reshape(5, 4)
def whole(tensor):
    return [str(one) for one in tensor.placements], list(tensor.shape), tensor.full_tensor()
d, e, p, q = place(x, four, [Shard(0)]), place(x, four, [Replicate()]), place(x, four, [Shard(0)]).sum(0), place(x, grid, [Shard(0), Shard(1)])
for name, call in {
    "repr": lambda: repr(d), "local": lambda: (d.to_local(), d.stride(), d.numel(), len(d), str(d.dtype), d.is_leaf, d.requires_grad),
    "words": lambda: [repr(one) for one in (Shard(0), Replicate(), Partial(), Partial("avg"))] + [str(one) for one in (Shard(0), Replicate(), Partial())],
    "equal": lambda: (Shard(0) == Shard(0), Shard(0) == Shard(1), Replicate() == Partial(), len({Shard(0), Shard(0)})),
    "negative": lambda: place(x, four, [Shard(-1)]).placements, "grid": lambda: whole(q), "grid local": lambda: q.to_local(),
    "sum": lambda: whole(d.sum()), "sum 0": lambda: whole(d.sum(0)), "sum 1": lambda: whole(d.sum(1, keepdim=True)), "mean": lambda: whole(d.mean(1)), "max": lambda: whole(place(torch.arange(8.0), four, [Shard(0)]).max()),
    "add": lambda: whole(d + d), "add replicated": lambda: whole(d + e), "number": lambda: whole(2 - d / 3), "scalar": lambda: whole(d * torch.tensor(2.0)), "compare": lambda: whole(d > 3),
    "of sums": lambda: [[str(one) for one in y.placements] for y in (p + p, p * 2, p + 1, p * p, p.relu(), -p)], "norm": lambda: whole(torch.linalg.vector_norm(d)),
    "mm rows": lambda: whole(d @ place(torch.ones(4, 3), four, [Replicate()])), "mm inner": lambda: whole(place(x, four, [Shard(1)]) @ place(torch.ones(4, 3), four, [Shard(0)])),
    "mm columns": lambda: whole(e @ place(torch.ones(4, 8), four, [Shard(1)])), "mm one": lambda: whole(e @ place(torch.ones(4, 8), four, [Shard(0)])),
    "transpose": lambda: whole(d.t()), "softmax": lambda: whole(d.softmax(-1)), "softmax cut": lambda: whole(d.softmax(0)), "cat": lambda: whole(torch.cat([d, d], 1)), "select": lambda: whole(d[:, 1]), "row": lambda: whole(d[1]),
    "zeros": lambda: whole(T.zeros(6, 2, device_mesh=four, placements=[Shard(0)])), "full": lambda: whole(T.full((3,), 2.5, device_mesh=four, placements=[Shard(0)])), "ones": lambda: whole(T.ones(2, 2, device_mesh=four)),
    "from_local": lambda: whole(DTensor.from_local(torch.full((2, 3), float(r)), four, [Shard(0)])), "from sums": lambda: whole(DTensor.from_local(torch.ones(2), four, [Partial()])),
    "redistributed": lambda: [d.redistribute(four, [one]).to_local() for one in (Replicate(), Shard(1))], "scattered": lambda: p.redistribute(four, [Shard(0)]).to_local(),
    "parameter": lambda: (isinstance(nn.Parameter(d), nn.Parameter), type(nn.Parameter(d)).__name__, nn.Parameter(d).requires_grad),
    "mixed": lambda: d * x, "too far": lambda: place(x, four, [Shard(5)]), "to a sum": lambda: d.redistribute(four, [Partial()]), "nowhere": lambda: d.redistribute(four), "no mesh": lambda: DTensor.from_local(x),
    "numpy": lambda: d.numpy(), "tolist": lambda: d.tolist(), "whole module": lambda: [str(one.placements) for one in T.distribute_module(nn.Linear(2, 2), four).parameters()],
}.items():
    record(f"dtensor {name}", call)

def gradients():
    torch.manual_seed(0)
    w, b = place(torch.randn(6, 4), four, [Shard(0)]).requires_grad_(), place(torch.randn(6), four, [Shard(0)]).requires_grad_()
    y = place(x, four, [Replicate()]).requires_grad_()
    out = F.gelu(F.linear(y, w, b)).redistribute(four, [Shard(0)]) ** 2
    out.to_local().sum().backward()
    return [one.grad.full_tensor() for one in (w, b, y)]
record("gradients", gradients)

class MLP(nn.Module):
    def __init__(self, width=8, inner=16):
        super().__init__()
        self.a, self.b = nn.Linear(width, inner), nn.Linear(inner, width)
    def forward(self, x):
        return self.b(F.gelu(self.a(x)))

def mlp(mesh):
    torch.manual_seed(0)
    net = nn.Sequential(MLP(), MLP())
    TP.parallelize_module(net, mesh, {"*.a": TP.ColwiseParallel(), "*.b": TP.RowwiseParallel()})
    optimizer, found = torch.optim.Adam(net.parameters(), lr=0.01), [[str(one.placements) for one in net.parameters()]]
    torch.manual_seed(1)
    for step in range(4):
        loss = net(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.05)
        optimizer.step()
        found.append((loss.item(), norm.full_tensor()))
    return found, [one.full_tensor().abs().sum() for one in net.parameters()]
record("tensor parallel 4", lambda: mlp(four))
record("tensor parallel 2", lambda: mlp(two))

class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.n, self.m, self.h = nn.Embedding(12, 8), nn.LayerNorm(8), MLP(), nn.Linear(8, 12)
    def forward(self, x):
        y = self.e(x)
        return self.h(y + self.m(self.n(y)))
def sequence(mesh, parallel_loss):
    torch.manual_seed(0)
    net = Sequence()
    TP.parallelize_module(net, mesh, {
        "e": TP.RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False), "n": TP.SequenceParallel(),
        "m": TP.PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)), "m.a": TP.ColwiseParallel(use_local_output=False),
        "m.b": TP.RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "h": TP.ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1) if parallel_loss else Replicate(), use_local_output=not parallel_loss),
    })
    optimizer, found = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), []
    torch.manual_seed(3)
    for step in range(3):
        x = torch.randint(0, 12, (2, 4))
        with TP.loss_parallel() if parallel_loss else contextlib.nullcontext():
            loss = F.cross_entropy(net(x).flatten(0, 1), x.roll(-1, 1).flatten())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.full_tensor() if isinstance(loss, DTensor) else loss)
    return found, [one.full_tensor().abs().sum() for one in net.parameters()]
record("sequence parallel 4", lambda: sequence(four, False))
record("loss parallel 2", lambda: sequence(two, True))
record("styles", lambda: [repr(one) for one in (TP.ColwiseParallel(), TP.RowwiseParallel(), TP.SequenceParallel(), TP.PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate()))])
record("not for it", lambda: TP.parallelize_module(nn.LayerNorm(4), four, TP.ColwiseParallel()))
record("no plan", lambda: TP.parallelize_module(nn.LayerNorm(4), four, 3))
record("a grid", lambda: TP.parallelize_module(nn.Linear(4, 4), grid, TP.ColwiseParallel()))

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.n1, self.qkv, self.o = nn.LayerNorm(width), nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.n2, self.m, self.heads = nn.LayerNorm(width), MLP(width, 4 * width), heads
    def forward(self, x):
        b, l, c = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, l, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, l, c))
        return x + self.m(self.n2(x))
class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.p = nn.Embedding(23, 16), nn.Embedding(8, 16)
        self.blocks, self.n, self.head = nn.ModuleList([Block(16, 2) for _ in range(2)]), nn.LayerNorm(16), nn.Linear(16, 23, bias=False)
        self.head.weight = self.e.weight
    def forward(self, i):
        x = self.e(i) + self.p(torch.arange(i.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.n(x))

def sharded(mesh, **options):
    torch.manual_seed(0)
    net = GPT()
    for block in net.blocks:
        FS.fully_shard(block, mesh=mesh, **options)
    return FS.fully_shard(net, mesh=mesh)
def batch(step):
    torch.manual_seed(100 * step + r)
    x = torch.randint(0, 23, (2, 8))
    return x, x.roll(-1, 1).flatten()
def train(net, optimizer, steps, every=1, clip=None):
    found = []
    for step in steps:
        x, y = batch(step)
        if every > 1:
            net.set_requires_gradient_sync(step % every == every - 1)
        loss = F.cross_entropy(net(x).flatten(0, 1), y)
        loss.backward()
        found.append(loss)
        if step % every == every - 1:
            if clip:
                found.append(nn.utils.clip_grad_norm_(net.parameters(), clip).full_tensor())
            optimizer.step()
            optimizer.zero_grad()
    return found, [one.full_tensor().abs().sum() for one in net.parameters()]
def gpt(mesh, every=1, clip=None, **options):
    net = sharded(mesh, **options)
    return train(net, torch.optim.AdamW(net.parameters(), lr=0.01), range(4), every, clip)
record("gpt 4", lambda: gpt(four, clip=0.5))
record("gpt 2", lambda: gpt(two, reshard_after_forward=False))
record("gpt replicated", lambda: gpt(grid))
record("gpt on 2 between", lambda: gpt(four, reshard_after_forward=2))
def between(ranks):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))
    FS.fully_shard(net[0], mesh=four, reshard_after_forward=ranks)
    FS.fully_shard(net, mesh=four)
    y, found = net(torch.ones(2, 5) * (r + 1)), []
    def look(weight):
        found.append((type(weight).__name__, repr(getattr(weight, "placements", "")), list(weight.shape), repr(getattr(weight, "device_mesh", ""))))
    look(net[0].weight)
    y.sum().backward()
    look(net[0].weight)
    return found, [one.grad.full_tensor() for one in net.parameters()]
for ranks in (1, 2, 4, 3, 0):
    record(f"between on {ranks}", lambda: between(ranks))
record("gpt in two parts", lambda: gpt(four, every=2))

def facts_of_fsdp():
    net = sharded(four)
    shapes = [(name, type(one).__name__, [str(p) for p in one.placements], list(one.shape), list(one.to_local().shape)) for name, one in net.named_parameters()]
    kinds = [type(net).__name__, type(net.blocks[0]).__name__, isinstance(net, FS.FSDPModule), repr(net)]
    net.unshard()
    inside = type(net.n.weight).__name__, type(net.blocks[0].o.weight).__name__
    net.reshard()
    return shapes, kinds, inside, type(net.n.weight).__name__, list(net.state_dict())
record("fsdp facts", facts_of_fsdp)
record("fsdp twice", lambda: FS.fully_shard(FS.fully_shard(nn.Linear(2, 2), mesh=four), mesh=four))
record("fsdp list", lambda: FS.fully_shard(nn.ModuleList([nn.Linear(2, 2)]), mesh=four))
def frozen():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 3), nn.ReLU(), nn.Linear(3, 1))
    net[0].weight.requires_grad_(False)
    FS.fully_shard(net[0], mesh=four)
    FS.fully_shard(net, mesh=four)
    x = torch.ones(2, 5, requires_grad=True)
    net(x).sum().backward()
    return [None if one.grad is None else one.grad.full_tensor() for one in net.parameters()], x.grad
record("frozen", frozen)

# one library saves on 4 ranks, the other loads on 2, and goes on with the same losses
net = sharded(four)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
train(net, optimizer, range(2))
model_state, optimizer_state = SD.get_state_dict(net, optimizer)
DC.save({"model": model_state, "optimizer": optimizer_state, "step": 2, "words": ["a", "b"]}, checkpoint_id=os.environ["SAVED"])
def resumed():
    torch.manual_seed(5)
    net = sharded(two)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.5)
    model_state, optimizer_state = SD.get_state_dict(net, optimizer)
    state = {"model": model_state, "optimizer": optimizer_state, "step": 0, "words": []}
    DC.load(state, checkpoint_id=os.environ["LOADED"])
    SD.set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return state["step"], state["words"], optimizer.param_groups[0]["lr"], train(net, optimizer, range(2, 4))
record("resumed", resumed)
dist.barrier()
"""


def test_sharded_training_and_checkpoints_on_two_and_four_ranks_are_those_of_torch():
    with tempfile.TemporaryDirectory() as folder:
        ours = run_ranks(PROGRAM, 4, SAVED=f"{folder}/ours", LOADED=f"{folder}/ours")
        theirs = run_ranks(PROGRAM, 4, "torch", SAVED=f"{folder}/theirs", LOADED=f"{folder}/ours")
        saved = [read_everything(f"{folder}/{who}") for who in ("ours", "theirs")]
    for rank in range(4):
        assert close(theirs[rank], ours[rank]) == [], f"on rank {rank}"
        assert len(theirs[rank]) > 80
    assert isinstance(ours[0]["resumed"], list), ours[0]["resumed"]
    one, other = [flattened(state) for state in saved]
    assert one.keys() == other.keys() and saved[1]["step"] == 2 and saved[1]["words"] == ["a", "b"]
    for name, (_, value) in other.items():
        if isinstance(value, pullback.Tensor):
            pullback.testing.assert_close(one[name][1], value, rtol=1e-3, atol=1e-5, msg=name)
        else:
            assert one[name][1] == value, name
