"""Steps as functions: the rules of the optimizers with parameters, gradients and state in lists of one's own.

`torch.optim.adamw.adamw` and the others; those of Adam and SGD stand beside their classes.
"""

from __future__ import annotations

from typing import Any

from pullback import Tensor
from pullback.optim.adam import Adam as Adam
from pullback.optim.adam import AdamW
from pullback.optim.adam import adam as adam
from pullback.optim.adam_relatives import Adamax, NAdam, RAdam
from pullback.optim.averaged import ASGD, Rprop
from pullback.optim.matrix import Adafactor
from pullback.optim.rule import Tensors, check_steps, step_by
from pullback.optim.scaled import Adadelta, Adagrad, RMSprop
from pullback.optim.sgd import SGD as SGD
from pullback.optim.sgd import sgd as sgd
from pullback.optim.sparse import SparseAdam


def adamw(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    amsgrad: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of AdamW with a state of one's own."""
    check_steps(state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "max_exp_avg_sq": max_exp_avg_sqs}
    group = dict(
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        amsgrad=amsgrad,
        decoupled_weight_decay=True,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
    )
    step_by(AdamW, params, grads, states, group, grad_scale, found_inf)


def adagrad(
    params: Tensors,
    grads: Tensors,
    state_sums: Tensors,
    state_steps: Tensors,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of Adagrad with a state of one's own."""
    check_steps(state_steps)
    states = {"step": state_steps, "sum": state_sums}
    group = dict(
        lr=lr, weight_decay=weight_decay, lr_decay=lr_decay, eps=eps, maximize=maximize, differentiable=differentiable
    )
    step_by(Adagrad, params, grads, states, group, grad_scale, found_inf)


def adadelta(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    acc_deltas: Tensors,
    state_steps: Tensors,
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of Adadelta with a state of one's own."""
    check_steps(state_steps)
    states = {"step": state_steps, "square_avg": square_avgs, "acc_delta": acc_deltas}
    group = dict(
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
    )
    step_by(Adadelta, params, grads, states, group)


def adamax(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_infs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step of Adamax with a state of one's own."""
    check_steps(state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_inf": exp_infs}
    group = dict(
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
    )
    step_by(Adamax, params, grads, states, group)


def nadam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    mu_products: Tensors,
    state_steps: Tensors,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of NAdam with a state of one's own."""
    check_steps(state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "mu_product": mu_products}
    group = dict(
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
    )
    step_by(NAdam, params, grads, states, group)


def radam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: Tensors,
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of RAdam with a state of one's own."""
    check_steps(state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    group = dict(
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
    )
    step_by(RAdam, params, grads, states, group)


def rmsprop(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    grad_avgs: Tensors,
    momentum_buffer_list: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of RMSprop with a state of one's own."""
    check_steps(state_steps)
    states = {
        "step": state_steps,
        "square_avg": square_avgs,
        "grad_avg": grad_avgs,
        "momentum_buffer": momentum_buffer_list,
    }
    group = dict(
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
    )
    step_by(RMSprop, params, grads, states, group)


def rprop(
    params: Tensors,
    grads: Tensors,
    prevs: Tensors,
    step_sizes: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of Rprop with a state of one's own."""
    check_steps(state_steps)
    states = {"step": state_steps, "prev": prevs, "step_size": step_sizes}
    group = dict(
        etas=(etaminus, etaplus),
        step_sizes=(step_size_min, step_size_max),
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
    )
    step_by(Rprop, params, grads, states, group)


def asgd(
    params: Tensors,
    grads: Tensors,
    axs: Tensors,
    mus: Tensors,
    etas: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of ASGD with a state of one's own."""
    states = {"step": state_steps, "ax": axs, "mu": mus, "eta": etas}
    group = dict(
        lambd=lambd,
        lr=lr,
        t0=t0,
        alpha=alpha,
        weight_decay=weight_decay,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
    )
    step_by(ASGD, params, grads, states, group)


def adafactor(
    params: Tensors,
    grads: Tensors,
    row_vars: Tensors,
    col_vars: Tensors,
    variances: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: Any,
    beta2_decay: float,
    weight_decay: float,
    eps1: float,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of Adafactor with a state of one's own."""
    check_steps(state_steps)
    states = {"step": state_steps, "row_var": row_vars, "col_var": col_vars, "variance": variances}
    group = dict(d=d, lr=lr, beta2_decay=beta2_decay, weight_decay=weight_decay, eps=(eps1, eps2), maximize=maximize)
    step_by(Adafactor, params, grads, states, group, grad_scale, found_inf)


def sparse_adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """One step of SparseAdam with a state of one's own; the numbers of the steps have been counted already."""
    states = {"step": [step - 1 for step in state_steps], "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    step_by(SparseAdam, params, grads, states, dict(lr=lr, betas=(beta1, beta2), eps=eps, maximize=maximize))
