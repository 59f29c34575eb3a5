"""The Python-facing entry of a kernel: a builtin that checks each argument, then hands the work to the thread pool.

    floats = array("float32", "n")
    scale = kernel("scale", [floats, array("float32", "n", write=True), integer("n"), number()], describe)
    scale(x, out, x.size, 2.0, count, grain)

The last two arguments are the number of items to share among the threads and the smallest share. The answer is True,
or False if an array is not what the kernel was compiled for (another dtype, not row-major, not writable, another
size); nothing has been touched then and the caller takes its NumPy path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pullback._runtime.building import made
from pullback._runtime.builtins import builtin as builtin
from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.compiler.target import ELEMENTS
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime import threads

CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
"""NumPy's flags of an array."""
HEAD = object.__basicsize__
DATA, NDIM, DIMS, STRIDES, DESCR, FLAGS = HEAD, HEAD + 8, HEAD + 16, HEAD + 24, HEAD + 40, HEAD + 48
"""Where an ndarray keeps what we ask for."""


class Param(NamedTuple):
    """One argument of a kernel."""

    kind: str
    """array, integer or number"""
    dtype: str = ""
    size: tuple[str, ...] = ()
    """Names of integer arguments whose product the size of the array must be."""
    write: bool = False
    strided: bool = False
    """Any strides: the caller passes them, taken from the array itself."""
    name: str = ""


def array(dtype: str, size: str = "", *, write: bool = False, strided: bool = False) -> Param:
    """An array of one dtype, row-major unless `strided`; `size` like "rows*cols" is checked."""
    return Param("array", dtype, tuple(size.split("*")) if size else (), write, strided)


def integer(name: str = "") -> Param:
    """A Python int; arrays may give their size by its name."""
    return Param("integer", name=name)


def number() -> Param:
    """A Python float."""
    return Param("number")


class Compiled(NamedTuple):
    """What is known of a kernel, for `pullback.show(op, kernel=True)`."""

    name: str
    packed: bytes
    note: str

    @property
    def text(self) -> str:
        """LLVM's text of its module."""
        return engine.unpacked(self.packed)


compiled: dict[str, Compiled] = {}
"""Every kernel of this process by name."""


def kernel(
    name: str,
    params: Sequence[Param],
    describe: Callable[..., None],
    note: str = "",
    element: str = "float",
    release: bool = False,
) -> Callable[..., bool]:
    """Compile a kernel: `describe(code, *values)` writes what is done for the items code.begin to code.end.

    The name and the parameters say all about it: what is not in them may not decide what is written.
    Arrays arrive as pointers, integers as i64, numbers as scalars of `element`. With `release` the interpreter is let
    go even where the items are done by this thread: each is long.
    """
    threads.start()
    names = [f"{name}_call"]
    recipe = f"{name} {[tuple(param) for param in params]} {element} {release}"
    found = engine.recall(recipe, names)
    if found is None:

        def written() -> str:
            code = Code(name)
            types = {"array": "ptr", "integer": "i64", "number": element}
            describe(code, *[code.argument(i, types[param.kind]) for i, param in enumerate(params)])
            return code.text() + entry_text(name, params, release)

        text = made(written)
        found = engine.load(text, names, recipe), engine.packed(text)
    (address,), packed = found
    compiled[name] = Compiled(name, packed, note)
    return builtin(address, name)


