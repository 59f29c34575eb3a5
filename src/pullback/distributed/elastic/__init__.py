"""Training that goes on without the ranks it loses: `run`, in a job of `pullback launch --elastic` or of Open MPI.

The launcher holds the store and writes there which ranks have ended. Who loses a rank in a collective says how many
steps it has done and waits until everybody else has said so or has ended. Those that are left form the group anew,
take the state of the one that has done most, and go on. torch's elastic jobs start all ranks again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pullback as torch
from pullback import nn
from pullback.distributed import objects
from pullback.distributed.errors import DistBackendError, DistError
from pullback.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer
from pullback.distributed.stores import PrefixStore, Store
from pullback.distributed.transport.mpi import Messages, tolerant
from pullback.distributed.world import default_group, store_of, world
from pullback.utils.data import DistributedSampler

PAUSE = 0.02
JOINING = timedelta(seconds=20)
"""How long those that are left wait for each other before they ask again who is left."""


class Elastic:
    """What a rank knows of the job: its first rank, those that are left, and how often the group was formed."""

    def __init__(self) -> None:
        if os.environ.get("PULLBACK_ELASTIC") != "1":
            raise RuntimeError(
                "elastic.run needs a launcher that tells who has ended: pullback launch --elastic, or mpiexec "
                "--with-ft ulfm of Open MPI"
            )
        self.group = default_group()
        assert isinstance(world.store, PrefixStore)
        self.store: Store = world.store.underlying_store
        self.first = int(os.environ["RANK"])
        self.left = list(range(self.group.size()))
        self.least = int(os.environ.get("PULLBACK_ELASTIC_LEAST", "1"))
        self.round = 0

    def ended(self, rank: int) -> bool:
        """Whether the process of a rank has ended."""
        return self.store.check([f"elastic/ended/{rank}"])

    def agree(self, steps: int) -> dict[int, int]:
        """Those that are left, with the steps they have done: everybody says so or has ended."""
        self.round += 1
        place = f"elastic/{self.round}"
        self.store.set(f"{place}/{self.first}", str(steps))
        end = time.monotonic() + self.group._timeout.total_seconds()
        waiting = [rank for rank in self.left if rank != self.first]
        while waiting:
            waiting = [rank for rank in waiting if not self.store.check([f"{place}/{rank}"]) and not self.ended(rank)]
            if time.monotonic() > end:
                for rank in waiting:  # it neither comes nor ends: the launcher ends it
                    self.store.set(f"elastic/end/{rank}", "1")
                end = time.monotonic() + self.group._timeout.total_seconds()
            time.sleep(PAUSE)
        mine = [rank for rank in self.left if self.store.check([f"{place}/{rank}"]) and not self.ended(rank)]
        said = {rank: int(self.store.get(f"{place}/{rank}")) for rank in mine}
        told = self.store.compare_set(f"{place}/all", "", json.dumps(said))  # what the first says counts
        return {int(rank): done for rank, done in json.loads(told).items()}

    def form_again(self, steps: int) -> dict[int, int]:
        """Form the group of those that are left; the steps each has done, by its new rank."""
        group = self.group
        leave_all(group)
        while True:
            done = self.agree(steps)
            if self.first not in done:
                raise DistBackendError(f"the others go on without rank {self.first}")
            self.left = sorted(done)
            if len(self.left) < self.least:
                raise DistBackendError(f"{len(self.left)} ranks are left, and at least {self.least} are wanted")
            prefix = Joining(f"elastic/group/{self.round}", self.store, self)
            before, limit = self.store.timeout, min(JOINING, group._timeout)
            self.store.set_timeout(limit)
            try:
                group._form_again(prefix, self.left.index(self.first), len(self.left))
                world.store, world.ranks[group] = prefix, list(range(len(self.left)))
                group.barrier()
                prefix.formed = True
            except (DistError, OSError):
                continue  # one more has ended meanwhile
            finally:
                self.store.set_timeout(before)
            os.environ["RANK"], os.environ["WORLD_SIZE"] = str(group.rank()), str(group.size())
            return {self.left.index(rank): count for rank, count in done.items()}


def leave_all(group: Any) -> None:
    """Let go of all groups; this one will be formed anew."""
    for other in [one for one in world.ranks if one is not group]:
        other.shutdown()
        del world.ranks[other]
    group.shutdown()


class ElasticMPI:
    """The same where Open MPI has started the ranks: it tells who has ended, and shrinks communicators (ULFM)."""

    def __init__(self) -> None:
        self.group = default_group()

    def form_again(self, steps: int) -> dict[int, int]:
        """Form the group of those that are left; the steps each has done, by its new rank."""
        group, lost = self.group, (*self.group._engine.failures, DistError, OSError)
        for one in world.ranks:
            one._engine.revoke()  # type: ignore[attr-defined]
        leave_all(group)
        while True:
            comm = world.comm = world.comm.Shrink()
            try:
                done = comm.allgather(steps)
                store = PrefixStore("default_pg", store_of(comm, min(JOINING, group._timeout)))
                group._form_again(store, comm.rank, comm.size, comm.Dup())
                world.store, world.ranks[group] = store, list(range(comm.size))
                group.barrier()
                return dict(enumerate(done))
            except lost:  # one more has ended meanwhile: all shrink again, also those who have not noticed
                comm.Revoke()
                if isinstance(group._engine, Messages) and not group._engine.revoked:
                    group._engine.revoke()


class Joining(PrefixStore):
    """The store of a group that is formed: who waits there for a rank that ends meanwhile is told so."""

    def __init__(self, prefix: str, store: Store, elastic: Elastic) -> None:
        super().__init__(prefix, store)
        self.elastic, self.formed = elastic, False

    def get(self, key: str) -> bytes:
        """The value of a key, once there is one."""
        self.wait([key])
        return super().get(key)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout).total_seconds()
        while not self.formed and not self.check(keys):
            if gone := [rank for rank in self.elastic.left if self.elastic.ended(rank)]:
                raise DistBackendError(f"Lost rank {gone[0]} while those that are left met")
            if time.monotonic() > end:
                break
            time.sleep(PAUSE)
        super().wait(keys, timeout)


class Snapshot:
    """What a step changes before the gradients of all ranks are there: buffers, and the random numbers."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        modules = [one for one in state.values() if isinstance(one, nn.Module)]
        self.modules = modules
        self.buffers = [(buffer, buffer.clone()) for module in modules for buffer in module.buffers()]
        self.random = torch.get_rng_state()

    def restore(self) -> None:
        """Back to the beginning of the step."""
        with torch.no_grad():
            for buffer, before in self.buffers:
                buffer.copy_(before)
        for module in self.modules:
            module.zero_grad()
        torch.set_rng_state(self.random)


