"""The Python array API standard, 2025.12, on tensors, for libraries written for any array.

`tensor.__array_namespace__()` gives this module. Its functions have the standard's names, signatures and rules of
promotion, and are differentiable wherever torch's are. Tensors themselves stay torch's: `x.size` is a method (the
number of elements is `x.numel()`), and `x.to(device)` stands for `x.to_device(device)`.
"""

from pullback import (
    bool,
    complex64,
    complex128,
    e,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)
from pullback.array_api import fft, linalg
from pullback.array_api.creation import *
from pullback.array_api.dtypes import *
from pullback.array_api.elementwise import *
from pullback.array_api.info import __array_namespace_info__
from pullback.array_api.linear_algebra import *
from pullback.array_api.manipulation import *
from pullback.array_api.searching import *
from pullback.array_api.statistics import *

__array_api_version__ = "2025.12"
SUPPORTED_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""The versions a program may ask for; each adds to the one before."""
