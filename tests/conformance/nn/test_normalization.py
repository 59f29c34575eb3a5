"""Batch, instance, layer, group and local response normalization."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import copies_agree, same_layer

LAYERS = [
    ("nn.BatchNorm1d(3)", "x(4, 3)"),
    ("nn.BatchNorm1d(3, eps=0.1, momentum=0.3)", "x(4, 3, 2)"),
    ("nn.BatchNorm1d(3, momentum=None)", "x(4, 3)"),
    ("nn.BatchNorm1d(3, affine=False)", "x(4, 3)"),
    ("nn.BatchNorm1d(3, track_running_stats=False)", "x(4, 3)"),
    ("nn.BatchNorm1d(3, bias=False)", "x(4, 3)"),
    ("nn.BatchNorm2d(3)", "x(2, 3, 4, 2)"),
    ("nn.BatchNorm3d(3)", "x(2, 3, 2, 2, 2)"),
    ("nn.LazyBatchNorm1d()", "x(4, 3)"),
    ("nn.LazyBatchNorm2d(affine=False)", "x(2, 3, 4, 2)"),
    ("nn.LazyBatchNorm3d(track_running_stats=False)", "x(2, 3, 2, 2, 2)"),
    ("nn.SyncBatchNorm(3)", "x(2, 3, 4, 2)"),
    ("nn.InstanceNorm1d(3)", "x(2, 3, 4)"),
    ("nn.InstanceNorm1d(3)", "x(3, 4)"),
    ("nn.InstanceNorm2d(3, affine=True)", "x(2, 3, 4, 2)"),
    ("nn.InstanceNorm2d(3, affine=True, track_running_stats=True)", "x(2, 3, 4, 2)"),
    ("nn.InstanceNorm3d(3)", "x(2, 3, 2, 2, 2)"),
    ("nn.LazyInstanceNorm1d(affine=True)", "x(2, 3, 4)"),
    ("nn.LazyInstanceNorm2d(affine=True, track_running_stats=True)", "x(2, 3, 4, 2)"),
    ("nn.LazyInstanceNorm3d(affine=True)", "x(2, 3, 2, 2, 2)"),
    ("nn.LayerNorm(4)", "x(2, 3, 4)"),
    ("nn.LayerNorm((3, 4), eps=0.1)", "x(2, 3, 4)"),
    ("nn.LayerNorm(4, bias=False)", "x(2, 3, 4)"),
    ("nn.LayerNorm([3, 4], elementwise_affine=False)", "x(2, 3, 4)"),
    ("nn.GroupNorm(2, 4)", "x(2, 4, 3)"),
    ("nn.GroupNorm(2, 4, affine=False)", "x(2, 4, 3)"),
    ("nn.GroupNorm(1, 4, bias=False)", "x(2, 4, 3)"),
    ("nn.RMSNorm(4)", "x(2, 3, 4)"),
    ("nn.RMSNorm((3, 4), eps=0.1, elementwise_affine=False)", "x(2, 3, 4)"),
    ("nn.LocalResponseNorm(2)", "x(2, 4, 3, 3)"),
    ("nn.CrossMapLRN2d(3, alpha=0.5, beta=0.6, k=2)", "x(2, 5, 3, 2)"),
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
@pytest.mark.parametrize("train", [True, False])
def test_a_normalization_is_the_same_as_torchs(layer, inputs, train):
    same_layer(layer, inputs, train)


@pytest.mark.parametrize(("layer", "inputs"), [pair for pair in LAYERS if "Lazy" not in pair[0]])
def test_a_copied_or_pickled_normalization_does_the_same(layer, inputs):
    copies_agree(pullback, layer, inputs)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_move_with_each_batch_and_serve_in_evaluation(momentum):
    @on_both
    def program(torch):
        norm = torch.nn.BatchNorm1d(2, momentum=momentum)
        for k in range(3):
            norm(torch.arange(6.0).reshape(3, 2) * (k + 1))
        before = {name: value.clone() for name, value in norm.state_dict().items()}
        result = norm.eval()(torch.ones(1, 2))
        norm.reset_running_stats()
        return before, result, dict(norm.state_dict())

    program()


@on_both
def test_wrong_numbers_of_dimensions_and_channels_are_refused(torch):
    nn = torch.nn
    one = torch.ones(1)
    layers = (
        nn.BatchNorm1d(1),
        nn.BatchNorm2d(1),
        nn.BatchNorm3d(1),
        nn.InstanceNorm1d(1),
        nn.InstanceNorm2d(1),
        nn.SyncBatchNorm(1),
    )
    return [
        [attempt(lambda layer=layer: layer(one)) for layer in layers],
        attempt(lambda: nn.InstanceNorm1d(2, affine=True)(torch.ones(1, 3, 4))),
        attempt(lambda: nn.InstanceNorm1d(2)(torch.arange(12.0).reshape(1, 3, 4))),
        attempt(lambda: nn.BatchNorm1d(2)(torch.ones(1, 2))),
        attempt(lambda: nn.GroupNorm(3, 4)),
        attempt(lambda: nn.CrossMapLRN2d(3)(one)),
    ]


@on_both
def test_a_checkpoint_from_before_batches_were_counted_is_loaded(torch):
    norm = torch.nn.BatchNorm1d(2)
    state = {name: value for name, value in norm.state_dict().items() if name != "num_batches_tracked"}
    return str(norm.load_state_dict(state)), dict(norm.state_dict())


@on_both
def test_a_checkpoint_with_statistics_that_are_not_tracked_is_refused(torch):
    torch.nn.InstanceNorm1d(2).load_state_dict({"running_mean": torch.zeros(2), "running_var": torch.ones(2)})


@on_both
def test_converting_to_sync_batch_norm_keeps_the_parameters(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm1d(2, affine=False)))
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    return repr(converted), list(converted.state_dict())
