"""Optimizers whose state is spread over ranks."""

from pullback.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer
