"""gradcheck and gradgradcheck: are the derivatives of a function those that finite differences give?

`torch.autograd.gradcheck` is both this package and the function, as programs use both.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pullback._dtype import complex128, float64
from pullback.autograd.api import grad
from pullback.autograd.gradcheck import further
from pullback.autograd.gradcheck.compare import Check, compare_parts, compare_quickly, compare_slowly
from pullback.autograd.gradcheck.errors import GradcheckError
from pullback.autograd.gradcheck.numerical import Tensors, as_tuple, wanting
from pullback.autograd.gradcheck.old import get_analytical_jacobian, get_numerical_jacobian
from pullback.autograd.view import wants_grad
from pullback.ops.create.filled import empty
from pullback.ops.shape.complex_views import view_as_complex
from pullback.ops.shape.interleave import repeat_interleave

__all__ = ["GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "gradcheck", "gradgradcheck"]


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """True if the gradients of `func` agree with finite differences; otherwise GradcheckError.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: double precision, with requires_grad where a derivative is to be checked.
        eps: how far to move each element.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: False to return False instead.
        nondet_tol: how much two runs of the same backward may differ.
        check_undefined_grad: also check that undefined gradients count as zeros.
        check_grad_dtypes: also check the dtypes of gradients.
        check_batched_grad: also check several gradients at once.
        check_batched_forward_grad: the same for forward mode.
        check_forward_ad: also check forward mode.
        check_backward_ad: check backward mode.
        fast_mode: check one random product instead of whole Jacobians.
        masked: whether zeros given for zeros may be off by a tolerance.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    given = as_tuple(inputs)
    compare_all = compare_quickly if fast_mode else compare_slowly

    def run() -> None:
        check_inputs(given)
        results = func(*given)
        outputs = further.differentiable(results)
        check = Check(eps, atol, rtol, nondet_tol, check_grad_dtypes)
        if check_backward_ad:
            compare_parts(compare_all, func, given, results, outputs, check)
        if check_forward_ad:
            forward = Check(eps, atol, rtol, nondet_tol, check_grad_dtypes, forward=True)
            for one, parts, out in compare_parts(compare_all, func, given, results, outputs, forward):
                if check_undefined_grad:
                    further.check_undefined_forward(one, parts, out)
        if check_batched_forward_grad:
            further.check_batched_forward(func, given)
        if not check_backward_ad:
            return
        if check_batched_grad:
            for i, out in enumerate(outputs):
                further.check_batched_backward(given, out, i)
        further.check_zero_in_zero_out(outputs, given, bool(masked))
        if check_undefined_grad:
            further.check_undefined_backward(func, outputs, given)

    try:
        run()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """True if the second derivatives of `func` agree with finite differences of the first; otherwise GradcheckError.

    `grad_outputs` multiplies the first derivatives; without it random numbers do. The rest is as for gradcheck.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    given = as_tuple(inputs)
    if grad_outputs is None:
        outputs = further.differentiable(func(*given))
        starts = tuple([random_start(out, gen_non_contig_grad_outputs) for out in outputs])
    else:
        starts = as_tuple(grad_outputs)
    count = len(starts)
    moving = [i for i, _ in wanting(given)]
    moving_starts = {i for i, start in enumerate(starts) if wants_grad(start)}

    def slope(*args: Any) -> Tensors:
        own = tuple([x.requires_grad_() if i in moving else x for i, x in enumerate(args[:-count])])
        outs = further.differentiable(func(*own))
        v = tuple([x.requires_grad_() if i in moving_starts else x for i, x in enumerate(args[-count:])])
        grads = grad(outs, tuple([own[i] for i in moving]), v, create_graph=True, allow_unused=True)
        return tuple([g for g in grads if g is not None])

    return gradcheck(
        slope,
        given + starts,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def random_start(out: Any, noncontiguous: bool) -> Any:
    """Uniform random numbers between -1 and 1 like an output."""
    shape = tuple(out.shape)
    if out.is_complex():
        start = view_as_complex(empty(*shape, 2, dtype=out.real.dtype, device=out.device).uniform_(-1, 1))
    else:
        kind = out.dtype if out.is_floating_point() else float64
        start = empty(shape, dtype=kind, device=out.device).uniform_(-1, 1)
    if noncontiguous and start.numel() > 1:
        start = repeat_interleave(start, 2, dim=-1)[..., ::2]
    return start.requires_grad_(True)


def check_inputs(inputs: Tensors) -> None:
    """Raise for inputs that finite differences cannot move; warn about those they cannot move exactly."""
    tensors = wanting(inputs)
    for i, tensor in tensors:
        if tensor.dtype not in (float64, complex128):  # See note: gradcheck
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=2,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
    if not tensors:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


class CallablePackage(ModuleType):
    """This package, callable as the function of the same name."""

    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = CallablePackage
