"""torch.func: vmap, grad, vjp, jvp, Jacobians and Hessians, alone and inside each other."""

import importlib
import warnings

import pytest

from tests.conformance.both import attempt, same


def func(torch):
    return importlib.import_module(f"{torch.__name__}.func")


def functional(torch):
    return importlib.import_module(f"{torch.__name__}.nn.functional")


def numbers(torch, *shape, start=-0.7, step=0.23):
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(count, dtype=torch.float64) * step + start).sin().reshape(shape)


def quiet(torch, program):
    """Torch's forward mode warns about compilers of its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated")
        warnings.filterwarnings("ignore", message="Attempted to insert a get_attr Node")
        return program()


def wave(x):
    return (x.sin() * x.sum()).sum()


TRANSFORMS = {
    "grad": lambda torch, f: f.grad(wave)(numbers(torch, 3)),
    "grad of grad": lambda torch, f: f.grad(lambda x: f.grad(wave)(x).sum())(numbers(torch, 3)),
    "third derivative": lambda torch, f: f.grad(f.grad(f.grad(lambda x: x**4)))(numbers(torch)),
    "grad_and_value": lambda torch, f: f.grad_and_value(wave)(numbers(torch, 3)),
    "vmap": lambda torch, f: f.vmap(wave)(numbers(torch, 5, 3)),
    "vmap of grad": lambda torch, f: f.vmap(f.grad(wave))(numbers(torch, 5, 3)),
    "grad of vmap": lambda torch, f: f.grad(lambda x: f.vmap(wave)(x).sum())(numbers(torch, 5, 3)),
    "grad of vmap of grad": lambda torch, f: f.grad(lambda x: f.vmap(f.grad(wave))(x).sum())(numbers(torch, 5, 3)),
    "jacrev": lambda torch, f: f.jacrev(lambda x: (x * x.sum()).tanh())(numbers(torch, 3)),
    "jacfwd": lambda torch, f: f.jacfwd(lambda x: (x * x.sum()).tanh())(numbers(torch, 3)),
    "jacrev in chunks": lambda torch, f: f.jacrev(lambda x: (x * x.sum()).tanh(), chunk_size=2)(numbers(torch, 3)),
    "hessian": lambda torch, f: f.hessian(wave)(numbers(torch, 3)),
    "jacrev of jacrev": lambda torch, f: f.jacrev(f.jacrev(wave))(numbers(torch, 3)),
    "jacfwd of jacfwd": lambda torch, f: f.jacfwd(f.jacfwd(wave))(numbers(torch, 3)),
    "jacrev of jacfwd": lambda torch, f: f.jacrev(f.jacfwd(wave))(numbers(torch, 3)),
    "vmap of hessian": lambda torch, f: f.vmap(f.hessian(wave))(numbers(torch, 4, 3)),
    "jvp": lambda torch, f: f.jvp(wave, (numbers(torch, 3),), (numbers(torch, 3, start=1.0),)),
    "jvp of jvp": lambda torch, f: f.jvp(
        lambda x: f.jvp(wave, (x,), (numbers(torch, 3, start=2.0),))[1],
        (numbers(torch, 3),),
        (numbers(torch, 3, start=1.0),),
    ),
    "jvp of grad": lambda torch, f: f.jvp(f.grad(wave), (numbers(torch, 3),), (numbers(torch, 3, start=1.0),)),
    "grad of jvp": lambda torch, f: f.grad(lambda x: f.jvp(wave, (x,), (numbers(torch, 3),))[1])(numbers(torch, 3)),
    "vmap of jvp": lambda torch, f: f.vmap(lambda x: f.jvp(wave, (x,), (numbers(torch, 3),)))(numbers(torch, 4, 3)),
    "jvp of vmap": lambda torch, f: f.jvp(f.vmap(wave), (numbers(torch, 4, 3),), (numbers(torch, 4, 3),)),
    "vjp": lambda torch, f: (lambda out, pull: (out, pull(numbers(torch, 3))))(
        *f.vjp(lambda x: (x * x.sum()).tanh(), numbers(torch, 3))
    ),
    "linearize": lambda torch, f: (lambda out, push: (out, push(numbers(torch, 3))))(
        *f.linearize(wave, numbers(torch, 3))
    ),
    "vmap of vmap": lambda torch, f: f.vmap(f.vmap(torch.dot, in_dims=(None, 0)), in_dims=(0, None))(
        numbers(torch, 5, 3), numbers(torch, 4, 3)
    ),
    "several arguments": lambda torch, f: f.grad(lambda a, b: (a * b.exp()).sum(), argnums=(0, 1))(
        numbers(torch, 3), numbers(torch, 3)
    ),
    "auxiliary outputs": lambda torch, f: f.grad(lambda x: (wave(x), {"y": x * 2}), has_aux=True)(numbers(torch, 3)),
    "jacobians of trees": lambda torch, f: f.jacrev(lambda d: {"a": d["x"] * d["y"], "b": d["x"].sum()})(
        {"x": numbers(torch, 2), "y": numbers(torch, 2, start=1.0)}
    ),
    "jacfwd with auxiliary": lambda torch, f: f.jacfwd(lambda x: (x * x, x.sum()), has_aux=True)(numbers(torch, 3)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_and_their_compositions(name):
    same(lambda torch: quiet(torch, lambda: TRANSFORMS[name](torch, func(torch))))


VMAPS = {
    "in_dims": lambda torch, f: f.vmap(torch.dot, in_dims=(1, 1))(numbers(torch, 3, 5), numbers(torch, 3, 5)),
    "negative in_dims": lambda torch, f: f.vmap(lambda x: x.sum(), in_dims=-1)(numbers(torch, 3, 5)),
    "out_dims": lambda torch, f: f.vmap(lambda x: (x * 2, x.sum()), out_dims=(1, 0))(numbers(torch, 5, 3)),
    "negative out_dims": lambda torch, f: f.vmap(lambda x: x * 2, out_dims=-1)(numbers(torch, 5, 3)),
    "shared input": lambda torch, f: f.vmap(lambda x, y: x * y, in_dims=(0, None))(
        numbers(torch, 5, 3), numbers(torch, 3)
    ),
    "chunks": lambda torch, f: f.vmap(wave, chunk_size=2)(numbers(torch, 5, 3)),
    "dict": lambda torch, f: f.vmap(lambda d: {"s": d["a"] * d["b"].sum()})(
        {"a": numbers(torch, 5, 3), "b": numbers(torch, 5, 3)}
    ),
    "nested in_dims": lambda torch, f: f.vmap(lambda d, x: d["a"] * x, in_dims=({"a": None}, 0))(
        {"a": numbers(torch, 3)}, numbers(torch, 5, 3)
    ),
    "keyword arguments": lambda torch, f: f.vmap(lambda x, scale: x * scale)(numbers(torch, 5, 3), scale=3.0),
    "output that is not batched": lambda torch, f: f.vmap(lambda x: numbers(torch, 2))(numbers(torch, 5, 3)),
    "out_dims None": lambda torch, f: f.vmap(lambda x: (x, 3), out_dims=(0, None))(numbers(torch, 5, 3)),
    "promotion of numbers": lambda torch, f: (
        f.vmap(lambda x, y: x * y, in_dims=(0, None))(numbers(torch, 5), torch.ones(3)).dtype
    ),
    "in place": lambda torch, f: f.vmap(lambda x: x.clone().add_(1).mul_(x))(numbers(torch, 5, 3)),
    "assignment": lambda torch, f: f.vmap(lambda x: assigned(x.clone(), x))(numbers(torch, 5, 3)),
    "indexing": lambda torch, f: f.vmap(lambda x, i: (x[i], x[..., i], x[1:], x[None, 0]))(
        numbers(torch, 3, 4, 4), torch.tensor([[0, 3], [1, 1], [2, 0]])
    ),
    "one element by a batched index": lambda torch, f: f.vmap(lambda i: numbers(torch, 4)[i])(torch.tensor([0, 2, 1])),
    "matrix products": lambda torch, f: f.vmap(lambda x: (x @ x, x @ x[0], x[0] @ x, x[0] @ x[1], x.t() @ x))(
        numbers(torch, 5, 3, 3)
    ),
    "einsum": lambda torch, f: f.vmap(lambda x: torch.einsum("ij,jk,k->i", x, x, x[0]))(numbers(torch, 5, 3, 3)),
    "reductions": lambda torch, f: f.vmap(
        lambda x: (x.sum(), x.mean(0), x.max(), x.prod(), x.var(), x.norm(), x.argmax(), x.softmax(-1), x.cumsum(0))
    )(numbers(torch, 5, 3, 4)),
    "shapes": lambda torch, f: f.vmap(
        lambda x: (x.t(), x.reshape(-1), x.expand(2, 3, 4), x.permute(1, 0), x.unsqueeze(0), x.flip(0), x.repeat(2, 1))
    )(numbers(torch, 5, 3, 4)),
    "sorting": lambda torch, f: f.vmap(lambda x: tuple(x.sort(0)) + tuple(x.topk(2)))(numbers(torch, 5, 4)),
    "joining": lambda torch, f: f.vmap(lambda x, y: (torch.cat([x, y]), torch.stack([x, y], -1)), in_dims=(0, None))(
        numbers(torch, 5, 3), numbers(torch, 3)
    ),
    "conditions": lambda torch, f: f.vmap(lambda x: torch.where(x > 0, x, -2 * x))(numbers(torch, 5, 3)),
}


def assigned(y, x):
    y[0] = x[1] * 2
    y[1:] += x[0]
    return y


@pytest.mark.parametrize("name", VMAPS)
def test_vmap(name):
    same(lambda torch: VMAPS[name](torch, func(torch)))


def test_errors_of_vmap():
    def program(torch):
        f = func(torch)
        x, v = numbers(torch, 5, 3), numbers(torch, 3)

        def named(x):
            return x

        calls = [
            lambda: f.vmap(named)(),
            lambda: f.vmap(named, in_dims=[0])(x),
            lambda: f.vmap(named, in_dims=(0.5,))(x),
            lambda: f.vmap(named, in_dims=2)(x),
            lambda: f.vmap(named)(3),
            lambda: f.vmap(torch.dot)(x, x[:4]),
            lambda: f.vmap(torch.dot, in_dims=(None, None))(x, x),
            lambda: f.vmap(named, out_dims="a")(x),
            lambda: f.vmap(named, out_dims=None)(x),
            lambda: f.vmap(lambda x: 3)(x),
            lambda: f.vmap(named, randomness="some"),
            lambda: f.vmap(named, chunk_size=0),
            lambda: f.vmap(lambda x: x.sum().item())(x),
            lambda: f.vmap(lambda x: float(x.sum()))(x),
            lambda: f.vmap(lambda x: x if x.sum() > 0 else -x)(x),
            lambda: f.vmap(lambda x: x[x > 0])(x),
            lambda: f.vmap(lambda x: x.nonzero())(x),
            lambda: f.vmap(lambda x: torch.masked_select(x, x > 0))(x),
            lambda: f.vmap(lambda x: v.clone().add_(x))(x),
            lambda: f.vmap(lambda x: v.clone().mul_(x))(x),
            lambda: f.vmap(lambda x: v.clone().copy_(x))(x),
            lambda: f.vmap(lambda x: x.requires_grad_())(x),
            lambda: f.vmap(lambda x: x.numpy())(x),
            lambda: f.vmap(lambda x: x + torch.rand(3))(x),
            lambda: f.vmap(lambda x: functional(torch).dropout(x))(x),
        ]
        return [attempt(call) for call in calls]

    same(program)


def test_errors_of_derivatives():
    def program(torch):
        f = func(torch)
        v = numbers(torch, 3)
        calls = [
            lambda: f.grad(lambda x: x * 2)(v),
            lambda: f.grad(lambda x: 3)(v),
            lambda: f.grad(wave, argnums=1)(v),
            lambda: f.grad(wave, argnums=(0, 0))(v),
            lambda: f.grad(wave, argnums=())(v),
            lambda: f.grad(wave, argnums="x")(v),
            lambda: f.grad(wave)(3.0),
            lambda: f.grad(wave, has_aux=True)(v),
            lambda: f.vjp(lambda x: 3, v),
            lambda: f.vjp(lambda x: None, v),
            lambda: f.vjp(lambda x: x > 0, v),
            lambda: f.jvp(wave, v, (v,)),
            lambda: f.jvp(wave, (v,), (3.0,)),
            lambda: f.jvp(lambda x: 3, (v,), (v,)),
            lambda: f.jvp(lambda x: numbers(torch, 2), (v,), (v,), strict=True),
            lambda: f.jacrev(wave, chunk_size=0),
            lambda: f.jacrev(lambda x: x * 1j)(v),
            lambda: f.functionalize(wave, remove="all"),
        ]
        return [attempt(call) for call in calls]

    same(lambda torch: quiet(torch, lambda: program(torch)))


def test_random_numbers_in_vmap():
    def program(torch):
        f = func(torch)
        x = numbers(torch, 4, 3)
        torch.manual_seed(3)
        equal = f.vmap(lambda x: x * 0 + torch.rand(3, dtype=torch.float64), randomness="same")(x)
        different = f.vmap(lambda x: x * 0 + torch.rand(3, dtype=torch.float64), randomness="different")(x)
        dropped = f.vmap(lambda x: functional(torch).dropout(x * 0 + 1), randomness="same")(x)
        mixed = f.vmap(lambda x: functional(torch).dropout(x * 0 + 1), randomness="different")(numbers(torch, 4, 30))
        drawn = f.vmap(lambda x: (x * 0).uniform_(), randomness="same")(x)
        return [
            attempt(lambda: f.vmap(lambda x: torch.bernoulli(x.sigmoid()), randomness="same")(x)),
            equal,
            bool((different.std(0) > 0).all()),
            bool((dropped == dropped[0]).all()),
            bool((mixed == mixed[0]).all()),
            bool((drawn == drawn[0]).all()),
        ]

    same(program)


def test_results_are_part_of_the_graph_around():
    def program(torch):
        f = func(torch)
        w, x = numbers(torch, 3).requires_grad_(), numbers(torch, 5, 3).requires_grad_()
        per_sample = f.vmap(f.grad(lambda w, x: (w * x).tanh().sum()), in_dims=(None, 0))(w, x)
        outer = torch.autograd.grad((per_sample**2).sum(), (w, x))
        with torch.no_grad():
            alone = f.grad(wave)(w)
        return [
            outer,
            f.grad(wave)(w).requires_grad,
            f.grad(wave)(numbers(torch, 3)).requires_grad,
            alone.requires_grad,
            f.grad(lambda v: (v * w).sum())(numbers(torch, 3)).requires_grad,
            f.vmap(lambda v: v * 2)(x).requires_grad,
            f.grad_and_value(wave)(numbers(torch, 3))[1].requires_grad,
        ]

    same(program)


def test_no_grad_inside_stops_the_derivative():
    def program(torch):
        f = func(torch)

        def partly(x):
            with torch.no_grad():
                y = x**2
            return (x * y).sum()

        return f.grad(partly)(numbers(torch, 3)), f.vmap(f.grad(partly))(numbers(torch, 2, 3))

    same(program)


def custom(torch, **attributes):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    for name, value in attributes.items():
        setattr(Cube, name, value)
    return Cube


@pytest.mark.parametrize("kind", ["nothing", "generated", "own", "both"])
def test_custom_functions(kind):
    def program(torch):
        f = func(torch)
        attributes = {"generate_vmap_rule": True} if kind in ("generated", "both") else {}
        cube = custom(torch, **attributes)
        if kind in ("own", "both"):
            cube.vmap = staticmethod(lambda info, dims, x: (cube.apply(x), dims[0]))
        x = numbers(torch, 2, 3)
        return [
            attempt(lambda: f.grad(lambda x: cube.apply(x).sum())(x)),
            attempt(lambda: f.vmap(cube.apply)(x)),
            attempt(lambda: f.vmap(f.grad(lambda x: cube.apply(x).sum()))(x)),
            attempt(lambda: f.grad(lambda x: f.vmap(cube.apply)(x).sum())(x)),
            attempt(lambda: f.jacrev(lambda x: cube.apply(x))(x[0])),
            attempt(lambda: f.vmap(f.grad(lambda x: f.grad(lambda y: cube.apply(y).sum())(x).sum()))(x)),
        ]

    same(program)


# ------------------------------------------------------------------ the examples of torch's documentation


def test_per_sample_gradients_of_a_network():
    def program(torch):
        f, F = func(torch), functional(torch)
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 16, 5)
        ).to(torch.float64)
        data, targets = numbers(torch, 4, 1, 6, 6), torch.tensor([0, 4, 2, 1])
        params = {k: v.detach() for k, v in model.named_parameters()}
        buffers = {k: v.detach() for k, v in model.named_buffers()}

        def compute_loss(params, buffers, sample, target):
            predictions = f.functional_call(model, (params, buffers), (sample.unsqueeze(0),))
            return F.cross_entropy(predictions, target.unsqueeze(0))

        per_sample = f.vmap(f.grad(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, data, targets)
        one = f.grad(compute_loss)(params, buffers, data[1], targets[1])
        return per_sample, [torch.allclose(per_sample[k][1], one[k]) for k in params]

    same(program)


def test_ensembles_of_models():
    def program(torch):
        f = func(torch)
        torch.manual_seed(0)
        models = [
            torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).to(torch.float64)
            for _ in range(3)
        ]
        params, buffers = f.stack_module_state(models)

        def wrapper(params, buffers, data):
            return f.functional_call(models[0], (params, buffers), data)

        data = numbers(torch, 6, 3)
        together = f.vmap(wrapper, in_dims=(0, 0, None))(params, buffers, data)
        apart = torch.stack([m(data) for m in models])
        return together, torch.allclose(together, apart), [p.requires_grad for p in params.values()]

    same(program)


def test_jacobians_and_hessians_of_the_tutorial():
    def program(torch):
        f, F = func(torch), functional(torch)
        weight, bias, x = numbers(torch, 4, 4), numbers(torch, 4), numbers(torch, 4, start=0.3)

        def predict(weight, bias, x):
            return F.linear(x, weight, bias).tanh()

        _, pull = f.vjp(lambda x: predict(weight, bias, x), x)
        batch = numbers(torch, 3, 4)
        return [
            f.vmap(pull)(torch.eye(4, dtype=torch.float64)),
            f.jacrev(predict, argnums=2)(weight, bias, x),
            f.jacrev(predict, argnums=(0, 1))(weight, bias, x),
            f.jacfwd(predict, argnums=(0, 1))(weight, bias, x),
            f.hessian(predict, argnums=2)(weight, bias, x),
            f.vmap(f.jacrev(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch),
            f.vmap(f.hessian(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch),
            f.jvp(lambda x: f.grad(lambda x: predict(weight, bias, x).sum())(x), (x,), (x,))[1],
        ]

    same(lambda torch: quiet(torch, lambda: program(torch)))


def test_calling_a_module_with_other_parameters():
    def program(torch):
        f = func(torch)
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 2).to(torch.float64)
        x = numbers(torch, 3, 2)
        given = {"weight": numbers(torch, 2, 2), "bias": numbers(torch, 2)}
        before = model.weight
        return [
            f.functional_call(model, given, x),
            f.functional_call(model, given, (x,)),
            f.functional_call(model, ({"weight": given["weight"]}, {"bias": given["bias"]}), (x,)),
            model.weight is before,
            attempt(lambda: f.functional_call(model, ({"weight": x}, {"weight": x}), x)),
            attempt(lambda: f.functional_call(model, {"weight": given["weight"]}, x, strict=True)),
            attempt(lambda: f.functional_call(model, 3, x)),
            attempt(lambda: f.stack_module_state([])),
        ]

    same(program)


def write_first(x):
    y = x.clone()
    y[0] = x[1] * 2
    return (y * y).sum()


def write_through_views(x):
    y = x.clone().view(2, 2)
    a, b = y[0], y.t()[1]
    a.mul_(x[:2])
    b.add_(x[2:].exp())
    y.t()[0].sin_()
    return (y**2).sum() * a.sum() + b.sum()


def write_between_overlapping_views(x):
    y = x * 2
    a, b = y[:2], y[1:3]
    a.exp_()
    return (a * b).sum() + (y * x).sum()


WRITING = [write_first, write_through_views, write_between_overlapping_views]


@pytest.mark.parametrize("function", WRITING, ids=lambda f: f.__name__)
def test_writing_in_place_inside_transforms(function):
    def program(torch):
        f = func(torch)
        x = numbers(torch, 2, 4)
        return [
            f.vmap(f.grad(function))(x),
            f.vmap(f.jacrev(f.jacrev(function)))(x),
            f.vmap(f.hessian(function))(x),
            f.grad(function)(x[0]),
            torch.autograd.functional.hessian(function, x[0]),
        ]

    same(lambda torch: quiet(torch, lambda: program(torch)))


@pytest.mark.parametrize("function", WRITING, ids=lambda f: f.__name__)
def test_forward_mode_through_writes_agrees_with_backward(function):
    import pullback as torch

    f, x, v = func(torch), numbers(torch, 2, 4), numbers(torch, 4, start=1.0)
    pushed = f.vmap(lambda x: f.jvp(function, (x,), (v,))[1])(x)
    pulled = f.vmap(lambda x: (f.grad(function)(x) * v).sum())(x)
    assert torch.allclose(pushed, pulled)


def test_a_saved_tensor_written_over_inside_vmap_is_an_error():
    def program(torch):
        f = func(torch)

        def function(x):
            y = x * 1
            z = y[:-1] * x[1:]
            y[1:] += 1
            return z.sum()

        text = attempt(lambda: f.vmap(f.grad(function))(numbers(torch, 2, 4))).text
        return text.split("[torch")[0]

    same(program)


def layers(torch):
    """Functions of batched data and batched weights, as ensembles use them."""
    F = functional(torch)
    x, w, b = numbers(torch, 3, 4, 5), numbers(torch, 3, 5, start=0.2), numbers(torch, 3, 5, start=0.9)
    i = torch.tensor([[0, 3, 1], [2, 2, 0], [1, 0, 3]])
    return {
        "layer_norm": (lambda x, w, b: F.layer_norm(x, (5,), w, b), (x, w, b)),
        "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (x, w, b)),
        "batch_norm in eval": (
            lambda x, w, b, m: F.batch_norm(x, m * 0.5, m + 3, w, b, training=False),
            (x, w, b, torch.tensor([[1, 2, 3, 4, 5]] * 3)),
        ),
        "embedding": (lambda w, i: F.embedding(i, w), (x, i)),
        "index_select": (lambda x, i: x.index_select(0, i), (x, i)),
        "index_put": (lambda x, v, i: x.index_put((i,), v, accumulate=True), (x, numbers(torch, 3, 3, 5), i)),
        "index_put without accumulate": (lambda x, i: x.index_put((i,), x[:3] * 2), (x, i)),
        "masked_fill": (lambda x, v: x.masked_fill(x > 0, v), (x, torch.tensor([1, 2, 3]))),
        "linear": (lambda x, w, b: F.linear(x, w.expand(2, 5), b[:2]), (x, w, b)),
        "conv1d": (lambda x, w: F.conv1d(x[None], w.reshape(1, 1, 5).expand(2, 4, 5), padding=2), (x, w)),
        "nll": (lambda x, i: F.nll_loss(x[:3].log_softmax(1), i), (x, i)),
        "cross_entropy with weights": (
            lambda x, i: F.cross_entropy(x[:3], i, weight=numbers(torch, 5).exp(), ignore_index=2),
            (x, i),
        ),
        "mse": (lambda x, w: F.mse_loss(x, w.expand(4, 5)), (x, w)),
    }


@pytest.mark.parametrize("name", layers(importlib.import_module("torch")))
def test_layers_with_batched_weights(name):
    def program(torch):
        f = func(torch)
        function, given = layers(torch)[name]
        wanted = tuple(i for i, t in enumerate(given) if t.is_floating_point())
        leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in given]
        through = torch.autograd.grad(f.vmap(function)(*leaves).sin().sum(), [leaves[i] for i in wanted])
        inside = f.vmap(f.grad(lambda *args: function(*args).sin().sum(), argnums=wanted))(*given)
        return f.vmap(function)(*given), through, inside

    def without_loops(torch):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="There is a performance drop")
            return program(torch)

    same(without_loops)
