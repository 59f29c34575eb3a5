"""Schemas of ops: `my::scale(Tensor x, float by=1.) -> Tensor`, read from text and shown as torch shows them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

from pullback._device import device
from pullback.library.types import (
    FORMATS,
    NAMED,
    OLD_NAMES,
    SCALAR_TYPES,
    DeviceObjType,
    FloatType,
    IntType,
    JitType,
    ListType,
    OptionalType,
    OtherType,
    TupleType,
)

# ------------------------------------------------------------------ arguments


class AliasInfo:
    """Whose memory a tensor shares, and whether it is written to."""

    __slots__ = ("after_set", "before_set", "is_write")

    def __init__(self, before: set[str], after: set[str], is_write: bool) -> None:
        self.before_set, self.after_set, self.is_write = before, after, is_write

    def __str__(self) -> str:
        text = "|".join(sorted(self.before_set)) + "!" * self.is_write
        return text if self.after_set == self.before_set else f"{text} -> {'|'.join(sorted(self.after_set))}"


class Argument:
    """An argument, or a result, of an op."""

    __slots__ = ("N", "_default", "alias_info", "kwarg_only", "name", "type", "written")

    def __init__(
        self,
        name: str,
        type: JitType,
        written: str,
        alias_info: AliasInfo | None,
        default: Any = ...,
        kwarg_only: bool = False,
        length: int | None = None,
    ) -> None:
        self.name, self.type, self.written, self.alias_info = name, type, written, alias_info
        self._default, self.kwarg_only, self.N = default, kwarg_only, length

    @property
    def real_type(self) -> JitType:
        """The type; torch's own name for one of symbolic sizes is not shown either."""
        return self.type

    @property
    def default_value(self) -> Any:
        """The default; None if there is none."""
        return None if self._default is ... else self._default

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self._default is not ...

    @property
    def is_out(self) -> bool:
        """Whether it is written to and given by name."""
        return self.kwarg_only and self.alias_info is not None and self.alias_info.is_write

    def __str__(self) -> str:
        text = f"{self.written} {self.name}".rstrip()
        default = self._default
        if default is ...:
            return text
        if self.N is not None and isinstance(default, list) and default and default == default[:1] * self.N:
            default = default[0]  # one number stands for all
        return f"{text}={shown(default, self.type)}"

    def __repr__(self) -> str:
        return f"<torch.Argument object at {id(self):#x}>"


def shown(value: Any, type: JitType | None = None) -> str:
    """A default as torch writes it."""
    if isinstance(value, str):
        return value if isinstance(type, IntType) else f'"{value}"'
    if isinstance(value, float):
        text = f"{value:.17g}"
        return text + "." if re.fullmatch(r"-?\d+", text) else text
    if isinstance(value, list):
        return f"[{', '.join([shown(item) for item in value])}]"
    return str(value)


class FunctionSchema:
    """What an op takes and gives."""

    __slots__ = ("arguments", "is_vararg", "name", "overload_name", "returns", "text")

    def __init__(self, name: str, overload: str, arguments: list[Argument], returns: list[Argument], text: str) -> None:
        self.name, self.overload_name, self.arguments, self.returns, self.text = (
            name,
            overload,
            arguments,
            returns,
            text,
        )
        self.is_vararg = "..." in text

    @property
    def is_mutable(self) -> bool:
        """Whether it writes to any of its arguments."""
        return any([a.alias_info is not None and a.alias_info.is_write for a in self.arguments])

    def _is_view_op(self) -> bool:
        """Whether a result shares memory with an argument that is not written to."""
        aliased = any([r.alias_info is not None and not r.alias_info.is_write for r in self.returns])
        return aliased and not self.is_mutable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


def text_of(name: str, overload: str, arguments: list[Argument], returns: list[Argument], vararg: bool) -> str:
    """The schema as torch prints it."""
    parts, star = [], False
    for argument in arguments:
        if argument.kwarg_only and not star:
            parts.append("*")
            star = True
        parts.append(str(argument))
    if vararg:
        parts.append("...")
    given = [str(r) for r in returns]
    single = len(given) == 1 and not given[0].startswith("(")
    result = given[0] if single else f"({', '.join(given)})"
    return f"{name}{'.' + overload if overload else ''}({', '.join(parts)}) -> {result}"


