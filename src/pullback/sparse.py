"""torch.sparse: products, sums and softmax of sparse tensors."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pullback._op.declare import spaces as _spaces
from pullback.ops import load_all as _load_all

if _TYPE_CHECKING:
    from pullback._stubs.sparse import *  # noqa: F403

_load_all()
globals().update(_spaces["sparse"])


class check_sparse_tensor_invariants:
    """Whether the parts of sparse tensors are checked: they always are; this only remembers what it is told."""

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.before: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """What was last asked for."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Ask for checks."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Ask for none; indices outside are refused all the same."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        if self.before is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for "
                "context nesting."
            )
        self.before = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *error: object) -> None:
        check_sparse_tensor_invariants._enabled = bool(self.before)
        self.before = None

    def __call__(self, mth: _Any) -> _Any:
        def test_mth(*args: _Any, **kwargs: _Any) -> _Any:
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return test_mth
