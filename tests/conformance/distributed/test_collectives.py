# ruff: noqa: E501
"""The same programs on two ranks of torch with gloo and of pullback record the same."""

import pytest

from tests.distributed.processes import run_ranks

COLLECTIVES = """
import datetime
T, R, r = torch.tensor, dist.ReduceOp, RANK
record("available", lambda: (dist.is_available(), dist.is_initialized(), dist.is_gloo_available(), dist.is_nccl_available()))
for name, call in {
    "rank": lambda: dist.get_rank(), "size": lambda: dist.get_world_size(), "backend": lambda: dist.get_backend(),
    "all_reduce": lambda: dist.all_reduce(T([1.0])), "destroy": lambda: dist.destroy_process_group(),
    "scheme": lambda: dist.init_process_group("gloo", init_method="foo://x", rank=0, world_size=2),
    "no scheme": lambda: dist.init_process_group("gloo", init_method="nothing", rank=0, world_size=2),
    "tcp": lambda: dist.init_process_group("gloo", init_method="tcp://h", rank=0, world_size=2),
    "tcp rank": lambda: dist.init_process_group("gloo", init_method="tcp://h:1"),
    "file": lambda: dist.init_process_group("gloo", init_method="file://", rank=0, world_size=2),
    "file rank": lambda: dist.init_process_group("gloo", init_method="file:///tmp/x"),
    "timeout": lambda: dist.init_process_group("gloo", timeout=3),
}.items():
    record("before " + name, call)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=400))
record("twice", lambda: dist.init_process_group("gloo"))
world = dist.group.WORLD
record("facts", lambda: (world.rank(), world.size(), world.name(), world.group_desc, dist.get_backend(),
    dist.get_backend_config(), dist.get_process_group_ranks(world), dist.get_global_rank(world, 1),
    dist.get_group_rank(world, 0), dist.get_node_local_rank(), dist.get_debug_level()))

def reduced(op, values, **options):
    x = T(values, **options)
    return dist.all_reduce(x, op=op), x, x._version

for op in ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "AVG"):
    for name, values in {"floats": [1.5 + r, 2.0], "ints": [1 + r, 6], "bools": [True, r == 0]}.items():
        record(f"{op} of {name}", lambda: reduced(getattr(R, op), values))
    record(f"{op} of complex", lambda: str(reduced(getattr(R, op), [1 + 1j * r])))
for dtype in ("float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "complex128", "uint16", "float8_e4m3fn"):
    def typed():
        x = torch.ones(3).to(getattr(torch, dtype))
        dist.all_reduce(x)
        return str(x.to(torch.complex64))
    record(f"sum of {dtype}", typed)
record("names of reductions", lambda: (repr(R.SUM), str(R.SUM), int(R.BXOR), R(R.SUM) == R.SUM, list(R.RedOpType.__members__)))
def called(call, *tensors):
    return [call(*tensors), *tensors]
record("transposed", lambda: called(dist.all_reduce, torch.arange(6.0).reshape(2, 3).t()))
record("nothing", lambda: called(dist.all_reduce, torch.empty(0)))
record("no dimensions", lambda: called(dist.all_reduce, T(3.0)))
record("no tensor", lambda: dist.all_reduce([1.0]))
record("large", lambda: (lambda x: (dist.all_reduce(x), x[::100_000], float(x.double().sum())))(torch.arange(1_000_000.0) * (r + 1)))
def leaf():
    x = torch.ones(2, requires_grad=True)
    dist.all_reduce(x)
    return x.requires_grad, x.detach()
record("leaf", leaf)
def later():
    x = T([1.0])
    work = dist.all_reduce(x, async_op=True)
    done = work.wait(), work.is_completed(), work.is_success()
    future = work.get_future()
    then = future.then(lambda f: f.value()[0] * 10)
    return done, future.wait(), future.done(), work.result(), then.wait()
record("later", later)
record("broadcast", lambda: called(lambda x: dist.broadcast(x, src=1), T([1.0 + r, 2])))
record("broadcast from nobody", lambda: dist.broadcast(T([1.0]), src=5))
record("broadcast from whom", lambda: dist.broadcast(T([1.0])))
record("broadcast from two", lambda: dist.broadcast(T([1.0]), src=0, group_src=0))
record("reduce", lambda: called(lambda x: dist.reduce(x, 1), T([1.0 + r, 2]))[1] if r == 1 else called(lambda x: dist.reduce(x, 1), T([1.0 + r, 2]))[0])
def gathered(outs, x):
    return dist.all_gather(outs, x), outs
record("all_gather", lambda: gathered([torch.zeros(2), torch.zeros(2)], T([r, r + 1.0])))
record("all_gather too short", lambda: gathered([torch.zeros(2)], T([r, r + 1.0])))
record("all_gather another shape", lambda: gathered([torch.zeros(3), torch.zeros(2)], T([r, r + 1.0])))
record("all_gather another dtype", lambda: gathered([torch.zeros(2), torch.zeros(2)], T([r, 1])))
record("all_gather no list", lambda: gathered((1, 2), T([r, 1])))
record("all_gather no tensors", lambda: gathered([1, 2], T([r, 1])))
def into(out, x):
    return dist.all_gather_into_tensor(out, x), out
record("into", lambda: into(torch.zeros(4), T([r, 1.0])))
record("into rows", lambda: into(torch.zeros(2, 2), T([r, 1.0])))
record("into too long", lambda: into(torch.zeros(5), T([r, 1.0])))
record("into ints", lambda: into(torch.zeros(4, dtype=torch.int64), T([r, 1.0])))
def scattered(out, inputs, op=R.SUM):
    return dist.reduce_scatter(out, inputs, op=op), out
record("reduce_scatter", lambda: scattered(torch.zeros(2), [T([1.0, r]), T([3.0, r])]))
record("reduce_scatter average", lambda: scattered(torch.zeros(2), [T([1.0, r]), T([3.0, r])], R.AVG))
record("reduce_scatter too short", lambda: scattered(torch.zeros(2), [T([1.0, r])]))
record("reduce_scatter_tensor", lambda: called(lambda o: dist.reduce_scatter_tensor(o, T([1.0, r, 3, 4])), torch.zeros(2)))
record("reduce_scatter_tensor max", lambda: called(lambda o: dist.reduce_scatter_tensor(o, T([1.0, r, 3, 4]), op=R.MAX), torch.zeros(2)))
record("scatter", lambda: called(lambda o: dist.scatter(o, [T([1.0, 2]), T([3.0, 4])] if r == 0 else None, src=0), torch.zeros(2)))
record("gather", lambda: (lambda outs: (dist.gather(T([r, 2.0]), outs, dst=1), outs))([torch.zeros(2), torch.zeros(2)] if r == 1 else None))
record("gather wrong lists", lambda: dist.gather(T([1.0]), [torch.zeros(1)] * 2 if r == 1 else None, dst=0))
record("scatter wrong lists", lambda: dist.scatter(T([1.0]), [torch.zeros(1)] * 2 if r == 1 else None, src=0))
record("all_to_all", lambda: (lambda outs: (dist.all_to_all(outs, [T([10.0 * r]), T([10.0 * r + 1])]), outs))([torch.zeros(1), torch.zeros(1)]))
record("all_to_all_single", lambda: called(lambda o: dist.all_to_all_single(o, torch.arange(4.0) + 10 * r), torch.zeros(4)))
record("all_to_all_single splits", lambda: called(
    lambda o: dist.all_to_all_single(o, torch.arange(3.0) + 10 * r, [2, 2] if r == 0 else [1, 1], [2, 1]), torch.zeros(4 if r == 0 else 2)))
record("barrier", dist.barrier)
record("monitored", dist.monitored_barrier)
record("all_to_all_single wrong splits", lambda: dist.all_to_all_single(torch.zeros(4), torch.arange(4.0), [1, 1], [2, 2]))
"""

