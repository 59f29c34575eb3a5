"""Derivatives of functions: jacobian and hessian, and their products with vectors."""

from pullback.autograd.functional.matrices import hessian, jacobian
from pullback.autograd.functional.products import hvp, jvp, vhp, vjp

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]
