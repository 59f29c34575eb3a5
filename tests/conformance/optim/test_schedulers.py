"""Every scheduler on torch and on pullback: the same rates, momenta, states, errors and warnings."""

import copy
import warnings

import numpy as np
import pytest
import torch as peer

import pullback


def cube(epoch):
    return 0.95**epoch


SCHEDULERS = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, cube),
    "LambdaLR of two": lambda s, o: s.LambdaLR(o, [cube, lambda epoch: 1 / (1 + epoch)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.9),
    "StepLR": lambda s, o: s.StepLR(o, 3, gamma=0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9], gamma=0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.3, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.25, 0.9, 6),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 8, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, 3),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 4, mode="triangular2"),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.9),
    "CyclicLR function": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, scale_fn=cube, scale_mode="iterations"),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.1, 25),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(
        o, [0.1, 0.2], epochs=5, steps_per_epoch=5, anneal_strategy="linear"
    ),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(o, 0.1, 25, three_phase=True),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 4)], [4, 10]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.9)]),
}


def optimizer_of(torch, kind="SGD"):
    p, q = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(torch.optim, kind)([{"params": [p]}, {"params": [q], "lr": 0.02}], lr=0.1, **options)


def momentum_of(group):
    return group["momentum"] if "momentum" in group else group["betas"][0]


def course(torch, make, kind, steps=24):
    optimizer = optimizer_of(torch, kind)
    scheduler = make(torch.optim.lr_scheduler, optimizer)
    seen = []
    for _ in range(steps):
        seen.append([[group["lr"], momentum_of(group)] for group in optimizer.param_groups])
        assert scheduler.get_last_lr() == [group["lr"] for group in optimizer.param_groups]
        optimizer.step()
        scheduler.step()
    return np.array(seen), scheduler


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_gives_the_rates_of_torch(name, kind):
    expected, _ = course(peer, SCHEDULERS[name], kind)
    got, _ = course(pullback, SCHEDULERS[name], kind)
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_keeps_the_state_of_torch(name):
    _, expected = course(peer, SCHEDULERS[name], "SGD", 5)
    _, got = course(pullback, SCHEDULERS[name], "SGD", 5)
    assert got.state_dict() == expected.state_dict()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_state_dict_continues_a_schedule(name):
    _, scheduler = course(pullback, SCHEDULERS[name], "SGD", 7)
    again = optimizer_of(pullback)
    resumed = SCHEDULERS[name](pullback.optim.lr_scheduler, again)
    resumed.load_state_dict(copy.deepcopy(scheduler.state_dict()))
    again.load_state_dict(scheduler.optimizer.state_dict())
    for _ in range(5):
        for s in (scheduler, resumed):
            s.optimizer.step()
            s.step()
        assert resumed.get_last_lr() == scheduler.get_last_lr()


@pytest.mark.parametrize("name", [n for n in SCHEDULERS if n not in ("SequentialLR", "ChainedScheduler")])
def test_the_closed_form_is_torchs(name):
    def run(torch):
        optimizer = optimizer_of(torch)
        scheduler = SCHEDULERS[name](torch.optim.lr_scheduler, optimizer)
        optimizer.step()
        seen = []
        for epoch in (3, 1, 7):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                scheduler.step(epoch)
            seen.append((scheduler.get_last_lr(), [str(w.message) for w in caught]))
        return seen

    assert run(pullback) == run(peer)


@pytest.mark.parametrize(
    "options", [{}, {"mode": "max"}, {"threshold_mode": "abs", "cooldown": 2, "patience": 1}, {"min_lr": [0.05, 0.01]}]
)
def test_a_plateau_lowers_the_rate_as_in_torch(options):
    metrics = [5.0, 4.0, 4.5, 4.0, 4.0, 4.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.5, 3.0, 2.9999, 3.0, 3.0]

    def run(torch):
        optimizer = optimizer_of(torch)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **{"patience": 2, "factor": 0.5, **options})
        seen = []
        for metric in metrics:
            scheduler.step(torch.tensor(metric))
            seen.append((scheduler.get_last_lr(), scheduler.num_bad_epochs, scheduler.best))
        return seen, scheduler.state_dict()

    assert run(pullback) == run(peer)


