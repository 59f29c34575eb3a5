"""Autocast on the CPU: the precision every op of torch's database chooses, the cache, nesting, and training in it."""

import threading
import warnings

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.aspects import Call
from tests.conformance.harness import missing
from tests.conformance.library import TORCH, Library, Unconvertible, dtype_name, tensors_in
from tests.conformance.samples import Sample, ops

OWN = Library(pullback)
LOWER = ("bfloat16", "float16")
SAMPLES = ("bfloat16", "bfloat16", "float16")
"""In which precision the first samples of an op are tried."""
INEXACT = ("addbmm", "bilinear", "scaled_dot_product_attention", "svd", "eig", "lowrank", "empty", "conv_transpose")
"""Ops whose values differ in the order of rounding, in a sign, or are not determined at all."""


def look(library, info, sample, lower):
    """The dtypes and values of an op's results under autocast; the type of its error."""
    call = Call(library, info, sample)
    try:
        call.function, call.converted
        with library.module.autocast("cpu", dtype=getattr(library.module, lower)):
            outputs = call.outputs
    except (Unconvertible, AttributeError):
        return None
    except Exception as error:
        return type(error).__name__
    return [(dtype_name(t.dtype), library.array(t)) for t in tensors_in(library, outputs)]


def different(name, expected, got):
    """What is wrong with the results of one sample; None if nothing is."""
    if isinstance(expected, str) or isinstance(got, str):
        return None if isinstance(expected, str) and isinstance(got, str) else f"{expected} and {got}"
    dtypes, own_dtypes = [kind for kind, _ in expected], [kind for kind, _ in got]
    if dtypes != own_dtypes:
        return f"{dtypes} and {own_dtypes}"
    if any(part in name for part in INEXACT):
        return None
    for (kind, value), (_, own) in zip(expected, got):
        tolerance = 2e-2 if kind in LOWER else 1e-3
        if value.dtype.kind in "fc" and not np.allclose(own, value, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{value.ravel()[:3]} and {own.ravel()[:3]}"
    return None


def test_every_op_computes_in_the_precision_torch_chooses(monkeypatch):
    monkeypatch.setattr(peer, "manual_seed", peer.default_generator.manual_seed)  # torch's own keeps stacks for CUDA
    absent, wrong, compared = set(missing(OWN)), [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, info in ops().items():
            if name in absent or name == "chalf":  # there are no arrays of half-precision complex numbers
                continue
            given = info.sample_inputs("cpu", peer.float32) if info.supports_dtype(peer.float32, "cpu") else ()
            for one, lower in zip(given, SAMPLES):
                sample = Sample("", peer.float32, one.input, one.args, one.kwargs)
                expected, got = look(TORCH, info, sample, lower), look(OWN, info, sample, lower)
                if expected is None or got is None:
                    continue
                compared += 1
                found = different(name, expected, got)
                if found:
                    wrong.append(f"{name}: {found}")
    assert compared > 1000 and not wrong, "\n".join(wrong)


def test_torchs_list_holds_no_op_that_is_unknown_here():
    registered = peer._C._dispatch_get_registrations_for_dispatch_key("AutocastCPU")
    assert len(registered) == 127, "torch's lists have changed: compare ops/autocast.py with them"


# ------------------------------------------------------------------ the same program on both


def both(program):
    expected, got = program(peer), program(pullback)
    assert got == expected
    return got


def name(dtype):
    return str(dtype).rpartition(".")[2]


def test_blocks_nest_and_end():
    def program(torch):
        x, seen = torch.ones(2, 2), []

        def note():
            seen.append((torch.is_autocast_enabled("cpu"), name((x @ x).dtype), name(torch.get_autocast_dtype("cpu"))))

        note()
        with torch.autocast("cpu"):
            note()
            with torch.autocast("cpu", enabled=False):
                note()
                with torch.autocast("cpu", dtype=torch.float16):
                    note()
                note()
            note()
        note()
        return seen

    assert [dtype for _, dtype, _ in both(program)].count("bfloat16") == 2


def test_a_weight_is_cast_once_in_a_block_and_again_in_the_next():
    def program(torch):
        w = torch.ones(2, 2, requires_grad=True)

        def casts(*products):
            return len({id(edge[0]) for p in products for edge in p.grad_fn.next_functions})

        with torch.autocast("cpu"):
            with torch.no_grad():
                torch.mm(w, w)
            first, second, viewed = torch.mm(w, w), torch.mm(w, w), torch.mm(w.view(2, 2), w.view(2, 2))
            with torch.autocast("cpu", cache_enabled=False):
                apart = torch.mm(w, w)
        with torch.autocast("cpu"):
            later = torch.mm(w, w)
        return casts(first, second), casts(first, second, later), casts(viewed), casts(apart)

    assert both(program) == (1, 2, 2, 2)


def test_a_write_to_a_tensor_given_as_out_is_not_cast():
    def program(torch):
        x, out = torch.full((2, 2), 1.001), torch.empty(2, 2)
        with torch.autocast("cpu"):
            torch.mm(x, x, out=out)
            torch.matmul(x, x, out=out)
            return name(out.dtype), out.tolist(), name(torch.zeros(2, 2).addmm_(x, x).dtype)

    both(program)


def test_another_thread_is_not_in_the_block():
    def program(torch):
        seen = []

        def look():
            x = torch.ones(2, 2)
            seen.append((torch.is_autocast_enabled("cpu"), name((x @ x).dtype)))

        with torch.autocast("cpu"):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
        return seen

    assert both(program) == [(False, "float32")]


def test_after_the_block_functions_are_as_before():
    functions = (pullback.mm, pullback.nn.functional.linear, pullback.fft.rfft2, pullback.matmul)
    before = [f.__code__ for f in functions]
    with pullback.autocast("cpu"):
        assert pullback.nn.functional.linear(pullback.ones(2), pullback.ones(2, 2)).dtype is pullback.bfloat16
        pullback.mm(pullback.ones(2, 2), pullback.ones(2, 2))
    after = [f.__code__ for f in functions]
    assert after[1:] == before[1:] and not pullback._modes.modes.active
    assert pullback.mm(pullback.ones(2, 2), pullback.ones(2, 2)).dtype is pullback.float32


@pytest.mark.parametrize(
    "kinds", [("float64", "float32"), ("bfloat16", "float16"), ("int64", "bfloat16"), ("complex64", "bfloat16")]
)
def test_joining_takes_the_widest_precision(kinds):
    def program(torch):
        with torch.autocast("cpu"):
            try:
                return name(torch.cat([torch.ones(2, dtype=getattr(torch, kind)) for kind in kinds]).dtype)
            except RuntimeError as error:
                return str(error)

    both(program)


@pytest.mark.parametrize("cell", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"])
def test_recurrent_layers_give_torchs_dtypes(cell):
    def program(torch):
        torch.manual_seed(0)
        layer = getattr(torch.nn, cell)(4, 5)
        with torch.autocast("cpu"):
            out = layer(torch.ones(3, 4) if cell.endswith("Cell") else torch.ones(3, 2, 4))
        tensors = [
            t
            for part in (out if isinstance(out, tuple) else (out,))
            for t in (part if isinstance(part, tuple) else (part,))
        ]
        return [name(t.dtype) for t in tensors]

    if cell == "LSTM" and not peer.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("torch has no bfloat16 LSTM for this processor, and raises")
    both(program)


@pytest.mark.parametrize("lower", LOWER)
def test_a_network_trained_in_a_block_follows_torchs(lower):
    def losses(torch):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3),
            torch.nn.BatchNorm2d(4),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(144, 3),
        )
        x, y = torch.randn(8, 1, 8, 8), torch.arange(8) % 3
        optimizer = torch.optim.SGD(net.parameters(), 0.05)
        scaler = torch.amp.GradScaler("cpu")
        seen = []
        for _ in range(20):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=getattr(torch, lower)):
                loss = torch.nn.functional.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            seen.append(loss.item())
        assert loss.dtype == torch.float32 and net[0].weight.grad.dtype == torch.float32
        return seen

    expected, got = losses(peer), losses(pullback)
    assert got[-1] < got[0] / 2
    assert np.allclose(got, expected, rtol=0.02, atol=0.005)


