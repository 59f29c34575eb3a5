"""Reading a pickle without running it: a small machine that knows data, and calls only what is on its list.

Python's own unpickler calls whatever a file names, and lets a file change the objects it names. This one has no
opcode for either: it builds numbers, strings and containers, calls the functions of `names.FUNCTIONS`, and sets the
attributes of the few classes that carry some.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from pullback.serialization.names import FUNCTIONS, VALUES, safe

PYTHON2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}


class Mark:
    """Where on the stack a group of values begins."""


MARK = Mark()
MOST_COPIES = 16
"""How many times its own length a pickle may have copied."""


class Reader:
    """One pickle: its bytes, the stack, and the values it has numbered."""

    def __init__(self, content: bytes, storage_of: Callable[[Any], Any]) -> None:
        self.content = content
        self.position = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.copies = MOST_COPIES * len(content)
        """How many more elements the functions of the list may copy: what a pickle names again costs it two bytes."""
        self.storage_of = storage_of
        """What a persistent id stands for."""

    def read(self) -> Any:
        """The value the pickle describes; `position` is then just behind it."""
        while True:
            code = self.take(1)[0]
            if code == STOP:
                (value,) = self.stack[-1:] or [MARK]
                if value is MARK:
                    raise UnpicklingError("the pickle ends before its value")
                return value
            action = ACTIONS.get(code)
            if action is None:
                raise UnpicklingError(f"Unsupported operand {code}")
            action(self)

    # ---------------------------------------------------------------- the bytes

    def take(self, count: int) -> bytes:
        """The next bytes."""
        end = self.position + count
        if count < 0 or end > len(self.content):
            raise EOFError("the pickle is cut off")
        self.position, start = end, self.position
        return self.content[start:end]

    def number(self, form: str) -> Any:
        """The next number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        """The next line of text."""
        end = self.content.find(b"\n", self.position)
        if end < 0:
            raise EOFError("the pickle is cut off")
        text = self.content[self.position : end]
        self.position = end + 1
        return text.decode("utf-8")

    # ---------------------------------------------------------------- the stack

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Any:
        """Take the last value."""
        if not self.stack or self.stack[-1] is MARK:
            raise UnpicklingError("the pickle takes a value that is not there")
        return self.stack.pop()

    def top(self, kind: type | tuple[type, ...]) -> Any:
        """The last value, which must be of a kind."""
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise UnpicklingError("the pickle fills something that is not a container")
        return self.stack[-1]

    def since_mark(self) -> list[Any]:
        """Take everything down to the last mark."""
        for i in range(len(self.stack) - 1, -1, -1):
            if self.stack[i] is MARK:
                values = self.stack[i + 1 :]
                del self.stack[i:]
                return values
        raise UnpicklingError("the pickle closes a group that it has not opened")

    # ---------------------------------------------------------------- what opcodes do

    def find(self, module: str, name: str) -> None:
        """Push what a name stands for, if files may use it."""
        key = (PYTHON2.get(module, module), name)
        for known in (FUNCTIONS, VALUES, safe):
            if key in known:
                self.push(known[key])
                return
        if module == "torch" and name.startswith(("float8_", "float4_")):
            raise NotImplementedError(f"tensors of dtype torch.{name} are not available; save them as another dtype")
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {module}.{name} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` "
            "context manager to allowlist this global if you trust this class/function."
        )

    def call(self) -> None:
        """Call a function of the list."""
        arguments, function = self.pop(), self.pop()
        if not any(function is f for f in FUNCTIONS.values()) and not any(function is f for f in safe.values()):
            raise UnpicklingError(f"the pickle calls {called(function)}, which is not allowed")
        if type(arguments) is not tuple:
            raise UnpicklingError("the pickle calls a function with something that is not a tuple")
        if any(function is kind for kind in HASHING):
            for content in arguments:
                check_keys(content)
        if not any(function is f for f in safe.values()):
            for content in arguments:
                self.count_copy(content)
        self.push(function(*arguments))

    def count_copy(self, content: Any) -> None:
        """Refuse a pickle that has the same content copied again and again: memory is to grow with the file."""
        if isinstance(content, (bytes, bytearray, str, tuple, list, dict, set, frozenset)):
            self.copies -= len(content)
            if self.copies < 0:
                raise UnpicklingError("the pickle copies its content too often")
            if type(content) is tuple:
                for part in content:
                    if isinstance(part, dict):  # the attributes of a tensor
                        self.copies -= len(part)

    def make_object(self) -> None:
        """An empty object of a class of the list."""
        arguments, kind = self.pop(), self.pop()
        if kind in (OrderedDict, Counter, set) and arguments == ():
            self.push(kind())
        elif isinstance(kind, type) and any(kind is s for s in safe.values()):
            self.push(kind.__new__(kind, *arguments))
        else:
            raise UnpicklingError(f"the pickle makes an object of {called(kind)}, which is not allowed")

    def set_state(self) -> None:
        """Attributes of an ordered dict (a state_dict carries `_metadata`), or the state of a safe class."""
        state, target = self.pop(), self.top(object)
        if type(target) in (OrderedDict, defaultdict, Counter):
            if type(state) is not dict or not all(type(key) is str for key in state):
                raise UnpicklingError("attributes must be a dict")
            self.count_copy(state)
            vars(target).update(state)
        elif any(type(target) is s for s in safe.values()):
            if hasattr(target, "__setstate__"):
                target.__setstate__(state)
            else:
                vars(target).update(state)
        else:
            raise UnpicklingError(f"the pickle sets the state of {type(target).__name__}, which is not allowed")

    def set_items(self, items: list[Any]) -> None:
        """Put pairs into a dict."""
        target = self.top(dict)
        if len(items) % 2:
            raise UnpicklingError("a key without a value")
        check_keys(items[::2])
        for key, value in zip(items[::2], items[1::2]):
            target[key] = value

    def store(self, index: int) -> None:
        """Number the last value."""
        if not self.stack:
            raise UnpicklingError("the pickle numbers a value that is not there")
        self.memo[index] = self.stack[-1]

    def recall(self, index: int) -> None:
        """Push a numbered value again."""
        if index not in self.memo:
            raise UnpicklingError(f"the pickle has no value number {index}")
        self.push(self.memo[index])

    def tuple_of(self, count: int) -> None:
        """The last few values as a tuple."""
        values = [self.pop() for _ in range(count)]
        self.push(tuple(reversed(values)))


HASHING = (OrderedDict, Counter, set, frozenset, FUNCTIONS["collections", "defaultdict"])
"""What a file may call that takes hashes of its arguments."""
MOST_PARTS = 1000
"""How many parts a key may have: hashing a deep tuple would end the interpreter, hashing a wide one would never end."""


def check_keys(keys: Any) -> Any:
    """Refuse keys whose hash cannot be taken; the keys themselves otherwise."""
    if not isinstance(keys, (list, tuple, set, frozenset)):
        return keys
    for key in keys:
        if isinstance(key, (tuple, frozenset)):
            parts = [key]
            for part in parts:  # the list grows while it is walked
                if isinstance(part, (tuple, frozenset)):
                    parts.extend(part)
                if len(parts) > MOST_PARTS:
                    raise UnpicklingError("a key has too many parts")
        elif isinstance(key, list):  # a pair of a key and its value
            check_keys(key[:1])
    return keys


def called(thing: Any) -> str:
    """The name of what a file wants to use; never its text, which a file can make endless."""
    return repr(thing) if isinstance(thing, type) or callable(thing) else f"a value of {type(thing)!r}"


def pushes(make: Callable[[Reader], Any]) -> Callable[[Reader], None]:
    """An opcode that pushes a value."""
    return lambda reader: reader.push(make(reader))


def proto(reader: Reader) -> None:
    """The version of the format."""
    version = reader.take(1)[0]
    if version > 5:
        raise UnpicklingError(f"unsupported pickle protocol: {version}")


def stack_global(reader: Reader) -> None:
    """A name whose parts are on the stack."""
    name, module = reader.pop(), reader.pop()
    if type(name) is not str or type(module) is not str:
        raise UnpicklingError("a name must be text")
    reader.find(module, name)


def two_lines(reader: Reader) -> None:
    """A name written as two lines."""
    module = reader.line()
    reader.find(module, reader.line())


def text(length: Callable[[Reader], int]) -> Callable[[Reader], None]:
    """Text of a given length."""
    return pushes(lambda reader: reader.take(length(reader)).decode("utf-8", "surrogatepass"))


def raw(length: Callable[[Reader], int]) -> Callable[[Reader], None]:
    """Bytes of a given length."""
    return pushes(lambda reader: reader.take(length(reader)))


def one_byte(reader: Reader) -> int:
    """A length of one byte."""
    return reader.take(1)[0]


def four_bytes(reader: Reader) -> int:
    """A length of four bytes."""
    return int(reader.number("<I"))


def eight_bytes(reader: Reader) -> int:
    """A length of eight bytes."""
    return int(reader.number("<Q"))


STOP = ord(".")
ACTIONS: dict[int, Callable[[Reader], Any]] = {
    0x80: proto,
    0x95: eight_bytes,
    ord("("): pushes(lambda reader: MARK),
    ord("0"): lambda reader: reader.stack.pop() if reader.stack else None,
    ord("1"): lambda reader: reader.since_mark(),
    ord("N"): pushes(lambda reader: None),
    0x88: pushes(lambda reader: True),
    0x89: pushes(lambda reader: False),
    ord("J"): pushes(lambda reader: reader.number("<i")),
    ord("K"): pushes(one_byte),
    ord("M"): pushes(lambda reader: reader.number("<H")),
    0x8A: pushes(lambda reader: int.from_bytes(reader.take(one_byte(reader)), "little", signed=True)),
    ord("G"): pushes(lambda reader: reader.number(">d")),
    ord("X"): text(four_bytes),
    0x8C: text(one_byte),
    0x8D: text(eight_bytes),
    ord("T"): pushes(lambda reader: reader.take(four_bytes(reader)).decode("latin1")),
    ord("U"): pushes(lambda reader: reader.take(one_byte(reader)).decode("latin1")),
    ord("B"): raw(four_bytes),
    ord("C"): raw(one_byte),
    0x8E: raw(eight_bytes),
    ord("}"): pushes(lambda reader: {}),
    ord("]"): pushes(lambda reader: []),
    ord(")"): pushes(lambda reader: ()),
    0x8F: pushes(lambda reader: set()),
    0x85: lambda reader: reader.tuple_of(1),
    0x86: lambda reader: reader.tuple_of(2),
    0x87: lambda reader: reader.tuple_of(3),
    ord("t"): lambda reader: reader.push(tuple(reader.since_mark())),
    0x91: lambda reader: reader.push(frozenset(check_keys(reader.since_mark()))),
    ord("a"): lambda reader: append(reader, [reader.pop()]),
    ord("e"): lambda reader: append(reader, reader.since_mark()),
    ord("s"): lambda reader: set_item(reader),
    ord("u"): lambda reader: reader.set_items(reader.since_mark()),
    0x90: lambda reader: add_to_set(reader, reader.since_mark()),
    ord("q"): lambda reader: reader.store(one_byte(reader)),
    ord("r"): lambda reader: reader.store(four_bytes(reader)),
    0x94: lambda reader: reader.store(len(reader.memo)),
    ord("h"): lambda reader: reader.recall(one_byte(reader)),
    ord("j"): lambda reader: reader.recall(four_bytes(reader)),
    ord("c"): two_lines,
    0x93: stack_global,
    ord("R"): lambda reader: reader.call(),
    0x81: lambda reader: reader.make_object(),
    ord("b"): lambda reader: reader.set_state(),
    ord("Q"): lambda reader: reader.push(reader.storage_of(reader.pop())),
}
"""What each opcode of a pickle does."""


def append(reader: Reader, values: list[Any]) -> None:
    """Put values at the end of a list."""
    reader.top(list).extend(values)


def set_item(reader: Reader) -> None:
    """Put one pair into a dict."""
    value, key = reader.pop(), reader.pop()
    reader.set_items([key, value])


def add_to_set(reader: Reader, values: list[Any]) -> None:
    """Put values into a set."""
    reader.top(set).update(check_keys(values))
