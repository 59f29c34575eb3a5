"""Names from torch's inside that packages use, on torch and on pullback."""

import gc
import pickle
from importlib import import_module

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import attempt, on_both

BOTH = pytest.mark.parametrize("torch", [peer, pullback], ids=["torch", "pullback"])


def utils(torch):
    return torch._utils


@on_both
def test_tensors_are_flattened_into_one_and_taken_apart_again(torch):
    row = [torch.arange(6.0).reshape(2, 3), torch.tensor(7.0), torch.ones(2)]
    flat = utils(torch)._flatten_dense_tensors(row)
    return flat, utils(torch)._unflatten_dense_tensors(flat * 2, row)


@on_both
def test_tensors_are_taken_in_lists_of_one_type_and_put_in_order_again(torch):
    row = [torch.ones(2), torch.ones(3, dtype=torch.int32), torch.ones(5), torch.zeros(1, dtype=torch.int32)]
    lists = list(utils(torch)._take_tensors(row, 16))
    return lists, utils(torch)._reorder_tensors_as([t for one in lists for t in one], row)


@on_both
def test_devices_have_numbers(torch):
    index = utils(torch)._get_device_index
    calls = [lambda: index("cpu"), lambda: index(None), lambda: index(torch.device("cpu"), allow_cpu=True)]
    calls += [lambda: index(3), lambda: index(torch.device("cuda", 1)), lambda: utils(torch)._element_size(torch.half)]
    return [attempt(call) for call in calls]


@on_both
def test_calls_are_rendered(torch):
    args = [torch.ones(2), 1, torch.ones(2, 1, dtype=torch.int32)]
    return utils(torch).render_call(torch.add, args, {"alpha": 2})


@BOTH
@pytest.mark.parametrize("kind", [ValueError, KeyError, UnicodeDecodeError])
def test_an_exception_is_raised_again_elsewhere(torch, kind):
    try:
        raise kind("away") if kind is not UnicodeDecodeError else kind("utf-8", b"", 0, 1, "away")
    except kind:
        kept = pickle.loads(pickle.dumps(utils(torch).ExceptionWrapper(where="in a worker")))
    with pytest.raises(RuntimeError if kind is UnicodeDecodeError else kind) as caught:
        kept.reraise()
    assert f"Caught {kind.__name__} in a worker.\nOriginal Traceback (most recent call last):\n" in str(caught.value)


@BOTH
def test_a_class_property_is_computed_from_the_class(torch):
    class Named:
        @utils(torch).classproperty
        def name(cls):
            return cls.__name__

    assert Named.name == Named().name == "Named"


@BOTH
def test_lists_of_tensors_are_grouped_by_dtype(torch):
    group = torch.utils._foreach_utils._group_tensors_by_device_and_dtype
    first = [torch.ones(1), torch.ones(1, dtype=torch.int32), torch.zeros(1)]
    found = group([first, [None, "x", None]] if torch is pullback else [first, [None, None, None]], with_indices=True)
    assert {str(dtype): places for (_, dtype), (_, places) in found.items()} == {
        "torch.float32": [0, 2],
        "torch.int32": [1],
    }
    floats = found[torch.device("cpu"), torch.float32][0][0]
    assert floats[0] is first[0] or floats[0].data_ptr() == first[0].data_ptr()


@on_both
def test_foreach_support_is_asked_for_by_device(torch):
    ask = torch.utils._foreach_utils
    return ask._device_has_foreach_support(torch.device("cpu")), ask._get_fused_kernels_supported_devices()


def per_sample(torch, reduction):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    x = torch.randn(5, 4)
    call = import_module(f"{torch.__name__}.nn.utils._per_sample_grad").call_for_per_sample_grads
    out = call(model, loss_reduction=reduction)(x)
    (out.sum() if reduction == "sum" else out.sum(1).mean()).backward()
    return out, [p.grad_sample for p in model.parameters()], [p.grad for p in model.parameters()]


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_of_each_sample_are_kept_beside_the_parameter(reduction):
    (out, samples, grads), (own, own_samples, own_grads) = per_sample(peer, reduction), per_sample(pullback, reduction)
    np.testing.assert_allclose(own.tolist(), out.tolist(), rtol=1e-5)
    assert grads == own_grads == [None] * 4
    for a, b in zip(samples, own_samples, strict=True):
        np.testing.assert_allclose(b.tolist(), a.tolist(), rtol=1e-4, atol=1e-6)


