"""Names that programs ask of torch itself: the same answers here."""

import pytest
import torch as peer

import pullback
from pullback.compat import futures

PROGRAMS = [
    "torch.version.rocm",
    "torch.legacy_contiguous_format is torch.contiguous_format",
    "torch.random.thread_safe_generator()",
    "torch.GradScaler is torch.amp.GradScaler",
    "torch.DisableTorchFunction is torch._C.DisableTorchFunction",
    "torch._C.has_lapack",
    "torch._C._has_cuda",
    "torch.autograd.forward_ad._current_level",
    "(torch.autograd.forward_ad.enter_dual_level(), torch.autograd.forward_ad._current_level, "
    "torch.autograd.forward_ad.exit_dual_level())[1]",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_name_answers_as_torchs(program):
    assert eval(program, {"torch": pullback}) == eval(program, {"torch": peer})


def futures_of(library, home):
    parts = [library.Future() for _ in range(2)] if home is futures else [home.Future() for _ in range(2)]
    whole = home.collect_all(parts)
    before = whole.done()
    parts[1].set_result(2)
    parts[0].set_result(1)
    return before, whole.done(), [part.value() for part in whole.wait()], home.wait_all(parts)


def test_futures_are_collected_when_the_last_is_done():
    assert futures_of(pullback, futures) == futures_of(peer, peer.futures)


def test_the_first_error_among_futures_is_raised():
    parts = [pullback.Future(), pullback.Future()]
    parts[0].set_exception(ValueError("no"))
    parts[1].set_result(1)
    with pytest.raises(ValueError, match="no"):
        futures.wait_all(parts)


def test_a_class_of_optimizers_may_exchange_what_calls_its_hooks():
    def run(torch):
        class Loud(torch.optim.SGD):
            def _patch_step_function(self):
                self.patched = True
                super()._patch_step_function()

        return Loud([torch.ones(1, requires_grad=True)], lr=0.1).patched

    assert run(pullback) == run(peer)


def test_a_generator_of_the_cpu_has_no_offset():
    for library in (pullback, peer):
        with pytest.raises(RuntimeError, match="CPU Generator does not use offset"):
            library.Generator().get_offset()
        with pytest.raises(NotImplementedError, match="graphsafe_get_state is not supported in this Generator"):
            library.Generator().graphsafe_get_state()
