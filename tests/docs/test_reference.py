"""The reference: every public name has a page, a signature and a text; the examples in docstrings run."""

import doctest
import importlib
import inspect
import re

import pytest

import pullback
from docs.tools import api, texts
from tests.structure.source import SRC, module_name

PAGES = api.pages()
EVERYTHING = "\n".join(text for _, text in PAGES.values())
WITH_EXAMPLES = sorted(module_name(path) for path in SRC.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


def test_every_function_of_torch_that_does_something_has_an_entry():
    names = [name for name, value in vars(pullback).items() if not name.startswith("_") and api.public(value)]
    missing = [n for n in names if f"{{ #torch.{n} }}" not in EVERYTHING and f"{{ #pullback.{n} }}" not in EVERYTHING]
    assert set(missing) <= {"Tensor"}, missing
    assert len(names) > 500


@pytest.mark.parametrize("name", ["torch.nn.Linear", "torch.optim.Adam", "torch.linalg.svd", "torch.autograd.Function"])
def test_modules_have_entries(name):
    assert f"{{ #{name} }}" in EVERYTHING


def test_every_method_of_a_tensor_is_listed():
    text = PAGES["api/tensor.md"][1]
    methods = [n for n in dir(pullback.Tensor) if not n.startswith("_") and api.public(getattr(pullback.Tensor, n))]
    assert not [name for name in methods if f"| `{name}" not in text]


def test_every_entry_has_a_text():
    entries = re.findall(
        r"### `([\w.]+)` \{ #[\w.]+ \}\n\n```python\n.*?```\n(.*?)(?=\n### |\Z)", EVERYTHING, re.DOTALL
    )
    silent = [name for name, text in entries if not re.search(r"\w", re.split(r"\[in torch\]|<small>", text)[0])]
    assert len(entries) > 1000
    assert not silent, f"without a docstring: {silent}"


def test_an_op_shows_its_derivatives_and_where_torch_describes_it():
    entry = api.entry("torch.tanh", pullback.tanh, {})
    assert "Derivatives by `TanhBackward0`" in entry and "self = " in entry
    assert "generated/torch.tanh.html" in entry and "ops/" in entry


def test_what_torch_has_not_is_not_linked_to_torch():
    assert api.torch_page("torch.show") == "" and api.torch_page("pullback.explain") == ""


def test_a_docstring_becomes_markdown():
    text = texts.markdown("What it is.\n\nArgs:\n    x: a <number>\n        that goes on.\n\n>>> 1 + 1\n2\n")
    assert (
        text == "What it is.\n\n**Arguments**\n\n* `x`: a &lt;number> that goes on.\n\n```python\n>>> 1 + 1\n2\n```\n"
    )


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_in_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    assert inspect.ismodule(module)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, globs={}, optionflags=options).failed == 0
