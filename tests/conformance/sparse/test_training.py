"""Sparse gradients of tables, the optimizers that take them and those that refuse, and sparse tensors in files."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch as reference

import pullback
from pullback.ops.sparse.pickles import rebuild_sparse
from tests.conformance.sparse.both import agree, difference, namespace, outcome

NUMBERS = [[1, 2, 1], [0, 3, 2]]

TABLES = {
    "embedding": "F.embedding(numbers, weight, sparse=True)",
    "padding": "F.embedding(numbers, weight, padding_idx=2, sparse=True)",
    "frequency": "F.embedding(numbers, weight, scale_grad_by_freq=True, sparse=True)",
    "int32": "F.embedding(numbers.int(), weight, sparse=True)",
    "through a product": "F.embedding(numbers, weight * 2, sparse=True)",
    "through a transpose": "F.embedding(numbers, weight.t().contiguous().t(), sparse=True)",
    "bag": "F.embedding_bag(numbers, weight, sparse=True, mode='sum')",
    "mean of bags": "F.embedding_bag(numbers, weight, sparse=True)",
    "largest of bags": "F.embedding_bag(numbers, weight, sparse=True, mode='max')",
    "bag with weights": "F.embedding_bag(numbers, weight, sparse=True, mode='sum', per_sample_weights=samples)",
    "bag with padding": "F.embedding_bag(numbers, weight, sparse=True, mode='sum', padding_idx=2)",
    "bag by frequency": "F.embedding_bag(numbers, weight, sparse=True, mode='sum', scale_grad_by_freq=True)",
}


@pytest.mark.parametrize("name", TABLES)
def test_the_gradient_of_a_table_is_sparse(name: str) -> None:
    def program(torch: Any, names: dict[str, Any]) -> Any:
        weight = torch.arange(15.0).reshape(5, 3).requires_grad_()
        names |= {"numbers": torch.tensor(NUMBERS), "weight": weight, "samples": torch.arange(1.0, 7.0).reshape(2, 3)}
        out = eval(TABLES[name], names)
        (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
        return weight.grad

    agree(program)


OPTIMIZERS = {
    "SGD": "O.SGD(p, 0.01)",
    "SGD upwards": "O.SGD(p, 0.01, maximize=True)",
    "SGD with momentum": "O.SGD(p, 0.01, momentum=0.9)",
    "SGD with nesterov": "O.SGD(p, 0.01, momentum=0.9, nesterov=True)",
    "SGD with dampening": "O.SGD(p, 0.01, momentum=0.9, dampening=0.1)",
    "SGD with decay": "O.SGD(p, 0.01, weight_decay=0.1)",
    "Adagrad": "O.Adagrad(p, 0.1)",
    "Adagrad with options": "O.Adagrad(p, 0.1, lr_decay=0.1, initial_accumulator_value=0.1)",
    "Adagrad upwards": "O.Adagrad(p, 0.1, maximize=True)",
    "Adagrad with decay": "O.Adagrad(p, 0.1, weight_decay=0.1)",
    "SparseAdam": "O.SparseAdam(p, 0.1)",
    "SparseAdam with options": "O.SparseAdam(p, 0.1, betas=(0.5, 0.6), eps=1e-3, maximize=True)",
    **{name: f"O.{name}(p)" for name in ("Adam", "AdamW", "RMSprop", "Adadelta", "ASGD", "Rprop", "Adamax", "NAdam")},
    **{name: f"O.{name}(p)" for name in ("RAdam", "Adafactor")},
}


@pytest.mark.parametrize("keeps", [False, True], ids=["grads to None", "grads to zero"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_treats_sparse_gradients_as_torch_does(name: str, keeps: bool) -> None:
    def program(torch: Any, names: dict[str, Any]) -> Any:
        table = torch.nn.Embedding(5, 3, sparse=True)
        with torch.no_grad():
            table.weight.copy_(torch.arange(15.0).reshape(5, 3) / 7)
        optimizer = eval(OPTIMIZERS[name], {"O": torch.optim, "p": list(table.parameters())})
        for step in range(3):
            optimizer.zero_grad(set_to_none=not keeps)
            out = table(torch.tensor(NUMBERS) + step % 2)
            (out * out * torch.arange(1.0, 19.0).reshape(2, 3, 3)).sum().backward()
            optimizer.step()
        state = optimizer.state_dict()["state"].get(0, {})
        kept = [torch.as_tensor(value) for _, value in sorted(state.items()) if value is not None]
        return [table.weight.detach(), *[one.to_dense() for one in kept]]

    agree(program)


REFUSED = """
torch.optim.SparseAdam([torch.ones(2)], lr=-1)
torch.optim.SparseAdam([torch.ones(2)], betas=(1.0, 0))
torch.optim.SparseAdam([torch.ones(2)], eps=0)
torch.optim.SparseAdam([torch.ones(2).to_sparse()])
torch.optim.SparseAdam([])
repr(torch.optim.SparseAdam([torch.ones(2)]))
"""


@pytest.mark.parametrize("expression", REFUSED.strip().split("\n"))
def test_sparse_adam_checks_its_options(expression: str) -> None:
    agree(expression)


def test_sparse_adam_refuses_dense_gradients() -> None:
    def program(torch: Any, names: dict[str, Any]) -> Any:
        weight = torch.ones(2, requires_grad=True)
        weight.sum().backward()
        return torch.optim.SparseAdam([weight]).step()

    agree(program)


@pytest.mark.parametrize("foreach", [None, False])
def test_clipping_the_norm_of_a_sparse_gradient_is_refused(foreach: Any) -> None:
    def program(torch: Any, names: dict[str, Any]) -> Any:
        weight = torch.ones(5, 3, requires_grad=True)
        names["F"].embedding(torch.tensor(NUMBERS), weight, sparse=True).sum().backward()
        return torch.nn.utils.clip_grad_norm_([weight], 1.0, foreach=foreach)

    agree(program)


def test_a_step_on_a_sparse_gradient_touches_only_its_rows() -> None:
    weight = pullback.zeros(5, 3, requires_grad=True)
    with pullback.no_grad():
        weight[4] = float("nan")
    pullback.nn.functional.embedding(pullback.tensor([1, 1]), weight, sparse=True).sum().backward()
    pullback.optim.SGD([weight], 1.0).step()
    assert weight[:4].tolist() == [[0.0] * 3, [-2.0] * 3, [0.0] * 3, [0.0] * 3]


def test_an_optimizer_that_refuses_a_sparse_gradient_changes_nothing() -> None:
    first, table = pullback.ones(2, requires_grad=True), pullback.ones(5, 3, requires_grad=True)
    (first.sum() + pullback.nn.functional.embedding(pullback.tensor([1]), table, sparse=True).sum()).backward()
    with pytest.raises(RuntimeError, match="please consider SparseAdam"):
        pullback.optim.Adam([first, table]).step()
    assert first.tolist() == [1.0, 1.0]


# ------------------------------------------------------------------ files

KEPT = ["u", "s", "h", "csr", "csc", "bsr"]


def saved(torch: Any, value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save({"a": value}, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", KEPT)
def test_a_sparse_tensor_comes_back_from_a_file_and_a_pickle(name: str) -> None:
    agree(lambda torch, names: torch.load(saved(torch, names[name]))["a"])
    agree(lambda torch, names: pickle.loads(pickle.dumps(names[name])))


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.filterwarnings("ignore")
def test_each_library_reads_the_files_of_the_other(name: str) -> None:
    for writer, reader in ((reference, pullback), (pullback, reference)):
        file = saved(writer, namespace(writer)[name])
        expected = outcome(writer, lambda writer=writer: namespace(writer)[name])
        assert difference(expected, outcome(reader, lambda file=file, reader=reader: reader.load(file)["a"])) is None


@pytest.mark.parametrize("name", ["u", "s", "h"])
def test_a_sparse_tensor_can_be_copied(name: str) -> None:
    agree(lambda torch, names: copy.deepcopy(names[name]))
    agree(lambda torch, names: copy.copy(names[name]))
    one = namespace(pullback)[name]
    other = copy.deepcopy(one)
    other._values().mul_(2)
    assert one._values().tolist() != other._values().tolist()


def test_a_sparse_parameter_stays_one_in_a_file() -> None:
    agree(lambda torch, names: torch.load(saved(torch, torch.nn.Parameter(names["s"])))["a"])
    agree(lambda torch, names: type(torch.load(saved(torch, torch.nn.Parameter(names["s"])))["a"]).__name__)


def test_a_file_whose_parts_do_not_fit_is_refused() -> None:
    values = pullback.tensor([1.0, 2.0])
    good, outside, disordered = ([[0, 1]], [[0, 5]], [[1, 0]])
    for indices, said in ((outside, "size is inconsistent with indices"), (disordered, "which it is not")):
        with pytest.raises((RuntimeError, ValueError), match=said):
            rebuild_sparse(pullback.sparse_coo, (pullback.tensor(indices), values, (2,), True))
    rows = (pullback.tensor([0, 1, 3]), pullback.tensor([0, 0]), values, (2, 2))
    with pytest.raises(RuntimeError, match="== nnz"):
        rebuild_sparse(pullback.sparse_csr, rows)
    assert rebuild_sparse(pullback.sparse_coo, (pullback.tensor(good), values, (2,), True)).is_coalesced()
