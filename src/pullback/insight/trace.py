"""Following a tensor through a program: which results depend on it, and where its gradient's way back was cut.

Every op is seen as a profiler sees it. What depends on the tensor is known by its memory, so that aliases without
history (`detach()`, `.data`, NumPy) are followed too; where such an alias or a result without history is made of
something connected, there is a cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import Tensor, is_grad_enabled
from pullback._arrays.memory import memory_of
from pullback._modes import modes
from pullback._runtime.interrupts import Block
from pullback.autograd.api import key_of
from pullback.autograd.engine import target_of
from pullback.autograd.locations import Location, location_of, mark
from pullback.insight.graph import tensors_in

LEAVES_AS_NUMBER = ("item", "tolist", "numpy", "__float__", "__int__", "__complex__", "__index__", "__array__")
"""Methods that turn a tensor into something autograd knows nothing of."""


class Cut:
    """A call after which no gradient finds its way back."""

    __slots__ = ("_code", "_offset", "_scope", "how", "kind")

    def __init__(self, kind: str, how: str) -> None:
        self.kind = kind
        """detach, no_grad, integer, op or number."""
        self.how = how
        """What was called."""
        mark(self)

    @property
    def place(self) -> Location | None:
        """The program's line."""
        return location_of(self)


class Trace(Block):
    """Inside, everything made of `tensor` is followed."""

    def __init__(self, tensor: Tensor) -> None:
        self.reached: dict[int, tuple[Any, dict[Cut, None]]] = {}
        """Address of memory -> the array there (which keeps the address taken), and the cuts on the way to it."""
        self.aliases: dict[int, tuple[Tensor, Cut]] = {}
        """Tensors that were made without history of something that has one."""
        self.left: list[Cut] = []
        """Where a value left as a number or array."""
        self.calls = 0
        """How many ops were given something that depends on the tensor."""
        self.target = key_of(tensor)[0]
        self.leads: dict[Any, bool] = {}
        """Nodes, and whether a gradient arriving there finds its way to the tensor."""
        self.reach(tensor, {})
        self.outer: Any = None
        self.methods: dict[str, Any] = {}

    def reach(self, tensor: Tensor, cuts: dict[Cut, None]) -> None:
        """Note that a tensor depends on the one that is followed."""
        memory = memory_of(tensor._array)
        _, known = self.reached.setdefault(address(memory), (memory, {}))
        known.update(cuts)

    def connected(self, tensor: Tensor) -> bool:
        """True if the graph of a tensor leads to the one that is followed."""
        start = key_of(tensor)[0] if tensor.requires_grad else None
        if start is None or isinstance(start, Tensor) or start is self.target:
            return start is not None and start is self.target
        path = [start]
        while path:
            node = path[-1]
            ahead = [target_of(edge) for edge in node.edges if edge is not None]
            if any(to is self.target or self.leads.get(to) for to in ahead):
                self.leads[node] = True
            elif later := [to for to in ahead if to not in self.leads and not isinstance(to, Tensor)]:
                path.append(later[0])
                continue
            else:
                self.leads[node] = False
            path.pop()
        return self.leads[start]

    def cuts_before(self, tensor: Tensor) -> dict[Cut, None] | None:
        """The cuts on the way to a tensor, none if it is still connected; None if it does not depend on anything."""
        found = self.reached.get(address(memory_of(tensor._array)))
        if found is None:
            return None
        if self.connected(tensor):
            return {}
        if id(tensor) in self.aliases:
            return {self.aliases[id(tensor)][1]: None}
        return found[1] or {Cut("detach", "detach(), .data or NumPy, before this line,"): None}

    # ---------------------------------------------------------------- watching

    def _begin(self, before: Any) -> Trace:
        """Watch."""
        self.outer, modes.profiler = modes.profiler, self
        modes.hold(self)
        for name in (*LEAVES_AS_NUMBER, "__getitem__", "detach", "data"):
            self.methods[name] = vars(Tensor)[name]
        Tensor.detach = self.watched("detach", self.note_alias)
        data = self.methods["data"]
        Tensor.data = property(lambda tensor: self.note_alias(".data", tensor, data.fget(tensor)), data.fset)
        for name in LEAVES_AS_NUMBER:
            setattr(Tensor, name, self.watched(name, self.note_departure))
        read = self.methods["__getitem__"]
        Tensor.__getitem__ = lambda tensor, key: self.note_choice(key, read(tensor, key))
        return self

    def _end(self, before: Any) -> None:
        """Watch no more."""
        for name, method in self.methods.items():
            setattr(Tensor, name, method)
        if modes.profiler is self:
            modes.profiler = self.outer
        modes.drop(self)

    def watched(self, name: str, note: Callable[[str, Tensor, Any], Any]) -> Callable[..., Any]:
        """A method of Tensor that is noted when it was called."""
        method = self.methods[name]
        return lambda tensor, *args, **kwargs: note(f"{name}()", tensor, method(tensor, *args, **kwargs))

    def note_alias(self, how: str, source: Tensor, out: Any) -> Any:
        """The same memory without history."""
        if self.connected(source):
            self.aliases[id(out)] = out, Cut("detach", how)
        elif id(source) in self.aliases:
            self.aliases[id(out)] = out, self.aliases[id(source)][1]
        return out

    def note_departure(self, how: str, source: Tensor, out: Any) -> Any:
        """A value becomes a Python number or an array."""
        cuts = self.cuts_before(source)
        if cuts is not None:
            self.left += cuts or [Cut("number", how)]
        return out

    def note_choice(self, key: Any, out: Tensor) -> Tensor:
        """Elements were chosen by an index, which is a number to the ops."""
        for index in tensors_in(key):
            cuts = self.cuts_before(index)
            if cuts:
                self.reach(out, cuts)
        return out

    # ---------------------------------------------------------------- called by the op machine and the engine

    def call(self, op: Any, bound: dict[str, Any], out: Any, action: Callable[..., Any]) -> Any:
        """An op."""
        given = [*tensors_in(list(bound.values()))]
        result = action(op, bound, out) if self.outer is None else self.outer.call(op, bound, out, action)
        self.follow(op.name, given, result)
        return result

    def call_inplace(self, op: Any, self_: Any, args: tuple[Any, ...], action: Callable[..., Any]) -> Any:
        """The in-place twin of an op."""
        given = [*tensors_in([self_, *args])]
        result = action(op, self_, args) if self.outer is None else self.outer.call_inplace(op, self_, args, action)
        self.follow(f"{op.name}_", given, result)
        return result

    def run_node(self, node: Any, action: Callable[[], Any], grad: Any = None) -> Any:
        """A backward step, which is not followed."""
        modes.profiler = self.outer
        try:
            return action() if self.outer is None else self.outer.run_node(node, action, grad)
        finally:
            modes.profiler = self

    def follow(self, name: str, given: list[Tensor], result: Any) -> None:
        """Carry what is known of the inputs over to the outputs."""
        known = [(tensor, cuts) for tensor in given if (cuts := self.cuts_before(tensor)) is not None]
        if not known:
            return
        self.calls += 1
        for out in tensors_in(result):
            kept = self.connected(out)
            new = {} if kept or all(cuts for _, cuts in known) else {cut_at(name, out): None}
            if any(address(memory_of(out._array)) == address(memory_of(tensor._array)) for tensor, _ in known):
                if new:
                    self.aliases[id(out)] = out, *new  # a view, where grad mode is off
            else:
                self.reach(out, new | {cut: None for _, cuts in known for cut in cuts})


def cut_at(name: str, out: Tensor) -> Cut:
    """Why a result of something connected has no history."""
    if not is_grad_enabled():
        return Cut("no_grad", name)
    if out.is_floating_point() or out.is_complex():
        return Cut("op", name)
    kind = str(out.dtype).removeprefix("torch.")
    return Cut("integer", f"the cast to {kind}" if name == "_to_copy" else f"{name}, {kind},")


def address(array: Any) -> int:
    """Where memory begins; empty arrays have none to share."""
    return int(array.__array_interface__["data"][0]) if array.size else id(array)
