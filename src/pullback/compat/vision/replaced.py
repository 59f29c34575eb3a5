"""A compiled library of ops, written in Python: nothing is registered before a program loads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._runtime.quiet import quietly
from pullback.library import Library


class Replaced:
    """The ops of one library."""

    def __init__(self, namespace: str, key: str) -> None:
        self.namespace, self.key = namespace, key
        self.functions: dict[str, Any] = {}
        self.library: Library | None = None

    def op(self, schema: str) -> Callable[[Any], Any]:
        """The function computes the op of this schema."""

        def known(function: Any) -> Any:
            self.functions[schema] = quietly(function)
            return function

        return known

    def load(self) -> None:
        """Register all, unless they are."""
        if self.library is None:
            self.library = Library(self.namespace, "DEF")
            for schema, function in self.functions.items():
                self.library.define(schema)
                self.library.impl(schema.partition("(")[0], function, self.key)
