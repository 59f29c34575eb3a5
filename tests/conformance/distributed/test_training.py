# ruff: noqa: E501
"""Training on two ranks gives the losses and gradients of torch with gloo."""

from tests.conformance.distributed.test_pipelining import STAGES
from tests.distributed.processes import close, run_ranks

MODELS = """
import datetime
from importlib import import_module
nn, F, r = torch.nn, torch.nn.functional, RANK
DDP = nn.parallel.DistributedDataParallel
warnings.simplefilter("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=400))

class Attention(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.embed, self.place = nn.Embedding(20, width), nn.Embedding(8, width)
        self.layer = nn.TransformerEncoderLayer(width, heads, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, 20)
    def forward(self, x):
        y = self.embed(x) + self.place(torch.arange(x.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layer(y, src_mask=mask, is_causal=True))

def data(kind, step):
    torch.manual_seed(100 * step + r)
    if kind == "gpt":
        x = torch.randint(0, 20, (4, 8))
        return x, x.roll(-1, 1)
    shape = (4, 3, 8, 8) if kind == "convnet" else (4, 10)
    return torch.randn(shape), torch.randint(0, 5, (4,))

def model(kind):
    torch.manual_seed(7 + r)  # other parameters on each rank: those of rank 0 count
    if kind == "gpt":
        return Attention()
    if kind == "convnet":
        return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(216, 5))
    return nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 5))

# The loss does not depend on a bias before BatchNorm, nor on the bias of the keys of attention (softmax sees differences
# only): their gradients are rounding errors, of which Adam makes steps as long as any other.
SILENT = {"convnet": ("0.bias", slice(None)), "gpt": ("layer.self_attn.in_proj_bias", slice(16, 32))}

def noise(kind, net):
    # The largest gradient where there should be none, in parts of the largest of all
    if kind not in SILENT:
        return True
    name, part = SILENT[kind]
    largest = max(float(p.grad.abs().max()) for p in net.parameters())
    return float(net.module.get_parameter(name).grad[part].abs().max()) < 1e-6 * largest

def facts(kind, net):
    # sums of parameters and buffers, without those that are noise
    params = {name: p.detach().clone() for name, p in net.module.named_parameters()}
    buffers = {name: b.double() for name, b in net.module.named_buffers()}
    if kind == "convnet":
        buffers["1.running_mean"] -= net.bias_seen  # what the bias before it has added to it
    if kind in SILENT:
        name, part = SILENT[kind]
        params[name][part] = 0
    return {name: float(one.abs().sum()) for name, one in {**params, **buffers}.items()}

def losses(kind, steps=4, hook=None, state=None, every=1, adam=False, clip=None, **options):
    net = DDP(model(kind), **options)
    if hook is not None:
        net.register_comm_hook(state, hook)
    net.bias_seen = 0
    SGD, Adam = torch.optim.SGD, torch.optim.Adam
    optimizer = Adam(net.parameters(), lr=0.01) if adam else SGD(net.parameters(), lr=0.1, momentum=0.9)
    found = []
    for step in range(steps):
        x, y = data(kind, step)
        def backward():
            out = net(x)
            loss = F.cross_entropy(out.flatten(0, -2) if kind == "gpt" else out, y.flatten())
            loss.backward()
            return float(loss)
        if step % every:
            with net.no_sync():
                found.append(backward())
            continue
        found.append(backward())
        if kind == "convnet":
            net.bias_seen = 0.9 * net.bias_seen + 0.1 * net.module[0].bias.detach().double()
        if step == 0:
            found.append([float(p.grad.abs().sum()) for p in net.parameters()])
        found.append(noise(kind, net))
        if clip is not None:
            found.append(float(nn.utils.clip_grad_norm_(net.parameters(), clip)))
        optimizer.step()
        optimizer.zero_grad()
    return found, facts(kind, net)

def uneven():
    torch.manual_seed(1)
    net = DDP(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    with net.join():
        for step in range(3 + 2 * r):
            torch.manual_seed(10 * step + r)
            net(torch.randn(4, 3)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return [p.detach() for p in net.parameters()]

def synchronized():
    # torch has SyncBatchNorm on devices only: its BatchNorm of the whole batch is what it must give
    torch.manual_seed(5)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
    rows, found = slice(None), []
    if torch.__name__ == "pullback":
        net, rows = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(net)), slice(3 * r, 3 * r + 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        torch.manual_seed(step)
        x, y = torch.randn(3 * WORLD, 3, 6, 6)[rows], torch.randint(0, 2, (3 * WORLD,))[rows]
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        dist.all_reduce(loss)
        found.append(float(loss) / WORLD)
    return found, [float(one.double().abs().sum()) for one in net.buffers()]

class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.e, self.b, self.l = nn.Embedding(7, 3, sparse=True), nn.EmbeddingBag(7, 2, sparse=True), nn.Linear(5, 1)
    def forward(self, x):
        return self.l(torch.cat([self.e(x).sum(1), self.b(x)], 1))
def sparse(**options):
    net, found = DDP(Rows(), **options), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        torch.manual_seed(10 * step + r)
        loss = net(torch.randint(0, 7, (2 + r, 2))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        found += [loss.detach()] + [(str(p.grad.layout), p.grad.to_dense().clone()) for p in net.parameters()]
        optimizer.step()
    return found, [p.detach() for p in net.parameters()]
"""

