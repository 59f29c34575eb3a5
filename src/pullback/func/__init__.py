"""Functions of functions: vmap, grad, vjp, jvp, Jacobians and Hessians, and modules as functions. They compose."""

from pullback.func.forward import jvp, linearize
from pullback.func.jacobians import hessian, jacfwd, jacrev
from pullback.func.modules import (
    functional_call,
    functionalize,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from pullback.func.reverse import grad, grad_and_value, vjp
from pullback.func.sparse import hessian_sparse, jacobian_sparse
from pullback.func.vmap import vmap

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "hessian_sparse",
    "jacfwd",
    "jacobian_sparse",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
