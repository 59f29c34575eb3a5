"""`torch._C.DispatchKey` and `DispatchKeySet`: the kinds of a tensor as torch's dispatcher names them.

There is no dispatcher here. Programs name the keys to register kernels of ops they define, and ask a tensor for its
own to see what it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import pullback
from pullback import Tensor

KEYS = """
Undefined=0 Dense=1 Quantized=5 Sparse=8 SparseCsr=9 NestedTensor=10 BackendSelect=11 Python=13
FuncTorchDynamicLayerBackMode=14 Functionalize=15 Conjugate=16 Negative=17 ZeroTensor=18 ADInplaceOrView=19
AutogradOther=20 AutogradFunctionality=21 AutogradNestedTensor=22 AutocastCPU=24 AutocastXPU=27 AutocastIPU=28
AutocastHPU=29 AutocastMPS=31 AutocastCUDA=32 AutocastPrivateUse1=33 FuncTorchBatched=34 FuncTorchVmapMode=36
FuncTorchGradWrapper=39 PythonTLSSnapshot=41 FuncTorchDynamicLayerFrontMode=42 PreDispatch=45
PythonDispatcher=46 StartOfDenseBackends=48 CPU=49 CUDA=50 HIP=51 XLA=52 MPS=53 IPU=54 XPU=55 HPU=56 VE=57
Lazy=58 MTIA=59 MAIA=60 PrivateUse1=61 PrivateUse2=62 PrivateUse3=63 Meta=64 EndOfDenseBackends=64
StartOfQuantizedBackends=65 QuantizedCPU=66 QuantizedCUDA=67 QuantizedHIP=68 QuantizedXLA=69 QuantizedMPS=70
QuantizedIPU=71 QuantizedXPU=72 QuantizedHPU=73 QuantizedVE=74 QuantizedLazy=75 QuantizedMTIA=76
QuantizedMAIA=77 QuantizedPrivateUse1=78 QuantizedPrivateUse2=79 QuantizedPrivateUse3=80 QuantizedMeta=81
EndOfQuantizedBackends=81 StartOfSparseBackends=82 SparseCPU=83 SparseCUDA=84 SparseHIP=85 SparseXLA=86
SparseMPS=87 SparseIPU=88 SparseXPU=89 SparseHPU=90 SparseVE=91 SparseLazy=92 SparseMTIA=93 SparseMAIA=94
SparsePrivateUse1=95 SparsePrivateUse2=96 SparsePrivateUse3=97 SparseMeta=98 EndOfSparseBackends=98
StartOfSparseCsrBackends=99 SparseCsrCPU=100 SparseCsrCUDA=101 SparseCsrHIP=102 SparseCsrXLA=103
SparseCsrMPS=104 SparseCsrIPU=105 SparseCsrXPU=106 SparseCsrHPU=107 SparseCsrVE=108 SparseCsrLazy=109
SparseCsrMTIA=110 SparseCsrMAIA=111 SparseCsrPrivateUse1=112 SparseCsrPrivateUse2=113 SparseCsrPrivateUse3=114
SparseCsrMeta=115 EndOfSparseCsrBackends=115 StartOfNestedTensorBackends=116 NestedTensorCPU=117
NestedTensorCUDA=118 NestedTensorHIP=119 NestedTensorXLA=120 NestedTensorMPS=121 NestedTensorIPU=122
NestedTensorXPU=123 NestedTensorHPU=124 NestedTensorVE=125 NestedTensorLazy=126 NestedTensorMTIA=127
NestedTensorMAIA=128 NestedTensorPrivateUse1=129 NestedTensorPrivateUse2=130 NestedTensorPrivateUse3=131
NestedTensorMeta=132 EndOfNestedTensorBackends=132 StartOfAutogradFunctionalityBackends=133 AutogradCPU=134
AutogradCUDA=135 AutogradHIP=136 AutogradXLA=137 AutogradMPS=138 AutogradIPU=139 AutogradXPU=140 AutogradHPU=141
AutogradVE=142 AutogradLazy=143 AutogradMTIA=144 AutogradMAIA=145 AutogradPrivateUse1=146
AutogradPrivateUse2=147 AutogradPrivateUse3=148 AutogradMeta=149 EndOfAutogradFunctionalityBackends=149
Autograd=150 CompositeImplicitAutograd=151 FuncTorchBatchedDecomposition=152
CompositeImplicitAutogradNestedTensor=153 CompositeExplicitAutograd=154
CompositeExplicitAutogradNonFunctional=155
"""
"""torch's keys with their numbers; the first names of equal numbers count."""


class Key:
    """What a key can do besides being one of a list."""

    value: int

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value


make: Any = Enum  # its members come from the list
DispatchKey: Any = make(
    "DispatchKey",
    {name: int(number) for name, _, number in [entry.partition("=") for entry in KEYS.split()]},
    type=Key,
    module="torch._C",
)
BACKENDS = [
    key.name
    for key in DispatchKey
    if DispatchKey.StartOfDenseBackends.value < key.value <= DispatchKey.EndOfDenseBackends.value
]


def priority(key: Any) -> int:
    """Where a key stands among the others: keys of backends count as what they do."""
    name = key.name
    for prefix, functionality in (
        ("Autograd", "AutogradFunctionality"),
        ("SparseCsr", "SparseCsr"),
        ("Sparse", "Sparse"),
        ("Quantized", "Quantized"),
        ("NestedTensor", "NestedTensor"),
        ("", "Dense"),
    ):
        if name.startswith(prefix) and name.removeprefix(prefix) in BACKENDS:
            return DispatchKey[functionality].value  # type: ignore[no-any-return]
    return key.value  # type: ignore[no-any-return]


class DispatchKeySet:
    """A set of keys, the most important last."""

    __slots__ = ("keys",)
    __module__ = "torch._C"

    def __init__(self, key: Any = DispatchKey.Undefined) -> None:
        self.keys: frozenset[Any] = frozenset({key} - {DispatchKey.Undefined})

    def has(self, key: Any) -> bool:
        """Whether a key is in it."""
        return key in self.keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with one key more."""
        return keyset(self.keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return keyset(self.keys - {key})

    def highestPriorityTypeId(self) -> Any:
        """The key that would be asked first."""
        return max(self.keys, key=priority, default=DispatchKey.Undefined)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return keyset(self.keys | other.keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return keyset(self.keys & other.keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return keyset(self.keys - other.keys)

    def __eq__(self, other: object) -> bool:
        return self.keys == other.keys if isinstance(other, DispatchKeySet) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.keys)

    def __iter__(self) -> Any:
        return iter(sorted(self.keys, key=priority))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join([key.name for key in self])})"


def keyset(keys: Iterable[Any]) -> DispatchKeySet:
    """A set of these keys."""
    made = DispatchKeySet()
    made.keys = frozenset(keys)
    return made


def _dispatch_keys(tensor: Any) -> DispatchKeySet:
    """The keys of a tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_dispatch_keys(): argument must be a Tensor, not {type(tensor).__name__}")
    if tensor.device.type == "meta":
        names = ["Meta", "ADInplaceOrView", "AutogradMeta"]
    else:
        backend = {pullback.strided: "CPU", pullback.sparse_coo: "SparseCPU"}.get(tensor.layout, "SparseCsrCPU")
        names = [backend, "ADInplaceOrView", "AutogradCPU", "AutocastCPU"]
    if tensor.is_conj():
        names.append("Conjugate")
    if tensor.is_neg():
        names.append("Negative")
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        names += ["Python", "PythonTLSSnapshot"]
    return keyset([DispatchKey[name] for name in names])
