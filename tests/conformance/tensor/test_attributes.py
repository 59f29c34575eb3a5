"""Attributes of tensors that are deleted, or set though they cannot be; and when a tensor gives its array."""

import warnings

import numpy as np
import pytest
import torch as peer

import pullback


class Kinds:
    """Tensors of all kinds, of one library."""

    def __init__(self, torch):
        class Sub(torch.Tensor):
            pass

        self.plain = torch.tensor([1.0, 2.0])
        self.leaf = torch.tensor([1.0, 2.0], requires_grad=True)
        self.leaf.grad = torch.ones(2)
        self.result = self.leaf * 2
        self.view = self.leaf[:1]
        self.parameter = torch.nn.Parameter(torch.ones(2))
        self.conj = torch.tensor([1 + 2j]).conj()
        self.neg = torch.tensor([1 + 2j]).conj().imag
        self.subclass = torch.ones(2, requires_grad=True).as_subclass(Sub)


KINDS = ["plain", "leaf", "result", "view", "parameter", "conj", "neg", "subclass"]
FACTS = [
    "shape",
    "dtype",
    "device",
    "layout",
    "grad_fn",
    "is_leaf",
    "retains_grad",
    "_version",
    "ndim",
    "itemsize",
    "nbytes",
    "T",
    "mT",
    "H",
    "mH",
    "is_cuda",
    "is_cpu",
    "is_sparse",
    "is_quantized",
    "is_meta",
    "is_mps",
    "is_mkldnn",
    "is_nested",
    "is_xpu",
    "output_nr",
    "_base",
    "_cdata",
    "name",
    "is_vulkan",
    "is_ipu",
    "is_maia",
    "is_sparse_csr",
    "is_xla",
    "is_mtia",
]
DELETED = [*FACTS, "data", "grad", "requires_grad", "_backward_hooks", "_grad_fn", "nosuch", "add"]


def outcome(torch, program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading what was deleted, torch's __array__
        try:
            return repr(program(torch)).replace("pullback", "torch")
        except Exception as error:
            return type(error).__name__, str(error).replace("pullback", "torch")


def deleted(name, kind):
    def program(torch):
        x = getattr(Kinds(torch), kind)
        delattr(x, name)
        return getattr(x, name)

    return program


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DELETED)
def test_deleting_an_attribute_does_what_torch_does(name, kind):
    program = deleted(name, kind)
    assert outcome(pullback, program) == outcome(peer, program)


@pytest.mark.parametrize("name", FACTS)
def test_setting_what_cannot_be_set_is_torchs_error(name):
    def program(torch):
        setattr(torch.ones(2), name, 3)

    assert outcome(pullback, program) == outcome(peer, program)


def test_deleting_an_imaginary_part_is_refused():
    def program(torch):
        del torch.ones(2).imag

    assert outcome(pullback, program) == outcome(peer, program)
    # torch ends the process here
    for name in ("real", "grad_dtype"):
        with pytest.raises(AttributeError, match="is not writable"):
            delattr(pullback.ones(2), name)
    x = pullback.ones(2)
    with pytest.raises(RuntimeError):
        del x.data
    assert x.tolist() == [1, 1]


def test_a_deleted_gradient_is_none_and_comes_again():
    def program(torch):
        y = torch.ones(2, requires_grad=True)
        z = y * 2
        z.retain_grad()
        z.sum().backward(retain_graph=True)
        del z.grad, y.grad
        before = z.grad, y.grad, z.retains_grad
        z.sum().backward()
        return before, z.grad.tolist(), y.grad.tolist()

    assert outcome(pullback, program) == outcome(peer, program)


@pytest.mark.parametrize("mode", ["enable_grad", "no_grad", "inference_mode"])
@pytest.mark.parametrize("made_inside", [False, True])
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_numpy_is_refused_only_where_a_gradient_would_be_lost(kind, force, made_inside, mode):
    def program(torch):
        kinds = Kinds(torch)
        with getattr(torch, mode)():
            x = getattr(Kinds(torch) if made_inside else kinds, kind)
            array = x.numpy(force=force)
            return array.tolist(), type(array), array.dtype, x.requires_grad

    assert outcome(pullback, program) == outcome(peer, program)


@pytest.mark.parametrize("kind", ["plain", "leaf", "result", "parameter"])
@pytest.mark.parametrize("mode", ["enable_grad", "no_grad"])
def test_numpy_takes_tensors_where_no_gradient_is_wanted(kind, mode):
    def program(torch):
        x = getattr(Kinds(torch), kind)
        with getattr(torch, mode)():
            array = np.asarray(x)
            array[0] = 7
            return array.tolist(), np.array(x).tolist(), x.detach().tolist()

    assert outcome(pullback, program) == outcome(peer, program)
