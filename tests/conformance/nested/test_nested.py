"""Nested tensors: the same programs on torch and on pullback, in both layouts."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import ADDRESS, ORIGIN

NESTED_INT = re.compile(r"\bj\d+")
LAYOUTS = pytest.mark.parametrize("layout", ["strided", "jagged"])
F = "torch.nn.functional"


def data(seed, *shapes):
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape).astype(np.float32) for shape in shapes]


def made(torch, layout, *shapes, seed=0, requires_grad=False):
    parts = [torch.tensor(part) for part in data(seed, *shapes)]
    return torch.nested.nested_tensor(parts, layout=getattr(torch, layout), requires_grad=requires_grad)


def plain(torch, value):
    """A result as plain data: a nested tensor by its text and its parts."""
    if isinstance(value, torch.Tensor) and value.is_nested:
        text = renamed(repr(value)) if value.layout is torch.jagged and value.grad_fn is None else ""
        return ["nested", str(value.layout), text, [plain(torch, part) for part in value.unbind()]]
    if isinstance(value, torch.Tensor):
        return ["tensor", str(value.dtype), value.detach().numpy()]
    if isinstance(value, (list, tuple)):
        return [plain(torch, one) for one in value]
    return value if type(value) in (bool, int, float, type(None)) else renamed(str(value))


def renamed(text):
    """Sizes that differ are numbered as they come: only which are the same is compared."""
    names = {}
    return NESTED_INT.sub(lambda found: names.setdefault(found.group(), f"j{len(names)}"), text)


def said(torch, program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(torch, program(torch))
        except Exception as error:
            text = ADDRESS.sub("0x", ORIGIN.sub("", str(error)).split("\n")[0])
            text = re.sub(r"(backend\.).*", r"\1", text)  # what each says to do instead is its own
            text = re.sub(r"aten::_?(\w+)(\.\w+)?", r"\1", text)
            return ["raised", type(error).__name__, renamed(re.sub(r"(aten\.\w+)\..*", r"\1", text))]


def close(theirs, own):
    if isinstance(theirs, list) and isinstance(own, list):
        assert len(theirs) == len(own), (theirs, own)
        for a, b in zip(theirs, own, strict=True):
            close(a, b)
    elif isinstance(theirs, np.ndarray):
        assert theirs.shape == own.shape
        np.testing.assert_allclose(own, theirs, rtol=2e-5, atol=2e-6)
    else:
        assert own == theirs


def same(program):
    close(said(peer, program), said(pullback, program))


CALLS = """n + n; n * 2; 2 * n; n - 1; n / 3; -n; 1 - n; n.relu(); torch.relu(n); n.tanh(); n.sin(); n.abs(); n.neg()
torch.nn.functional.gelu(n); torch.nn.functional.silu(n); n.sigmoid(); n.exp(); n.pow(2); n ** 2; n.clamp(0, 1)
n.clone(); n.detach(); n.to(torch.float64); n.double(); n.contiguous(); n > 0; n == n; n.logical_not()
n.sum(); n.sum(1); n.sum(-1); n.sum(0); n.sum(1, keepdim=True); n.sum(-1, keepdim=True); n.sum((0, 1)); n.sum((1, 2))
n.mean(); n.mean(1); n.mean(-1); n.mean(1, keepdim=True); n.mean((0, 1)); n.max(); n.amax(1); n.max(1); n.amin(-1)
n.any(); n.all(); n.argmax(1); n.softmax(-1); n.softmax(1); torch.nn.functional.softmax(n, dim=-1)
torch.nn.functional.log_softmax(n, dim=-1); torch.nn.functional.layer_norm(n, (3,))
torch.nn.functional.layer_norm(n, (3,), torch.ones(3), torch.zeros(3)); torch.nn.functional.linear(n, w)
torch.nn.functional.linear(n, w, b); n @ w.T; torch.matmul(n, w.T); torch.bmm(n, n.transpose(1, 2))
n @ n.transpose(1, 2); torch.matmul(n, torch.ones(2, 3, 2)); torch.bmm(n, torch.ones(2, 3, 2)); n.transpose(1, 2)
n.transpose(0, 1); n.mT; n.transpose(-1, -2); n.permute(0, 2, 1); n.view(2, -1, 3, 1); n.reshape(2, -1, 1, 3)
n.view(6, -1); n.unsqueeze(1); n.unsqueeze(-1); n.squeeze(0); n.flatten(1); n.unflatten(-1, (3, 1)); n.chunk(3, -1)
n.split([1, 2], -1); n.split(1, -1); n.chunk(2, 0); n.chunk(2, 1); torch.cat([n, n]); torch.cat([n, n], -1)
torch.stack([n, n]); n + torch.ones(3); n * torch.ones(2, 1, 3); n + torch.ones(1, 1, 3); n * torch.ones(2, 1, 1)
n + torch.arange(18.0).reshape(2, 3, 3); n + torch.ones(4); n + torch.ones(1, 2, 1, 3); n + torch.ones(5, 3); n + m
torch.where(n > 0, n, n); torch.zeros_like(n); torch.ones_like(n); n.masked_fill(n > 0, 0.0); n.select(0, 1)
n.select(1, 1); n.select(2, 1); n.narrow(0, 0, 1); n.narrow(2, 0, 1); n.clone().fill_(3.0); n.clone().mul_(2)
n.clone().add_(n); n.tolist(); n.numpy(); n.item(); n.view_as(n); n.is_same_size(n); n.is_same_size(m); n.cumsum(1)
torch.allclose(n, n); n.index_select(0, torch.tensor([0])); n.expand(2, 2, 3); torch.isnan(n); n.T; n.repeat(1, 1, 1)
torch.nn.functional.dropout(n, 0.5, False); torch.nn.functional.embedding((n > 0).long(), w); n.sort(); n.roll(1)
n.unbind(); n.unbind(1); n[0]; n[-1]; n[0, 1]; n[:1]; n[:, 0]; n[..., 0]; n[..., :2]; [list(x.shape) for x in n]
n.to_padded_tensor(-1.0); torch.nested.to_padded_tensor(n, 0.0, (2, 4, 3)); n.to_padded_tensor(0.0, (2, 2, 3))
n.to_padded_tensor(0.0, (2, 3)); n.shape; n.size(); n.size(0); n.size(1); n.size(2); n.size(-1); n.size(5); n.dim()
n.ndim; n.numel(); n.is_nested; str(n.layout); n.stride(); n.is_contiguous(); len(n); str(n.dtype); str(n.device)
n.values(); n.offsets(); n.lengths(); n.requires_grad; n.is_leaf; n.grad_fn; n.shape == (n * 2).shape
n.shape == m.shape; n.element_size(); n.is_floating_point(); isinstance(n, torch.Tensor); type(n).__name__; repr(n)
copy.deepcopy(n); pickle.loads(pickle.dumps(n)); torch.nn.Linear(3, 3)(n).is_nested; n.transpose(1, 2).contiguous()
n.transpose(1, 2) @ n; n.transpose(1, 2).sum(2); n.transpose(1, 2).sum(1); n.unsqueeze(1) + n.unsqueeze(1)"""
CALLS = [one.strip() for line in CALLS.splitlines() for one in line.split("; ")]
ONLY_HERE = {
    "strided": ("n.transpose(1, 2).contiguous()", "pickle.loads", "copy.deepcopy", "torch.nn.functional.embedding"),
    "jagged": ("n.to_padded_tensor(0.0, (2, 3))",),
}


@LAYOUTS
@pytest.mark.parametrize("call", CALLS)
def test_calls_give_what_torch_gives(layout, call):
    if call.startswith(ONLY_HERE[layout]):
        pytest.skip("torch cannot do it, or keeps strides that are its own")

    def program(torch):
        n, m = made(torch, layout, (2, 3), (3, 3)), made(torch, layout, (3, 3), (2, 3), seed=1)
        w, b = [torch.tensor(part) for part in data(2, (4, 3), (4,))]
        return eval(call, dict(torch=torch, n=n, m=m, w=w, b=b, copy=copy, pickle=pickle))

    same(program)


DIFFERENTIABLE = """(n * n * 2).tanh(); torch.nn.functional.linear(n, w, b); n.softmax(1); n.softmax(-1)
torch.nn.functional.layer_norm(n, (3,), w[0], w[1]); n.transpose(1, 2); torch.nn.functional.gelu(n) + n
torch.cat([n, n * 2], -1); n.chunk(3, -1)[1]; n.view(2, -1, 1, 3); n.sum(-1, keepdim=True)"""
RAGGED = """n.sum(1); n.mean(1); n.sum((0, 1)); n.amax(1); n.max(1)[0]; n.sum(); n @ w.T; n.exp().sigmoid()
n * torch.ones(2, 1, 3, dtype=w.dtype); n + n.unsqueeze(1).squeeze(1); n.unflatten(-1, (3, 1)).flatten(-2); n.mean(-1)
n[..., 1]; torch.where(n > 0, n, n * 3)
torch.matmul(n, torch.ones(2, 3, 2, dtype=w.dtype)); n.transpose(1, 2) @ n; n.log_softmax(1)"""
GRADS = [("strided", one.strip()) for line in DIFFERENTIABLE.splitlines() for one in line.split("; ")]
GRADS += [("jagged", one.strip()) for line in (DIFFERENTIABLE + "\n" + RAGGED).splitlines() for one in line.split("; ")]


def differentiated(torch, layout, call, dtype="float32"):
    n = made(torch, layout, (2, 3), (3, 3)).to(getattr(torch, dtype)).detach().requires_grad_()
    w, b = [torch.tensor(part, dtype=getattr(torch, dtype), requires_grad=True) for part in data(2, (4, 3), (4,))]
    out = eval(call, dict(torch=torch, n=n, w=w, b=b))
    dense = out.to_padded_tensor(0.0) if out.is_nested else out
    return n, w, b, (dense * dense).sum()


@pytest.mark.parametrize(("layout", "call"), GRADS)
def test_gradients_reach_the_nested_leaf_and_the_weights(layout, call):
    def program(torch):
        n, w, b, loss = differentiated(torch, layout, call)
        loss.backward()
        return n.grad, w.grad, b.grad, n.grad.is_nested

    theirs = said(peer, program)
    if theirs[0] != "raised" and (layout, call) != ("jagged", "n.softmax(1)"):  # torch has none, or another, of these
        close(theirs, said(pullback, program))


@pytest.mark.parametrize(("layout", "call"), GRADS)
def test_gradients_are_those_of_small_changes(layout, call):
    n, _, _, loss = differentiated(pullback, layout, call, "float64")
    loss.backward()
    slope = n.grad.values().flatten().tolist()
    values = n.values().detach().clone()
    for place in range(values.numel()):
        ends = []
        for change in (1e-6, -1e-6):
            moved = values.clone()
            moved.view(-1)[place] += change
            ends.append(moved)
        high, low = [float(of_values(layout, call, one)) for one in ends]
        assert (high - low) / 2e-6 == pytest.approx(slope[place], rel=1e-4, abs=1e-5)


def of_values(layout, call, values):
    n = made(pullback, layout, (2, 3), (3, 3)).to(pullback.float64)
    n.copy_(n.like(values))
    w, b = [pullback.tensor(part, dtype=pullback.float64) for part in data(2, (4, 3), (4,))]
    out = eval(call, dict(torch=pullback, n=n, w=w, b=b))
    dense = out.to_padded_tensor(0.0) if out.is_nested else out
    return (dense * dense).sum()


@LAYOUTS
def test_gradients_reach_the_tensors_it_was_made_of(layout):
    def program(torch):
        a, b = [torch.tensor(part, requires_grad=True) for part in data(0, (2, 3), (4, 3))]
        n = torch.nested.as_nested_tensor([a, b], layout=getattr(torch, layout))
        (n * n).to_padded_tensor(0.0).sum().backward()
        return a.grad, b.grad, n.requires_grad, n.is_leaf

    same(program)


@LAYOUTS
def test_autograd_grad_takes_nested_tensors(layout):
    def program(torch):
        n = made(torch, layout, (2, 3), (3, 3), requires_grad=True)
        return torch.autograd.grad((n * n).to_padded_tensor(0.0).sum(), n)

    same(program)


def test_backward_of_a_nested_tensor_wants_a_gradient():
    def program(torch):
        return (made(torch, "jagged", (2, 3), (3, 3), requires_grad=True) * 2).backward()

    same(program)


def heads(torch, layout, seed, sizes=((3, 8), (5, 8))):
    n = made(torch, layout, *sizes, seed=seed, requires_grad=True)
    if layout == "jagged":
        return n, n.unflatten(-1, (2, 4)).transpose(1, 2)
    parts = [part.view(-1, 2, 4).transpose(0, 1).contiguous() for part in n.unbind()]
    return n, torch.nested.as_nested_tensor(parts)


@LAYOUTS
def test_attention_is_torchs_and_so_are_its_gradients(layout):
    def program(torch):
        (a, q), (b, k), (c, v) = [heads(torch, layout, seed) for seed in range(3)]
        if layout == "jagged":
            k, v = [
                torch.nested.nested_tensor_from_jagged(one.transpose(1, 2).values(), q.offsets()).transpose(1, 2)
                for one in (k, v)
            ]
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        rows = out.transpose(1, 2).flatten(-2) if layout == "jagged" else out
        rows.to_padded_tensor(0.0).pow(2).sum().backward()
        grads = [part for one in (a, b, c) for part in one.grad.unbind()]
        return [part.detach() for part in out.unbind()], grads

    same(program)


@LAYOUTS
def test_attention_is_that_of_each_sequence_alone(layout):
    _, q = heads(pullback, layout, 0)
    for causal in (False, True):
        attend = pullback.nn.functional.scaled_dot_product_attention
        out = attend(q, q, q, is_causal=causal)
        for part, alone in zip(out.unbind(), q.unbind(), strict=True):
            np.testing.assert_allclose(part.tolist(), attend(alone, alone, alone, is_causal=causal).tolist(), rtol=1e-5)


def test_a_block_of_a_transformer_runs_on_ragged_batches_and_trains():
    def program(torch):
        torch.manual_seed(0)
        projections, out, norm = [torch.nn.Linear(8, 8) for _ in "qkv"], torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)
        x = made(torch, "jagged", (3, 8), (5, 8), (1, 8))
        q, k, v = [project(x).unflatten(-1, (2, 4)).transpose(1, 2) for project in projections]
        attended = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
        y = norm(x + out(attended))
        y.to_padded_tensor(0.0).pow(3).sum().backward()
        return y.values().detach(), [p.grad for m in (*projections, out, norm) for p in m.parameters()]

    same(program)


def test_an_encoder_leaves_padding_out_as_torch_does():
    def program(torch):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        encoder = torch.nn.TransformerEncoder(layer, 2).eval()
        x = torch.tensor(data(3, (2, 4, 8))[0])
        padding = torch.tensor([[False, False, True, True], [False, False, False, True]])
        with torch.no_grad():
            return encoder(x, src_key_padding_mask=padding)

    same(program)


MAKING = """N.nested_tensor([]); N.nested_tensor([], layout=J); N.nested_tensor([[1.0, 2.0], [3.0]])
N.nested_tensor([[1.0, 2.0], [3.0]], layout=J); N.nested_tensor([a, v]); N.nested_tensor([a, v[0]])
N.nested_tensor([a, v[0]], layout=J); N.nested_tensor([torch.ones(2, 3), torch.ones(2, 4)], layout=J)
N.nested_tensor([torch.ones(2, 3), torch.ones(3, 4)], layout=J); N.nested_tensor([a, a.double()])
N.as_nested_tensor([a, a.double()], layout=J); N.nested_tensor([torch.tensor(1.0)]); N.nested_tensor(3)
N.nested_tensor([torch.tensor(1.0)], layout=J); N.as_nested_tensor(3); N.as_nested_tensor(torch.ones(2, 2, 3), layout=J)
N.as_nested_tensor(torch.ones(2, 2)); N.as_nested_tensor(torch.ones(())); N.nested_tensor([a], layout=torch.sparse_coo)
N.nested_tensor(torch.ones(2, 2)); N.nested_tensor([a], dtype=torch.float64); N.as_nested_tensor([a], dtype=torch.half)
N.nested_tensor_from_jagged(v); N.nested_tensor_from_jagged(v, torch.tensor([0, 2, 5]))
N.nested_tensor_from_jagged(v, lengths=torch.tensor([2, 3])); N.nested_tensor_from_jagged(v, [0, 2, 5])
N.nested_tensor_from_jagged(v, torch.tensor([0, 2, 5]), torch.tensor([1, 2])); hole.values(); hole.lengths()
hole + hole; hole.sum(1); hole.to_padded_tensor(0.0); hole.contiguous(); hole.contiguous().values(); hole.sum(-1)
hole.sum(); N.nested_tensor_from_jagged(v.T, torch.tensor([0, 2, 5]), jagged_dim=2)
N.nested_tensor_from_jagged(v, torch.tensor([0, 2, 5]), jagged_dim=0)
N.narrow(r, 1, torch.tensor([0, 1, 2]), torch.tensor([1, 2, 2])); N.narrow(a, 0, 0, 1); N.narrow(r, 1, 1, 2, layout=J)
N.narrow(r, 1, torch.tensor([0, 1, 2]), torch.tensor([1, 2, 2]), layout=J)
N.narrow(r, 1, 0, torch.tensor([1, 2, 2]), layout=J); N.narrow(a, 0, torch.tensor([0]), torch.tensor([1]), layout=J)
N.narrow(a, 0, "x", 1); N.masked_select(a, a > 0); N.to_padded_tensor(a, 0.0); a.is_nested
N.as_nested_tensor(N.nested_tensor([a])); N.as_nested_tensor(N.nested_tensor([a]), layout=J)"""


@pytest.mark.parametrize("call", [one.strip() for line in MAKING.splitlines() for one in line.split("; ")])
def test_nested_tensors_are_made_and_refused_as_in_torch(call):
    def program(torch):
        a, v = [torch.tensor(part) for part in data(4, (2, 3), (5, 2))]
        names = dict(torch=torch, N=torch.nested, J=torch.jagged, a=a, v=v, r=torch.arange(12.0).reshape(3, 4))
        if "hole" in call:
            names["hole"] = torch.nested.nested_tensor_from_jagged(v, torch.tensor([0, 2, 5]), torch.tensor([1, 2]))
        return eval(call, names)

    same(program)


@LAYOUTS
def test_recorded_ones_are_printed_with_their_history(layout):
    texts = []
    for torch in (peer, pullback):
        leaf = made(torch, layout, (2, 3), (3, 3), requires_grad=True)
        texts.append([renamed(ADDRESS.sub("0x", repr(one))) for one in (leaf, leaf * 2)])
    assert texts[0] == texts[1]


def test_a_size_that_differs_is_no_number():
    n = made(pullback, "jagged", (2, 3), (3, 3))
    for use in (int, lambda size: size + 1, lambda size: size < 3):
        with pytest.raises(RuntimeError, match="differs from sequence to sequence"):
            use(n.shape[1])
    assert n.view(n.shape[0], n.shape[1], 3, 1).shape[1] == n.shape[1]


def test_what_is_not_there_says_its_name():
    n = made(pullback, "jagged", (2, 3), (3, 3))
    with pytest.raises(
        NotImplementedError, match=r"aten\.cumsum\.default is not implemented for nested tensors; use unb"
    ):
        n.cumsum(1)
    with pytest.raises(NotImplementedError, match="exp is not implemented for nested tensors"):
        np.exp(n._array)


@pytest.mark.parametrize(
    "name", ["hardshrink", "softshrink", "relu6", "selu", "softsign", "tanhshrink", "threshold", "relu"]
)
def test_what_activations_do_element_by_element_they_do_to_sequences(name):
    def program(torch):
        nested = torch.nested.nested_tensor([torch.arange(4.0) - 2, torch.arange(3.0)], layout=torch.jagged)
        more = (0.5, 2.0) if name == "threshold" else ()
        return [*getattr(torch.nn.functional, name)(nested, *more).unbind()]

    same(program)


@pytest.mark.parametrize("name", ["i0", "entr", "log_ndtr", "airy_ai", "square", "angle", "isreal"])
def test_what_declarations_call_pointwise_is_done_to_sequences(name):
    def program(torch):
        nested = torch.nested.nested_tensor([torch.arange(1.0, 4.0), torch.arange(1.0, 3.0)], layout=torch.jagged)
        return [*(getattr(torch, name, None) or getattr(torch.special, name))(nested).unbind()]

    same(program)
