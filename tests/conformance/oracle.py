"""Torch without a search that takes longer than most comparisons: importing this cuts it.

Torch notes every seed, with a formatted stack, for three kinds of devices that may come later; none comes here.
"""

import torch

torch.random._manual_seed_impl = lambda seed: torch.random.default_generator.manual_seed(int(seed))