# ------------------------------------------------------------------ reading

TOKEN = re.compile(
    r"\s*(?:(?P<op>->|\.\.\.|[()\[\],=?!*|.:])|(?P<string>'[^']*'|\"[^\"]*\")"
    r"|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<ident>[A-Za-z_]\w*)|(?P<other>\S))"
)
UNKNOWN_TYPE = (
    "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full "
    "list, please see https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func :\n"
)


class Token(NamedTuple):
    """A word of a schema."""

    kind: str
    text: str
    at: int


class Reader:
    """Reads one schema."""

    def __init__(self, text: str, start: int = 0) -> None:
        self.text = text
        self.tokens = [
            Token(m.lastgroup or "", m[m.lastgroup or 0], m.start(m.lastgroup or 0))
            for m in TOKEN.finditer(text, start)
            if m.lastgroup
        ]
        self.tokens.append(Token("eof", "eof", len(text)))
        self.place = 0

    @property
    def now(self) -> Token:
        """The next word."""
        return self.tokens[self.place]

    def take(self) -> Token:
        """Read a word."""
        token = self.now
        self.place += token.kind != "eof"
        return token

    def given(self, text: str) -> bool:
        """Read a word if it is this one."""
        if self.now.kind == "op" and self.now.text == text:
            self.place += 1
            return True
        return False

    def want(self, text: str) -> Token:
        """Read this word, or this kind of one."""
        token = self.now
        if (token.text if token.kind == "op" else token.kind) != text:
            self.fail(text)
        return self.take()

    def fail(self, wanted: str) -> NoReturn:
        """Say what was expected."""
        token = self.now
        found = token.kind if token.kind in ("eof", "number", "ident") else token.text
        raise RuntimeError(f"expected {wanted} but found '{found}' here:\n{self.text}{self.mark(token)}")

    def mark(self, token: Token) -> str:
        """The line below the text that points at a word."""
        if token.kind == "eof":
            return ""
        return "\n" + " " * token.at + "~" * len(token.text) + " <--- HERE\n"

    def aliasing(self) -> AliasInfo | None:
        """`(a!)` behind a type."""
        if not (self.now.text == "(" and self.now.kind == "op"):
            return None
        self.take()
        before, write = {self.label()}, False
        while self.given("|"):
            before.add(self.label())
        write = self.given("!")
        after = before
        if self.given("->"):
            after = {self.label()}
            while self.given("|"):
                after.add(self.label())
        self.want(")")
        return AliasInfo(before, after, write)

    def label(self) -> str:
        """A set of aliases."""
        if self.given("*"):
            return "*"
        return self.want("ident").text

    def type(self) -> tuple[JitType, str, AliasInfo | None, int | None]:
        """A type: what it is, as it is printed, its aliases and its length."""
        if self.given("("):
            inner = []
            while not self.given(")"):
                inner.append(self.type())
                self.given(",")
            return TupleType([one[0] for one in inner]), f"({', '.join([one[1] for one in inner])})", None, None
        token = self.now
        name = self.want("ident").text
        if name == "__torch__":
            while self.given("."):
                name += "." + self.want("ident").text
        found = OtherType(name) if name.startswith("__torch__") else NAMED.get(name)
        if found is None:
            raise RuntimeError(f"{UNKNOWN_TYPE}{self.text}{self.mark(token)}")
        written, alias, length = name, None, None
        if name in ("Dict", "Future", "RRef", "Union", "Await") and self.given("("):
            inner = []
            while not self.given(")"):
                inner.append(self.type())
                self.given(",")
            written = f"{name}({', '.join([one[1] for one in inner])})"
            found = OtherType(f"{name}[{', '.join([str(one[0]) for one in inner])}]")
        alias = self.aliasing()
        if alias is not None:
            written += f"({alias})"
        while True:
            if self.given("["):
                if self.now.kind == "number":
                    length = int(self.take().text)
                self.want("]")
                found = ListType(found)
                written += f"[{'' if length is None else length}]"
                more = self.aliasing()
                if more is not None:
                    alias, written = more, f"{written}({more})"
            elif self.given("?"):
                found, written = OptionalType(found), written + "?"
            else:
                return found, written, alias, length

    def default(self, type: JitType, written: str) -> Any:
        """The value behind `=`."""
        while isinstance(type, OptionalType):
            type = type.element
        if self.now.kind == "ident" and self.now.text == "None":
            self.take()
            return None
        if isinstance(type, ListType):
            return self.items(type, written)
        return self.value(type, written)

    def items(self, type: ListType, written: str) -> Any:
        """A list; where its length is known, one number stands for all."""
        sized = re.search(r"\[(\d+)\]", written)
        if self.now.text != "[" and sized:
            return [self.value(type.element, written)] * int(sized[1])
        self.want("[")
        items = []
        while not self.given("]"):
            items.append(self.default(type.element, written))
            self.given(",")
        return items

    def value(self, type: JitType, written: str) -> Any:
        """One value."""
        token = self.now
        if token.kind == "string":
            text = self.take().text[1:-1]
            return device(text) if isinstance(type, DeviceObjType) else text
        if token.kind == "ident":
            if token.text in ("True", "False"):
                self.take()
                return token.text == "True"
            name = OLD_NAMES.get(token.text, token.text)
            if written.startswith("ScalarType") and name in SCALAR_TYPES:
                self.take()
                return SCALAR_TYPES.index(name)
            if token.text in FORMATS:
                self.take()
                return FORMATS[token.text]
        if token.kind == "number":
            text = self.take().text
            if isinstance(type, FloatType):
                return float(text)
            return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
        raise RuntimeError(
            f"\ninvalid numeric default value:\n{self.text}{self.mark(Token('', '~', token.at + len(token.text)))}"
        )

    def arguments(self) -> tuple[list[Argument], bool]:
        """What stands between the parentheses, and whether more may follow."""
        self.want("(")
        out: list[Argument] = []
        keyword_only = vararg = False
        if self.given(")"):
            return out, vararg
        while True:
            if self.given("*"):
                keyword_only = True
            elif self.given("..."):
                vararg = True
            else:
                type, written, alias, length = self.type()
                name = self.want("ident").text
                default = self.default(type, written) if self.given("=") else ...
                out.append(Argument(name, type, written, alias, default, keyword_only, length))
            if self.given(")"):
                return out, vararg
            if not self.given(","):
                self.fail(")")

    def results(self) -> list[Argument]:
        """What stands behind the arrow."""
        if not (self.now.kind == "op" and self.now.text == "("):
            type, written, alias, length = self.type()
            name = self.take().text if self.now.kind == "ident" else ""
            return [Argument(name, type, written, alias, length=length)]
        self.take()
        out = []
        while not self.given(")"):
            type, written, alias, length = self.type()
            name = self.take().text if self.now.kind == "ident" else ""
            out.append(Argument(name, type, written, alias, length=length))
            if not self.given(",") and self.now.text != ")":
                self.fail(")")
        return out


NAME = re.compile(r"\s*(?:(?P<space>\w+)::)?(?P<name>\w+)(?:\.(?P<overload>\w+))?")


def parse_schema(text: str, space: str = "") -> FunctionSchema:
    """Read a schema; its name gets a namespace if it has none."""
    head = NAME.match(text)
    if head is None or head.end() == len(text):
        raise RuntimeError("Tried to parse a function schema but only the operator name was given")
    reader = Reader(text, head.end())
    arguments, vararg = reader.arguments()
    reader.want("->")
    returns = reader.results()
    if reader.now.kind != "eof":
        reader.fail("eof")
    where, overload = head["space"] or space, head["overload"] or ""
    name = f"{where}::{head['name']}" if where else head["name"]
    overload = "" if overload == "default" else overload
    return FunctionSchema(name, overload, arguments, returns, text_of(name, overload, arguments, returns, vararg))
