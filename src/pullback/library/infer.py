"""`infer_schema`: the schema of a Python function, from its annotations."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import Any, NoReturn

import pullback._dtype as dtypes
from pullback._device import device
from pullback._tensor import Tensor
from pullback.library.tags import Tag, tags_of

Number = int | float | bool


def lists_of(kind: Any) -> list[Any]:
    """The ways to write a list of things."""
    return [typing.Sequence[kind], typing.List[kind], GenericAlias(collections.abc.Sequence, (kind,)), list[kind]]  # noqa: UP006


def parameter_types() -> dict[Any, str]:
    """What a parameter may be annotated with, and what a schema calls it."""
    found: dict[Any, str] = {}
    for kind, name, lists, optional_items, optional_lists in (
        (Tensor, "Tensor", True, True, False),
        (int, "SymInt", True, False, True),
        (float, "float", True, False, True),
        (bool, "bool", True, False, True),
        (str, "str", False, False, False),
        (Number, "Scalar", True, False, False),
        (dtypes.dtype, "ScalarType", False, False, False),
        (device, "Device", False, False, False),
    ):
        optional: Any = typing.Optional[kind]  # noqa: UP045
        found |= {kind: name, optional: f"{name}?"}
        if lists:
            found |= dict.fromkeys(lists_of(kind), f"{name}[]")
        if optional_items:
            found |= dict.fromkeys(lists_of(optional), f"{name}?[]")
        if optional_lists:
            found |= dict.fromkeys([typing.Optional[one] for one in lists_of(kind)], f"{name}[]?")  # noqa: UP045
    return found


SUPPORTED_PARAM_TYPES = parameter_types()
SUPPORTED_RETURN_TYPES: dict[Any, str] = {
    Tensor: "Tensor",
    typing.List[Tensor]: "Tensor[]",  # noqa: UP006
    list[Tensor]: "Tensor[]",
    int: "SymInt",
    float: "float",
    bool: "bool",
    Number: "Scalar",
}


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema of a function whose parameters and result are annotated; `mutates_args` names those written to."""
    return Inference(prototype_function, mutates_args, tags_of(tags)).schema(op_name)


