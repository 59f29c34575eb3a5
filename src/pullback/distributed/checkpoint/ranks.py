"""All ranks do something, and all of them learn if one could not."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from pullback.distributed.objects import all_gather_object
from pullback.distributed.world import get_rank, get_world_size, is_initialized


class CheckpointException(BaseException):
    """What went wrong, by rank."""

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """The error of each rank that failed, and where."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, where) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(where)) if where is not None else ""
            text += "".join(traceback.format_exception_only(type(error), error)) + "\n"
        return text


class Ranks:
    """The ranks that save or load together; this one alone where there are no others."""

    def __init__(self, group: Any, no_dist: bool) -> None:
        self.group = group
        self.together = not no_dist and is_initialized()
        self.rank = get_rank(group) if self.together else 0
        self.size = get_world_size(group) if self.together else 1

    def gathered(self, step: str, job: Callable[[], Any]) -> list[Any]:
        """What a job gives on every rank; if it fails on one, all raise."""
        result: Any = None
        failure: Any = None
        try:
            result = job()
        except Exception as error:
            failure = (error, traceback.extract_tb(error.__traceback__))
        results = [(result, portable(failure))]
        if self.together and self.size > 1:
            results = [None] * self.size  # type: ignore[list-item]
            all_gather_object(results, (result, portable(failure)), group=self.group)
        failures = {rank: failed for rank, (_, failed) in enumerate(results) if failed is not None}
        if failures:
            raise CheckpointException(step, failures)
        return [found for found, _ in results]


def portable(failure: Any) -> Any:
    """An error that can be sent."""
    if failure is None:
        return None
    error, where = failure
    return type(error)(*[str(one) for one in error.args]) if type(error).__module__ == "builtins" else RuntimeError(
        f"{type(error).__name__}: {error}"
    ), where


CheckpointException.__module__ = "torch.distributed.checkpoint.api"