def take_over(elastic: Elastic | ElasticMPI, state: Mapping[str, Any], done: dict[int, int]) -> int:
    """All take the state of the first rank that has done most steps; how many those are."""
    most = max(done.values())
    if min(done.values()) < most:
        source = min(rank for rank, count in done.items() if count == most)
        own = {name: one.state_dict() for name, one in state.items()} if elastic.group.rank() == source else None
        box = [own]
        objects.broadcast_object_list(box, source)
        if done[elastic.group.rank()] < most:
            assert box[0] is not None
            for name, one in state.items():
                one.load_state_dict(box[0][name])
    return most


def divide_anew(
    elastic: Elastic | ElasticMPI, state: Mapping[str, Any], samplers: Sequence[DistributedSampler]
) -> None:
    """Indices and states that are spread over ranks are divided among those that are left."""
    rank, size = elastic.group.rank(), elastic.group.size()
    for one in samplers:
        epoch = one.epoch
        DistributedSampler.__init__(one, one.dataset, size, rank, one.shuffle, one.seed, one.drop_last)
        one.set_epoch(epoch)
    for optimizer in state.values():
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            optimizer.world_size, optimizer.rank = size, rank
            optimizer._divide()


def run(
    step: Callable[[int], Any],
    steps: int,
    state: Mapping[str, Any],
    samplers: Sequence[DistributedSampler] = (),
    restore: Callable[[], int] | None = None,
    on_change: Callable[[], Any] | None = None,
) -> None:
    """Call `step(0)` to `step(steps - 1)`; if a rank is lost, those that are left go on from the last completed step.

    `state` has by name what all ranks hold alike and a step changes: modules, optimizers, schedulers, whatever has
    state_dict and load_state_dict. A step updates it only once it has the gradients of all ranks, as DDP does.
    `samplers` are divided anew among those that are left. Where parts of the state live on one rank only, give
    `restore`: it loads the last checkpoint on all ranks and returns the step to go on from. `on_change` is called when
    the group has become smaller: to make other groups anew.
    """
    elastic = ElasticMPI() if world.comm is not None and tolerant() else Elastic()
    spread = [name for name, one in state.items() if isinstance(one, ZeroRedundancyOptimizer)]
    if spread and restore is None:
        raise ValueError(f"{spread[0]} is spread over ranks, and part of it is lost with one: give restore=")
    number = 0
    while True:
        before = Snapshot(state)
        try:
            if number == steps:
                elastic.group.barrier()  # nobody leaves before all have done the last step
                return
            step(number)
            number += 1
        except DistBackendError:
            before.restore()
            done = elastic.form_again(number)
            divide_anew(elastic, state, samplers)
            number = take_over(elastic, state, done) if restore is None else restore()
            if on_change is not None:
                on_change()
