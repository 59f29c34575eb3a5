"""torch.ops.aten on torch and on pullback: overloads, schemas, calls and their errors."""

import copy
import pickle

import pytest
import torch as peer

import pullback
from tests.conformance.both import attempt, on_both, same

# Written as programs write them; x [2, 3], v [3], m a mask, w [4, 3], i indices, im images, cw filters, b [4].
CALLS = """add.Tensor(x, x, alpha=2)|add.Scalar(x, 2)|mul.Tensor(x, 2)|mul.Scalar(x, 2)
div.Tensor_mode(x, v, rounding_mode='floor')|pow.Tensor_Scalar(x, 2)|pow.Tensor_Tensor(v, v)|pow.Scalar(2, x)
neg.default(x)|exp.default(x)|relu.default(x)|gelu.default(x, approximate='tanh')|clamp.default(x, min=0)
sum.default(x)|sum.dim_IntList(x, [1])|sum(x, [0], dtype=torch.float64)|mean.dim(x, [1], True)|amax.default(x, [1])
max.dim(x, 1)|min.dim(x, 0, True)|argmax.default(x, 1)|var.correction(x, [1], correction=1)
var_mean.correction(x, [1], correction=0)|cumsum.default(x, 1)|any.dim(m, 0)|all.dim(m, 1)|logsumexp.default(x, [1])
topk.default(x, 2)|sort.stable(x, stable=True)|mm.default(x, w.t())|addmm.default(b, x, w.t(), beta=2, alpha=3)
bmm.default(im[0], im[1])|linear.default(x, w, b)|dot.default(v, v)|view.default(x, [3, 2])
_unsafe_view.default(x, [6])|t.default(x)|transpose.int(x, 0, 1)|permute.default(x, [1, 0])
expand.default(v, [2, 3])|unsqueeze.default(v, 0)|squeeze.dim(v.view(1, 3), 0)|squeeze.dims(v.view(1, 3, 1), [0, 2])
select.int(x, 0, 1)|slice.Tensor(x, 1, 0, 2)|slice.Tensor(x, 1, 0, 9223372036854775807, 2)
index.Tensor(x, [None, i])|index_select(x, 1, i)|gather.default(x, 1, i.view(2, 1))
scatter.value(x, 1, i.view(2, 1), 5)|index_put.default(x, [i[:1]], v)|masked_fill.Scalar(x, m, 0)
where.self(m, x, x)|cat.default([x, x], 1)|stack.default([v, v])|split.Tensor(x, 1)|split_with_sizes(x, [1, 2], 1)
unbind.int(x)|unfold(v, 0, 2, 1)|constant_pad_nd(x, [1, 1], 9.)|clone.default(x)|detach.default(x)
lift_fresh.default(x)|eq.Tensor(x, x)|eq.Scalar(x, 1)|lt.Tensor(x, v)|bitwise_and.Tensor(m, m)|zeros.default([2, 2])
ones.default([2], dtype=torch.int64)|full.default([2], 3)|arange.start_step(0, 6, 2)|zeros_like.default(x)
new_zeros.default(x, [2])|scalar_tensor.default(2.5)|_to_copy.default(x, dtype=torch.float64)
_local_scalar_dense.default(v[0])|convolution.default(im, cw, b, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
max_pool2d_with_indices.default(im, [2, 2], [2, 2])|_adaptive_avg_pool2d.default(im, [2, 2])
native_layer_norm.default(x, [3], v, v, 1e-5)|native_batch_norm.default(im, None, None, None, None, True, 0.1, 1e-5)
_softmax.default(x, 1, False)|_log_softmax.default(x, 1, False)|embedding.default(w, i)
mse_loss.default(x, x * 2, 2)|cross_entropy_loss(x, i * 0)|threshold_backward.default(x, x, 0)
tanh_backward.default(x, x)|_softmax_backward_data.default(x, x, 1, torch.float32)|gelu_backward.default(x, x)
convolution_backward.default(torch.ones(2, 4, 4, 4), im, cw, [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3)
mse_loss_backward.default(torch.ones(()), x, x * 2, 1)
embedding_dense_backward.default(torch.ones(2, 3), i, 4, -1, False)|add_.Tensor(x.clone(), 1)
relu_.default(x.clone())|copy_.default(x.clone(), v)|fill_.Scalar(x.clone(), 1)|add.out(x, x, out=torch.empty(2, 3))
max.dim_max(x, 1, max=torch.empty(2), max_values=torch.empty(2, dtype=torch.int64))|linalg_vector_norm.default(x)
special_erf(x)|fft_rfft(v)|_foreach_add.Scalar([x, v], 1)|sym_size.int(x, 0)|native_dropout(x, 0.5, False)
rsub.Scalar(x, 1)|aminmax(x)|view_as_real(torch.ones(1) + 1j)|add(x, 1)|add(3, 4)|sum(x, 1)|add('s', 4)
add.Scalar(x, x)|relu(self=x)|relu(input=x)|mul.Tensor(x, 's')|max(x, 1)|mm(x, x)|no_such_op(x)"""