@on_both
def test_gradients_of_each_sample_refuse_what_they_cannot_do(torch):
    call = import_module(f"{torch.__name__}.nn.utils._per_sample_grad").call_for_per_sample_grads
    model = torch.nn.Linear(2, 2)
    wrong = [dict(loss_reduction="max"), dict(batch_size=1.5), dict(batch_size=0)]
    model(torch.ones(1, 2))
    said = [attempt(lambda options=options: call(model, **options)) for options in wrong]
    bilinear = torch.nn.Bilinear(2, 2, 1)
    said.append(attempt(lambda: call(bilinear)(torch.ones(2, 2), torch.ones(3, 2))))
    return [*said, attempt(lambda: call(3)), attempt(lambda: call(model)())]


@BOTH
def test_a_weak_reference_says_when_its_tensor_is_gone(torch):
    tensor = torch.ones(2)
    weak = torch._C._WeakTensorRef(tensor)
    assert not weak.expired()
    del tensor
    gc.collect()
    assert weak.expired()


@BOTH
def test_a_tensor_inside_vmap_stands_for_a_batch(torch):
    ask, said = torch._C._functorch, []

    def seen(x):
        inside = ask.is_batchedtensor(x), ask.maybe_get_bdim(x), ask.is_functorch_wrapped_tensor(x)
        said.append((*inside, tuple(ask.get_unwrapped(x).shape)))
        return x

    torch.vmap(seen, in_dims=1)(torch.ones(2, 3))
    assert said == [(True, 1, True, (2, 3))]
    plain = torch.ones(2)
    assert not ask.is_batchedtensor(plain) and not ask.is_gradtrackingtensor(plain)
    assert (ask.maybe_get_level(plain), ask.maybe_get_bdim(plain), ask.maybe_current_level()) == (-1, -1, None)
    with pytest.raises(RuntimeError, match="No wrappers present!"):
        ask.get_unwrapped(plain)


@on_both
def test_tensors_say_their_dispatch_keys(torch):
    key, keys = torch._C.DispatchKey, torch._C._dispatch_keys
    dense = keys(torch.ones(2))
    shown = [dense, keys(torch.ones(2).to_sparse()), keys(torch.ones(2, device="meta")), dense.highestPriorityTypeId()]
    shown += [keys(torch.ones(2, dtype=torch.complex64).conj())]
    shown += [
        dense | torch._C.DispatchKeySet(key.Python),
        dense.remove(key.CPU),
        torch._C.DispatchKeySet(key.CUDA),
    ]
    asked = [dense.has(key.CPU), dense.has(key.CUDA), dense == keys(torch.zeros(1)), int(key.CPU), key.CPU.name]
    return [repr(one) for one in shown], asked, sorted([int(one) for one in key.__members__.values()])


@BOTH
def test_the_class_of_what_nodes_saved_has_a_name(torch):
    saved = torch.ones(2, requires_grad=True).exp().grad_fn._raw_saved_result
    assert isinstance(saved, torch.autograd.SavedTensor)


@BOTH
def test_an_optimizer_of_ones_own_is_written_with_torchs_helpers(torch):
    home = import_module(f"{torch.__name__}.optim.optimizer")

    class Plain(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, dict(lr=lr, differentiable=False))

        @home._use_grad_for_differentiable
        def step(self, closure=None):
            assert not torch.is_grad_enabled()
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad, alpha=home._get_value(group["lr"]))

    weight = torch.ones(2, requires_grad=True)
    (weight * 3).sum().backward()
    Plain([weight], torch.tensor(0.5)).step()
    assert weight.tolist() == [-0.5, -0.5] and torch.is_grad_enabled()
    assert home._to_scalar(torch.ones(1)).dim() == 0 and home._get_scalar_dtype() is torch.float32
