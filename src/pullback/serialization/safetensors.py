"""Tensors in the safetensors format: the functions of `safetensors.torch`, without the package.

A file holds a header and the elements: nothing in it can run. The whole header is checked against the size of the file
before memory is asked for, so a file cannot claim more than it has. `save_file` is atomic.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from pullback import _dtype
from pullback._arrays.packed import packed
from pullback._device import device as as_device
from pullback._dtype import dtype
from pullback._tensor import Tensor, wrap
from pullback.serialization.archive import LITTLE, raw_bytes, swapped
from pullback.serialization.replacing import replaced
from pullback.serialization.safetensors_format import (
    LENGTH_BYTES,
    METADATA,
    Entry,
    Header,
    SafetensorError,
    build_header,
    header_bytes,
    header_length,
    parse_header,
)
from pullback.serialization.shared_memory import check_nothing_is_shared, names_to_drop

if TYPE_CHECKING:
    from pullback.nn import Module

__all__ = [
    "SafetensorError", "load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model",
]  # fmt: skip

DTYPES: dict[str, dtype] = {
    "F64": _dtype.float64, "F32": _dtype.float32, "F16": _dtype.float16, "BF16": _dtype.bfloat16,
    "I64": _dtype.int64, "I32": _dtype.int32, "I16": _dtype.int16, "I8": _dtype.int8, "U8": _dtype.uint8,
    "U16": _dtype.uint16, "U32": _dtype.uint32, "U64": _dtype.uint64, "BOOL": _dtype.bool, "C64": _dtype.complex64,
    "F8_E4M3": _dtype.float8_e4m3fn, "F8_E5M2": _dtype.float8_e5m2, "F8_E8M0": _dtype.float8_e8m0fnu,
}  # fmt: skip
"""The dtypes of the format that exist here."""
NAMES = {kind: name for name, kind in DTYPES.items()}
FRAMEWORKS = ("pt", "torch", "pytorch")
ARRAY_FRAMEWORKS = ("np", "numpy")
BACKENDS = ("mmap", "pread")
NOT_CONTIGUOUS = (
    "You are trying to save a non contiguous tensor: `{}` which is not allowed. It either means you are trying to save "
    "tensors which are reference of each other in which case it's recommended to save only the full tensors, and "
    "reslice at load time, or simply call `.contiguous()` on your tensor to pack it before saving."
)


# ------------------------------------------------------------------ writing


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file that holds these tensors.

    Args:
        tensors: contiguous tensors that share no memory, by name.
        metadata: texts to keep beside them.
    """
    header = header_of(tensors, metadata)
    return b"".join([header_bytes(header), *contents(header, tensors)])


