"""A module imports only from a lower layer: the table of layers, and the imports of every file compared with it."""

import sys
from graphlib import CycleError, TopologicalSorter

from tests.structure.source import SRC, Import, imports_of, module_name, python_files

# The rooms, lowest first. A name stands for the module or for the package and all it holds; the longest match counts.
# A module may import from the rows above its own, and from its own row as long as no cycle arises.
LAYERS: list[tuple[str, list[str]]] = [
    ("0 first uses, interrupts and builtins", ["_runtime.building", "_runtime.interrupts", "_runtime.builtins"]),
    ("0 facts", ["_pytree", "_runtime", "_dtype", "_device", "_modes", "_arrays", "_sparse", "_thresholds"]),
    (
        "1 data structures",
        [
            "_tensor",
            "_foreign",
            "_sparse.tensor",
            "_lazy",
            "_versions",
            "autograd.hooks",
            "autograd.collector",
            "autograd.numbering",
            "autograd.locations",
            "autograd.leaf",
            "autograd.node",
            "autograd.saved",
            "autograd.tracebacks",
            "autograd.view",
            "autograd.who",
        ],
    ),
    ("1 compiled kernels", ["kernels.jit", "kernels.compiled", "kernels.workers"]),
    ("1 arrays without elements", ["_meta"]),
    ("2 op machine", ["_op", "_meta.reading"]),
    ("3 kernels", ["kernels"]),
    ("3 ops", ["ops"]),
    ("4 batching", ["batching"]),
    ("4 engine", ["autograd"]),
    ("4 on the engine", ["autograd.functional", "autograd.gradcheck", "func", "printing", "serialization", "show"]),
    (
        "4 ops on a CUDA device",
        [
            "kernels.cuda.eager",
            "kernels.cuda.calls.again",
            "kernels.cuda.calls.lanes",
            "kernels.cuda.random",
            "kernels.cuda.calls.categories",
        ],
    ),
    (
        "4 namespaces of ops",
        [
            "cpu",
            "fft",
            "functional",
            "linalg",
            "return_types",
            "signal",
            "special",
            "sparse",
            "random",
            "nn.functional",
            "overrides",
        ],
    ),
    ("4 the library of ops", ["library"]),
    ("4 compiled programs", ["compiler"]),
    (
        "5 users of public names",
        [
            "array_api",
            "masked",
            "nested",
            "nn",
            "optim",
            "utils",
            "models",
            "profiler",
            "testing",
            "quasirandom",
            "insight",
            "cli",
            "compat",
            "fx",
            "jit",
        ],
    ),
    ("5 users of public names", ["amp", "cuda", "accelerator", "backends", "distributions", "version", "__main__"]),
    ("6 many processes", ["distributed"]),
    ("facade", [""]),
]
PUBLIC_NAMES_ONLY = "5 users of public names"
ABOVE_THE_FACADE = {PUBLIC_NAMES_ONLY, "6 many processes"}
FACADE = "pullback"

