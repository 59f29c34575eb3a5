"""torch.functional: some functions of the torch namespace under a second address."""

from pullback._op.declare import spaces as _spaces

_NAMES = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod",
    "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank",
    "tensordot", "unique", "unique_consecutive", "unravel_index",
)  # fmt: skip

globals().update({name: _spaces["torch"][name] for name in _NAMES})
