"""The type stubs say what the registry says."""

from pullback._op import stubs


def test_the_stubs_are_those_the_registry_gives(run_python):
    # In a process where no class has overridden functions: that exchanges their code.
    source = (
        "from pullback._op import stubs\n"
        "made = stubs.stubs()\n"
        "written = {path.name: path.read_text() for path in stubs.FOLDER.glob('*.pyi')}\n"
        "print(sorted(name for name in made.keys() | written.keys() if made.get(name) != written.get(name)))\n"
    )
    assert run_python(source).strip() == "[]", "run `python -m pullback._op.stubs`"


def test_a_stub_names_the_parameters_and_the_results_of_an_op():
    text = stubs.stubs()["torch.pyi"]
    assert "def mul(input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ..." in text
    assert "class topk_result(NamedTuple):\n    values: Tensor\n    indices: Tensor\n" in text
