"""The groups of this process: `init_process_group`, `new_group`, ranks and sizes."""

from __future__ import annotations

import os
import socket
import warnings
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

from pullback.distributed.constants import default_pg_timeout
from pullback.distributed.process_group import ProcessGroup
from pullback.distributed.rendezvous import rendezvous
from pullback.distributed.stores import PrefixStore, Store
from pullback.distributed.tcp_store import TCPStore
from pullback.distributed.transport.mpi import end_all_on_errors, mpi, started_by_mpiexec


class Backend(str):
    """The name of a backend, in lower case. All of them move host memory by the transports of this library."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()

    @classmethod
    def register_backend(cls, name: str, func: Any, extended_api: bool = False, devices: Any = None) -> None:
        """Refuse."""
        raise NotImplementedError("backends of one's own are not called here: use gloo, which moves host memory")


class World:
    """All groups this process knows, with the global ranks of each in the order of group ranks."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.store: Store | None = None
        self.ranks: dict[ProcessGroup, list[int]] = {}
        self.made = 0
        self.comm: Any = None  # the communicator of all ranks, where mpiexec has started them


world = World()
NON_GROUP_MEMBER = -100


class OfWorld(type):
    """`group.WORLD` is the default group, whichever that is now."""

    @property
    def WORLD(cls) -> Any:
        """The group of all ranks."""
        return world.default

    @WORLD.setter
    def WORLD(cls, group: Any) -> None:
        world.default = group


class group(metaclass=OfWorld):
    """`group.WORLD`."""


class GroupMember(metaclass=OfWorld):
    """`GroupMember.NON_GROUP_MEMBER` stands for a group this rank is not in."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER


KNOWN = ("gloo", "nccl", "mpi", "ucc", "xccl", "undefined")


def check_timeout(timeout: Any) -> timedelta:
    """A timeout, or what is no timeout."""
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def check_backend(backend: Any) -> str:
    """The name of a backend, each device of "cpu:gloo,cuda:nccl" among those that are known."""
    name: str = Backend("undefined" if backend is None else backend)
    for part in name.split(","):
        if part.rpartition(":")[2] not in KNOWN:
            raise ValueError(f"Invalid backend: {backend!r}; pullback knows {', '.join(KNOWN[:-1])}")
    return name


def by_mpi(timeout: timedelta) -> tuple[Store, int, int]:
    """The store, the rank and the number of ranks as MPI has them: rank 0 holds the store and says where."""
    module = mpi()
    if module is None:
        raise RuntimeError(
            "Distributed package doesn't have MPI built in. Install it with pip install mpi4py mpich, or use gloo, "
            "which needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment."
        )
    comm = world.comm = module.COMM_WORLD.Dup()
    end_all_on_errors(module.COMM_WORLD)
    return store_of(comm, timeout), comm.rank, comm.size


def store_of(comm: Any, timeout: timedelta) -> Store:
    """A store for the ranks of a communicator, which the first of them holds."""
    host = socket.gethostbyname(socket.gethostname())
    store = TCPStore(host, 0, None, True, timeout, wait_for_workers=False) if comm.rank == 0 else None
    host, port = comm.bcast((host, store.port if store else 0))
    return store or TCPStore(host, port, None, False, timeout, wait_for_workers=False)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: Any = None,
) -> None:
    """Join the other ranks. One rank alone needs nobody: with world size 1 nothing is opened."""
    if world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    name, limit = check_backend(backend), check_timeout(timeout)
    if store is None and (name == "mpi" or (init_method is None and "RANK" not in os.environ and started_by_mpiexec())):
        if world_size != -1 or rank != -1:
            warnings.warn(
                f"For MPI backend, world_size ({world_size}) and rank ({rank}) are ignored since they are assigned by "
                "the MPI runtime.",
                stacklevel=2,
            )
        store, rank, world_size = by_mpi(limit)
    elif store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=limit))
        store.set_timeout(limit)
    if not 0 <= rank < world_size:
        raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {world_size - 1}]")
    world.store = PrefixStore("default_pg", store)
    world.default = made(list(range(world_size)), rank, limit, name, "default_pg")


def made(ranks: list[int], rank: int, timeout: timedelta, backend: str, desc: str) -> ProcessGroup:
    """A new group of these global ranks, in which this process has a rank."""
    assert world.store is not None
    number = str(world.made)
    world.made += 1
    comm = world.comm
    if comm is not None:
        comm = comm.Create_group(comm.Get_group().Incl(ranks), world.made)
    out = ProcessGroup(PrefixStore(number, world.store), rank, len(ranks), timeout, ranks, comm)
    out.group_name, out.group_desc, out._backend = number, desc, "gloo" if backend == "undefined" else backend
    world.ranks[out] = ranks
    return out


def destroy_process_group(group: Any = None) -> None:
    """Leave a group; without one, all of them."""
    if group == NON_GROUP_MEMBER:
        return
    one = world.default if group is None else group
    if one is None:
        raise AssertionError("Process group cannot be None")
    if one not in world.ranks:
        raise ValueError("Invalid process group specified or has been destroyed.")
    leaving = list(world.ranks) if one is world.default else [one]
    for left in leaving:
        left.shutdown()
        del world.ranks[left]
    if one is world.default:
        world.default, world.store, world.comm = None, None, None


def default_group() -> ProcessGroup:
    """The group of all ranks."""
    if world.default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return world.default


def group_or_default(group: Any = None) -> ProcessGroup:
    """A group, or that of all ranks."""
    return default_group() if group is None else group


def not_in(group: Any, name: str) -> bool:
    """Whether this rank is not in a group, with a warning that it calls something there."""
    if group is None or group != NON_GROUP_MEMBER:
        return False
    rank = -1 if world.default is None else world.default.rank()
    warnings.warn(f"Running {name} on global rank {rank} which does not belong to the given group.", stacklevel=3)
    return True


def _rank_not_in_group(group: Any) -> bool:
    return group is not None and group == NON_GROUP_MEMBER


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return world.default is not None


def is_torchelastic_launched() -> bool:
    """Whether a launcher started this process that starts it again."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_gloo_available() -> bool:
    """True: what gloo does is done here."""
    return True