class Inference:
    """The schema of one function."""

    def __init__(self, function: Any, mutates_args: Any, tags: tuple[Tag, ...]) -> None:
        self.function = function
        self.signature = inspect.signature(function)
        self.mutates: Any = mutates_args if type(mutates_args) is str else tuple(mutates_args)
        self.inplace, self.out = Tag.inplace in tags, Tag.out in tags
        if self.inplace and self.out:
            raise AssertionError("torch.Tag.inplace and torch.Tag.out are mutually exclusive")
        self.first: tuple[str, str, str] | None = None
        """The first positional parameter: its name, its type and the name of its memory."""
        self.outs: list[tuple[str, str]] = []
        """The parameters written to by an op tagged `out`: the names of their memory and their own."""

    def fail(self, what: str) -> NoReturn:
        """Say what no schema can be made of."""
        raise ValueError(f"infer_schema(func): {what} Got func with signature {self.signature})")

    def schema(self, op_name: str | None) -> str:
        """The text."""
        params = []
        star = False
        for position, (name, parameter) in enumerate(self.signature.parameters.items()):
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                self.fail("We do not support positional-only args, varargs, or varkwargs.")
            if parameter.kind is parameter.KEYWORD_ONLY and not star:
                params.append("*")
                star = True
            params.append(self.parameter(position, name, parameter))
        self.check_mutated()
        returned = self.returned()
        return f"{op_name or ''}({', '.join(params)}) -> {returned}"

    def parameter(self, position: int, name: str, parameter: inspect.Parameter) -> str:
        """One parameter."""
        if parameter.annotation is parameter.empty:
            self.fail(f"Parameter {name} must have a type annotation.")
        kind = self.evaluated(parameter.annotation)
        if kind not in SUPPORTED_PARAM_TYPES:
            self.refuse(name, kind, parameter.annotation)
        text = SUPPORTED_PARAM_TYPES[kind]
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and self.first is None:
            self.first = name, text, f"a{position}"
        written = self.written(name, text)
        if written:
            text = f"Tensor(a{position}!){text.removeprefix('Tensor')}"
        if self.out and written:
            if parameter.kind is not parameter.KEYWORD_ONLY:
                self.fail("torch.Tag.out requires mutable arguments to be keyword-only.")
            if text != f"Tensor(a{position}!)":
                self.fail("torch.Tag.out only supports mutable keyword-only Tensor arguments.")
            self.outs.append((f"a{position}", name))
        default = "" if parameter.default is parameter.empty else f"={self.default(name, parameter.default)}"
        return f"{text} {name}{default}"

    def written(self, name: str, text: str) -> bool:
        """Whether a parameter is written to."""
        if type(self.mutates) is str:
            if self.mutates != "unknown":
                raise ValueError(
                    "mutates_args must either be a sequence of the names of the arguments that are mutated or the "
                    "string 'unknown'. "
                )
            return text.startswith("Tensor")
        if name in self.mutates and not text.startswith("Tensor"):
            self.fail(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
        return name in self.mutates

    def default(self, name: str, value: Any) -> str:
        """A default as schemas write it."""
        if value is None or isinstance(value, (int, float, bool)):
            return str(value)
        if isinstance(value, (str, device)):
            return f'"{value}"'
        if isinstance(value, dtypes.dtype):
            return str(value).removeprefix("torch.")
        self.fail(
            f"Parameter {name} has an unsupported default value type {type(value)}. Please file an issue on GitHub so "
            "we can prioritize this."
        )

    def evaluated(self, annotation: Any) -> Any:
        """An annotation, of which parts may be strings."""
        if isinstance(annotation, str):
            return self.read(annotation)
        origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is not None and any([isinstance(part, str) for part in parts]):
            return GenericAlias(origin, tuple([self.evaluated(part) for part in parts]))
        return annotation

    def read(self, annotation: str) -> Any:
        """The type that a string names where the function was written."""
        try:
            return eval(compile(annotation.strip(), "<annotation>", "eval"), self.function.__globals__)
        except NameError as error:
            self.fail(
                f"Unsupported type annotation {annotation}. It is not a type. ({error}). If you are using 'from "
                "__future__ import annotations', note that annotations are evaluated lazily as strings; make sure all "
                "types referenced in annotations are importable at module scope, not only inside a local function."
            )
        except Exception as error:
            self.fail(f"Unsupported type annotation {annotation}. It is not a type. ({type(error).__name__}: {error})")

    def refuse(self, name: str, kind: Any, annotation: Any) -> NoReturn:
        """A type that no schema has."""
        text = f"Parameter {name} has unsupported type {annotation}. "
        if typing.get_origin(kind) is tuple:
            parts = set(typing.get_args(kind))
            wanted = list[next(iter(parts))] if len(parts) == 1 else None  # type: ignore[misc]
            example = f"For example, {wanted}.\n\n" if wanted in SUPPORTED_PARAM_TYPES else "\n\n"
            text += "We do not support Tuple inputs in schema. As a workaround, please try to use List instead. "
            text += example
        self.fail(f"{text}The valid types are: {SUPPORTED_PARAM_TYPES.keys()}.")

    def check_mutated(self) -> None:
        """Raise if what is said to be written to is no parameter, or not what the tags promise."""
        unknown = set() if type(self.mutates) is str else set(self.mutates) - set(self.signature.parameters)
        if unknown:
            self.fail(
                f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain "
                "the names of all args that the custom op mutates, or just the string 'unknown' if you don't know."
            )
        if self.inplace:
            if self.first is None:
                self.fail("torch.Tag.inplace requires a positional Tensor argument.")
            if self.first[1] != "Tensor":
                self.fail("torch.Tag.inplace requires the first positional argument to be a Tensor.")
            if type(self.mutates) is str or set(self.mutates) != {self.first[0]}:
                self.fail(
                    "torch.Tag.inplace requires mutates_args to contain exactly the first positional argument, got "
                    f"{self.mutates}."
                )
        if self.out and not self.outs:
            self.fail("torch.Tag.out requires at least one mutable keyword-only Tensor argument.")

    def returned(self) -> str:
        """What is returned."""
        annotation = self.evaluated(self.signature.return_annotation)
        if self.out:
            texts = [f"Tensor({alias}!)" for alias, _ in self.outs]
            wanted = Tensor if len(texts) == 1 else tuple[(Tensor,) * len(texts)]  # type: ignore[misc]
            if annotation != wanted and typing.get_args(annotation) != typing.get_args(wanted):
                self.fail("torch.Tag.out requires the return annotation to match its mutable arguments.")
            return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        text = self.result(annotation)
        if self.inplace:
            if text != "Tensor":
                self.fail("torch.Tag.inplace requires the return annotation to be torch.Tensor.")
            assert self.first is not None
            return f"Tensor({self.first[2]}!)"
        return text

    def result(self, annotation: Any) -> str:
        """The annotation of the result as schemas write it."""
        if annotation is None:
            return "()"
        if annotation is inspect.Parameter.empty:
            self.fail("No return type annotation was provided. Please add one.")
        parts = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else (annotation,)
        if any([part not in SUPPORTED_RETURN_TYPES for part in parts]):
            self.fail(f"Return has unsupported type {annotation}. The valid types are: {SUPPORTED_RETURN_TYPES}.")
        if typing.get_origin(annotation) is not tuple:
            return SUPPORTED_RETURN_TYPES[annotation]
        inner = ", ".join([SUPPORTED_RETURN_TYPES[part] for part in parts])
        return f"(({inner}))" if len(parts) == 1 else f"({inner})"