# Private modules that a user of public names may import, and why.
ALLOWED_PRIVATE: dict[tuple[str, str], str] = {
    ("pullback.cuda.devices", "pullback._runtime.messages"): "what is said of missing devices is known there",
    ("pullback.cuda.devices", "pullback._runtime.building"): "the device is loaded when it is first asked for",
    ("pullback.cuda.devices", "pullback._device"): "which device is current is known there",
    ("pullback.cuda.memory", "pullback._runtime.building"): "the device is loaded when it is first asked for",
    ("pullback.cuda.queues", "pullback._device"): "which device is current is known there",
    ("pullback.cuda.queues", "pullback._runtime.building"): "the device is loaded when it is first asked for",
    ("pullback.accelerator", "pullback._device"): "the kind of a device is named there",
    ("pullback.profiler", "pullback._runtime.warnings"): "what is said once is known there",
    ("pullback.nested.tensor", "pullback._tensor"): "a nested tensor is made around another, without running __init__",
    ("pullback.nested.tensor", "pullback._op.declare"): "what functions do element by element, declarations say",
    ("pullback.nested.tensor", "pullback._op.ufuncs"): "or imply",
    ("pullback.nn.parameter", "pullback._tensor"): "Parameter is a Tensor all layers know; its public home is nn",
    (
        "pullback.utils._pytree",
        "pullback._pytree",
    ): "trees are known in all layers; their public home is utils",
    (
        "pullback.utils._pytree_registry",
        "pullback._pytree",
    ): "so are the kinds of branches that programs add",
    ("pullback.compat.c_names", "pullback._op.overrides"): "the switch behind torch._C.DisableTorchFunctionSubclass",
    ("pullback.compat.c_names", "pullback.ops.create.cast"): "what the arguments of `to` mean is known there",
    ("pullback.compat.dtypes", "pullback._dtype"): "dtypes that have no arrays are made there too",
    ("pullback.compat.dtypes", "pullback._arrays.element"): "so are their ranges",
    (
        "pullback.compat.vision.replaced",
        "pullback._runtime.quiet",
    ): "what it computes with NumPy is as silent as all ops",
    ("pullback.compat.vision.images", "pullback._runtime.building"): "Pillow is loaded when an image is read",
    ("pullback.optim.together", "pullback._versions"): "writes of compiled code are counted by whoever calls it",
    ("pullback.optim.optimizer", "pullback._modes"): "a step of an optimizer is an effect of what is recorded",
    ("pullback.compat.compiling", "pullback._modes"): "whether what runs is recorded is known there",
    ("pullback.amp.autocast", "pullback._runtime.interrupts"): "a block that no interrupt leaves half entered",
    ("pullback.compat.c_names", "pullback._runtime.interrupts"): "a block that no interrupt leaves half entered",
    ("pullback.insight.trace", "pullback._runtime.interrupts"): "a block that no interrupt leaves half entered",
    ("pullback.compat.compiling", "pullback._runtime.building"): "what is loaded late is loaded by it",
    ("pullback.nn.utils", "pullback._runtime.building"): "what is loaded late is loaded by it",
    ("pullback.nn.parallel", "pullback._runtime.building"): "what is loaded late is loaded by it",
    ("pullback.nn.modules.batchnorm", "pullback._runtime.building"): "what is loaded late is loaded by it",
    ("pullback.utils.data.sampler", "pullback._runtime.building"): "what is loaded late is loaded by it",
    ("pullback.utils", "pullback._runtime.building"): "what is loaded late is loaded by it",
    ("pullback.utils.tensorboard._embedding", "pullback._runtime.building"): "Pillow is loaded when an image is made",
    ("pullback.utils.tensorboard._utils", "pullback._runtime.building"): "matplotlib is loaded when a figure is added",
    ("pullback.utils.tensorboard.pictures", "pullback._runtime.building"): "Pillow is loaded when an image is made",
    ("pullback.quasirandom", "pullback._runtime.building"): "what is loaded late is loaded by it",
    ("pullback.insight.graph", "pullback._arrays.memory"): "what a saved tensor keeps alive is the memory it looks at",
    ("pullback.insight.trace", "pullback._arrays.memory"): "aliases are known by the memory they share",
    ("pullback.insight.trace", "pullback._modes"): "it watches ops where a profiler does",
}

# What a function may import: it may be missing. Others that few programs need are `loaded`, which no interrupt ends.
LAZY_PACKAGES = {"llvmlite", "mpi4py"}

# Modules that only pullback.kernels.compiled.room loads, once the compiler is known to be there.
NEED_COMPILER = {
    f"pullback.kernels.jit.{name}" for name in ("compiler.engine", "compiler.target", "cuda.ptx", "runtime.threads")
}

# The package that needs others, which only those who import it have: what torch's needs, too.
NEEDS_TENSORBOARD, TENSORBOARD = "pullback.utils.tensorboard", {"tensorboard", "google"}

# How a package imports its own modules by name.
OWN_PACKAGE = "{__name__}."

# Other imports inside a function: (module, what it imports) -> why it cannot stand at the top of the file.
ALLOWED_INSIDE_FUNCTIONS: dict[tuple[str, str], str] = {
    (
        "pullback.compat.install",
        "importlib.import_module(own)",
    ): "it is an importer: programs ask for modules by name",
    ("pullback.compat.install", "importlib.import_module(name)"): "the shim's torch asks for ours in its place",
    ("pullback.cli.check", "importlib.import_module(parts[0])"): "it looks up names found in a program",
    ("pullback.cli.bench", "importlib.import_module(name)"): "it measures beside torch where that is installed",
    (
        "pullback.kernels.compiled",
        "import_module(f'pullback.kernels.jit.{name}')",
    ): "the compiler is loaded when a kernel is needed",
    (
        "pullback._arrays.kinds",
        "import_module(MODULES[place.type])",
    ): "a kind of arrays is loaded when it is first asked for",
    ("pullback._runtime.building", "importlib.import_module(name)"): "it imports what is loaded late",
    ("pullback.kernels.jit.compiler.switch", "pullback.kernels.jit.compiler.selftest"): "it needs the compiler",
    ("pullback.kernels.jit.compiler.switch", "pullback.kernels.jit.runtime.buffers"): "it needs the compiler",
    ("pullback.utils._pytree_registry", "import_module(module)"): "a file says where what it names is found",
    ("pullback.compat.missing", "import_module(full)"): "a module under torch's name is made when it is first named",
}


