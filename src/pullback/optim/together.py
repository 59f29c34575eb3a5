"""All parameters of an optimizer in one call: the loops of `fused` for each of them, in one compiled function.

A step collects the arrays in generated Python. The function takes them if they have the sizes and dtypes of those it
was made for, and has looked at all of them before it changes one; the numbers of a group are read once. Whatever
does not fit is updated parameter by parameter, as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback import Tensor
from pullback._versions import INFERENCE, PRISTINE, counter_of
from pullback.kernels import compiled
from pullback.optim import fused

if TYPE_CHECKING:
    from pullback.optim.rule import Group, Rule, State

AFTER = 20
"""Steps after which the function is made: for fewer ones it is not worth its compilation."""
MOST = 1000
"""Parameters of one function."""


class Together:
    """The function of one optimizer, made when it has done some steps."""

    __slots__ = ("left", "run")

    def __init__(self) -> None:
        self.left = AFTER
        self.run: Callable[..., bool] | None = None

    def __call__(self, rule: Rule) -> bool:
        """Do a step; False if nothing was done."""
        if self.run is not None:
            if self.run(rule.param_groups, rule.state):
                return True
            self.run = None  # something is not as it was; it may be so for good
        elif self.left:
            self.left -= 1
            if not self.left:
                self.run, self.left = function_of(rule), AFTER
        return False


def function_of(rule: Rule) -> Callable[..., bool] | None:
    """`run(param_groups, state)` for an optimizer as it is now; None if it is not for us."""
    groups = rule.param_groups
    parts = [part_of(rule, group) for group in groups]
    if None in parts or not 1 < sum([len(group["params"]) for group in groups]) <= MOST:
        return None
    kinds = {part.kind for part in parts if part is not None}
    if len(kinds) > 1:
        return None
    updating = getattr(kinds.pop(), "updating", None)
    here = updating is None  # else arrays of another device, whose counters are here all the same
    lines = [f"{', '.join([f'g{nr}' for nr in range(len(parts))])}, = groups"]
    given, counts, numbers, written = [], [], [], []
    for nr, part in enumerate(parts):
        assert part is not None
        params = [f"p{nr}_{i}" for i in range(len(part.sizes))]
        lines.append(f"{', '.join(params)}, = g{nr}['params']")
        tallies = []
        for i, p in enumerate(params):
            names = [f"s{nr}_{i}_{j}" for j in range(len(part.state))]
            if names:
                lines.append(f"s = state[{p}]")
                lines.append(f"if len(s) != {len(names)}: return False")
                lines += [f"{name} = s[{key!r}]" for name, key in zip(names, part.state, strict=True)]
            else:
                lines.append(f"if state.get({p}): return False")
            of = dict(zip(part.state, names, strict=True))
            changed = [p, *[of[key] for key in part.arrays], *[of[key] for key in part.counters]]
            counts += [f"{name}._counter" for name in changed]
            arrays = [f"{name}._array" for name in changed]
            given += [arrays[0], f"{p}._grad._array", *(arrays[1:] if here else arrays[1 : part.many - 1])]
            for j, array in enumerate([] if here else arrays[part.many - 1 :]):
                written.append(f"{array}[...] = n{nr}[{part.form.passed + j}]")
            tallies.append("(" + "".join([f"{of[key]}._array.item(), " for key in part.counters]) + ")")
        if part.counters:
            lines.append(f"c = {tallies[0]}")
            lines += [f"if {one} != c: return False" for one in tallies[1:]]
        lines.append(f"n{nr} = numbers{nr}(g{nr}{', *c' if part.counters else ''})")
        lines.append(f"if n{nr} is None: return False")
        numbers.append(f"*n{nr}")
    lines.append(f"counts = ({', '.join(counts)},)")
    lines.append("if INFERENCE in counts: return False")
    lines.append(f"if not kernel({', '.join([*given, *numbers])}, 1, 1): return False")
    lines += written
    lines += ["try:", "    for count in counts: count[0] += 1"]
    lines.append(f"except TypeError: count_rest(({', '.join([name.split('.')[0] for name in counts])},), counts)")
    lines.append("return True")
    body = "\n        ".join(lines)
    source = f"def run(groups, state):\n    try:\n        {body}\n    except UNLIKE:\n        return False"
    space: dict[str, Any] = {
        "INFERENCE": INFERENCE,
        "count_rest": count_rest,
        "UNLIKE": (AttributeError, KeyError, ValueError),
    }
    if here:
        space["kernel"] = compiled.room("pointwise.update").together([part.kernel for part in parts])  # type: ignore[union-attr]
    else:
        space["kernel"] = updating.together(parts)  # type: ignore[union-attr]
    space |= {f"numbers{nr}": part.form.numbers for nr, part in enumerate(parts)}  # type: ignore[union-attr]
    exec(compile(source, "<pullback optimizer>", "exec"), space)
    return space.pop("run")  # type: ignore[no-any-return]


def count_rest(tensors: tuple[Any, ...], counts: tuple[Any, ...]) -> None:
    """Count the write to the first tensor whose memory nobody has written to, and to those after it."""
    for tensor in tensors[next(place for place, count in enumerate(counts) if count is PRISTINE) :]:
        counter_of(tensor)[0] += 1


class Part:
    """One group: what its parameters have in common.

    `many` is how many arrays a parameter has, with its gradient; `told` how many numbers the function is given for it.
    """

    def __init__(self, form: fused.Form, dtype: str, state: State, sizes: list[int], kind: Any) -> None:
        self.form, self.sizes, self.state, self.kind = form, sizes, list(state), kind
        self.counters = [name for name, value in state.items() if not value.ndim]
        self.arrays = [name for name in state if name not in self.counters]
        kinds = [fused.DTYPES[state[name].dtype] for name in self.counters]
        self.dtype, self.many, self.told = np.dtype(dtype), 2 + len(self.arrays), form.passed + len(kinds)
        self.kernel = (form.results, dtype, self.many, sizes, kinds, form.passed)


def part_of(rule: Rule, group: Group) -> Part | None:
    """A group whose parameters have one dtype, one kind of state and gradients; None for others."""
    params = group["params"]
    if group.get("differentiable") or group.get("capturable") or not params:
        return None
    dtype = fused.DTYPES.get(params[0].dtype)
    first, kind = rule.state.get(params[0]) or {}, type(params[0]._array)
    if kind is not np.ndarray and getattr(kind, "updating", None) is None:
        return None
    if dtype is None or not all([isinstance(value, Tensor) for value in first.values()]):
        return None
    for p in params:
        state = rule.state.get(p) or {}
        if p._grad is None or not p.ndim or p.dtype != params[0].dtype or list(state) != list(first):
            return None
        if type(p._array) is not kind or (type(p._grad) is not Tensor if kind is np.ndarray else lies_elsewhere(p)):
            return None
        if any([not isinstance(v, Tensor) or bool(v.ndim) != bool(first[name].ndim) for name, v in state.items()]):
            return None
    form = fused.form_of(rule, group, dtype, first)
    return None if form is None else Part(form, dtype, first, [p._array.size for p in params], kind)


def lies_elsewhere(p: Tensor) -> bool:
    """True if the gradient of a parameter on another device is no array of the same kind."""
    assert p._grad is not None
    return type(p._grad._array) is not type(p._array)
