"""The floats of 8 bits and complex32: torch's bits, torch's rounding, torch's refusals."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest
import torch as peer

import pullback
from pullback._foreign import PackedTensor

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
EIGHTHS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
KINDS = (*EIGHTHS, "complex32")


def bits(library, tensor):
    return tensor.view(library.uint8).tolist()


def floats(kind):
    """Random bits, every number of the format, the middles between them, their neighbours, and what overflows."""
    random = np.random.default_rng(0)
    every = np.sort(peer.arange(256).to(peer.uint8).view(getattr(peer, kind)).float().numpy())
    every = every[np.isfinite(every)]
    middle = ((every[1:].astype(np.float64) + every[:-1]) / 2).astype(np.float32)
    around = [np.nextafter(middle, np.float32(way)) for way in (np.inf, -np.inf)]
    edge = every[-1] * np.linspace(0.9, 1.3, 501, dtype=np.float32)
    wild = random.integers(0, 2**32, 20_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = random.standard_normal(20_000).astype(np.float32) * np.float32(2) ** random.integers(-16, 16, 20_000)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, 2.0**-127, 2.0**-128], np.float32)
    return np.concatenate([every, middle, *around, edge, -edge, wild, near.astype(np.float32), special])


@pytest.mark.parametrize("kind", EIGHTHS)
def test_all_256_patterns_stand_for_torchs_numbers(kind):
    def read(library):
        patterns = library.arange(256).to(library.uint8).view(getattr(library, kind))
        return [repr(patterns.to(wide).tolist()) for wide in (library.float32, library.float64, library.float16)]

    assert read(pullback) == read(peer)


@pytest.mark.parametrize("kind", EIGHTHS)
@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16", "float16"])
def test_numbers_are_rounded_and_saturated_as_torch_does(kind, source):
    numbers = floats(kind)
    if source == "bfloat16":
        numbers = numbers[~np.isnan(numbers)]  # whose sign is lost on the way to bfloat16

    def made(library):
        return bits(library, library.from_numpy(numbers).to(getattr(library, source)).to(getattr(library, kind)))

    assert made(pullback) == made(peer)


def test_complex_numbers_are_rounded_part_by_part():
    numbers = (floats("float8_e5m2")[:4000] + 1j * floats("float8_e5m2")[4000:8000]).astype(np.complex64)
    ours = pullback.view_as_real(pullback.from_numpy(numbers).to(pullback.complex32)).numpy()
    theirs = peer.view_as_real(peer.from_numpy(numbers).to(peer.complex32)).numpy()
    np.testing.assert_array_equal(ours, theirs)
    wide = pullback.from_numpy(numbers).to(pullback.complex32).to(pullback.complex64)
    np.testing.assert_array_equal(wide.numpy(), peer.from_numpy(numbers).to(peer.complex32).to(peer.complex64).numpy())


MADE = [
    "torch.zeros(2, dtype=K)",
    "torch.ones(2, 2, dtype=K)",
    "torch.full((2,), 1.7, dtype=K)",
    "torch.full((), 3, dtype=K)",
    "torch.full((2,), 1e9, dtype=K)",
    "torch.empty(2, 3, dtype=K).shape",
    "torch.zeros_like(y)",
    "torch.ones_like(y)",
    "torch.full_like(y, 1.3)",
    "torch.empty_like(y).dtype",
    "y.new_zeros(2)",
    "y.new_tensor([1., 2.])",
    "y.new_full((2,), 3)",
    "torch.tensor([1., 2., 1e9], dtype=K)",
    "torch.tensor(1.5, dtype=K)",
    "torch.tensor([[1, 2], [3, 4]], dtype=K)",
    "torch.as_tensor([1., 2.], dtype=K)",
    "torch.ones(2, dtype=K).dtype",
]
MOVED = [
    "x",
    "x.dtype",
    "x[0]",
    "x[0, 1]",
    "x[:, 1:]",
    "x.T",
    "x.t().contiguous()",
    "x.reshape(3, 2)",
    "x.flatten()",
    "x[b]",
    "x[torch.tensor([0, 0])]",
    "x[..., None].shape",
    "x.clone()",
    "x.detach()",
    "torch.cat([x, x])",
    "torch.stack([x, x])",
    "x.tolist()",
    "x[0, 1].item()",
    "float(x[0, 0].real if K is torch.complex32 else x[0, 0])",
    "bool(y[0])",
    "list(y)",
    "y.repeat(2)",
    "y.expand(2, 3)",
    "y.roll(1)",
    "y.unsqueeze(0)",
    "y.chunk(2)",
    "y.split(1)",
    "y.unbind()",
    "y.index_select(0, torch.tensor([2, 0]))",
    "y.masked_select(torch.tensor([True, False, True]))",
    "torch.diag(y)",
    "torch.where(b, x, x)",
    "torch.where(b, x, 0.)",
    "copy.deepcopy(y)",
    "y.contiguous() is y",
    "y.to(K) is y",
    "y.to('cpu') is y",
    "len(y)",
    "y.is_floating_point()",
    "y.is_complex()",
    "y.element_size()",
    "y.nbytes",
    "y.type()",
    "x[:, 1].stride()",
    "x[1].storage_offset()",
    "x.permute(1, 0).is_contiguous()",
    "x.view(-1)[2:4]",
    "torch.nn.Parameter(y, requires_grad=False)",
    "torch.nn.Parameter(y)",
    "f'{x[0, 0]}'",
    "torch.tile(y, (2,))",
    "y.repeat_interleave(2)",
    "x.movedim(0, 1)",
    "x.unfold(1, 2, 1)",
    "y.as_strided((2, 2), (1, 1))",
    "x.data",
    "y.cpu()",
    "torch.empty(0, dtype=K)",
    "torch.ones(2000, dtype=K)",
    "y.storage()",
    "y.untyped_storage()",
    "y.numpy()",
    "x.expand(2, 2, 3).contiguous()",
    "torch.flip(x, [0])",
    "torch.rot90(x, 0)",
]
CONVERTED = [
    *[f"x.to(torch.{to})" for to in ("float32", "float64", "float16", "bfloat16", "complex64", "bool", "float8_e5m2")],
    "x.float().to(K)",
    "x.half()",
    "y.to(torch.int64)",
    "y.to(torch.uint8)",
    "y.type(torch.float32)",
    "x.T.float().stride()",
    "x.float().T.to(K).stride()",
    "torch.arange(6).to(K)",
    "torch.tensor([True, False]).to(K)",
    "x.type_as(b)",
    "torch.zeros(3).copy_(y)",
    "torch.zeros(3, dtype=torch.int32).copy_(y)",
    "y.clone().copy_(torch.tensor([9., 1e9, 0.1]))",
    "y.clone().copy_(torch.tensor(2))",
    "y.clone().fill_(2)",
    "y.clone().fill_(torch.tensor(2.3))",
    "y.clone().fill_(1e9)",
    "y.clone().zero_()",
    "setting(y, 0, 5.)",
    "setting(y, slice(None), torch.ones(3))",
    "setting(x, (0, 1), 7)",
    "setting(y, torch.tensor([True, False, True]), 2.)",
    "setting(x, (slice(None), 0), y[:2])",
    "(lambda w: (w.to(K).to(w.dtype).sum().backward(), w.grad)[1])(torch.ones(2, requires_grad=True))",
]
COMPUTED = [
    "x == x",
    "x == 2.5",
    "x == 2.6",
    "x != x",
    "x.isnan()",
    "x.any()",
    "x.all()",
    "x.any(0)",
    "x * x",
    "x * y",
    "x * 2",
    "x + x",
    "x + 1",
    "1 - x",
    "x - x",
    "x / x",
    "x / 2",
    "-x",
    "x.exp()",
    "x.sqrt()",
    "x.sum()",
    "x.mean()",
    "x.cumsum(0)",
    "x.prod()",
    "torch.softmax(x, 1)",
    "x ** 2",
    "x.pow(2)",
    "torch.result_type(y, 1.5)",
    "torch.promote_types(K, K)",
    "torch.can_cast(K, torch.float32)",
    "torch.finfo(K)",
    "y.clone().mul_(y)",
    "y.clone().add_(1)",
    "y.abs()",
    "torch.iinfo(K)",
    "torch.set_default_dtype(K)",
    "y.nonzero()",
    "y.unique()",
    "torch.cat([y, torch.zeros(1).to(torch.complex64)])",
]
ONLY_EIGHTHS = [
    "x < x",
    "x.max()",
    "x.sort()",
    "x.argmax()",
    "x.clamp(0, 1)",
    "torch.relu(x)",
    "x.topk(1)",
    "x.round()",
    "torch.ones(3).mul_(y)",
    "torch.promote_types(K, torch.float32)",
    "torch.promote_types(K, torch.int8)",
    "x + torch.ones(1)",
    "torch.cat([x, x.float()])",
    "torch.result_type(y, torch.ones(1))",
    "x.masked_fill(b, 1.)",
    "x.index_fill(0, torch.tensor([0]), 1.)",
    "x.tril()",
    "x.log()",
    "x.floor()",
    "torch.maximum(x, x)",
    "torch.logical_not(x)",
    "x.isinf()",
    "y.index_copy(0, torch.tensor([0]), y[:1])",
]
ONLY_COMPLEX = [
    "torch.view_as_real(x)",
    "x + torch.ones(1)",
    "x * torch.ones(2, 3).half()",
    "torch.promote_types(K, torch.float32)",
    "torch.promote_types(K, torch.float16)",
    "torch.promote_types(K, torch.float64)",
    "x.masked_fill(b, 1.)",
    "x.tril()",
    "x.isfinite()",
    "x.isinf()",
    "x + 1j",
    "x.chalf() is x",
    "torch.ones(2).chalf()",
    "y.index_add(0, torch.tensor([0]), y[:1])",
    "torch.cat([x, x.to(torch.complex64)])",
    "x.sgn()",
]


def setting(x, index, value):
    x = x.clone()
    x[index] = value
    return x


def outcome(library, kind, program):
    K = getattr(library, kind)
    names = {"torch": library, "K": K, "copy": copy, "setting": setting}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names["x"] = library.tensor([[1.0, 2.5, -3.0], [4.0, 500.0, 0.3]]).to(K)
        names["y"] = library.tensor([0.5, 1.0, 2.0]).to(K)
        names["b"] = library.tensor([[True, False, True], [False, True, False]])
        try:
            return repr(eval(program, names))
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", [*MADE, *MOVED, *CONVERTED, *COMPUTED])
def test_packed_elements_behave_as_torchs(kind, program):
    assert outcome(pullback, kind, program) == outcome(peer, kind, program)


@pytest.mark.parametrize("kind", EIGHTHS)
@pytest.mark.parametrize("program", ONLY_EIGHTHS)
def test_8_bits_behave_as_torchs(kind, program):
    assert outcome(pullback, kind, program) == outcome(peer, kind, program)


@pytest.mark.parametrize("program", ONLY_COMPLEX)
def test_complex32_behaves_as_torchs(program):
    assert outcome(pullback, "complex32", program) == outcome(peer, "complex32", program)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_elements_are_pickled_and_saved(kind):
    x = pullback.tensor([[1.0, 2.5], [-3.0, 0.3]]).to(getattr(pullback, kind))[:, :1]
    again = pickle.loads(pickle.dumps(x))
    assert repr(again) == repr(x)
    assert type(again) is PackedTensor
    file = io.BytesIO()
    pullback.save({"x": x, "p": pullback.nn.Parameter(x)}, file)
    file.seek(0)
    loaded = pullback.load(file)
    assert repr(loaded["x"]) == repr(x)
    assert isinstance(loaded["p"], pullback.nn.Parameter)
    file.seek(0)
    theirs = peer.load(file)
    assert repr(theirs["x"]) == repr(x)
    back = io.BytesIO()
    peer.save(theirs, back)
    back.seek(0)
    assert repr(pullback.load(back)["x"]) == repr(x)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_safetensors_holds_floats_of_8_bits(kind, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    x = pullback.tensor([[1.0, 2.5], [3.0, 0.3]]).to(getattr(pullback, kind))
    pullback.serialization.safetensors.save_file({"x": x}, tmp_path / "ours")
    assert repr(pullback.serialization.safetensors.load_file(tmp_path / "ours")["x"]) == repr(x)
    assert repr(safetensors.load_file(tmp_path / "ours")["x"]) == repr(x)


ARGUMENTS = [
    (),
    (2,),
    (0,),
    (0, 1),
    ("x",),
    ("x", "x"),
    ("y",),
    ("b",),
    ("b", "x"),
    ("b", 2.0),
    (0, "i"),
    (0, "i", "x"),
    (0, "i", 2.0),
    ((3, 2),),
    ((2, 2, 3),),
    ((0, 1), (1, 0)),
    (0, 0, 1),
    ("dtype",),
]


@pytest.mark.parametrize("kind", KINDS)
def test_no_method_lets_packed_elements_out_as_plain_ones(kind):
    """A plain tensor of such elements would be computed with by the fast path, in ml_dtypes' arithmetic."""
    K = getattr(pullback, kind)
    skipped = {"backward", "register_hook", "share_memory_", "map_", "map2_", "apply_", "set_"}
    leaks = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in sorted(set(dir(pullback.Tensor)) - skipped):
            if name.startswith("_") or not callable(getattr(pullback.Tensor, name)):
                continue
            for arguments in ARGUMENTS:
                x = pullback.tensor([[1.0, 2.5, -3.0], [4.0, 500.0, 0.3]]).to(K)
                known = {
                    "x": x.clone(),
                    "y": x[0],
                    "b": x == x,
                    "i": pullback.tensor([0, 1]),
                    "dtype": pullback.float32,
                }
                try:
                    made = getattr(x, name)(*[known.get(a, a) if isinstance(a, str) else a for a in arguments])
                except Exception:
                    continue
                for out in made if isinstance(made, (tuple, list)) else (made,):
                    if isinstance(out, pullback.Tensor) and out.dtype.packed != isinstance(out, PackedTensor):
                        leaks.append((name, arguments, type(out)))
    assert not leaks
