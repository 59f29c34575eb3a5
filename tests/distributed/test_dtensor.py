# ruff: noqa: E501
"""What a DTensor gives is what the whole tensor gives, and so are gradients, however it is cut."""

from tests.distributed.processes import run_ranks

PROGRAM = """
import copy, io, pickle
from itertools import product
from pullback.distributed.device_mesh import init_device_mesh
from pullback.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, rand, randn
from pullback.distributed.tensor.parallel import loss_parallel
nn, F = torch.nn, torch.nn.functional
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
grid = init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "b"))
torch.manual_seed(0)
x, w, b, i = torch.randn(4, 5, 6).double(), torch.randn(3, 6).double(), torch.randn(3).double(), torch.randint(0, 3, (4, 5))
n, table = torch.randn(6).double(), torch.randn(3, 4).double()
CASES = {
    "add": (lambda x, n: (x + n) * 2 - x / 3, (x, n)), "mul": (lambda x, y: x * y + y, (x, x[0] + 1)), "pow": (lambda x: (x.abs() + 1) ** 1.5, (x,)),
    "gelu": (lambda x: F.gelu(x), (x,)), "where": (lambda x: torch.where(x > 0, x, x * 3), (x,)), "clamp": (lambda x: x.clamp(-0.5, 0.5), (x,)),
    "linear": (lambda x, w, b: F.linear(x, w, b), (x, w, b)), "matmul": (lambda x, w: x @ w.t(), (x, w)), "bmm": (lambda x: torch.bmm(x, x.transpose(1, 2)), (x,)),
    "addmm": (lambda b, x, w: torch.addmm(b, x[0], w.t()), (b, x, w)), "sum": (lambda x: x.sum(), (x,)), "sum dims": (lambda x: x.sum((0, 2)), (x,)), "mean": (lambda x: x.mean(), (x,)),
    "mean dim": (lambda x: x.mean(1, keepdim=True), (x,)), "amax": (lambda x: x.amax(-1), (x,)), "var": (lambda x: x.var(0), (x,)), "norm": (lambda x: torch.linalg.vector_norm(x), (x,)),
    "softmax": (lambda x: x.softmax(1), (x,)), "log_softmax": (lambda x: F.log_softmax(x, -1), (x,)), "cumsum": (lambda x: x.cumsum(0), (x,)), "sort": (lambda x: x.sort(1).values, (x,)),
    "layer_norm": (lambda x, n: F.layer_norm(x, (6,), n, n * 2), (x, n)), "permute": (lambda x: x.permute(2, 0, 1) * 1, (x,)), "flatten": (lambda x: x.flatten(1), (x,)),
    "view": (lambda x: x.view(4, 30) * 2, (x,)), "unflatten": (lambda x: x.unflatten(2, (3, 2)), (x,)), "unsqueeze": (lambda x: x.unsqueeze(1).expand(4, 2, 5, 6) * 1, (x,)), "index": (lambda x: x[:, 1:3, None, 2], (x,)),
    "split": (lambda x: x.split(2, 1)[1] + x.chunk(2, 2)[0].sum(), (x,)), "unbind": (lambda x: x.unbind(1)[2] if not cut(x, 1) else x[:, 2], (x,)), "cat": (lambda x: torch.cat([x, x * 2], 1), (x,)), "stack": (lambda x: torch.stack([x, x], 1), (x,)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x), (x,)), "mse": (lambda x: F.mse_loss(x, x * 0.5), (x,)), "embedding": (lambda t: F.embedding(place(i, Replicate()), t), (table,)),
}
def cut(tensor, dim):
    return isinstance(tensor, DTensor) and Shard(dim) in tensor.placements
def place(tensor, *where):
    return distribute_tensor(tensor, mesh, where) if MODE == "parts" else tensor
def run(call, tensors, wheres):
    leaves = [place(one, where).detach().requires_grad_() for one, where in zip(tensors, wheres)]
    out = call(*leaves)
    whole = out.full_tensor() if isinstance(out, DTensor) else out
    torch.manual_seed(1)
    (whole * torch.randn(whole.shape).double()).sum().backward()
    return [whole.detach(), *[one.grad.full_tensor() if isinstance(one.grad, DTensor) else one.grad for one in leaves]], tuple(out.shape)
wrong, done = [], 0
for name, (call, tensors) in CASES.items():
    MODE = "whole"
    expected, shape = run(call, tensors, [None] * len(tensors))
    MODE = "parts"
    choices = [[Replicate(), *[Shard(dim) for dim in range(one.ndim)]] for one in tensors]
    for wheres in product(*choices):
        try:
            found, got = run(call, tensors, wheres)
        except RuntimeError as error:
            if name in ("flatten", "view", "unflatten") and ("Please redistribute" in str(error)):
                continue  # the dimension that is cut is inside of another one
            raise
        done += 1
        off = max(float((a - b).abs().max()) for a, b in zip(expected, found))
        if off > 1e-10 or got != shape:
            wrong.append((name, str(wheres), off, got))
records["wrong"], records["done"] = wrong, done

d = distribute_tensor(torch.arange(20.0).reshape(5, 4), mesh, [Shard(0)])
records["two meshes"] = str(distribute_tensor(d.full_tensor(), grid, [Replicate(), Shard(1)]).redistribute(placements=[Shard(1), Shard(0)]).full_tensor().tolist() == d.full_tensor().tolist())
torch.manual_seed(3)
records["random"] = plain([randn(5, 3, device_mesh=mesh, placements=[Shard(0)]).full_tensor(), rand(4, device_mesh=mesh).full_tensor()])
torch.manual_seed(3)
records["plain random"] = plain([torch.randn(5, 3), torch.rand(4)])
def init():
    torch.manual_seed(4)
    one = torch.nn.init.uniform_(torch.empty(5, 3))
    torch.manual_seed(4)
    return torch.equal(torch.nn.init.uniform_(torch.distributed.tensor.zeros(5, 3, device_mesh=mesh, placements=[Shard(0)])).full_tensor(), one)
record("init", init)
def copies():
    p = nn.Parameter(d)
    p.grad = d.clone()
    q, s = copy.deepcopy(p), pickle.loads(pickle.dumps(p))
    return [torch.equal(one, d) and one.requires_grad and isinstance(one, nn.Parameter) and one.placements == d.placements for one in (q, s)], torch.equal(q.grad, d), q.grad is q.grad
record("copies", copies)
def hooks():
    p, seen = nn.Parameter(d.clone()), []
    p.register_hook(lambda grad: seen.append((type(grad).__name__, tuple(grad.shape))))
    p.register_post_accumulate_grad_hook(lambda one: seen.append(one is p))
    (p * 2).sum().backward()
    first, = torch.autograd.grad((p * p).sum(), p, create_graph=True)
    second, = torch.autograd.grad(first.sum(), p)
    return seen, first.full_tensor()[0], second.full_tensor()[0], p.grad.full_tensor()[0]
record("hooks", hooks)
def of_local():
    local = torch.full((2, 2), float(RANK), requires_grad=True)
    y = DTensor.from_local(local, mesh, [Shard(0)])
    (y.redistribute(placements=[Replicate()]) * 3).to_local(grad_placements=[Partial()]).sum().backward()
    return local.grad, y.shape
record("of local", of_local)
def in_place():
    y = d.clone()
    y.add_(1).mul_(d).copy_(y * 2)
    y += d
    return torch.equal(y, (d + 1) * d * 2 + d), y.full_tensor()[4, 3]
record("in place", in_place)
record("unknown", lambda: torch.linalg.svd(d))
record("unknown but whole", lambda: torch.linalg.svd(d.redistribute(placements=[Replicate()])).S.placements)
record("in place elsewhere", lambda: d.sum(0).add_(distribute_tensor(torch.ones(4), mesh, [Shard(0)])))
record("grad of another kind", lambda: setattr(nn.Parameter(d), "grad", torch.ones(5, 4)))
with mesh:
    record("active", lambda: DTensor.from_local(torch.ones(1)).device_mesh == mesh)
def of_classes():
    logits, labels = torch.randn(6, 5, dtype=torch.float64), torch.tensor([0, 4, 2, -100, 1, 3])
    leaf = distribute_tensor(logits, mesh, [Shard(1)]).requires_grad_()
    with loss_parallel():
        loss = F.cross_entropy(leaf, labels)
        loss.backward()
    plain_leaf = logits.clone().requires_grad_()
    F.cross_entropy(plain_leaf, labels).backward()
    return float((leaf.grad.full_tensor() - plain_leaf.grad).abs().max()), float(loss.detach().full_tensor() - F.cross_entropy(logits, labels))
torch.manual_seed(5)
record("classes", of_classes)
dist.barrier()
"""