MESSAGES = """
import datetime
T, r = torch.tensor, RANK
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=400))
def back_and_forth():
    x = T([5.0])
    if r == 0:
        dist.send(x, 1)
        return dist.recv(x, 1), x
    return dist.recv(x), dist.send(x + 1, 0), x
record("send and recv", back_and_forth)
record("to oneself", lambda: dist.send(T([1.0]), r))
def tags():
    a, b = T([0.0]), T([0.0])
    if r == 0:
        works = [dist.isend(T([1.0]), 1, tag=7), dist.isend(T([2.0]), 1, tag=3)]
    else:
        works = [dist.irecv(a, 0, tag=3), dist.irecv(b, 0, tag=7)]
    return [work.wait() for work in works], a, b
record("tags", tags)
def crossing():
    out = torch.zeros(200_000)
    ops = [dist.P2POp(dist.isend, torch.full((200_000,), float(r)), 1 - r), dist.P2POp(dist.irecv, out, 1 - r)]
    return [work.wait() for work in dist.batch_isend_irecv(ops)], out[::50_000], repr(ops[0]).replace(f"pg={dist.group.WORLD.group_name}", "pg")
record("batch", crossing)
record("wrong op", lambda: dist.P2POp(dist.broadcast, T([1.0]), 0))
record("empty batch", lambda: dist.batch_isend_irecv([]))
record("wrong batch", lambda: dist.batch_isend_irecv([1]))
def objects():
    everything, some, one = [None, None], [1, {"a": 2}] if r == 0 else [None, None], [None]
    dist.all_gather_object(everything, {"rank": r, "x" * (r * 50): 1})
    dist.broadcast_object_list(some, 0)
    dist.scatter_object_list(one, ["a", {"b": 1}] if r == 0 else None, 0)
    at_root = [None, None] if r == 0 else None
    dist.gather_object((r, "x"), at_root, 0)
    return everything, some, one, at_root
record("objects", objects)
def sent_objects():
    if r == 0:
        return dist.send_object_list([1, "a"], 1)
    got = [None, None]
    return dist.recv_object_list(got, 0), got
record("sent objects", sent_objects)
def groups():
    alone, both = dist.new_group([0]), dist.new_group([1, 0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        x = T([1.0 + r])
        dist.all_reduce(x, group=alone)
    y = T([1.0 + r])
    dist.broadcast(y, src=1, group=both)
    return (x, y, str(alone) if r else alone.size(), both.rank(), dist.get_rank(alone), dist.get_world_size(alone),
            dist.get_process_group_ranks(both), both.group_desc, [str(one.message) for one in said])
record("groups", groups)
record("group out of range", lambda: dist.new_group([0, 5]))
record("group twice", lambda: dist.new_group([0, 0]))
record("group timeout", lambda: dist.new_group([0, 1], timeout=3))
record("subgroups", lambda: (lambda own, all: (own.size(), len(all)))(*dist.new_subgroups(1)))
record("listed subgroups", lambda: (lambda own, all: (own.size(), len(all)))(*dist.new_subgroups_by_enumeration([[0], [1]])))
record("large subgroups", lambda: dist.new_subgroups(3))
record("twice in subgroups", lambda: dist.new_subgroups_by_enumeration([[0, 1], [1]]))
def together():
    a, b = T([1.0]), T([2.0])
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(a)
        dist.all_reduce(b)
    manager.wait()
    return a, b
record("together", together)
warnings.simplefilter("ignore")
record("coalesced", lambda: (lambda a, b: (dist.all_reduce_coalesced([a, b]), a, b))(T([1.0]), T([2.0])))
record("gathered coalesced", lambda: (lambda o: (dist.all_gather_coalesced(o, [T([1.0 * r]), T([2.0 * r])]), o))([[torch.zeros(1), torch.zeros(1)], [torch.zeros(1), torch.zeros(1)]]))
dist.barrier()
dist.destroy_process_group()
record("after", lambda: (dist.is_initialized(), dist.group.WORLD))
"""

PROGRAMS = {"collectives": COLLECTIVES, "messages": MESSAGES}


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_ranks_record_what_torch_with_gloo_records(name):
    theirs, ours = run_ranks(PROGRAMS[name], library="torch"), run_ranks(PROGRAMS[name])
    for rank in range(2):
        differences = {
            key: (theirs[rank][key], ours[rank].get(key))
            for key in theirs[rank]
            if theirs[rank][key] != ours[rank].get(key)
        }
        assert not differences, f"on rank {rank}"
        assert len(theirs[rank]) > 15
