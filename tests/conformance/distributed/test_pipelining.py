# ruff: noqa: E501
"""Pipelines give the losses, outputs and gradients of torch's."""

from tests.distributed.processes import close, run_ranks

START = """
import datetime
from importlib import import_module
nn, F, r = torch.nn, torch.nn.functional, RANK
warnings.simplefilter("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=400))
"""
STAGES = """
pp = import_module(f"{torch.__name__}.distributed.pipelining")

class Block(nn.Module):
    def __init__(self, first=False, last=False):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8) if first else None, nn.Linear(8, 3) if last else None
        self.inner = nn.Linear(8, 8)
    def forward(self, x, skip=None):
        x = self.first(x) if self.first is not None else x
        skip = x if skip is None else skip
        x = torch.tanh(self.inner(x)) + skip
        return self.last(x) if self.last is not None else (x, skip)

def blocks(count):
    torch.manual_seed(5)
    return [Block(i == 0, i == count - 1) for i in range(count)]

def run(schedule, each=1, steps=3, parts=4, **options):
    count = WORLD * each
    made = blocks(count)
    mine = [pp.PipelineStage(made[i], i, count, torch.device("cpu")) for i in range(r, count, WORLD)]
    params = [p for i in range(r, count, WORLD) for p in made[i].parameters()]
    optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9)
    plan = schedule(mine if each > 1 else mine[0], parts, loss_fn=F.cross_entropy, **options)
    found = []
    for step in range(steps):
        torch.manual_seed(step)
        x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
        losses = []
        optimizer.zero_grad()
        out = plan.step(*([x] if r == 0 else []), target=y if r == WORLD - 1 else None, losses=losses)
        found.append([float(loss) for loss in losses])
        found.append(None if out is None else out.detach())
        found.append([float(p.grad.abs().sum()) for p in params])
        optimizer.step()
    losses = []
    with torch.no_grad():
        out = plan.eval(*([x] if r == 0 else []), target=y if r == WORLD - 1 else None, losses=losses)
    return found, out, [float(loss) for loss in losses]

"""
PIPELINES = (
    START
    + STAGES
    + """
record("GPipe", lambda: run(pp.ScheduleGPipe))
record("1F1B", lambda: run(pp.Schedule1F1B))
record("1F1B, few parts", lambda: run(pp.Schedule1F1B, parts=1))
record("1F1B, sums", lambda: run(pp.Schedule1F1B, scale_grads=False))
record("interleaved", lambda: run(pp.ScheduleInterleaved1F1B, each=2))
record("looped", lambda: run(pp.ScheduleLoopedBFS, each=2))

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = nn.Linear(6, 8), nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.out = nn.Linear(8, 3)
    def forward(self, x):
        x = start = self.embed(x)
        for layer in self.layers:
            x = layer(x).relu()
        return self.out(x + start)

def traced():
    torch.manual_seed(9)
    whole, x = Whole(), torch.randn(8, 6)
    expected = whole(x)
    pipe = pp.pipeline(whole, (x[:2],), split_spec={"layers.1": pp.SplitPoint.BEGINNING})
    stage = pipe.build_stage(r, torch.device("cpu"))
    names = sorted(name for name, _ in stage.submod.named_parameters())
    plan = pp.ScheduleGPipe(stage, 4, loss_fn=lambda out, y: (out - y).square().mean())
    losses = []
    out = plan.step(*([x] if r == 0 else []), target=torch.zeros(8, 3) if r else None, losses=losses)
    return names, [float(loss) for loss in losses], None if out is None else float((out - expected).abs().max()) < 1e-6, pipe.num_stages
if WORLD == 2:
    record("traced", traced)

record("no such stage", lambda: pp.PipelineStage(nn.Linear(1, 1), 5, 2, "cpu"))
record("too few stages", lambda: pp.PipelineStage(nn.Linear(1, 1), 0, 1, "cpu"))
record("no such module", lambda: pp.pipeline(Whole(), (torch.ones(1, 6),), split_spec={"nothing": pp.SplitPoint.END}))
record("no such schedule", lambda: import_module(pp.__name__ + ".schedules").get_schedule_class("best"))
record("names", lambda: [pp.ScheduleGPipe.__module__, repr(pp.SplitPoint.END), str(import_module(pp.__name__ + ".microbatch").TensorChunkSpec(1))])
stage = pp.PipelineStage(nn.Linear(1, 1), r, WORLD, "cpu")
record("odd", lambda: pp.ScheduleInterleaved1F1B([stage], 2 * WORLD + 1))
with torch.no_grad():
    record("no_grad", lambda: pp.ScheduleGPipe(stage, 2, loss_fn=F.mse_loss).step(torch.ones(2, 1)))
dist.barrier()
dist.destroy_process_group()
"""
)


def test_losses_outputs_and_gradients_of_pipelines_are_those_of_torch():
    theirs, ours = run_ranks(PIPELINES, library="torch"), run_ranks(PIPELINES)
    for rank in range(2):
        assert close(theirs[rank], ours[rank]) == [], f"on rank {rank}"
        assert [name for name, value in theirs[rank].items() if isinstance(value, str) and "Error" not in value] == []
        assert len(theirs[rank]) == 14