def test_what_dtensors_give_is_what_whole_tensors_give_however_they_are_cut():
    first, second = run_ranks(PROGRAM)
    for records in (first, second):
        assert records["wrong"] == [] and records["done"] > 150
        assert records["two meshes"] == "True"
        assert records["random"] == records["plain random"]
        assert records["init"] is True
        assert records["copies"] == [[True, True], True, True]
        seen, grad, twice, grown = records["hooks"]
        assert seen == [["DTensor", [5, 4]], True, ["DTensor", [5, 4]], ["DTensor", [5, 4]]]
        assert grad == [0.0, 2.0, 4.0, 6.0] and twice == [2.0] * 4 and grown == [2.0] * 4
        assert records["of local"] == [[[6.0, 6.0], [6.0, 6.0]], [4, 2]]
        assert records["in place"] == [True, 20.0 * 19 * 2 + 19]
        assert records["unknown"].startswith(
            "NotImplementedError: Operator aten.linalg_svd.default does not have a sharding"
        )
        assert "redistribute(placements=[Replicate()]) or to_local()" in records["unknown"]
        assert records["unknown but whole"] == ["R"]
        assert "in-place operations that require placement changes" in records["in place elsewhere"]
        assert records["grad of another kind"].startswith("RuntimeError: assigned grad has data of a different type")
        assert records["active"] is True
        assert max(abs(one) for one in records["classes"]) < 1e-12
