"""The errors of processes that do not find each other, lose each other or disagree."""

from __future__ import annotations


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective failed: a rank is gone, late, or called something else."""


class DistNetworkError(DistError):
    """No connection."""


class DistStoreError(DistError):
    """A store did not answer, or does not have what was asked for in time."""


class QueueEmptyError(DistStoreError):
    """Nothing is in a queue of a store."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"
