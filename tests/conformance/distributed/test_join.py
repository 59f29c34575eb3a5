"""Ranks with different numbers of batches, in torch's Join."""

import pytest

from tests.distributed.processes import close, run_ranks

UNEVEN = """
import datetime
from importlib import import_module
nn, r = torch.nn, RANK
DDP = nn.parallel.DistributedDataParallel
warnings.simplefilter("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=400))
join = import_module(f"{torch.__name__}.distributed.algorithms.join")
Zero = import_module(f"{torch.__name__}.distributed.optim").ZeroRedundancyOptimizer

def trained(views=False, buffers=False, quiet=False, **options):
    torch.manual_seed(1)
    middle = nn.BatchNorm1d(4) if buffers else nn.Tanh()
    net = DDP(nn.Sequential(nn.Linear(3, 4), middle, nn.Linear(4, 1)), gradient_as_bucket_view=views)
    zero = Zero(net.parameters(), torch.optim.SGD, lr=0.05, momentum=0.9)
    with join.Join([net, zero], **options):
        for step in range(3 + 2 * r):
            torch.manual_seed(10 * step + r)
            net.require_backward_grad_sync = not (quiet and step % 2)
            net(torch.randn(4, 3)).pow(2).mean().backward()
            zero.step()
            zero.zero_grad(set_to_none=False)
    return [p.detach() for p in net.parameters()], [p.grad for p in net.parameters()], list(net.buffers())

class Hook(join.JoinHook):
    def __init__(self, seen):
        self.seen = seen
    def main_hook(self):
        dist.all_reduce(torch.zeros(1))
        self.seen.append("main")
    def post_hook(self, is_last_joiner):
        self.seen.append(f"post {is_last_joiner}")

class Counter(join.Joinable):
    def __init__(self):
        super().__init__()
        self.count, self.seen = 0, []
    def __call__(self):
        join.Join.notify_join_context(self)
        one = torch.ones(1)
        dist.all_reduce(one)
        self.count += int(one)
    def join_hook(self, **kwargs):
        self.seen.append(str(kwargs))
        return Hook(self.seen)
    join_device = property(lambda self: torch.device("cpu"))
    join_process_group = property(lambda self: dist.group.WORLD)

def counted(throw, batches, enable=True):
    counter, said = Counter(), ""
    try:
        with join.Join([counter], enable, throw, given=3):
            for _ in range(batches):
                counter()
    except RuntimeError as error:
        said = str(error)
    return counter.count, counter.seen, said

class Half(join.Joinable):
    pass
class Elsewhere(Counter):
    join_process_group = property(lambda self: dist.new_group([0, 1]))

record("DDP and ZeRO", trained)
record("views", lambda: trained(views=True))
record("buffers", lambda: trained(buffers=True))
record("by those that are left", lambda: trained(divide_by_initial_world_size=False))
record("without sums in between", lambda: trained(quiet=True))
record("of one's own", lambda: counted(False, 2 + r))
record("all at once", lambda: counted(False, 2))
record("thrown", lambda: counted(True, 2 + r))
record("switched off", lambda: counted(False, 2, enable=False))
record("of nothing", lambda: join.Join([]))
record("without methods", lambda: Half())
record("of two groups", lambda: join.Join([Counter(), Elsewhere()]))
record("never prepared", lambda: join.Join.notify_join_context(Hook([])))
record("names", lambda: sorted(join.__all__))
record("kinds", lambda: (issubclass(DDP, join.Joinable), issubclass(Zero, join.Joinable)))
dist.barrier()
"""


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_without_batches_do_what_the_others_wait_for(size):
    theirs, ours = (run_ranks(UNEVEN, size, library, 300) for library in ("torch", "pullback"))
    differences = [line for rank in range(size) for line in close(theirs[rank], ours[rank], f"rank {rank}")]
    assert differences == []
    assert [said for said in theirs[0].values() if "Error" in str(said)] != []
