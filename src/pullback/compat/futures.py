"""`torch.futures`: results that are there, or will be. Nothing runs in the background here."""

from __future__ import annotations

from typing import Any

from pullback.jit.futures import Future

__all__ = ["Future", "collect_all", "wait_all"]


def collect_all(futures: list[Any]) -> Future:
    """A Future of all these, done when the last of them is."""
    whole, left = Future(), [len(futures)]

    def done(_: Any) -> None:
        left[0] -= 1
        if not left[0]:
            failed = [future for future in futures if future._error is not None]
            whole.set_exception(failed[0]._error) if failed else whole.set_result(futures)

    if not futures:
        whole.set_result(futures)
    for future in futures:
        future.add_done_callback(done)
    return whole


def wait_all(futures: list[Any]) -> list[Any]:
    """The results of all, or the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
