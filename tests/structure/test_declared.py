"""What is true of an op is said in its declaration: no list of names elsewhere says it, and every word is known."""

import ast
import inspect
import re

import pullback  # noqa: F401  # declares the ops
from pullback._op.declare import FACTS, Op, functions, registry
from pullback._op.define import function, op
from pullback.batching import allocating, run  # noqa: F401  # loads the rules
from pullback.batching.random import is_random
from pullback.batching.strategies import implied, rule_of, rules
from pullback.ops import load_all
from pullback.ops.autocast import ACTIONS
from pullback.ops.sparse import products, shapes  # noqa: F401  # loads the rules
from pullback.ops.sparse.rules import rules as rules_of_sparse
from tests.structure.source import ROOT, SRC, module_name, python_files

load_all()
DECLARED = [*registry.values(), *functions.values()]

# ------------------------------------------------------------------ no lists of ops

# Parts of the source in which such names mean something else. Everywhere else a list of them is a fact about ops.
OTHER_WORDS = {
    "_meta": "functions of NumPy, which arrays without elements answer",
    "array_api": "the names that the standard demands",
    "functional": "names of the torch namespace that have a second address",
    "distributed.tensor": "functions that tensors in parts have rules for, and how parts combine",
    "compiler": "methods and functions of NumPy, attributes of tensors, and modules of Python",
    "fx": "how torch writes graphs: names that stand in the code they become",
    "kernels": "functions of NumPy, and words of the expression language",
    "library": "ops of torch's library that are none here, as its schemas name them",
}
# Ops of these names are methods that cast or move; in a list they are dtypes and devices.
DTYPES = "half float double bfloat16 short int long char byte bool complex chalf cfloat cdouble cpu cuda numpy"
NAMES = {name for one in DECLARED for name in (one.key, one.name)} - {*DTYPES.split()}
MOST = 1
"""One name is a special case; two begin a list."""
WORDS = 3
"""From so many names on, a text that is hardly anything else is a list to be split."""

# (module, the names in it) -> why this is no list of ops.
ALLOWED: dict[tuple[str, str], str] = {
    ("", "fft random"): "modules",
    ("_device", "index type"): "attributes of a device",
    ("_dtype", "is_complex is_floating_point is_signed"): "attributes of a dtype",
    ("_arrays.element", "max min"): "attributes of finfo",
    ("_lazy", "is_complex is_floating_point is_signed"): "methods of a class",
    ("autograd.who", "detach set_"): "words that errors begin with",
    ("distributions", "bernoulli normal uniform"): "modules",
    ("distributions", "binomial geometric poisson"): "modules",
    ("distributions.constraints", "cat multinomial one_hot positive real square stack"): "constraints",
    ("insight.explorer.page", "norm to"): "keys of the page",
    ("insight.why", "add to zero"): "reasons",
    ("masked", "amax argmax logaddexp logsumexp"): "functions of this module",
    ("nested", "masked_select narrow"): "functions of this module",
    ("nested.jagged", "all amax amin any argmax argmin mean prod sum"): "reductions the layout has a rule for",
    ("nested.jagged", "bmm mm"): "products it has a rule for",
    ("nested.jagged", "log_softmax softmax"): "functions along a dimension it has a rule for",
    ("nested.jagged", "max min"): "reductions it has a rule for",
    ("nested.strided", "eq ge gt"): "comparisons the layout refuses with another of its kind",
    ("nested.strided", "flatten unflatten view_as where"): "functions it refuses",
    (
        "nested.tensor",
        "div pow power_operator reflected_sub reflected_truediv rsub",
    ): "names of operators here, and torch's",
    ("nn.init", "eye normal normal_ uniform uniform_"): "functions of this module",
    ("nn.init", "linear relu selu sigmoid tanh"): "values of `nonlinearity`",
    ("nn.modules.rnn", "relu tanh"): "values of `nonlinearity`",
    ("nn.modules.transformer", "gelu relu"): "values of `activation`",
    (
        "nn.parameter",
        "_to_copy copy_ detach get_device is_complex is_floating_point requires_grad_ to",
    ): "public in torch",
    ("nn.utils._per_sample_grad", "mean sum"): "values of `loss_reduction`",
    ("optim.lr_scheduler.combined", "max min"): "values of `mode`",
    ("optim.lr_scheduler.cyclic", "cos linear"): "values of `anneal_strategy`",
    ("optim.swa_utils", "cos linear"): "values of `anneal_strategy`",
    ("random", "get_rng_state initial_seed manual_seed seed set_rng_state"): "names of the namespace",
    ("utils.dlpack", "from_dlpack to_dlpack"): "names of the namespace",
    ("autograd.graph", "all any"): "modes of register_multi_grad_hook",
    ("ops.create.cast", "copy tensor"): "parameters of to()",
    ("ops.index.scatter_reduce", "amax amin mean prod"): "values of `reduce`",
    ("ops.index.scatter_reduce", "mean sum"): "values of `reduce`",
    ("ops.index.scatter_reduce", "amax amin"): "values of `reduce`",
    ("ops.interop.arrays", "conj neg"): "the bits of a lazy view",
    ("ops.interop.numpy_functions", "max min"): "parameters of clamp",
    ("ops.interop.symbolic", "acos asin atan cos cosh log2 sin sinh sqrt tan tanh"): "functions of Python's math",
    ("ops.nn.embedding_bag", "max mean sum"): "values of `mode`",
    ("ops.nn.image.interpolate", "bilinear linear trilinear"): "values of `mode`",
    ("ops.nn.loss.density", "mean sum"): "values of `reduction`",
    ("ops.nn.loss.margin", "mean sum"): "values of `reduction`",
    ("ops.nn.loss.ranking", "mean sum"): "values of `reduction`",
    ("ops.nn.loss.reduction", "mean sum"): "values of `reduction`",
    ("ops.out_of_scope", "_coalesced_ *"): "methods whose modules are loaded on demand",
    ("ops.sparse.coo", "indices values"): "parameters of sparse_coo_tensor",
    ("printing", "ccol_indices row_indices"): "words that are printed",
    ("printing", "col_indices crow_indices"): "words that are printed",
    ("ops.pointwise.arithmetic", "floor trunc"): "values of `rounding_mode`",
    ("ops.pointwise.polynomials", "airy_ai *"): "declares them",
    ("ops.pointwise.polynomials", "chebyshev_polynomial_t *"): "declares them",
    ("ops.reduce.segments", "amax amin max mean min prod sum"): "values of `reduce`",
    ("ops.signal_windows", "blackman hamming hann nuttall"): "declares them",
    (
        "_op.stubs",
        "max median min nanmedian sort",
    ): "what type checkers are told where the type of a result depends on the arguments",
    ("_op.stubs", "indices values"): "the names of fields",
    (
        "_op.stubs",
        "nonzero sort unique where",
    ): "what type checkers are told where the type of a result depends on the arguments",
    ("_op.stubs", "max min"): "what type checkers are told where the type of a result depends on the arguments",
    ("_op.stubs", "imag real"): "properties of a tensor",
    ("serialization.names", "conj neg"): "words of the file format",
    ("serialization.pickle_writer", "conj neg"): "words of the file format",
}