def dotted(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def row_of(module: str) -> int:
    """The row of a module of pullback in LAYERS, by its longest matching name; -1 if the table does not know it."""
    best, row = -1, -1
    for index, (_, names) in enumerate(LAYERS):
        for name in names:
            prefix = dotted(FACADE, name)
            matches = module == prefix or (name and module.startswith(prefix + "."))
            if matches and len(prefix) > best:
                best, row = len(prefix), index
    return row


FILES = {module_name(path): path for path in python_files("src")}
IMPORTS = {module: imports_of(path) for module, path in FILES.items()}


def resolve(found: Import) -> str:
    """The module an import of pullback reaches: `from package import module` means the module."""
    if found.name is not None and dotted(found.target, found.name) in FILES:
        return dotted(found.target, found.name)
    return found.target


def internal_imports(module: str) -> list[tuple[Import, str]]:
    """The imports of other modules of pullback that run when this one is imported."""
    return [
        (found, resolve(found))
        for found in IMPORTS[module]
        if found.top == FACADE and not found.typing_only and found.function is None and resolve(found) != module
    ]


def where(module: str, found: Import) -> str:
    return f"{FILES[module].relative_to(SRC.parent)}:{found.line}"


def test_every_module_has_a_place_in_the_table():
    homeless = [module for module in FILES if row_of(module) < 0]
    assert not homeless, f"not in the table of layers: {homeless}"


def test_a_module_imports_only_from_its_own_row_or_a_lower_one():
    wrong = []
    for module in FILES:
        for found, target in internal_imports(module):
            row, target_row = row_of(module), row_of(target)
            if LAYERS[row][0] in ABOVE_THE_FACADE and target == FACADE:
                continue  # these modules are written as a user would write them
            if target_row > row:
                wrong.append(
                    f"{where(module, found)}: {LAYERS[row][0]!r} imports {target} of {LAYERS[target_row][0]!r}"
                )
    assert not wrong, "imports from a higher layer:\n" + "\n".join(wrong)


def test_users_of_public_names_import_no_private_module():
    wrong = []
    for module in FILES:
        if LAYERS[row_of(module)][0] != PUBLIC_NAMES_ONLY:
            continue
        for found, target in internal_imports(module):
            private = any(part.startswith("_") for part in target.split("."))
            if private and row_of(target) != row_of(module) and (module, target) not in ALLOWED_PRIVATE:
                wrong.append(f"{where(module, found)}: imports {target}")
    assert not wrong, "private modules imported by users of public names:\n" + "\n".join(wrong)


def test_no_imports_form_a_cycle():
    graph = {module: {target for _, target in internal_imports(module)} for module in FILES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError("a cycle of imports: " + " <- ".join(error.args[1])) from None


def test_nothing_is_imported_inside_a_function():
    wrong = []
    for module, path in FILES.items():
        for found in IMPORTS[module]:
            if found.function is None or found.typing_only or found.top in LAZY_PACKAGES:
                continue
            if OWN_PACKAGE in found.target:
                continue
            if path.name == "__init__.py" and found.function == "__getattr__":
                continue  # a package that loads its heavy parts when they are first named
            if (module, resolve(found)) not in ALLOWED_INSIDE_FUNCTIONS:
                wrong.append(f"{where(module, found)}: {found.function} imports {resolve(found)}")
    assert not wrong, "imports inside functions:\n" + "\n".join(wrong)


def test_every_exception_is_still_needed():
    used = {(module, resolve(found)) for module in FILES for found in IMPORTS[module] if found.function is not None}
    stale = sorted(set(ALLOWED_INSIDE_FUNCTIONS) - used)
    stale += sorted(set(ALLOWED_PRIVATE) - {(m, target) for m in FILES for _, target in internal_imports(m)})
    assert not stale, f"no longer imported: {stale}"


def test_at_import_time_only_numpy_and_the_standard_library_are_needed():
    allowed = {FACADE, "numpy"} | set(sys.stdlib_module_names)
    wrong = [
        f"{where(module, found)}: imports {found.target}"
        for module in FILES
        for found in IMPORTS[module]
        if found.function is None
        and not found.typing_only
        and found.top not in allowed
        and (module not in NEED_COMPILER or found.top != "llvmlite")
        and not (module.startswith(NEEDS_TENSORBOARD) and found.top in TENSORBOARD)
        and OWN_PACKAGE not in found.target
    ]
    assert not wrong, "imports of other packages at the top of a file:\n" + "\n".join(wrong)
