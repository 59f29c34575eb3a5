"""L-BFGS: Newton's method with an inverse Hessian remembered as the last few steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.optim.line_search import _cubic_interpolate as _cubic_interpolate
from pullback.optim.line_search import _strong_wolfe as _strong_wolfe
from pullback.optim.optimizer import Optimizer, Params
from pullback.optim.rule import as_real


class LBFGS(Optimizer):
    """Minimises a closure that computes the loss anew; all parameters are one long vector."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = dict(
            lr=lr,
            max_iter=max_iter,
            max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
            line_search_fn=line_search_fn,
        )
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self.parameters = self.param_groups[0]["params"]

    def flat_grad(self) -> Tensor:
        """All gradients as one vector; zeros where there is none."""
        parts = []
        for p in self.parameters:
            part = p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)
            parts.append(as_real(part).reshape(-1))
        return torch.cat(parts, 0)

    def move(self, t: Any, direction: Tensor) -> None:
        """Add t times the direction to the parameters."""
        offset = 0
        for p in self.parameters:
            real = as_real(p)
            count = real.numel()
            real.add_(direction[offset : offset + count].view_as(real), alpha=t)
            offset += count

    def evaluate(self, closure: Callable[[], Any], x: list[Tensor], t: float, d: Tensor) -> tuple[float, Tensor]:
        """Loss and gradient t along the direction; the parameters stay at x."""
        self.move(t, d)
        loss, grad = float(closure()), self.flat_grad()
        for p, value in zip(self.parameters, x):
            p.copy_(value)
        return loss, grad

    @torch.no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Several iterations; `closure` clears the gradients, computes the loss and calls backward."""
        closure = torch.enable_grad()(closure)
        group = self.param_groups[0]
        lr = group["lr"].item() if isinstance(group["lr"], Tensor) else group["lr"]
        tolerance_change = group["tolerance_change"]
        search = group["line_search_fn"]
        state = self.state[self.parameters[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        original_loss = closure()
        loss = float(original_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self.flat_grad()
        if grad.abs().max() <= group["tolerance_grad"]:
            return original_loss

        d, t = state.get("d"), state.get("t")
        history = {name: state.get(name) for name in ("old_dirs", "old_stps", "ro", "H_diag")}
        previous_grad, previous_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        iteration = 0
        while iteration < group["max_iter"]:
            iteration += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d = grad.neg()
                history = {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1}
            else:
                remember(history, grad.sub(previous_grad), d.mul(t), group["history_size"])
                d = direction(history, grad, state.setdefault("al", [None] * group["history_size"]))
            if previous_grad is None:
                previous_grad = grad.clone()
            else:
                previous_grad.copy_(grad)
            previous_loss = loss

            t = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(d)
            if slope > -tolerance_change:
                break
            tried = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                x = [p.clone() for p in self.parameters]
                loss, grad, t, tried = _strong_wolfe(
                    lambda x, t, d: self.evaluate(closure, x, t, d),
                    x,
                    t,
                    d,
                    loss,
                    grad,
                    slope,
                    max_ls=group["max_eval"] - evaluations,
                )
                self.move(t, d)
                converged = grad.abs().max() <= group["tolerance_grad"]
            else:
                self.move(t, d)
                converged = False
                if iteration != group["max_iter"]:
                    loss = float(closure())
                    grad = self.flat_grad()
                    converged = grad.abs().max() <= group["tolerance_grad"]
                    tried = 1
            evaluations += tried
            state["func_evals"] += tried
            if (
                iteration == group["max_iter"]
                or evaluations >= group["max_eval"]
                or converged
                or d.mul(t).abs().max() <= tolerance_change
                or abs(loss - previous_loss) < tolerance_change
            ):
                break
        state.update(d=d, t=t, **history, prev_flat_grad=previous_grad, prev_loss=previous_loss)
        return original_loss


def remember(history: dict[str, Any], y: Tensor, s: Tensor, history_size: int) -> None:
    """Keep a step s and the change y of the gradient over it, if the curvature along it is positive."""
    curvature = y.dot(s)
    if curvature <= 1e-10:
        return
    if len(history["old_dirs"]) == history_size:
        for name in ("old_dirs", "old_stps", "ro"):
            history[name].pop(0)
    history["old_dirs"].append(y)
    history["old_stps"].append(s)
    history["ro"].append(1.0 / curvature)
    history["H_diag"] = curvature / y.dot(y)


def direction(history: dict[str, Any], grad: Tensor, al: list[Any]) -> Tensor:
    """The two-loop recursion: minus the remembered inverse Hessian times the gradient. `al` is scratch space."""
    changes, steps, ro = history["old_dirs"], history["old_stps"], history["ro"]
    q = grad.neg()
    for i in reversed(range(len(changes))):
        al[i] = steps[i].dot(q) * ro[i]
        q.add_(changes[i], alpha=-al[i])
    r = torch.mul(q, history["H_diag"])
    for i in range(len(changes)):
        beta = changes[i].dot(r) * ro[i]
        r.add_(steps[i], alpha=al[i] - beta)
    return r