def texts(literal: ast.expr) -> list[str]:
    """The texts a literal is made of."""
    if isinstance(literal, ast.Dict):
        items: list[ast.expr | None] = [*literal.keys, *literal.values]
    elif isinstance(literal, ast.Tuple | ast.List | ast.Set):
        items = [*literal.elts]
    elif isinstance(literal, ast.Call) and isinstance(literal.func, ast.Name) and literal.func.id == "dict":
        return [keyword.arg for keyword in literal.keywords if keyword.arg]
    elif isinstance(literal, ast.BoolOp):  # name == "mul" or name == "add"
        items = [value.comparators[0] for value in literal.values if isinstance(value, ast.Compare)]
    else:
        items = []
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str) and len(literal.value.split()) >= WORDS:
            words = literal.value.split()
            if sum(word in NAMES for word in words) >= max(WORDS, 0.75 * len(words)):
                return words
    return [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]


def is_declaration(node: ast.AST) -> bool:
    """True for a call of `op` or `function`, as a decorator or not."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("op", "function")


def lists_in(node: ast.AST) -> list[tuple[int, list[str]]]:
    """The literals of ops under a node, declarations apart: their lines, and the names in them."""
    if is_declaration(node):
        return []
    found = []
    if isinstance(node, ast.Match):
        node.subject = ast.Tuple([p.value for p in ast.walk(node) if isinstance(p, ast.MatchValue)], lineno=node.lineno)
    if isinstance(node, ast.expr):
        names = sorted({text for text in texts(node) if text in NAMES})
        if len(names) > MOST:
            found.append((node.lineno, names))
    return found + [one for child in ast.iter_child_nodes(node) for one in lists_in(child)]


def without_docs(tree: ast.Module) -> ast.Module:
    """A module without its texts about itself."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return tree


def every_list() -> dict[tuple[str, str], str]:
    """The lists of ops in the source, by module and names, and where they are."""
    out = {}
    for path in python_files("src"):
        module = module_name(path).removeprefix("pullback").lstrip(".")
        tree = without_docs(ast.parse(path.read_text(encoding="utf-8")))
        for line, names in lists_in(tree):
            shown = f"{names[0]} *" if len(names) > 11 else " ".join(names)
            out[module, shown] = f"{path.relative_to(SRC.parent)}:{line}: {names}"
    return out


