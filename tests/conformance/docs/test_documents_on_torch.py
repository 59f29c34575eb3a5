"""The pages say that torch gives the same answers: their examples, run on torch."""

import doctest
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", ["tour.md", "from_torch.md"])
@pytest.mark.filterwarnings("ignore")
def test_the_examples_of_a_page_give_the_same_answers_on_torch(name):
    text = re.sub(r"^```\w*$", "", (DOCS / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = text.replace("import pullback as torch", "import torch")
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert "pullback" not in "".join(example.source for example in test.examples)
    assert runner.run(test, out=report.write).failed == 0, report.getvalue()
