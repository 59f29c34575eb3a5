"""gradcheck and gradgradcheck: what passes, what fails, and the words of every failure."""

import pytest

from tests.conformance.both import attempt, same


def numbers(torch, *shape, start=0.1, step=0.3, dtype=None, requires_grad=True):
    count = 1
    for n in shape:
        count *= n
    values = (torch.arange(count, dtype=torch.float64) * step + start).reshape(shape)
    return values.to(dtype or torch.float64).requires_grad_(requires_grad)


def wrong_function(torch):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x

    return Wrong.apply


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_derivatives_pass(fast_mode):
    def program(torch):
        x, y = numbers(torch, 2, 3), numbers(torch, 3)
        check, twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck
        functions = [
            (lambda x, y: x * y, (x, y)),
            (lambda x, y: (x.exp() + y, x.sum()), (x, y)),
            (lambda x: x.sort(dim=0), (x,)),
            (lambda x, y: x @ y, (x, y)),
            (lambda x: x.t().reshape(-1)[1:].tanh(), (x,)),
        ]
        options = {"fast_mode": fast_mode}
        return [
            *[attempt(lambda f=f, given=given: check(f, given, **options)) for f, given in functions],
            *[
                attempt(lambda f=f, given=given: check(f, given, check_forward_ad=True, **options))
                for f, given in functions
            ],
            *[attempt(lambda f=f, given=given: twice(f, given, **options)) for f, given in functions],
            *[
                attempt(lambda f=f, given=given: twice(f, given, check_fwd_over_rev=True, **options))
                for f, given in functions
            ],
        ]

    same(program)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_complex_functions_pass(fast_mode):
    def program(torch):
        z = torch.complex(numbers(torch, 3).detach(), numbers(torch, 3, start=0.7).detach()).requires_grad_()
        x = numbers(torch, 3)
        check = torch.autograd.gradcheck
        options = {"fast_mode": fast_mode}
        return [
            check(lambda z: z * z, (z,), **options),
            check(lambda z: z.abs(), (z,), **options),
            check(lambda z: (z * z).real, (z,), **options),
            check(lambda z, x: z * x, (z, x), **options),
            check(lambda z: z * z.conj(), (z,), check_forward_ad=True, **options),
            torch.autograd.gradgradcheck(lambda z: z * z, (z,), **options),
        ]

    same(program)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_backward_fails_with_both_jacobians(fast_mode):
    def program(torch):
        return torch.autograd.gradcheck(wrong_function(torch), (numbers(torch, 1),), fast_mode=fast_mode)

    same(program)


def test_a_wrong_backward_is_false_without_exception():
    same(lambda torch: torch.autograd.gradcheck(wrong_function(torch), (numbers(torch, 3),), raise_exception=False))


def test_single_precision_warns():
    def program(torch):
        x = numbers(torch, 3, dtype=torch.float32)
        return torch.autograd.gradcheck(lambda x: x * 2, (x,), eps=1e-2, atol=1e-2)

    same(program)


def test_errors_of_wrong_arguments():
    def program(torch):
        check, twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck
        x = numbers(torch, 3)
        batched = {"check_batched_grad": True}
        forward = {"check_fwd_over_rev": True, "check_rev_over_rev": False}
        stretched = numbers(torch, 1).detach().expand(3).requires_grad_()
        return [
            attempt(lambda: check(lambda x: x, (x.detach(),))),
            attempt(lambda: check(lambda x: x * 2, (stretched,))),
            attempt(lambda: check(lambda x: x, (x,), check_backward_ad=False)),
            attempt(lambda: check(lambda x: x, (x,), check_forward_ad=True, check_backward_ad=False, **batched)),
            attempt(lambda: check(lambda x: x, (x,), check_batched_forward_grad=True)),
            attempt(lambda: twice(lambda x: x * x, (x,), check_rev_over_rev=False)),
            attempt(lambda: twice(lambda x: x * x, (x,), **forward)),
            attempt(lambda: twice(lambda x: x * x, (x,), **forward, check_undefined_grad=False, **batched)),
        ]

    same(program)


def test_outputs_that_change_shape_or_dtype_are_an_error():
    def program(torch):
        def shrinks(x):
            return x[x > 0.1]

        def changes(x):
            return x.float() if x[0] > 0.1 else x * 1

        x = numbers(torch, 3, start=0.1)
        return attempt(lambda: torch.autograd.gradcheck(shrinks, (x,))), attempt(
            lambda: torch.autograd.gradcheck(changes, (x,))
        )

    same(program)