def save_file(
    tensors: dict[str, Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None
) -> None:
    """Write tensors to a file; a crash or a full disk leaves the file that was there before.

    Args:
        tensors: contiguous tensors that share no memory, by name.
        filename: where the file goes.
        metadata: texts to keep beside them.
    """
    filename = as_path(filename)
    header = header_of(tensors, metadata)
    beginning = header_bytes(header)
    try:
        with replaced(filename) as file:
            file.write(beginning)
            for content in contents(header, tensors):
                file.write(content)
    except OSError as error:
        reason = f"{error.strerror} (os error {error.errno}) at path {filename!r}"
        raise SafetensorError(f"Error while serializing: I/O error: {reason}") from error


def header_of(tensors: Any, metadata: Any) -> Header:
    """The header of a file with these tensors, if they can be written."""
    check_tensors(tensors)
    check_texts(metadata)
    described = {name: (NAMES[tensor.dtype], tuple(tensor.shape)) for name, tensor in tensors.items()}
    return build_header(described, metadata)


def check_tensors(tensors: Any) -> None:
    """Refuse what the format cannot hold."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
    check_nothing_is_shared(tensors)
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"argument 'tensor_dict': '{type(name).__name__}' object is not an instance of 'str'")
        if name == METADATA:
            raise ValueError(f"`{METADATA}` is the format's own name and cannot be a tensor's")
        if not tensor.is_contiguous():
            raise ValueError(NOT_CONTIGUOUS.format(name))
        if tensor.dtype not in NAMES:
            raise KeyError(tensor.dtype)


def check_texts(metadata: Any) -> None:
    """Metadata maps texts to texts."""
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        raise TypeError(f"argument 'metadata': '{type(metadata).__name__}' object is not an instance of 'dict'")
    for text in [*metadata.keys(), *metadata.values()]:
        if not isinstance(text, str):
            raise TypeError(f"argument 'metadata': '{type(text).__name__}' object is not an instance of 'str'")


def contents(header: Header, tensors: Mapping[str, Tensor]) -> Iterator[memoryview]:
    """The elements of the tensors in the order of the header, each smallest byte first."""
    for name in header.entries:
        array = tensors[name]._array.view(np.ndarray)
        # The order of memory is not always that of the elements: a dimension of size one may have any stride.
        flat = array.reshape(-1)
        yield raw_bytes(flat if LITTLE else swapped(flat.view(np.uint8), flat.dtype))


# ------------------------------------------------------------------ reading


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file."""
    if not isinstance(data, bytes):
        raise TypeError(f"argument 'bytes': '{type(data).__name__}' object is not an instance of 'bytes'")
    length = header_length(data[:LENGTH_BYTES], len(data))
    header = parse_header(data[LENGTH_BYTES : LENGTH_BYTES + length], len(data))
    content = np.frombuffer(data, np.uint8)[header.data_start :]

    def tensor(name: str, entry: Entry) -> Tensor:
        return tensor_of(name, entry, lambda target: np.copyto(target, content[entry.start : entry.stop]))

    return {name: tensor(name, entry) for name, entry in header.entries.items()}


def load_file(
    filename: str | os.PathLike[str], device: str | int | None = "cpu", *, backend: str = "mmap"
) -> dict[str, Tensor]:
    """The tensors of a file.

    Args:
        filename: the file.
        device: where the tensors go; there is only the CPU.
        backend: how the bytes are had; either of "mmap" and "pread" reads them into memory of their own.
    """
    with safe_open(filename, framework="pt", device=device, backend=backend) as file:
        return file.get_tensors()


def tensor_of(name: str, entry: Entry, fill: Callable[[np.ndarray[Any, Any]], None]) -> Tensor:
    """A tensor on memory of its own, whose bytes `fill` writes."""
    kind = dtype_of(name, entry)
    array = np.empty(entry.shape, np.uint8 if kind is _dtype.bool else kind.stored)
    content = array.reshape(-1).view(np.uint8)
    fill(content)
    if not LITTLE:
        content[:] = swapped(content, kind.stored)
    # A truth value is one or zero here, whatever other byte a file says.
    return wrap(array != 0 if kind is _dtype.bool else packed(array, kind.stored) if kind.packed else array)


def dtype_of(name: str, entry: Entry) -> dtype:
    """The dtype here of a tensor in a file."""
    if entry.dtype not in DTYPES:
        raise NotImplementedError(
            f"tensor `{name}` has the dtype {entry.dtype}, which does not exist here; the other tensors of the file "
            "can be had one by one with safe_open(...).get_tensor(name)"
        )
    return DTYPES[entry.dtype]


class safe_open:
    """A file whose tensors are read when they are asked for.

    Args:
        filename: the file.
        framework: "pt" for tensors, "np" for NumPy's arrays.
        device: where the tensors go; there is only the CPU.
        backend: with "mmap", `get_slice` reads only the part of a tensor that is asked for.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str,
        device: str | int | None = "cpu",
        *,
        backend: str = "mmap",
    ) -> None:
        filename = as_path(filename)
        if framework not in FRAMEWORKS + ARRAY_FRAMEWORKS:
            raise SafetensorError(f"framework {framework} is invalid")
        if backend not in BACKENDS:
            raise SafetensorError(f'backend "{backend}" is invalid (expected one of: "mmap", "pread")')
        check_device(device)
        try:
            file: BinaryIO = open(filename, "rb")  # noqa: SIM115
        except FileNotFoundError:
            raise FileNotFoundError(f"No such file or directory: {filename}") from None
        self._file: BinaryIO | None = file
        self._arrays = framework in ARRAY_FRAMEWORKS
        self._maps = backend == "mmap"
        try:
            size = os.fstat(file.fileno()).st_size
            length = header_length(file.read(LENGTH_BYTES), size)
            self._header = parse_header(file.read(length), size)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def close(self) -> None:
        """Close the file; tensors that were read stay."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def keys(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(self._open_header().entries)

    def offset_keys(self) -> list[str]:
        """The names of the tensors, in the order of their bytes in the file."""
        return list(self._open_header().entries)

    def metadata(self) -> dict[str, str] | None:
        """The texts kept beside the tensors."""
        texts = self._open_header().metadata
        return None if texts is None else dict(texts)

    def get_tensor(self, name: str) -> Any:
        """One tensor, read from the file."""
        entry = self._entry(name)
        return self._given(tensor_of(name, entry, lambda target: self._read(entry, target)))

    def get_tensors(self) -> dict[str, Any]:
        """All tensors, in the order of their bytes in the file."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> SafeSlice:
        """One tensor that is not read yet: index it, and the part is."""
        return SafeSlice(self, name, self._entry(name))

    def _open_header(self) -> Header:
        if self._file is None:
            raise SafetensorError("File is closed")
        return self._header

    def _entry(self, name: str) -> Entry:
        entries = self._open_header().entries
        if name not in entries:
            raise SafetensorError(f"File does not contain tensor {name}")
        return entries[name]

    def _read(self, entry: Entry, target: np.ndarray[Any, Any]) -> None:
        """Fill memory with the bytes of a tensor; there is no more of it than of the file: the header was checked."""
        file = self._file
        assert file is not None
        file.seek(self._header.data_start + entry.start)
        if file.readinto(target) != len(target):  # type: ignore[attr-defined]
            raise SafetensorError("Error while deserializing: the file has become shorter since it was opened")

    def _mapped(self, name: str, entry: Entry) -> Tensor:
        """A tensor whose bytes are read when they are looked at."""
        kind, length = dtype_of(name, entry), entry.stop - entry.start
        if not self._maps or length == 0 or not LITTLE:
            return tensor_of(name, entry, lambda target: self._read(entry, target))
        assert self._file is not None
        position = self._header.data_start + entry.start
        content = np.memmap(self._file, np.uint8, "c", position, (length,)).view(np.ndarray)
        array = content.view(np.uint8 if kind is _dtype.bool else kind.stored).reshape(entry.shape)
        return wrap(packed(array, kind.stored) if kind.packed else array)

    def _given(self, tensor: Tensor) -> Any:
        return tensor._array if self._arrays else tensor


class SafeSlice:
    """A tensor of an open file; an index reads that part."""

    __slots__ = ("_entry", "_file", "_name")

    def __init__(self, file: safe_open, name: str, entry: Entry) -> None:
        self._file, self._name, self._entry = file, name, entry

    def get_shape(self) -> list[int]:
        """The sizes of the whole tensor."""
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """The dtype as the format names it."""
        return self._entry.dtype

    def __getitem__(self, index: Any) -> Any:
        """The part of the tensor that `tensor[index]` is, in memory of its own."""
        self._file._open_header()
        part = self._file._mapped(self._name, self._entry)[index]
        # Truth values are still bytes where they are mapped, so that only those of the part are read.
        is_bool = self._entry.dtype == "BOOL"
        return self._file._given(wrap(part._array != 0) if is_bool else part.clone())


def check_device(device: Any) -> None:
    """Tensors can only be put on the CPU."""
    if device is None:
        return
    if isinstance(device, bool) or not isinstance(device, (str, int, as_device)):
        raise SafetensorError(f"device {device} is invalid")
    try:
        kind = "cuda" if isinstance(device, int) else as_device(device).type
    except RuntimeError:
        raise SafetensorError(f"device {device} is invalid") from None
    if kind != "cpu":
        raise RuntimeError(f"tensors can only be loaded to the CPU here, not to {device!r}: use device='cpu'")


def as_path(filename: Any) -> str:
    """The name of a file as text."""
    if not isinstance(filename, (str, os.PathLike)):
        kind = type(filename).__name__
        raise TypeError(f"argument 'filename': expected str or os.PathLike object, not {kind}")
    return os.fsdecode(filename)


# ------------------------------------------------------------------ modules


def save_model(
    model: Module,
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Write the parameters and buffers of a module; of those that share memory, the one that covers it is written.

    Args:
        model: the module.
        filename: where the file goes.
        metadata: texts to keep beside the tensors; names left out are added, each with the name kept for it.
        force_contiguous: write tensors that are not contiguous as if they were.
    """
    state = model.state_dict()
    texts = dict(metadata) if metadata is not None else None
    for kept, dropped in names_to_drop(state).items():
        for name in dropped:
            texts = {} if texts is None else texts
            texts.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(dict(state), filename, metadata=texts)
    except ValueError as error:
        hint = " Or use save_model(..., force_contiguous=True), read the docs for potential caveats."
        raise ValueError(str(error) + hint) from None


def load_model(
    model: Module,
    filename: str | os.PathLike[str],
    strict: bool = True,
    device: str | int = "cpu",
    *,
    backend: str = "mmap",
) -> tuple[set[str], list[str]]:
    """Read a file into a module: (names of the module the file has not, names of the file the module has not).

    Args:
        model: the module.
        filename: the file.
        strict: raise if there are such names.
        device: where the tensors go; there is only the CPU.
        backend: how the bytes are had.
    """
    state = load_file(filename, device=device, backend=backend)
    dropped = names_to_drop(model.state_dict(), preferred=state)
    found = model.load_state_dict(state, strict=False)
    missing, unexpected = set(found.missing_keys), list(found.unexpected_keys)
    for name in [name for names in dropped.values() for name in names]:
        if name in missing:
            missing.remove(name)
        else:
            unexpected.append(name)
    if strict and (missing or unexpected):
        error = f"Error(s) in loading state_dict for {type(model).__name__}:"
        for what, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                quoted = ", ".join(f'"{name}"' for name in sorted(names))
                error += f"\n    {what} key(s) in state_dict: {quoted}"
        raise RuntimeError(error)
    return missing, unexpected
