"""NVIDIA's assembler takes what LLVM makes of the kernels, as a driver would, and says what of a device they need.

It comes with CUDA's toolkit (`ptxas`, found on the path) and needs no GPU.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from pullback.kernels.compiled import room
from pullback.kernels.cuda.native import WAVES

from .test_kernels import expression
from .test_kernels import kernels as described

ASSEMBLER = shutil.which("ptxas")
pytestmark = [
    pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler"),
    pytest.mark.skipif(ASSEMBLER is None, reason="needs ptxas of CUDA's toolkit on the path"),
]
OLDEST, MIDDLE, NEWEST = (7, 0), (8, 0), (9, 0)
EPILOGUE = 128
"""Bytes that kernels with many sums may put aside around their loops: those that write results of any layout."""


class Said(NamedTuple):
    """What the assembler says of a kernel: registers of a thread, bytes it has aside in memory, and shared memory."""

    registers: int
    aside: int
    shared: int


def assembled(texts: list[str], capabilities: list[tuple[int, int]], folder: Path) -> dict[str, Said]:
    """What is said of each kernel; those with several capabilities have the last one's. They are made side by side."""
    started, found = [], {}
    for number, text in enumerate(texts):
        name = re.search(r"@(\w+)\(", text[text.index("define ptx_kernel") :])[1]  # type: ignore[index]
        for capability in capabilities:
            source = folder / f"{number}_{capability[0]}.ptx"
            source.write_text(room("cuda.ptx").compiled(text, capability))
            target = re.search(r"\.target (\w+)", source.read_text())[1]  # type: ignore[index]
            # What is written for 7.0 runs on 7.5, the oldest that CUDA 13 knows.
            command = [ASSEMBLER, "-v", f"-arch={'sm_75' if target == 'sm_70' else target}", str(source)]
            made = subprocess.Popen(
                [*command, "-o", str(source.with_suffix(".cubin"))],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            started.append((name, capability, made))
    for name, capability, made in started:
        report = made.communicate()[0]
        assert made.returncode == 0, f"{name} for {capability}: {report}"
        assert "Potential Performance Loss" not in report, f"{name} for {capability}: {report}"  # wgmma one by one
        numbers = [
            int((re.search(pattern, report) or [0, 0])[1])
            for pattern in (r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes smem")
        ]
        found[name] = Said(*numbers)
    return found


def test_kernels_of_pointwise_ops_are_assembled(tmp_path: Path) -> None:
    make = room("cuda.pointwise").Kernel
    cases = [
        (np.exp, "float32"), (np.sin, "float64"), (np.log1p, "float64"), (np.power, "float32", "float32"),
        (np.arctan2, "float16", "float16"), (np.tanh, "float16"), (np.remainder, "int64", "int64"),
        (np.divide, "complex64", "complex64"), (lambda x: x / (1 + np.exp(-x)), "float32"),
        (np.less, "float32", "float32"), (np.power, "int32", "int32"),
    ]  # fmt: skip
    texts = []
    for function, *dtypes in cases:
        root = expression(function, *dtypes).root
        texts += [make(root, "1" * len(dtypes), 0, True).text, make(root, "s" * len(dtypes), 2, False).text]
    assert not any([said.aside for said in assembled(texts, [OLDEST, NEWEST], tmp_path).values()])


def test_kernels_with_files_are_assembled(tmp_path: Path) -> None:
    assert not any([said.aside for said in assembled(list(described().values()), [OLDEST], tmp_path).values()])


@pytest.mark.parametrize("loaders", ["kr", "rk", "kt"])
def test_products_are_assembled(loaders: str, tmp_path: Path) -> None:
    texts, scattered = [], loaders == "kt"
    for tile in ((128, 128), (128, 64), (64, 64)):
        texts.append(room("cuda.products").text_of("float", *tile, loaders, scattered, "float"))
    if scattered:
        texts.append(room("cuda.products").text_of("double", 64, 64, "et", True, "double"))
    for said in assembled(texts, [OLDEST, NEWEST], tmp_path).values():
        assert said.registers <= 128 and said.aside <= EPILOGUE  # so that a multiprocessor has two blocks


@pytest.mark.parametrize("element", ["float", "half", "bfloat"])
def test_products_of_tensor_cores_are_assembled(element: str, tmp_path: Path) -> None:
    make = room("cuda.tensor_products").text_of
    texts = [make(element, 128, 128, "kr", False, element), make(element, 64, 128, "kt", True, element)]
    texts += [make(element, 64, 64, "uu", False, "float"), make(element, 128, 64, "es", False, element)]
    for said in assembled(texts, [MIDDLE, NEWEST], tmp_path).values():
        assert said.registers <= 128 and said.aside <= EPILOGUE


@pytest.mark.parametrize("loaders", ["kk", "rr"])
def test_products_for_hopper_keep_tensor_cores_busy(loaders: str, tmp_path: Path) -> None:
    """One slice is computed while the next products are sent off: the assembler must not make them wait one by one."""
    make = room("cuda.hopper_products").text_of
    texts = [make("bfloat", columns, loaders, "bfloat", True) for columns in (128, 256)]
    for text in texts:
        assert "wgmma.wait_group.sync.aligned 1;" in text and "wgmma.wait_group.sync.aligned 0;" in text
    for said in assembled([*texts, make("half", 128, loaders, "float", False)], [NEWEST], tmp_path).values():
        assert not said.aside


@pytest.mark.parametrize("kind", ["forward", "dq", "dk", "dv"])
def test_attention_is_assembled(kind: str, tmp_path: Path) -> None:
    kernels = room("cuda.attention")
    halves = (64, 64) if kind == "forward" else (64, 32)
    shapes = [kernels.Shape("half", 64, *halves), kernels.Shape("bfloat", 128, 64, 32)]
    shapes += [kernels.Shape("float", 64, 64, 32), kernels.Shape("double", 32, 32, 16)]
    texts = [kernels.text_of(kind, shape, "wac", "") for shape in shapes]
    for said in assembled(texts, [MIDDLE, NEWEST], tmp_path).values():
        assert said.aside <= EPILOGUE
    shape = kernels.Shape("float", 64, 64, 32)
    assembled([kernels.text_of(kind, shape, "", "float"), kernels.text_of(kind, shape, "w", "")], [OLDEST], tmp_path)


def test_rows_reductions_and_random_numbers_are_assembled(tmp_path: Path) -> None:
    rows, reductions, philox = (room(f"cuda.{name}") for name in ("rows", "reductions", "philox"))
    long = room("cuda.long_rows")
    texts = [rows.text_of(name, "float", *rows.shape_of(16384, 4), 4, "wb") for name in rows.PROGRAMS]
    texts += [long.text_of(name, "float", 4, "wb" * (name == "layer_norm")) for name in long.PROGRAMS]
    texts += [rows.text_of("softmax", "half", *rows.shape_of(8192, 8), 8, "")]
    texts += [rows.text_of("log_softmax", "double", *rows.shape_of(4096, 2, "double"), 2, "")]
    texts += [reductions.text_of("sum", "float", 1, 1, False, 4), reductions.text_of("max", "i64", 2, 2, True)]
    texts += [philox.text_of(kind, near) for kind in philox.KINDS for near in (False, True)]
    for name, said in assembled(texts, [OLDEST, NEWEST], tmp_path).items():
        assert said.aside <= 8, name


def test_a_multiprocessor_has_registers_for_as_many_blocks_of_sums_as_make_whole_waves(tmp_path: Path) -> None:
    reductions = room("cuda.reductions")
    texts = [reductions.text_of("sum", *key) for key in (("float", 0, 1, False, 4), ("double", 0, 1, False, 2))]
    for said in assembled(texts, [NEWEST], tmp_path).values():
        assert WAVES % (132 * reductions.BLOCKS) == 0 and not said.aside
        assert said.registers * reductions.BLOCKS * reductions.THREADS <= 65536


def test_sorts_scans_and_other_kernels_are_assembled(tmp_path: Path) -> None:
    sorts, masks, scans = (room(f"cuda.{name}") for name in ("sorts", "masks", "scans"))
    texts = [sorts.tile_text("double", True), sorts.merge_text(), sorts.search_text("half", False)]
    texts += [masks.text_of(3), scans.text_of("double"), scans.text_of("float", "logaddexp")]
    texts += [room("cuda.extrema").text_of("min", "double", True), room("cuda.resample").text_of("double")]
    texts += [room("cuda.pools").text_of("max", "half"), room("cuda.index").text_of("prod", "double", 1, "l")]
    for name, said in assembled(texts, [OLDEST, NEWEST], tmp_path).items():
        assert not said.aside, name
