"""What training over several ranks must give by definition: that of one rank with the whole batch."""

import os
import subprocess
import sys

import pytest

import pullback as torch
from tests.distributed.processes import ROOT, run_ranks

SYNC = """
nn = torch.nn
dist.init_process_group("gloo")
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
torch.manual_seed(1)
x = torch.randn(12, 3, 6, 6, dtype=torch.float64).float()
whole, part = net().double(), nn.SyncBatchNorm.convert_sync_batchnorm(net()).double()
part = nn.parallel.DistributedDataParallel(part)
parts = [slice(0, 2), slice(2, 7), slice(7, 8), slice(8, 12)]  # the ranks have batches of different lengths
for step in range(3):
    one, two = whole(x.double()), part(x[parts[RANK]].double())
    one.square().sum().backward()
    (two.square().sum() * WORLD).backward()
    with torch.no_grad():
        for p in (*whole.parameters(), *part.parameters()):
            p -= 0.01 * p.grad
            p.grad = None
records["params"] = max(float((a - b).abs().max()) for a, b in zip(whole.parameters(), part.parameters()))
records["buffers"] = max(float((a - b).abs().max()) for a, b in zip(whole.buffers(), part.buffers()))
part.eval(), whole.eval()
records["evaluation"] = float((part(x[:4].double()) - whole(x[:4].double())).abs().max())
hooks = __import__("importlib").import_module("pullback.distributed.algorithms.ddp_comm_hooks.default_hooks")
for name in ("bf16_compress_hook", "fp16_compress_hook"):
    ddp = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
    ddp.register_comm_hook(None, getattr(hooks, name))
    ddp(torch.full((1, 2), 1.0 + RANK)).sum().backward()
    records[name] = plain(ddp.module.weight.grad)
wrapped = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
wrapped.register_comm_hook(None, hooks.fp16_compress_wrapper(hooks.allreduce_hook))
wrapped(torch.full((1, 2), 1.0 + RANK)).sum().backward()
records["wrapped"] = plain(wrapped.module.weight.grad), str(wrapped.module.weight.grad.dtype)
power = __import__("importlib").import_module("pullback.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")
whole = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))  # torch's batched hook fails in an assertion of its own
state = power.PowerSGDState(None, 3, 0, use_error_feedback=False, warm_start=False)
whole.register_comm_hook(state, power.batched_powerSGD_hook)
whole(torch.full((1, 2), 1.0 + RANK)).sum().backward()
records["all columns"] = float((whole.module.weight.grad - 2.5).abs().max()), state.compression_stats()
class Sometimes(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        torch.manual_seed(2)
        self.e, self.f = nn.Embedding(5, 3, sparse=sparse), nn.Linear(3, 2)
    def forward(self, x):
        return self.f(self.e(x) if RANK else torch.ones(len(x), 3))
def looked_up(sparse):
    net = nn.parallel.DistributedDataParallel(Sometimes(sparse), find_unused_parameters=True)
    with net.join():
        for step in range(1 + RANK):
            net(torch.tensor([RANK, step, 4])).square().sum().backward()
    return [p.grad.to_dense() for p in net.parameters()]
one, other = looked_up(False), looked_up(True)
records["sparse on some ranks"] = max(float((a - b).abs().max()) for a, b in zip(one, other)), float(one[0].abs().sum())
dist.barrier()
"""


def test_sync_batch_norm_over_ranks_is_batch_norm_over_the_whole_batch():
    for records in run_ranks(SYNC, 4):
        assert records["params"] < 1e-12 and records["buffers"] < 1e-12 and records["evaluation"] < 1e-12
        for name in ("bf16_compress_hook", "fp16_compress_hook"):
            assert records[name] == [[2.5, 2.5], [2.5, 2.5]]
        assert records["all columns"][0] < 1e-5 and records["all columns"][1] == [1 / 3, 6, 18]
        assert records["sparse on some ranks"][0] < 1e-6 < records["sparse on some ranks"][1]
        assert records["wrapped"] == [[[2.5, 2.5], [2.5, 2.5]], "torch.float32"]


def worker(index, folder, fail):
    if fail and index == 1:
        raise ValueError("rank 1 has a bad day")
    with open(f"{folder}/{index}", "w") as file:
        file.write("here")


def test_spawn_runs_a_function_on_every_process_and_raises_what_one_raised(tmp_path):
    torch.multiprocessing.spawn(worker, (str(tmp_path), False), nprocs=2)
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1"}
    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match="rank 1 has a bad day") as error:
        torch.multiprocessing.spawn(worker, (str(tmp_path), True), nprocs=2)
    assert error.value.error_index == 1 and str(error.value).startswith("\n\n-- Process 1 terminated with")


SPAWNING = """
import torch
import torch.multiprocessing as mp
from torch.multiprocessing.spawn import ProcessRaisedException

def work(index, value):
    print(torch.nn.Linear.__module__.split(".")[0], index, value)

if __name__ == "__main__":
    mp.spawn(work, (3,), nprocs=1)
"""