@pytest.mark.parametrize("call", [one for line in CALLS.splitlines() for one in line.split("|")])
def test_an_op_of_aten_gives_what_torchs_gives(call):
    def program(torch):
        names = {
            "torch": torch,
            "aten": torch.ops.aten,
            "x": torch.tensor([[1.0, -2.0, 3.0], [0.5, 2.0, -1.0]]),
            "v": torch.tensor([1.0, 2.0, 3.0]),
            "i": torch.tensor([0, 2]),
            "m": torch.tensor([[True, False, True], [False, True, False]]),
            "w": torch.arange(12.0).view(4, 3) / 7,
            "im": torch.arange(2 * 3 * 6 * 6.0).view(2, 3, 6, 6) / 50,
            "cw": torch.arange(4 * 3 * 9.0).view(4, 3, 3, 3) / 30,
            "b": torch.ones(4),
        }
        made = attempt(lambda: eval(f"aten.{call}", names))
        return type(made).__name__, made

    same(program)


NAMES = """add mul relu sum mm addmm t view slice index max convolution _softmax native_layer_norm copy_ zeros clone
_to_copy empty scaled_dot_product_attention threshold_backward nll_loss_forward
_scaled_dot_product_flash_attention_for_cpu"""


@pytest.mark.parametrize("name", NAMES.split())
def test_overloads_and_schemas_are_torchs(name):
    def program(torch):
        packet = getattr(torch.ops.aten, name)
        schemas = [getattr(packet, one)._schema for one in packet.overloads()]
        return [
            str(packet),
            repr(packet),
            packet.overloads(),
            [str(one) for one in schemas],
            [getattr(packet, one).name() for one in packet.overloads()],
            [repr(getattr(packet, one)) for one in packet.overloads()],
            [one.is_mutable for one in schemas],
            [(a.name, str(a.type), a.kwarg_only, a.default_value, a.N) for one in schemas for a in one.arguments],
        ]

    same(program)


def test_every_schema_of_the_table_is_read_as_torch_reads_it():
    read = 0
    for name in pullback.ops.aten.__dir__():
        if not isinstance(getattr(pullback.ops.aten, name, None), type(pullback.ops.aten.add)):
            continue
        ours, theirs = getattr(pullback.ops.aten, name), getattr(peer.ops.aten, name)
        assert ours.overloads() == theirs.overloads(), name
        for one in ours.overloads():
            mine, torchs = getattr(ours, one)._schema, getattr(theirs, one)._schema
            assert str(mine) == str(torchs)
            assert [str(a.type) for a in mine.arguments] == [str(a.type) for a in torchs.arguments], str(mine)
            assert [a.has_default_value() for a in mine.arguments] == [a.has_default_value() for a in torchs.arguments]
            assert [str(r.type) for r in mine.returns] == [str(r.type) for r in torchs.returns], str(mine)
            read += 1
    assert read > 3600


def test_every_op_of_torch_can_be_named_as_a_key_of_a_table():
    schemas = [one for one in peer._C._jit_get_all_schemas() if one.name.startswith("aten::")]
    names = {one.name.removeprefix("aten::") for one in schemas if not one.name.startswith("aten::__")}
    lacking = {name for name in names if not hasattr(pullback.ops.aten, name)}
    assert lacking == {"dict", "items", "_test_string_default"}  # of TorchScript alone
    table = {pullback.ops.aten._sparse_addmm.default: 1}
    assert table[pullback.ops.aten._sparse_addmm.default] == 1
    with pytest.raises(NotImplementedError, match="_cudnn_rnn_flatten_weight"):
        pullback.ops.aten._cudnn_rnn_flatten_weight([], 1, 1, 1, 1, 1, 1, False, False)


@on_both
def test_overloads_are_one_object_each_and_copied_as_themselves(torch):
    add = torch.ops.aten.add
    table = {add.Tensor: 1, torch.ops.aten.mul.Tensor: 2}
    return [
        table[torch.ops.aten.add.Tensor],
        copy.deepcopy(add.Tensor) is add.Tensor,
        add is torch.ops.aten.add,
        add.Tensor.overloadpacket is add,
        hasattr(torch.ops.aten, "add"),
        hasattr(torch.ops.aten, "no_such_op"),
        hasattr(add, "no_such_overload"),
        attempt(lambda: torch.ops.aten.no_such_op),
        str(torch.ops.aten),
    ]


def test_overloads_are_pickled_by_name():
    add = pullback.ops.aten.add.Tensor
    assert pickle.loads(pickle.dumps(add)) is add
    assert pickle.loads(pickle.dumps(pullback.ops.aten.add)) is pullback.ops.aten.add


@on_both
def test_ops_of_aten_are_recorded(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.ops.aten.mul.Tensor(x, x)
    y.sum().backward()
    return y, y.grad_fn, x.grad, torch.ops.aten.sum.dim_IntList(y, [0]).grad_fn
