"""CheckpointError and the advice that comes with it."""

from __future__ import annotations

from typing import Any

TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint‑debug mode globally.
"""

LINE = "-" * 78


class CheckpointError(RuntimeError):
    """What was computed again is not what was computed before."""


def different_number(forward: int, again: int) -> str:
    """The text for a recomputation that saved more or fewer tensors."""
    return (
        "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
        f"recomputation.\nNumber of tensors saved during forward: {forward}\n"
        f"Number of tensors saved during recomputation: {again}.\n{TIP}"
    )


def different_metadata(pairs: list[tuple[int, Any, Any]]) -> str:
    """The text for tensors that came back with another shape, dtype or device."""
    listed = "".join(
        f"tensor at position {i}:\nsaved metadata: {before}\nrecomputed metadata: {after}\n"
        for i, before, after in pairs
    )
    return (
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
        f"forward pass.\n{listed}.\n{TIP}"
    )


TOO_MANY = (
    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward "
    f"pass.\n{TIP}"
)
UNPACKED_TWICE = (
    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
    "ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with details on your "
    "use case."
)


def with_logs(forward: list[Any], again: list[Any]) -> str:
    """The text in debug mode: every op of both runs and where it was called."""

    def traces(label: str, log: list[Any]) -> str:
        parts = [
            f"{text}   ({i} of {len(log)} in {label})\n\n{''.join(stack)}\n\n" for i, (text, stack) in enumerate(log, 1)
        ]
        return "".join(parts)

    def ops(log: list[Any]) -> str:
        return "\n".join(text for text, _ in log)

    return (
        " An error happened while unpacking tensors; dumping logs of latest computation\n"
        "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
        "Scroll all the way down for guidance on how to navigate these logs.\n\n"
        f"{LINE}\n1. Stack traces of the operators that ran in the original forward\n{LINE}\n\n"
        f"{traces('original', forward)}\n"
        f"{LINE}\n2. Stack traces of the operators that ran during recomputation\n{LINE}\n\n"
        f"{traces('recompute', again)}\n"
        f"{LINE}\n3. Log of operators in the original forward and recomputation\n{LINE}\n\n"
        f"Operations executed during the original forward:\n\n{ops(forward)}\n\n"
        f"Operations executed during recomputation:\n\n{ops(again)}\n\n"
        f"{LINE}\n ERROR: Detected non-determinism while running activation checkpointing\n\n"
        " The tensors saved by the recomputation are not those of the original forward. Compare the two lists of\n"
        " operators above to see where they part, and find the line of code in the stack traces.\n"
    )
