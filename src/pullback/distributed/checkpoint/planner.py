"""The names by which programs ask for the one way to plan there is."""

from __future__ import annotations


class DefaultSavePlanner:
    """Every rank writes what it has, and what several have is written by one."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, **options: object
    ) -> None:
        if not flatten_state_dict:
            raise NotImplementedError("DefaultSavePlanner(flatten_state_dict=False)")


class DefaultLoadPlanner:
    """Every rank reads what it needs."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        if not flatten_state_dict:
            raise NotImplementedError("DefaultLoadPlanner(flatten_state_dict=False)")
        self.allow_partial_load = allow_partial_load
