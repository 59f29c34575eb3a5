"""Optimizers that treat every parameter by one rule: `start` makes its state, `update` is the rule."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.kernels import compiled
from pullback.optim import fused
from pullback.optim.optimizer import Optimizer, has_hooks
from pullback.optim.together import Together

State = dict[str, Any]
Group = dict[str, Any]
Tensors = list[Any]
"""What a step as a function takes: a tensor for each parameter, or None."""


class Rule(Optimizer):
    """The loop over groups and parameters. Complex parameters are updated as pairs of real numbers.

    A subclass says what an optimizer is:
        start(parameter, group) .................. the state before the first update
        update(parameter, grad, state, group) .... one update, in place

    `update` is a function of its arguments: what it does to elements is traced once and compiled (see fused.py).
    """

    complex_as_real = True

    @functools.cached_property
    def _together(self) -> Together:
        """What updates all parameters in one call."""
        return Together()

    def start(self, parameter: Tensor, group: Group) -> State:
        """The state of a parameter before its first update."""
        return {}

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        raise NotImplementedError

    def update_on_device(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """The same with a counter of steps that is on the device of the parameter, so that a graph can capture it."""
        raise NotImplementedError(
            f"{type(self).__name__}(capturable=True): its steps are counted on the host, so that a CUDA graph cannot "
            "capture one; use Adam or AdamW, or capture the forward and the backward pass and call step() after each "
            "replay"
        )

    def _shown(self) -> str:
        """What `show` prints."""
        return fused.explained(self)

    def check_sparse(self, group: Group) -> None:
        """Raise unless there are updates by sparse gradients."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def update_sparse(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update by a sparse gradient."""
        self.check_sparse(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient; `closure` computes the loss anew and is called first."""
        with torch.enable_grad() if self.defaults.get("differentiable", False) else torch.no_grad():
            return self.update_all(closure)

    def _in_one_call(self) -> bool:
        """A step by the one function, if there is nothing else to it."""
        kind = type(self)
        if (
            self._together.run is None
            or "step" in self.__dict__  # a scheduler counts the steps
            or getattr(kind.step, "__wrapped__", None) is not Rule.step
            or kind.update_all is not Rule.update_all
            or self.defaults.get("differentiable", False)
            or has_hooks(self)
            or is_captured()
        ):
            return False
        return self._together(self)

    def update_all(self, closure: Callable[[], Any] | None) -> Any:
        """The loop itself."""
        uncounted = [group for group in self.param_groups if not group.get("capturable")]
        if is_captured() and "capturable" in self.defaults and uncounted:
            raise RuntimeError(
                f"Attempting CUDA graph capture of step() for an instance of {type(self).__name__} but param_groups' "
                "capturable is False."
            )
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        elif self._together(self):
            return None
        room = compiled.room("pointwise.update")
        for group in self.param_groups:
            if group.get("capturable"):
                self.update_captured(group)
                continue
            options = group if group.get("differentiable") else as_numbers(group)
            in_one_pass = None
            if room is not None and not group.get("differentiable"):
                in_one_pass = fused.Step(self, options, room.SHARE)
            grads = [parameter.grad for parameter in group["params"]]
            for grad in grads:
                if type(grad) is not Tensor and grad is not None and grad.layout is not torch.strided:
                    self.check_sparse(options)  # before anything is changed
                    break
            for parameter, grad in zip(group["params"], grads, strict=True):
                if grad is None:
                    continue
                state = self.state.get(parameter) or self.start(parameter, options)
                if in_one_pass is not None and in_one_pass.update(parameter, grad, state):
                    if state:
                        self.state[parameter] = state
                    continue
                if group.get("maximize"):
                    grad = -grad
                if grad.layout is not torch.strided:
                    self.update_sparse(parameter, grad, state, options)
                    if state:
                        self.state[parameter] = state
                    continue
                if self.complex_as_real and parameter.is_complex():
                    real = {k: as_real(v) for k, v in state.items()}
                    self.update(as_real(parameter), as_real(grad), real, options)
                else:
                    self.update(parameter, grad, state, options)
                if state:
                    self.state[parameter] = state
            if in_one_pass is not None:
                in_one_pass.finish()
        return loss

    def update_captured(self, group: Group) -> None:
        """A step of a group that a graph may capture: nothing is read on the host."""
        check_capturable(group["params"])
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            state = self.state.get(parameter) or self.start(parameter, group)
            if state["step"].device != parameter.device:
                state["step"] = state["step"].to(parameter.device, torch.float32)
            grad = -parameter.grad if group.get("maximize") else parameter.grad
            self.update_on_device(parameter, grad, state, group)
            self.state[parameter] = state


def as_real(value: Any) -> Any:
    """A complex tensor as pairs of real numbers on the same memory; anything else as it is."""
    return torch.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


def as_numbers(group: Group) -> Group:
    """A group whose learning rate or decay rates were given as tensors, with numbers instead."""
    given = [group.get("lr"), group.get("weight_decay"), *group.get("betas", ())]
    if not any(isinstance(value, Tensor) for value in given):
        return group
    out = {k: v.item() if isinstance(v, Tensor) else v for k, v in group.items()}
    if "betas" in group:
        out["betas"] = tuple([b.item() if isinstance(b, Tensor) else b for b in group["betas"]])
    return out


def step_count() -> Tensor:
    """A counter of steps: a tensor, so that it is saved and loaded with the rest of the state."""
    return torch.tensor(0.0, dtype=torch.float64 if torch.get_default_dtype() == torch.float64 else torch.float32)


def next_step(state: State) -> float:
    """Count a step; the number of this one."""
    state["step"] += 1
    return state["step"].item()  # type: ignore[no-any-return]


def zeros_like(parameter: Tensor) -> Tensor:
    """Zeros in the memory order of the parameter."""
    return torch.zeros_like(parameter, memory_format=torch.preserve_format)


# ------------------------------------------------------------------ steps as functions


def step_by(
    rule: type[Rule],
    params: Tensors,
    grads: Tensors,
    states: dict[str, list[Any]],
    group: Group,
    grad_scale: Any = None,
    found_inf: Any = None,
) -> None:
    """One step of a rule, with the state of each parameter in lists; a list may be shorter where nothing is kept.

    `grad_scale` and `found_inf` come from a GradScaler: gradients are divided by the one, and the other skips a step.
    """
    if found_inf is not None and found_inf.item():
        return
    one = rule.__new__(rule)  # without groups and state of its own
    captured = bool(group.get("capturable"))
    options = group if captured else as_numbers(group)
    if captured:
        check_capturable(params)
    for i, (parameter, grad) in enumerate(zip(params, grads, strict=True)):
        if grad_scale is not None:
            grad.div_(grad_scale)
        grad = -grad if group.get("maximize") else grad
        state = {name: kept[i] for name, kept in states.items() if i < len(kept) and kept[i] is not None}
        if grad.layout is not torch.strided:
            one.check_sparse(options)
            one.update_sparse(parameter, grad, state, options)
        elif captured:
            one.update_on_device(parameter, grad, state, options)
        elif rule.complex_as_real and parameter.is_complex():
            one.update(as_real(parameter), as_real(grad), {k: as_real(v) for k, v in state.items()}, options)
        else:
            one.update(parameter, grad, state, options)
        for name, value in state.items():
            if i < len(states[name]):
                states[name][i] = value


def check_steps(steps: list[Any]) -> None:
    """Counters of steps are tensors, so that they can be counted up."""
    if not all([isinstance(step, Tensor) for step in steps]):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")


def is_captured() -> bool:
    """Whether a CUDA graph is being captured, which would do the same step again and again."""
    graphs = sys.modules.get("pullback.cuda.graphs")
    return graphs is not None and bool(graphs.capturing)


def check_capturable(params: Any) -> None:
    """Raise unless all parameters are on a device that has graphs."""
    if not all([p.device.type == "cuda" for p in params]):
        raise AssertionError(
            "If capturable=True, params and state_steps must be on supported devices: "
            "['cuda', 'xpu', 'hpu', 'privateuseone', 'xla']."
        )


# ------------------------------------------------------------------ checks of options


def check_lr(lr: Any, foreach: Any = None, capturable: bool = False) -> None:
    """A learning rate is a number >= 0, or a tensor with one element."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not lr >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_not_negative(**options: Any) -> None:
    """Options that must not be negative, under the names messages give them."""
    for name, value in options.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {'epsilon' if name == 'eps' else name} value: {value}")


def check_betas(betas: tuple[Any, Any]) -> None:
    """Decay rates lie in [0, 1)."""
    for index, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def check_fused(fused: Any, foreach: Any, differentiable: bool) -> None:
    """`fused` and `foreach` choose between implementations elsewhere; here there is one, but nonsense is refused."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