TRAINING = (
    MODELS
    + """
hooks = import_module(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.default_hooks")
for kind in ("mlp", "convnet", "gpt"):
    records[kind] = losses(kind)
    records[kind + ", Adam"] = losses(kind, adam=True)
records["clipped"] = losses("mlp", clip=0.1)
power = import_module(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")
named = import_module(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks")
def powers(hook, **options):
    state = power.PowerSGDState(None, start_powerSGD_iter=2, **options)
    return losses("mlp", steps=6, hook=getattr(power, hook), state=state), state.iter, state.compression_stats()
record("PowerSGD", lambda: powers("powerSGD_hook"))
record("PowerSGD, rank 2, cold", lambda: powers("powerSGD_hook", matrix_approximation_rank=2, warm_start=False, min_compression_rate=1))
record("PowerSGD, epsilon, together", lambda: powers("powerSGD_hook", orthogonalization_epsilon=1e-6, batch_tensors_with_same_shape=True))
record("PowerSGD too early", lambda: power.PowerSGDState(None, start_powerSGD_iter=1))
def by_name():
    net = DDP(model("mlp"))
    named.register_ddp_comm_hook(named.DDPCommHookType.FP16_COMPRESS, net)
    net(data("mlp", 0)[0]).sum().backward()
    return [float(p.grad.abs().sum()) for p in net.parameters()]
record("by name", by_name)
records["small buckets"] = losses("mlp", bucket_cap_mb=0.001)
records["views"] = losses("mlp", gradient_as_bucket_view=True)
records["static graph"] = losses("mlp", static_graph=True)
records["find unused"] = losses("mlp", find_unused_parameters=True)
records["no_sync"] = losses("mlp", every=2, steps=5)
records["own buffers"] = losses("convnet", broadcast_buffers=False)
records["hook"] = losses("mlp", hook=hooks.allreduce_hook)
records["float16"] = losses("mlp", hook=hooks.fp16_compress_hook)

class Sometimes(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)
    def forward(self, x, use):
        return self.b(self.a(x)) if use else self.a(x)

def grads(net):
    return [None if p.grad is None else plain(p.grad) for p in net.parameters()]
def unused():
    net, x = DDP(Sometimes(), find_unused_parameters=True), torch.ones(2, 3) * (r + 1)
    net(x, r == 0).sum().backward()
    first = grads(net)
    net.zero_grad()
    net(x, False).sum().backward()
    return first, grads(net)
record("unused", unused)
def unexpected():
    net, x = DDP(Sometimes()), torch.ones(2, 3)
    net(x, True).sum().backward()
    net(x, True)
record("unexpected", unexpected)
record("no parameters", lambda: DDP(nn.ReLU()))
record("no gradients", lambda: DDP(nn.Linear(2, 2).requires_grad_(False)))
record("no hook", lambda: DDP(nn.Linear(2, 2)).register_comm_hook(None, 3))
record("repr", lambda: (repr(DDP(nn.Linear(2, 2))), list(DDP(nn.Linear(2, 2)).state_dict())))

record("uneven", uneven)
record("SyncBatchNorm", synchronized)
record("sparse", sparse)
record("sparse, as views", lambda: sparse(gradient_as_bucket_view=True))
def sums(op=dist.ReduceOp.SUM):
    x = torch.sparse_coo_tensor([[0, r + 1, 0]], torch.tensor([[1.0, 2], [3 + r, 4], [5, 6]]), (4, 2))
    dist.all_reduce(x, op=op)
    return x.is_coalesced(), x._indices(), x._values(), list(x.shape)
record("sum of sparse tensors", sums)
record("largest of sparse tensors", lambda: sums(dist.ReduceOp.MAX))

fn = import_module(f"{torch.__name__}.distributed.nn.functional")
def with_gradients(call):
    x = (torch.arange(4.0) + 1 + r).requires_grad_()
    out = call(x)
    out = out if isinstance(out, (list, tuple)) else [out]
    sum((one * (i + 1 + r)).sum() for i, one in enumerate(out)).backward()
    return [one.detach() for one in out], x.grad
record("grad all_reduce", lambda: with_gradients(lambda x: fn.all_reduce(x * 2)))
record("grad broadcast", lambda: with_gradients(lambda x: fn.broadcast(x * 2, 1)))
record("grad all_gather", lambda: with_gradients(lambda x: fn.all_gather(x * 2)))
record("grad reduce_scatter", lambda: with_gradients(lambda x: fn.reduce_scatter(torch.empty(2), list((x * 2).split(2)))))
record("grad all_to_all", lambda: with_gradients(lambda x: fn.all_to_all([torch.empty(2), torch.empty(2)], list((x * 2).split(2)))))
record("grad all_to_all_single", lambda: with_gradients(lambda x: fn.all_to_all_single(torch.empty(4), x * 2)))
record("grad scatter", lambda: with_gradients(lambda x: fn.scatter(list((x * 2).split(2)), 0)))
record("grad gather", lambda: with_gradients(lambda x: fn.gather(x * 2, 0)) if r == 0 else with_gradients(lambda x: fn.gather(x * 2, 0))[1])
Zero = import_module(f"{torch.__name__}.distributed.optim").ZeroRedundancyOptimizer
def zero():
    torch.manual_seed(2)
    net = DDP(nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 2)))
    groups = [{"params": list(net.module[0].parameters())}, {"params": list(net.module[2].parameters()), "lr": 0.05}]
    optimizer = Zero(groups, optimizer_class=torch.optim.Adam, lr=0.01)
    found = []
    for step in range(4):
        torch.manual_seed(10 * step + r)
        optimizer.zero_grad()
        net(torch.randn(4, 6)).square().mean().backward()
        optimizer.step()
        if step == 1:
            optimizer.param_groups[0]["lr"] = 0.1
    found += [p.detach() for p in net.parameters()]
    found.append(sorted(sum([p.numel() for p in group["params"]]) for group in optimizer.optim.param_groups if group["params"]))
    try:
        optimizer.state_dict()
    except RuntimeError as error:
        found.append(str(error))
    optimizer.consolidate_state_dict(to=0)
    if r == 0:
        saved = optimizer.state_dict()
        found += [sorted(saved), sorted(saved["state"]), [float(one["exp_avg"].sum()) for _, one in sorted(saved["state"].items())], [group["params"] for group in saved["param_groups"]]]
    return found
record("zero", zero)
sampler = torch.utils.data.DistributedSampler(range(11), seed=3)
record("sampler", lambda: (list(sampler), len(sampler), sampler.set_epoch(2), list(sampler)))
dist.barrier()
dist.destroy_process_group()
record("sampler without a group", lambda: torch.utils.data.DistributedSampler(range(11)))
"""
)


