"""Subclasses with `__torch_function__`, modes and torch.overrides, on torch and on pullback."""

import pytest
import torch as peer

import pullback


def both(program):
    expected, got = program(peer), program(pullback)
    assert got == expected
    return got


def logging_class(torch, log):
    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged


CALLS = """x + 1; 1 + x; torch.add(x, 1); x.add_(1); F.linear(x, x); x @ x; F.relu(x); F.softmax(x, 0); x[0]; x.tolist()
F.cross_entropy(x, torch.tensor([0, 1])); torch.cat([x, x]); x.numpy(); len(x); x.requires_grad_(); x.detach(); x.sum()
torch.zeros_like(x); x.to(torch.float64); x.reshape(4); F.dropout(x); torch.einsum('ij,jk', x, x); repr(x); x.norm()
torch.nn.Linear(2, 2)(x); F.layer_norm(x, (2,)); x.max(0); torch.split(x, 1); torch.where(x > 0, x, x); x.clone()
torch.nn.functional.conv1d(x, torch.ones(2, 2, 1)); torch.linalg.norm(x); x.type(torch.float64); x.mean(0).item()"""


@pytest.mark.parametrize("text", [one.strip() for line in CALLS.splitlines() for one in line.split(";")])
@pytest.mark.filterwarnings("ignore:Converting a tensor")
def test_a_class_sees_the_functions_torchs_would_see(text):
    def program(torch):
        log = []
        x = torch.ones(2, 2).as_subclass(logging_class(torch, log))
        log.clear()
        try:
            kind = type(eval(text, {"torch": torch, "x": x, "F": torch.nn.functional})).__name__
        except RuntimeError as error:
            kind = str(error)
        return kind, [name for name in log if name != "__get__"]

    both(program)


@pytest.mark.parametrize(
    "text", ["'ij,jk', [x, x]", "'ij,jk', (x, x)", "'ij,jk', x, x", "'ij->i', [x]", "x, [0, 1], x, [1, 2], [0, 2]"]
)
def test_the_operands_of_einsum_arrive_one_by_one_at_a_class_and_as_given_at_a_mode(text):
    def program(torch):
        log = []

        def note(func, args):
            if func is torch.einsum:
                log.append([len(arg) if type(arg) in (list, tuple) else str(arg) for arg in args])

        class Noted:
            def __str__(self):
                return "noted"

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                note(func, args)
                return 1

        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                note(func, args)
                return func(*args, **(kwargs or {}))

        logging_class(torch, [])
        eval(f"torch.einsum({text})", {"torch": torch, "x": Noted()})
        with Mode():
            eval(f"torch.einsum({text})", {"torch": torch, "x": torch.ones(2, 2)})
        return log

    both(program)


def test_gradients_flow_through_instances():
    def program(torch):
        x = torch.ones(2, 2, requires_grad=True)
        y = (x.as_subclass(logging_class(torch, [])) * 3).sum()
        y.backward()
        return type(y).__name__, x.grad.tolist()

    both(program)


def test_a_foreign_class_answers_for_torchs_functions():
    def program(torch):
        class Diagonal:
            def __init__(self, n, value):
                self.n, self.value = n, value

            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func not in handled or not all(issubclass(t, (torch.Tensor, cls)) for t in types):
                    return NotImplemented
                return handled[func](*args, **(kwargs or {}))

        handled = {torch.mean: lambda d: d.value / d.n, torch.add: lambda a, b: ("added", a.n, b)}
        d = Diagonal(4, 2.0)
        seen = [torch.mean(d), torch.add(d, 3)]
        try:
            torch.sub(d, 1)
        except TypeError as error:
            seen.append(str(error).partition("class")[0])
        return seen

    both(program)