def is_nccl_available() -> bool:
    """False: there are no device tensors to carry."""
    return False


is_ucc_available = is_xccl_available = is_nccl_available


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return find_spec("mpi4py") is not None


def is_backend_available(backend: str) -> bool:
    """Whether there is a backend of this name."""
    return backend.lower() == "gloo" or (backend.lower() == "mpi" and is_mpi_available())


def get_rank(group: Any = None) -> int:
    """The rank of this process in a group; -1 if it is not in it."""
    return -1 if _rank_not_in_group(group) else group_or_default(group).rank()


def get_world_size(group: Any = None) -> int:
    """How many ranks a group has; -1 if this process is not in it."""
    return -1 if _rank_not_in_group(group) else group_or_default(group).size()


def get_backend(group: Any = None) -> str:
    """The backend of a group."""
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    return group_or_default(group)._backend


def get_backend_config(group: Any = None) -> str:
    """The backends of a group by device."""
    name = get_backend(group)
    return name if ":" in name else f"cpu:{name},cuda:{name}"


def get_default_backend_for_device(device: Any) -> str:
    """The backend for a device."""
    return Backend.default_device_backend_map[str(device).partition(":")[0]]


def registered(group: Any) -> list[int]:
    """The global ranks of a group."""
    if group not in world.ranks:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return world.ranks[group]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of a global rank."""
    if group is world.default:
        return global_rank
    ranks = registered(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The global rank of a rank in a group."""
    if group is world.default:
        return group_rank
    ranks = registered(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_process_group_ranks(group: Any) -> list[int]:
    """The global ranks of a group, in the order of its own."""
    return list(world.ranks[group_or_default(group)])


def get_pg_count() -> int:
    """How many groups there are."""
    return len(world.ranks)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among those on this machine."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def new_group(
    ranks: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """A group of some ranks. All ranks call it, in the same order; those that are not in it get NON_GROUP_MEMBER."""
    default = default_group()
    limit = default._timeout if timeout is None else check_timeout(timeout)
    chosen = list(range(default.size())) if ranks is None else sorted(ranks)
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"ranks list must not contain duplicate entries, got {list(ranks)}")
    if len(chosen) > default.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for one in chosen:
        if not 0 <= one < default.size():
            raise ValueError(
                f"Rank {one} is out of range. Valid ranks are 0 to {default.size() - 1} (world_size={default.size()})"
            )
    name = check_backend(default._backend if backend is None else backend)
    if default.rank() not in chosen:
        world.made += 1
        return NON_GROUP_MEMBER
    return made(chosen, chosen.index(default.rank()), limit, name, group_desc or "undefined")


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """Groups of so many ranks in a row: the one of this rank, and all."""
    if group_size is None:
        raise ValueError("Default group size only takes effect with CUDA. Specify group_size explicitly.")
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size(group)
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    ranks = get_process_group_ranks(group)
    lists = [ranks[start : start + group_size] for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Any,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> Any:
    """Groups of these ranks, none in two: the one of this rank, and all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, Any] = {}
    own, groups = None, []
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
    for ranks in ranks_per_subgroup_list:
        groups.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        if get_rank() in ranks:
            own = groups[-1]
    return own, groups


def _get_default_group() -> ProcessGroup:
    return default_group()


def _get_default_store() -> Store:
    default_group()
    assert world.store is not None
    return world.store


def _get_process_group_name(pg: ProcessGroup) -> str:
    return pg.group_name


def _get_pg_default_device(group: Any = None) -> Any:
    return "cpu"


def _set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
    group_or_default(group).set_timeout(check_timeout(timeout))