def test_losses_gradients_and_errors_of_data_parallel_training_are_those_of_torch():
    theirs, ours = run_ranks(TRAINING, library="torch"), run_ranks(TRAINING)
    for rank in range(2):
        assert close(theirs[rank], ours[rank]) == [], f"on rank {rank}"
        assert len(theirs[rank]) > 35


FOUR = (
    MODELS
    + STAGES
    + """
for kind in ("mlp", "convnet", "gpt"):
    records[kind] = losses(kind, steps=3, adam=True)
records["small buckets"] = losses("gpt", steps=3, bucket_cap_mb=0.005)
record("uneven", uneven)
record("SyncBatchNorm", synchronized)
record("sparse", sparse)
record("GPipe", lambda: run(pp.ScheduleGPipe))
record("1F1B", lambda: run(pp.Schedule1F1B, parts=8))
record("interleaved", lambda: run(pp.ScheduleInterleaved1F1B, each=2, steps=2))
dist.barrier()
dist.destroy_process_group()
"""
)


def test_losses_on_four_ranks_are_those_of_torch():
    theirs, ours = run_ranks(FOUR, 4, library="torch"), run_ranks(FOUR, 4)
    for rank in range(4):
        assert close(theirs[rank], ours[rank]) == [], f"on rank {rank}"
        assert [name for name, found in theirs[rank].items() if isinstance(found, str)] == []