def test_processes_that_a_program_for_torch_spawns_find_pullback_too(tmp_path):
    (tmp_path / "program.py").write_text(SPAWNING)
    command = [sys.executable, "-m", "pullback", "run", "program.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=600)
    assert (done.stdout, done.stderr) == ("pullback 0 3\n", "")


RESUMED = """
nn, Zero = torch.nn, __import__("importlib").import_module("pullback.distributed.optim").ZeroRedundancyOptimizer
dist.init_process_group("gloo")
def start():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    return net, Zero(net.parameters(), torch.optim.Adam, lr=0.1)
def steps(net, optimizer, count):
    for _ in range(count):
        optimizer.zero_grad()
        net(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()
    return net, optimizer
whole, _ = steps(*start(), 5)
net, optimizer = steps(*start(), 2)
optimizer.consolidate_state_dict(to=0)
saved = [(net.state_dict(), optimizer.state_dict()) if RANK == 0 else None]
dist.broadcast_object_list(saved, 0)
again, its = start()
again.load_state_dict(saved[0][0])
its.load_state_dict(saved[0][1])
steps(again, its, 3)
records["same"] = all(bool((a == b).all()) for a, b in zip(whole.parameters(), again.parameters()))
records["own"] = len(optimizer.optim.state)
dist.barrier()
"""


def test_a_run_resumed_from_states_that_were_spread_over_ranks_goes_on_as_if_never_stopped():
    first, second = run_ranks(RESUMED)
    assert first["same"] and second["same"] and first["own"] + second["own"] == 4 and first["own"] < 4


DEVICE = """
nn = torch.nn
dist.init_process_group("nccl")
losses = []
for device in ("cpu", "cuda"):
    torch.manual_seed(RANK)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    net = nn.parallel.DistributedDataParallel(net, device_ids=[0] if device == "cuda" else None)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        torch.manual_seed(10 * step + RANK)
        optimizer.zero_grad()
        loss = net(torch.randn(5, 4).to(device)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
x = torch.arange(3.0, device="cuda")[::2]
work = dist.all_reduce(x, async_op=True)
records["waited"] = work.wait(), x.device.type, plain(x)
out = [torch.zeros(2, device="cuda") for _ in range(WORLD)]
dist.all_gather(out, torch.full((2,), float(RANK), device="cuda"))
records["gathered"] = plain(out)
records["losses"] = losses
one = nn.Linear(2, 1)
on_one = nn.DataParallel(one, device_ids=[0])
records["on one device"] = on_one.device_ids, on_one(torch.ones(3, 2)).device.type, one.weight.device.type
one.cpu()
record("elsewhere", lambda: on_one(torch.ones(3, 2)))
record("on two devices", lambda: nn.DataParallel(one, device_ids=[0, 1]))
dist.barrier()
"""


def test_tensors_of_a_device_go_by_way_of_the_host():
    for records in run_ranks(DEVICE, PULLBACK_CUDA="emulate"):
        assert records["waited"] == [True, "cuda", [0.0, 4.0]] and records["gathered"] == [[0.0, 0.0], [1.0, 1.0]]
        assert records["on one device"] == [[0], "cuda", "cuda"]
        assert "module must have its parameters and buffers on device cuda:0 (device_ids[0])" in records["elsewhere"]
        assert records["on two devices"].startswith("NotImplementedError: DataParallel(device_ids=[0, 1])")
        losses = records["losses"]
        assert losses[:3] == pytest.approx(losses[3:], rel=1e-5) and len(set(losses[:3])) == 3


def swap(given, taken):
    x, view, half, param, empty = given.get(timeout=600)
    x += 1
    taken.put((x * 2, x.tolist(), view.stride(), half.dtype, type(param).__name__, param.requires_grad, empty.shape))
    given.get(timeout=600)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_in_queues_share_their_memory(method):
    mp = torch.multiprocessing
    context = mp.get_context(method)
    given, taken = context.Queue(), context.Queue()
    child = context.Process(target=swap, args=(given, taken))
    child.start()
    x, half = torch.arange(3.0), torch.ones(2, dtype=torch.bfloat16)
    given.put((x, torch.ones(2, 3).t(), half, torch.nn.Parameter(torch.ones(1)), torch.empty(0, 2)))
    doubled, seen, strides, dtype, kind, wants, shape = taken.get(timeout=600)
    assert x.tolist() == seen == [1.0, 2.0, 3.0] and doubled.tolist() == [2.0, 4.0, 6.0]  # the child has written here
    assert (strides, dtype, kind, wants, shape) == ((1, 3), torch.bfloat16, "Parameter", True, (0, 2))
    given.put(None)
    child.join(600)
    assert child.exitcode == 0
    product = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        mp.reductions.reduce_tensor(product)


JOINED = """
from pullback.distributed.algorithms.join import Join
from pullback.distributed.optim import ZeroRedundancyOptimizer
nn = torch.nn
dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
zero = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=0.1)
steps = 0
with Join([net, zero]) as nothing:
    for step in range(2 + 3 * RANK):
        net(torch.ones(1, 2)).sum().backward()
        zero.step()
        zero.zero_grad()
        steps += 1
records["steps"] = steps, nothing
records["weights"] = plain([p.detach() for p in net.parameters()])
records["config"] = net._join_config.enable, zero._join_config.enable
record("late", lambda: net(torch.ones(1, 2)).sum().backward())
net.require_backward_grad_sync = True
def thrown():
    with net.join(throw_on_early_termination=True):
        for step in range(1 + RANK):
            net(torch.ones(1, 2)).sum().backward()
record("thrown", thrown)
dist.barrier()
"""


def test_ranks_without_batches_join_the_steps_of_the_others():
    first, second = run_ranks(JOINED, 2)
    assert (first["steps"], second["steps"]) == ([2, None], [5, None])
    assert first["weights"] == second["weights"]
    for records in (first, second):
        assert records["config"] == [False, False] and records["late"] is None
    assert first["thrown"] == "RuntimeError: Rank 0 exhausted all inputs."
    assert second["thrown"].endswith("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