def entry_text(name: str, params: Sequence[Param], release: bool = False) -> str:
    """The checking entry `name_call(self, argv, argc)`."""
    code = Code(f"{name}_call")
    argv = Value(code, "%argv", "ptr")
    slots = code.stack(len(params), "i64")
    integers: dict[str, Value] = {}
    code.do(f"%right = icmp eq i64 %argc, {len(params) + 2}")
    code.do("br i1 %right, label %start, label %refuse")
    code.block("start")
    for i, param in enumerate([*params, integer(), integer()]):
        if param.kind == "array":
            continue
        given = code.emit(f"load ptr, {code.at(argv, i, 'ptr')}", "ptr")
        integral = param.kind == "integer"
        type = "i64" if integral else "double"
        value = code.call("PyLong_AsLongLong" if integral else "PyFloat_AsDouble", type, given)
        failed = code.compare("eq", value, -1)
        with code.when(failed):
            error = code.call("PyErr_Occurred", "ptr")
            bad = code.emit(f"icmp ne {error}, null", "i1")
            onward = code.label()
            code.do(f"br {bad}, label %raise, label %{onward}")
            code.block(onward)
        if i < len(params):
            code.store(value, slots, i)
        integers[param.name or f"argument {i}"] = value
    for i, param in enumerate(params):
        if param.kind == "array":
            given = code.emit(f"load ptr, {code.at(argv, i, 'ptr')}", "ptr")
            check_array(code, param, given, integers)
            data = code.load(given, DATA // 8, "i64")
            code.store(data, slots, i)
    count, grain = integers[f"argument {len(params)}"], integers[f"argument {len(params) + 1}"]
    sane = (count >= 0) & (grain > 0)
    code.do(f"br {sane}, label %go, label %refuse")
    code.block("go")
    # The interpreter is let go only when the work is shared: that costs as much as a small kernel.
    shared = count >= grain if release else count > grain
    code.do(f"br {shared}, label %release, label %direct")
    code.block("direct")
    code.do(f"call void @{name}({slots}, i64 0, {count}, i64 0)")
    code.do("br label %done")
    code.block("release")
    thread = code.call("PyEval_SaveThread", "ptr")
    code.declare("pullback_parallel_for", "void", "ptr", "ptr", "i64", "i64")
    code.do(f"call void @pullback_parallel_for(ptr @{name}, {slots}, {count}, {grain})")
    code.declare("PyEval_RestoreThread", "void", "ptr")
    code.do(f"call void @PyEval_RestoreThread({thread})")
    code.do("br label %done")
    for label, answer in (("done", "Py_True"), ("refuse", "Py_False")):
        code.block(label)
        code.do(f"call void @Py_IncRef(ptr @object_{answer})")
        code.do(f"ret ptr @object_{answer}")
    code.block("raise")
    code.do("ret ptr null")
    code.declare("Py_IncRef", "void", "ptr")
    names = {"object_Py_True", "object_Py_False", "object_ndarray"} | {
        f"dtype_{p.dtype}" for p in params if p.kind == "array"
    }
    outside = "".join(f"@{n} = external global i8\n" for n in sorted(names))
    body = "\n".join([*code.entry, *code.lines])
    declared = "\n".join(sorted(code.declared))
    return f"{outside}{declared}\ndefine ptr @{name}_call(ptr %self, ptr %argv, i64 %argc) {{\n{body}\n}}\n"


def check_array(code: Code, param: Param, given: Value, integers: dict[str, Value]) -> None:
    """Refuse what is not the array that was promised."""
    if param.dtype not in ELEMENTS:
        raise TypeError(f"kernels know no dtype {param.dtype!r}")
    kind = code.emit(f"load ptr, {code.at(given, HEAD // 8 - 1, 'i64')}", "ptr")
    refuse_unless(code, code.emit(f"icmp eq {kind}, @object_ndarray", "i1"))
    descr = code.emit(f"load ptr, {code.at(given, DESCR // 8, 'i64')}", "ptr")
    refuse_unless(code, code.emit(f"icmp eq {descr}, @dtype_{param.dtype}", "i1"))
    wanted = ALIGNED | (WRITEABLE if param.write else 0) | (0 if param.strided else CONTIGUOUS)
    flags = code.load(given, FLAGS // 4, "i32")
    refuse_unless(code, code.compare("eq", flags & wanted, wanted))
    if not param.size:
        return
    wanted_size: Value | None = None
    for name in param.size:
        factor = code.const(int(name), "i64") if name.isdigit() else integers[name]
        wanted_size = factor if wanted_size is None else wanted_size * factor
    assert wanted_size is not None
    ndim = code.convert(code.load(given, NDIM // 4, "i32"), "i64")
    dims = code.emit(f"load ptr, {code.at(given, DIMS // 8, 'i64')}", "ptr")
    size = code.variable(code.const(1, "i64"))
    with code.loop(0, ndim) as axis:
        size.set(size.get() * code.load(dims, axis, "i64"))
    refuse_unless(code, code.compare("eq", size.get(), wanted_size))


def refuse_unless(code: Code, condition: Value) -> None:
    """Answer False at once if the condition does not hold."""
    onward = code.label()
    code.do(f"br {condition}, label %{onward}, label %refuse")
    code.block(onward)
