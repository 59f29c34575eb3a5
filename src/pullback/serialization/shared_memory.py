"""Which tensors of a state dict lie on the same memory: a format without aliases cannot hold both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from pullback._tensor import Tensor

SHARED = """
            Some tensors share memory, this will lead to duplicate memory on disk and potential differences when \
loading them again: {}.
            A potential way to correctly save your model is to use `save_model`.
            More information at https://huggingface.co/docs/safetensors/torch_shared_tensors
            """
NONE_COVERS = (
    "Error while trying to find names to remove to save state dict, but found no suitable name to keep for saving "
    "amongst: {}. None is covering the entire storage.Refusing to save/load the model since you could be storing much "
    "more memory than needed. Please refer to https://huggingface.co/docs/safetensors/torch_shared_tensors for more "
    "information. Or open an issue."
)


def check_nothing_is_shared(tensors: Mapping[str, Tensor]) -> None:
    """Raise if two tensors overlap."""
    failing = [spelled(names) for names in groups(tensors) if len(names) > 1]
    if failing:
        raise RuntimeError(SHARED.format(f"[{', '.join(failing)}]"))


def names_to_drop(tensors: Mapping[str, Tensor], preferred: Collection[str] = ()) -> dict[str, list[str]]:
    """Per name that is kept, the names that need not be written, because they lie on its memory.

    Args:
        tensors: a state dict.
        preferred: names to keep rather than others that would do as well.
    """
    dropped: dict[str, list[str]] = {}
    for names in groups(tensors):
        covering = sorted(name for name in names if covers_its_storage(tensors[name]))
        if not covering:
            raise RuntimeError(NONE_COVERS.format(spelled(names)))
        kept = next((name for name in covering if name in preferred), covering[0])
        if len(names) > 1:
            dropped[kept] = sorted(name for name in names if name != kept)
    return dropped


def groups(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """The names, those of tensors that overlap together; tensors without memory are in no group."""
    on_storage: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for name, tensor in tensors.items():
        storage = tensor.untyped_storage()
        if storage.nbytes():
            start = tensor.data_ptr()
            on_storage[storage.data_ptr()].append((start, start + span(tensor), name))
    found: list[list[str]] = []
    for areas in on_storage.values():
        end = -1
        for start, stop, name in sorted(areas):
            if start >= end:
                found.append([])
            found[-1].append(name)
            end = max(end, stop)
    return found


def span(tensor: Tensor) -> int:
    """The bytes from the first element of a tensor to behind its last."""
    if tensor.numel() == 0:
        return 0
    last: int = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.dtype.itemsize


def covers_its_storage(tensor: Tensor) -> bool:
    """Whether a tensor is all of its memory."""
    storage = tensor.untyped_storage()
    return bool(tensor.data_ptr() == storage.data_ptr() and tensor.nbytes == storage.nbytes())


def spelled(names: list[str]) -> str:
    """Names as a set, always in the same order."""
    return "{" + ", ".join(repr(name) for name in sorted(names)) + "}"