def test_a_function_without_differentiable_output():
    def program(torch):
        x = numbers(torch, 3)
        return [
            attempt(lambda: torch.autograd.gradcheck(lambda x: x.detach() * 2, (x,))),
            attempt(lambda: torch.autograd.gradcheck(lambda x: x.detach() * 2, (x,), fast_mode=True)),
        ]

    same(program)


def test_a_backward_not_multiplied_by_grad_output():
    def program(torch):
        class Fixed(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return torch.full_like(grad, 2.0) if grad.ndim == 0 else grad * 2 + (grad == 0)

        x = numbers(torch)
        return torch.autograd.gradcheck(Fixed.apply, (x,))

    same(program)


def test_a_nondeterministic_backward():
    def program(torch):
        class Drifts(torch.autograd.Function):
            calls = 0

            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                Drifts.calls += 1
                return grad * (2 + 1e-7 * Drifts.calls)

        x = numbers(torch, 2)
        return [
            attempt(lambda: torch.autograd.gradcheck(Drifts.apply, (x,))),
            attempt(lambda: torch.autograd.gradcheck(Drifts.apply, (x,), nondet_tol=1e-3)),
        ]

    same(program)


def test_undefined_gradients_must_be_handled():
    def program(torch):
        class NoNone(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(False)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, a, b):
                if a is None or b is None:
                    raise RuntimeError("a gradient is missing")
                return a * 2 + b * 3

        x = numbers(torch, 2)
        return [
            attempt(lambda: torch.autograd.gradcheck(NoNone.apply, (x,))),
            attempt(lambda: torch.autograd.gradcheck(NoNone.apply, (x,), check_undefined_grad=False)),
        ]

    same(program)


def test_a_wrong_jvp_fails_in_forward_mode():
    def program(torch):
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(x):
                return x * 2

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

            @staticmethod
            def jvp(ctx, tangent):
                return tangent * 3

        x = numbers(torch, 2)
        return [
            attempt(lambda: torch.autograd.gradcheck(Wrong.apply, (x,))),
            attempt(lambda: torch.autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True)),
            attempt(lambda: torch.autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True, fast_mode=True)),
        ]

    same(program)


def test_batched_gradients_agree():
    def program(torch):
        x, y = numbers(torch, 2, 3), numbers(torch, 3)
        return [
            torch.autograd.gradcheck(lambda x, y: (x * y).tanh(), (x, y), check_batched_grad=True),
            torch.autograd.gradcheck(lambda x, y: x @ y, (x, y), check_batched_grad=True),
            torch.autograd.gradgradcheck(lambda x, y: (x * y).tanh(), (x, y), check_batched_grad=True),
            torch.autograd.gradcheck(
                lambda x, y: (x * y).tanh(), (x, y), check_forward_ad=True, check_batched_forward_grad=True
            ),
        ]

    same(program)


def test_grad_outputs_can_be_given():
    def program(torch):
        x, v = numbers(torch, 3), numbers(torch, 3, start=0.5)
        return [
            torch.autograd.gradgradcheck(lambda x: x**3, (x,), (v,)),
            torch.autograd.gradgradcheck(lambda x: x**3, (x,), v.detach()),
            torch.autograd.gradgradcheck(lambda x: x**3, (x,), gen_non_contig_grad_outputs=True),
        ]

    same(program)


def test_the_error_is_a_runtime_error_with_its_own_name():
    def program(torch):
        module = __import__(f"{torch.__name__}.autograd.gradcheck", fromlist=["GradcheckError"])
        return (
            module.GradcheckError,
            issubclass(module.GradcheckError, RuntimeError),
            callable(torch.autograd.gradcheck),
        )

    same(program)


def test_the_old_entries_warn_and_work():
    def program(torch):
        module = __import__(f"{torch.__name__}.autograd.gradcheck", fromlist=["GradcheckError"])
        x, y = numbers(torch, 2), numbers(torch, 2)
        return [
            module.get_numerical_jacobian(lambda given: given[0] * given[1], (x, y), eps=1e-6),
            module.get_analytical_jacobian((x, y), x * y),
            attempt(lambda: module.get_numerical_jacobian(lambda given: given[0], (x,), grad_out=2.0)),
            attempt(lambda: module.get_analytical_jacobian((x,), x * 1j)),
        ]

    same(program)
