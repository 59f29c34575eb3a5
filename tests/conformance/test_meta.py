"""Every op on the meta device has torch's shapes, dtypes and strides, or docs/meta.md lists it as one that has not."""

from __future__ import annotations

import pytest
import torch

from . import harness, meta

PEER = harness.load_peer("pullback")
LISTED = meta.listed(meta.FILE.read_text())


@pytest.mark.parametrize("op", harness.collected(PEER))
def test_op_on_meta(op: str) -> None:
    verdicts = meta.compared(op, PEER)
    wrong = [text for text in verdicts if text.startswith(("differs", "raises"))]
    assert not wrong or op in meta.KNOWN, "\n".join(wrong)
    assert wrong or op not in meta.KNOWN, f"{op} is listed as different, but everything agrees"
    lacking = any(text.startswith(meta.NO_ANSWER) for text in verdicts)
    assert lacking == (op in LISTED), f"docs/meta.md is out of date about {op}: {verdicts}"
    assert verdicts["agrees"] >= LISTED.get(op, 0)


def test_errors_about_missing_elements_are_torchs() -> None:
    calls = {
        "item": lambda lib: lib.empty(1, device="meta").item(),
        "float": lambda lib: float(lib.empty(1, device="meta")),
        "bool": lambda lib: bool(lib.empty(2, device="meta")),
        "numpy": lambda lib: lib.empty(2, device="meta").numpy(),
        "tolist": lambda lib: lib.empty(2, device="meta").tolist(),
        "cpu": lambda lib: lib.empty(2, device="meta").cpu(),
        "copy": lambda lib: lib.ones(2).copy_(lib.empty(2, device="meta")),
        "add": lambda lib: lib.ones(2) + lib.empty(2, device="meta"),
        "radd": lambda lib: lib.empty(2, device="meta") + lib.ones(2),
        "cat": lambda lib: lib.cat([lib.empty(2, device="meta"), lib.ones(2)]),
        "module": lambda lib: lib.nn.Linear(2, 3, device="meta").to("cpu"),
        "data": lambda lib: setattr(lib.ones(2), "data", lib.empty(2, device="meta")),
        "share": lambda lib: lib.empty(2, device="meta").share_memory_(),
        "pin": lambda lib: lib.empty(2, device="meta").pin_memory(),
        "generator": lambda lib: lib.Generator(device="meta"),
    }
    for name, call in calls.items():
        with pytest.raises(Exception) as wanted:
            call(torch)
        with pytest.raises(Exception) as got:
            call(PEER.module)
        assert issubclass(got.type, wanted.type), name
        assert str(got.value) == str(wanted.value), name


def test_texts_are_torchs() -> None:
    for shape, options in (
        ((2, 3), {}),
        ((), {"dtype": "int64"}),
        ((0,), {"dtype": "bool"}),
        ((2,) * 9, {"dtype": "complex64"}),
    ):
        for grad in (False, True):
            texts = []
            for lib in (torch, PEER.module):
                kinds = {key: getattr(lib, value) for key, value in options.items()}
                x = lib.empty(shape, device="meta", **kinds)
                if grad and (x.is_floating_point() or x.is_complex()):
                    x = x.requires_grad_() * 1
                texts.append(f"{x!r} {x!s} {x.type()} {x.device!r} {x.is_meta} {x.get_device()} {x.data_ptr()}")
            assert texts[0] == texts[1]
