"""TorchDispatchMode and __torch_dispatch__ on torch and on pullback: which ops are told, and what comes of answers."""

import pytest

from tests.conformance.both import attempt, on_both, same


def dispatch(torch):
    """The module of modes."""
    return __import__(f"{torch.__name__}.utils._python_dispatch", fromlist=["TorchDispatchMode"])


def pytree(torch):
    """The module of trees."""
    return __import__(f"{torch.__name__}.utils._pytree", fromlist=["tree_map"])


def shapes(value):
    """Arguments by their shapes."""
    if hasattr(value, "shape"):
        return list(value.shape)
    return [shapes(part) for part in value] if isinstance(value, (list, tuple)) else value


# What torch alone tells: that it looks at a result it saves, and at the gradient it starts from or keeps.
UNTOLD = ("aten.detach.default", "aten.ones_like.default", "aten.copy_.default")


def logging(torch, log, untold=UNTOLD):
    """A mode that writes down what it is told."""

    class Log(dispatch(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if str(func) not in untold:
                log.append((str(func), shapes(args)))
            return func(*args, **(kwargs or {}))

    return Log()


@on_both
def test_a_mode_is_told_of_the_ops_of_a_network_forwards_and_backwards(torch):
    torch.manual_seed(0)
    nn, log = torch.nn, []
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    x, y = torch.randn(4, 3), torch.randn(4, 2)
    with logging(torch, log):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
    return log, loss, loss.grad_fn, [p.grad for p in model.parameters()]


@on_both
def test_a_mode_is_told_of_convolutions_and_norms_forwards_and_backwards(torch):
    torch.manual_seed(0)
    nn, log = torch.nn, []
    conv, x, weights = nn.Conv2d(3, 4, 3), torch.randn(2, 3, 8, 8), torch.randn(2, 4, 3, 3)
    with logging(torch, log, (*UNTOLD, "aten.empty.memory_format")):
        y = nn.functional.max_pool2d(conv(x), 2)
        y = nn.functional.layer_norm(nn.functional.batch_norm(y, None, None, training=True), (3, 3))
        (y * weights).sum().backward()
    return log, conv.weight.grad


CALLS = """x * 2; x + 1; x - x; x / 3; x ** 2; x.sum(); x.exp().mean(); torch.cat([x, x]); x.view(3, 2).t(); x[0]
x[:, 1:]; x.clone(); torch.softmax(x, 0); torch.max(x, 1); x > 0; torch.where(x > 0, x, x); x.detach().add_(1)
x.detach().mul_(x.detach()); x.detach().zero_(); torch.add(x.detach(), 1, out=torch.empty(2, 3))
torch.matmul(x, x.t()); torch.matmul(torch.ones(2, 3, 4), torch.ones(4, 5))
x.unsqueeze(0).expand(2, 2, 3).reshape(-1); F.gelu(x); F.embedding(torch.tensor([1]), x); torch.zeros(3)
torch.arange(3); torch.randn(2); torch.ones(2, 3); torch.full((2,), 3.0); x.sum().item(); torch.tensor([1.0])
F.linear(x, x); x @ x.t(); F.layer_norm(x, (3,)); x.abs().sqrt(); torch.einsum('ij,kj->ik', x, x)
F.conv1d(x.view(1, 2, 3), torch.ones(2, 2, 1)); x.transpose(0, 1).contiguous(); torch.stack([x, x]); x.cumsum(1)
torch.split(x, 1); x.unbind(); x.gather(1, torch.tensor([[0]])); torch.bmm(torch.ones(2, 2, 2), torch.ones(2, 2, 2))
torch.sort(x); torch.ops.aten.mul.Tensor(x, x); torch.ops.aten.add(x, 1); x.norm(); F.relu(x); torch.sigmoid(x)
x.masked_fill(x > 0, 0.0)
F.scaled_dot_product_attention(torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 3))
torch.linalg.vector_norm(x); 1 - x"""


@pytest.mark.parametrize("call", [one.strip() for line in CALLS.splitlines() for one in line.split(";") if one.strip()])
def test_a_mode_is_told_what_torchs_would_be(call):
    def program(torch):
        log = []
        names = {"torch": torch, "F": torch.nn.functional, "x": torch.arange(6.0).view(2, 3).requires_grad_()}
        with logging(torch, log, UNTOLD[:1]):
            made = eval(call, names)
        return log, type(made).__name__

    same(program)


@on_both
def test_modes_are_told_from_the_inside_out_and_not_of_what_they_do_themselves(torch):
    modes, log = dispatch(torch), []

    class Named(modes.TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append((self.name, str(func)))
            return func(*args, **(kwargs or {}))

    x = torch.ones(1)
    with Named("outer") as outer:
        x + 1
        with Named("inner"):
            x * 2
            current = modes._get_current_dispatch_mode().name
            with modes._disable_current_modes() as around:
                x - 1
    return log, current, len(around), modes._get_current_dispatch_mode(), outer.name


@on_both
def test_what_a_mode_answers_has_the_history_of_the_op(torch):
    class Zero(dispatch(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            return out * 0 if str(func) == "aten.mul.Tensor" else out

    x = torch.ones(2, requires_grad=True)
    with Zero():
        y = x * 3
    y.sum().backward()
    return y, y.grad_fn, x.grad


@on_both
def test_a_mode_that_does_not_answer_is_an_error(torch):
    class Silent(dispatch(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.ones(1)
    with Silent():
        found = attempt(lambda: torch.sin(x))
    return found


def pair_class(torch, log):
    """A tensor that is two tensors, on which every op is done."""
    modes, trees = dispatch(torch), pytree(torch)

    class Pair(torch.Tensor):
        @staticmethod
        def __new__(cls, a, b, requires_grad=False):
            return torch.Tensor._make_wrapper_subclass(
                cls, a.shape, dtype=a.dtype, device=a.device, requires_grad=requires_grad
            )

        def __init__(self, a, b, requires_grad=False):
            self.a, self.b = a, b

        def __repr__(self):
            parts = [[round(value, 3) for value in part.flatten().tolist()] for part in (self.a, self.b)]
            return f"Pair({parts})"

        def __tensor_flatten__(self):
            return ["a", "b"], None

        @staticmethod
        def __tensor_unflatten__(inner, context, size, stride):
            return Pair(inner["a"], inner["b"])

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(str(func))

            def half(name):
                taken = trees.tree_map(lambda v: getattr(v, name) if isinstance(v, Pair) else v, (args, kwargs or {}))
                return func(*taken[0], **taken[1])

            a, b = half("a"), half("b")
            if isinstance(a, (tuple, list)):
                out = type(a)(Pair(p, q) for p, q in zip(a, b, strict=True))
            else:
                out = Pair(a, b) if isinstance(a, torch.Tensor) else a
            return modes.return_and_correct_aliasing(func, args, kwargs or {}, out)

    return Pair


@on_both
def test_a_wrapper_subclass_computes_with_what_it_is_made_of(torch):
    log = []
    Pair = pair_class(torch, log)
    x = Pair(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    made = [
        repr(value)
        for value in (
            x * 2,
            x + torch.ones(2),
            1 - x,
            torch.cat([x, x]),
            x.view(2, 1),
            x.max(0)[0],
            torch.mm(x.view(1, 2), x.view(2, 1)),
            torch.nn.functional.linear(x.view(1, 2), torch.ones(3, 2)),
            torch.softmax(x, 0),
            x.clone(),
            torch.zeros_like(x),
            x[0],
            x.detach(),
            x.add_(1),
            x.mul_(x),
        )
    ]
    facts = list(x.shape), str(x.dtype), x.device.type, x.stride(), type(x * 2).__name__
    return made, facts, log


@on_both
def test_gradients_of_a_wrapper_subclass_are_of_its_class(torch):
    log = []
    Pair = pair_class(torch, log)
    x = Pair(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), requires_grad=True)
    y = (x * 2).sin()
    total = y.sum()
    total.backward()
    return repr(y), y.grad_fn, total.grad_fn, repr(x.grad), type(x.grad).__name__, x.is_leaf


@on_both
def test_subclasses_say_what_they_are_made_of(torch):
    modes, log = dispatch(torch), []
    Pair = pair_class(torch, log)
    x = Pair(torch.ones(2), torch.zeros(2))
    doubled = modes.transform_subclass(x, lambda name, part: part * 2)
    return modes.is_traceable_wrapper_subclass(x), modes.is_traceable_wrapper_subclass(torch.ones(1)), repr(doubled)


@on_both
def test_making_subclasses_is_refused_as_by_torch(torch):
    make = torch.Tensor._make_wrapper_subclass
    return attempt(lambda: make(torch.Tensor, (2,))), attempt(lambda: make(3, (2,)))


@on_both
def test_a_subclass_made_of_a_tensor_is_told_of_its_ops(torch):
    log = []

    class Logged(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append((str(func), [kind.__name__ for kind in types]))
            plain = [arg.inner if isinstance(arg, Logged) else arg for arg in args]
            return func(*plain, **(kwargs or {}))

    data = torch.ones(2)
    x = torch.Tensor._make_subclass(Logged, data, True)
    x.inner = data
    y = x * 3
    return type(x).__name__, x.requires_grad, y, type(y).__name__, y.grad_fn, log


@on_both
def test_custom_ops_are_told_and_may_have_rules_for_a_mode(torch):
    modes, log = dispatch(torch), []

    def one(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
        return x * by

    op = torch.library.custom_op("pbmode::one", one, mutates_args=())

    class Mode(modes.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append((str(func), shapes(args), kwargs))
            return func(*args, **(kwargs or {}))

    x = torch.ones(1, requires_grad=True)
    with Mode():
        first = op(x, 3.0)
    op.register_torch_dispatch(Mode, lambda mode, func, types, args, kwargs: func(*args, **kwargs) * 100)
    with Mode():
        second = op(x)
    return first, second, log


@on_both
def test_a_class_without_torch_function_gives_what_its_handler_gives(torch):
    log = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Logged)
    made = x + 1
    w = torch.ones(2, requires_grad=True).as_subclass(Logged)
    return type(made).__name__, made, "aten.add.Tensor" in log, type(x).__name__, (w * 2).requires_grad
