"""What is made on first use is made where it is asked for while a module is imported: another thread would wait."""


def test_a_finder_may_load_ops_while_python_looks_for_a_module(run_python):
    code = """
import sys
import pullback

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "nothing_of_the_kind":
            pullback.conv2d  # loads the modules of nn.functional
        return None

sys.meta_path.insert(0, Finder())
try:
    import nothing_of_the_kind
except ImportError:
    print("looked for")
"""
    assert run_python(code).split() == ["looked", "for"]


def test_a_module_may_make_its_first_calls_while_it_is_imported(run_python, tmp_path):
    (tmp_path / "early.py").write_text(
        "import pullback as torch\n"
        "x = torch.ones(3, requires_grad=True)\n"
        "torch.nn.functional.gelu(torch.erf(x)).sum().backward()\n"
        "made = x.grad is not None\n"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import early; print(early.made)"
    assert run_python(code).split() == ["True"]
