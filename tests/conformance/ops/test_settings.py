"""Settings of the process: what torch answers, pullback answers, and errors are the same."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both


@on_both
def test_determinism_is_remembered(torch):
    seen = []
    for action in (
        lambda: torch.use_deterministic_algorithms(True),
        lambda: torch.use_deterministic_algorithms(True, warn_only=True),
        lambda: torch.set_deterministic_debug_mode("warn"),
        lambda: torch.set_deterministic_debug_mode(2),
        lambda: torch.set_deterministic_debug_mode("x"),
        lambda: torch.set_deterministic_debug_mode(5),
        lambda: torch.set_deterministic_debug_mode(1.5),
        lambda: torch.use_deterministic_algorithms(1),
        lambda: torch.set_deterministic_debug_mode("default"),
    ):
        seen.append(attempt(action))
        seen.append(torch.are_deterministic_algorithms_enabled())
        seen.append(torch.is_deterministic_algorithms_warn_only_enabled())
        seen.append(torch.get_deterministic_debug_mode())
    return seen


@on_both
def test_the_precision_of_products_is_remembered(torch):
    seen = [torch.get_float32_matmul_precision()]
    for name in ("high", "medium", "unknown", "highest"):
        torch.set_float32_matmul_precision(name)
        seen.append(torch.get_float32_matmul_precision())
    return seen


@on_both
def test_wrong_settings_raise(torch):
    return [attempt(lambda: torch.set_flush_denormal(1)), attempt(lambda: torch.set_warn_always(1))]


@on_both
def test_warning_always_is_remembered(torch):
    torch.set_warn_always(True)
    seen = torch.is_warn_always_enabled()
    torch.set_warn_always(False)
    return [seen, torch.is_warn_always_enabled()]


@on_both
def test_autocast_is_off_and_its_dtypes_are_known(torch):
    seen = [torch.is_autocast_enabled(), torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled()]
    seen += [str(torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda", "xla")]
    torch.set_autocast_dtype("cpu", torch.float16)
    seen.append(str(torch.get_autocast_dtype("cpu")))
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_enabled("cpu", False)
    torch.clear_autocast_cache()
    return [*seen, torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()]


@pytest.mark.parametrize("name", ["is_autocast_cpu_enabled", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype"])
def test_the_old_names_of_autocast_point_to_the_new_ones(name):
    with pytest.warns(DeprecationWarning, match="is deprecated. Please use torch."):
        getattr(pullback, name)()


@on_both
def test_anomaly_mode_is_switched_by_its_old_name(torch):
    torch.set_anomaly_enabled(True, False)
    seen = [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
    torch.set_anomaly_enabled(False)
    return [*seen, torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]


@on_both
def test_sizes_are_numbers(torch):
    return [
        torch.sym_int(3.7), torch.sym_int(-3.7), torch.sym_float(3), torch.sym_max(2, 3), torch.sym_max(2, 3.5),
        torch.sym_min(2, 3.5), torch.sym_not(True), torch.sym_not(3), torch.sym_ite(True, 1, 2), torch.sym_sqrt(4),
        torch.sym_sum([1, 2.5]), torch.sym_fresh_size(3), torch.sym_constrain_range(3, min=1),
        attempt(lambda: torch.sym_constrain_range(3, min=4)), attempt(lambda: torch.sym_ite(1, 1, 2)),
    ]  # fmt: skip


@on_both
def test_constants_are_torchs(torch):
    return [torch.pi, torch.e, torch.inf, torch.isnan(torch.tensor(torch.nan)), torch.newaxis]


@on_both
def test_the_module_of_the_cpu_answers(torch):
    cpu = torch.get_device_module("cpu")
    return [
        cpu.is_available(),
        cpu.device_count(),
        cpu.current_device(),
        attempt(lambda: torch.get_device_module("foo")),
    ]


@on_both
def test_a_loop_runs_until_its_condition_fails(torch):
    return torch.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + i), (torch.tensor(0), torch.tensor(0)))


def test_a_condition_chooses_a_function_and_gradients_pass():
    x = pullback.tensor(3.0, requires_grad=True)
    pullback.cond(x > 2, lambda v: v * v, lambda v: v, (x,)).backward()
    assert x.grad == 6


@on_both
def test_the_names_of_types_are_torchs(torch):
    return [torch.typename(v) for v in (torch.ones(1), torch.ones(1).long(), 3, "a", int, len, torch.nn.Linear)]