def other_words(module: str) -> str | None:
    """The part of the source with words of its own that a module belongs to."""
    return next((part for part in OTHER_WORDS if module == part or module.startswith(f"{part}.")), None)


def test_no_list_names_ops_outside_their_declarations():
    wrong = [where for key, where in every_list().items() if key not in ALLOWED and not other_words(key[0])]
    assert not wrong, "say it in the declarations of these ops (CONTRIBUTING.md, the options of an op):\n" + "\n".join(
        wrong
    )


def test_every_exception_is_still_needed():
    lists = every_list()
    assert not ALLOWED.keys() - lists.keys()
    assert not OTHER_WORDS.keys() - {other_words(module) for module, _ in lists}


def test_a_list_of_ops_is_seen_wherever_it_is():
    for source in (
        'X = ("mul", "add")',
        'X = {"mul": 1, "add": 2}',
        'f(["mul", "add"])',
        'X = "mul add sub".split()',
        "X = dict(mul=1, add=2)",
        'name == "mul" or name == "add"',
        'match name:\n case "mul" | "add": pass',
    ):
        assert lists_in(ast.parse(source)), source
    for source in ('X = ("mul", "size")', '@op(saves=("mul", "add"))\ndef f(): pass', '"""mul add sub"""'):
        assert not lists_in(without_docs(ast.parse(source))), source


# ------------------------------------------------------------------ every word is known


def test_every_keyword_of_a_declaration_is_an_option_or_an_input():
    assert not {(one.key, word) for one in registry.values() for word in one.formulas.keys() - {*one.tensors}}


def said(option: str) -> set[str]:
    return {getattr(one, option, "") for one in DECLARED} - {""}


def test_every_value_of_an_option_is_known_and_every_known_value_is_said():
    assert said("autocast") == ACTIONS.keys()
    assert said("foreach") == {"unary", "binary", "binary_or_one", "bound", "with_factor"}
    implied_ways = {implied(one) for one in registry.values() if not one.vmap} - {""}
    assert said("vmap") | implied_ways == {*rules, *allocating.WAYS, "like", "drawn_again"}
    assert said("sparse") == rules_of_sparse.keys()
    assert said("nested") == {"jagged", "strided", "shape", "jagged_shape"}
    assert said("out_overlap") == {"partial", "resized", "self", "apart", "unchecked"}
    assert said("absent_tangent") == {"product", "quotient", "inner", "sum", "difference"}
    assert said("flops") == {"elements", "product", "product_and_sum", "convolution"}
    packed = {"moved", "moved_complex", "compared", "compared_complex", "rounded", "rounded_complex"}
    assert said("packed") == packed | {"cast", "copied", "filled"}
    assert said("along") <= registry.keys()


def test_how_every_op_runs_on_a_batch_is_said_or_implied_by_its_declaration():
    assert not {one.key for one in registry.values() if not (one.vmap or implied(one) or is_random(one))}
    assert all(rule_of(one) for one in registry.values())


def test_no_op_says_of_a_batch_what_its_declaration_implies():
    assert not {one.key for one in registry.values() if one.vmap and one.vmap == implied(one)}


def test_a_function_of_numpy_is_declared_once():
    names = [name for one in DECLARED for name in one.numpy]
    assert len(names) == len({*names})


# ------------------------------------------------------------------ the table of options


def options() -> set[str]:
    """Every keyword that `@op` and `@function` take."""
    signatures = [inspect.signature(call).parameters.values() for call in (op, function, Op.__init__)]
    named = {p.name for parameters in signatures for p in parameters if p.kind is p.KEYWORD_ONLY}
    return named | FACTS


def table() -> dict[str, list[str]]:
    """The rows of CONTRIBUTING.md: each option, with the examples given for it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The options of an op")[2]
    rows = re.findall(r"^\| `(\w+)`\** \|.*\| (`[^|]*`) \|$", text.partition("\n## ")[0], re.M)
    return {option: re.findall(r"`(\w+)`", examples) for option, examples in rows}


def test_the_table_of_options_is_complete():
    assert table().keys() == options()


def test_the_examples_of_the_table_use_the_options_they_are_given_for():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in python_files("src/pullback/ops")]
    defined = {node.name: node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    uses = {
        name: {k.arg for d in node.decorator_list if is_declaration(d) for k in d.keywords}  # type: ignore[attr-defined]
        for name, node in defined.items()
    }
    wrong = [(option, name) for option, names in table().items() for name in names if option not in uses.get(name, ())]
    assert not wrong
    assert all(table().values())