def test_a_checkpoint_runs_again_in_the_precision_of_the_first_run():
    def program(torch, reentrant):
        torch.manual_seed(0)
        layer, seen = torch.nn.Linear(3, 3), []

        def segment(x):
            out = layer(x)
            seen.append(name(out.dtype))
            return out

        x = torch.ones(2, 3, requires_grad=True)
        with torch.autocast("cpu"):
            out = torch.utils.checkpoint.checkpoint(segment, x, use_reentrant=reentrant)
        out.sum().backward()
        return seen

    assert both(lambda torch: program(torch, True)) == ["bfloat16"] * 2
    assert both(lambda torch: program(torch, False))[0] == "bfloat16"


@pytest.mark.parametrize("cast", [None, "float32"])
def test_custom_functions_choose_their_precision(cast):
    def program(torch):
        seen = []

        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast and getattr(torch, cast))
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w)
                seen.append((name(x.dtype), name((x @ w).dtype), torch.is_autocast_enabled("cpu")))
                return x @ w

            @staticmethod
            @torch.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                x, w = ctx.saved_tensors
                seen.append((torch.is_autocast_enabled("cpu"), name((grad @ w).dtype)))
                return grad @ w, x.t() @ grad

        x, w = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
        with torch.autocast("cpu"):
            out = Product.apply(x.bfloat16(), w)
        out.float().sum().backward()
        return seen, name(w.grad.dtype)

    both(program)


@pytest.mark.parametrize(
    "text",
    [
        "torch.autocast('meta')",
        "torch.autocast(3)",
        "torch.autocast('cpu')(3)",
        "torch.autocast('cpux')",
        "torch.set_autocast_enabled('cpu', 1)",
        "torch.set_autocast_enabled()",
        "torch.set_autocast_enabled(3, True)",
        "torch.set_autocast_dtype('cpu', 3)",
        "torch.set_autocast_cache_enabled(3)",
        "torch.is_autocast_enabled('meta')",
        "torch.get_autocast_dtype('meta')",
        "torch.amp.is_autocast_available('meta')",
        "torch.amp.is_autocast_available('mps')",
        "torch.autocast('cpu', dtype=torch.float16)._enabled",
    ],
)
def test_answers_and_errors_are_torchs(text):
    def program(torch):
        try:
            return repr(eval(text, {"torch": torch}))
        except Exception as error:
            return type(error).__name__, str(error)

    both(program)
