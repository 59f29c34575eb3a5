"""Kullback-Leibler divergences: the registry, and the formulas of the distributions here."""

from pullback.distributions.kl import across, matrices, same_family
from pullback.distributions.kl.registry import _KL_REGISTRY as _KL_REGISTRY
from pullback.distributions.kl.registry import kl_divergence as kl_divergence
from pullback.distributions.kl.registry import register_kl as register_kl

__all__ = ["register_kl", "kl_divergence"]