def outcome(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
            result = None
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return result, [str(w.message) for w in caught]


BAD = [
    lambda s, o: s.StepLR(3, 1),
    lambda s, o: s.StepLR(o, 3, last_epoch=2),
    lambda s, o: s.LambdaLR(o, [cube]),
    lambda s, o: s.MultiplicativeLR(o, 3),
    lambda s, o: s.ConstantLR(o, 2.0),
    lambda s, o: s.LinearLR(o, 0.0),
    lambda s, o: s.LinearLR(o, 0.5, 2.0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 1, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 1).step(-1),
    lambda s, o: s.CyclicLR(o, [0.1], 0.2),
    lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"),
    lambda s, o: s.OneCycleLR(o, 0.1),
    lambda s, o: s.OneCycleLR(o, 0.1, -1),
    lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2),
    lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="square"),
    lambda s, o: s.SequentialLR(o, [], []),
    lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]),
    lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
    lambda s, o: s.ReduceLROnPlateau(o, factor=2),
    lambda s, o: s.ReduceLROnPlateau(o, mode="middle"),
    lambda s, o: s.ReduceLROnPlateau(o, min_lr=[1]),
    lambda s, o: s.StepLR(o, 1).get_lr(),
    lambda s, o: s.StepLR(o, 1).step(),
    lambda s, o: s.LRScheduler(o),
]


@pytest.mark.parametrize("program", BAD)
def test_errors_and_warnings_are_torchs(program):
    assert outcome(lambda: program(pullback.optim.lr_scheduler, optimizer_of(pullback))) == outcome(
        lambda: program(peer.optim.lr_scheduler, optimizer_of(peer))
    )


def test_a_tensor_rate_stays_the_same_tensor():
    p = pullback.ones(1, requires_grad=True)
    rate = pullback.tensor(0.5)
    optimizer = pullback.optim.SGD([p], lr=rate)
    scheduler = pullback.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.25


@pytest.mark.parametrize("average", ["mean", "ema", "multi ema", "multi mean"])
def test_an_averaged_model_follows_as_in_torch(average):
    def run(torch):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
        swa = torch.optim.swa_utils
        options = {
            "mean": {},
            "ema": {"avg_fn": swa.get_ema_avg_fn(0.9)},
            "multi ema": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9), "use_buffers": True},
            "multi mean": {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
        }
        averaged = swa.AveragedModel(model, **options[average])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = swa.SWALR(optimizer, swa_lr=0.05, anneal_epochs=3)
        x = torch.linspace(-1, 1, 16).reshape(8, 2)
        for _ in range(5):
            optimizer.zero_grad()
            (model(x) ** 2).mean().backward()
            optimizer.step()
            scheduler.step()
            averaged.update_parameters(model)
        swa.update_bn([x[:4], (x[4:],)], averaged)
        averaged.eval()
        return averaged(x).detach().numpy(), list(averaged.state_dict()), scheduler.get_last_lr()

    got, expected = run(pullback), run(peer)
    assert np.allclose(got[0], expected[0], rtol=1e-4, atol=1e-6)
    assert got[1:] == expected[1:]


def test_schedulers_of_functions_are_of_two_kinds_and_name_themselves_in_errors():
    def found(torch):
        optimizer = optimizer_of(torch)
        s = torch.optim.lr_scheduler
        told = []
        for kind in (s.LambdaLR, s.MultiplicativeLR):
            for given in ((), ([cube],), (3,)):
                try:
                    kind(optimizer, *given)
                except (TypeError, ValueError) as error:
                    told.append((type(error).__name__, str(error)))
        return issubclass(s.MultiplicativeLR, s.LambdaLR), told

    assert found(pullback) == found(peer)