def test_subclasses_are_asked_before_their_bases():
    def program(torch):
        asked = []

        class Base(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                asked.append((cls.__name__, [t.__name__ for t in types]))
                return NotImplemented

        class Derived(Base):
            pass

        class Other(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                asked.append((cls.__name__, [t.__name__ for t in types]))
                return 7

        x = torch.ones(2)
        values = torch.cat([x.as_subclass(Base), x.as_subclass(Other), x, x.as_subclass(Derived)])
        try:
            torch.nn.functional.dropout(x.as_subclass(Base))
        except TypeError as error:
            return values, asked, str(error)[:20]

    def without_text(torch):
        values, asked, _ = program(torch)
        return values, asked

    both(without_text)


def test_a_class_that_opts_out_gives_plain_tensors():
    def program(torch):
        class Plain(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

        x = torch.ones(2, 2).as_subclass(Plain)
        return type(x).__name__, type(x + 1).__name__, type(torch.nn.functional.linear(x, x)).__name__

    assert both(program) == ("Plain", "Tensor", "Tensor")


# ------------------------------------------------------------------ modes


def recording_mode(torch, log):
    class Recording(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func.__name__ != "__get__":
                log.append(func.__name__)
            return func(*args, **(kwargs or {}))

    return Recording()


def test_a_mode_sees_every_call_of_the_block_and_no_other():
    def program(torch):
        log = []
        with recording_mode(torch, log):
            x = torch.ones(2, 2)
            y = torch.nn.functional.linear(x, x) + 1
            y.sum()
            torch.is_tensor(x), torch.is_grad_enabled(), torch.manual_seed(0)
            y.add_(1)
        torch.ones(2) + 1
        return log

    both(program)


def test_modes_nest_and_a_mode_may_replace_results():
    def program(torch):
        class Zeros(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                return out * 0 if func.__name__ == "add" else out

        log, x = [], torch.ones(2)
        with recording_mode(torch, log), Zeros() as inner:
            seen = [(x + 1).tolist(), torch.overrides._get_current_function_mode() is inner]
            with torch._C.DisableTorchFunction():
                seen.append((x + 1).tolist())
        return seen, log, torch.overrides._get_current_function_mode_stack()

    both(program)


def test_leaving_a_mode_that_was_not_entered_is_an_error():
    def program(torch):
        with pytest.raises(RuntimeError) as error:
            recording_mode(torch, []).__exit__(None, None, None)
        return str(error.value)

    both(program)


def test_own_functions_can_be_made_overridable():
    def program(torch):
        overrides = torch.overrides

        class Duck:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented if kwargs else (func.__name__, [t.__name__ for t in types], args[1:])

        def scaled(x, factor=1, **options):
            if overrides.has_torch_function((x,)):
                return overrides.handle_torch_function(scaled, (x,), x, factor, **options)
            return x * factor

        @overrides.wrap_torch_function(lambda x: (x,))
        def wrapped(x):
            return "own"

        seen = [scaled(Duck(), 3), scaled(torch.ones(2), 3).tolist(), wrapped(Duck())[0], wrapped(torch.ones(1))]
        try:
            scaled(Duck(), 3, deep=True)
        except TypeError as error:
            seen.append(str(error).partition("Duck")[0].replace(torch.__name__, "torch"))
        return [
            *seen,
            overrides.has_torch_function_unary(torch.ones(1)),
            overrides.has_torch_function_variadic(torch.ones(1), Duck()),
            overrides.is_tensor_like(Duck()),
            overrides.is_tensor_like(3),
        ]

    both(program)


@pytest.mark.parametrize("path", ["add", "nn.functional.linear", "fft.rfft", "linalg.inv", "matmul", "Tensor.numpy"])
def test_functions_have_torchs_names(path):
    def program(torch):
        found = torch
        for part in path.split("."):
            found = getattr(found, part)
        return torch.overrides.resolve_name(found)

    both(program)


def test_overridable_functions_are_listed_by_module():
    listed = pullback.overrides.get_overridable_functions()
    assert pullback.add in listed[pullback] and pullback.nn.functional.linear in listed[pullback.nn.functional]
    assert pullback.manual_seed in pullback.overrides.get_ignored_functions()
    assert pullback.overrides.is_tensor_method_or_property(pullback.Tensor.numpy)
    with pytest.raises(NotImplementedError, match="get_overridable_functions"):
        pullback.overrides.get_testing_overrides()


def test_a_class_is_told_of_ops_below_autograd_however_it_was_made():
    def program(torch):
        log = []

        class Dispatched(torch.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                log.append(str(func))
                return torch.ones(1)

        x = torch.ones(2)
        for made in (x.as_subclass(Dispatched), torch.Tensor._make_subclass(Dispatched, x)):
            made + 1
        return log

    assert both(program)[-1] == "aten.add.Tensor"


@pytest.mark.parametrize("module", [peer, pullback], ids=["torch", "pullback"])
def test_operators_ask_a_foreign_class_before_its_own_operators(module):
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args)

        def __radd__(self, other):
            return "never asked"

    x, other = module.ones(2), Foreign()
    asked = [x + other, x - other, x * other, x / other, x @ other, x == other, x < other]
    x += other
    assert [*asked, x] == [(name, 2) for name in ("add", "sub", "mul", "div", "matmul", "eq", "lt", "add_")]
