"""nn.utils: clipping, vectors of parameters, fusion, memory formats, stateless calls, convolution gradients."""

import pytest

from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import Inputs


def with_gradients(torch, scale=1.0):
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 2)
    (net(torch.arange(6.0).reshape(2, 3)).square().sum() * scale).backward()
    return net


@pytest.mark.parametrize("norm_type", [2.0, 1, 3, float("inf"), 0.5])
def test_gradients_are_scaled_to_a_norm(norm_type):
    @on_both
    def program(torch):
        net = with_gradients(torch)
        utils = torch.nn.utils
        grads = [p.grad.clone() for p in net.parameters()]
        total = utils.get_total_norm(grads, norm_type)
        returned = utils.clip_grad_norm_(net.parameters(), 0.7, norm_type)
        return total, returned, [p.grad for p in net.parameters()]

    program()


@on_both
def test_small_gradients_and_missing_ones_are_left_alone(torch):
    net = with_gradients(torch, 1e-5)
    utils = torch.nn.utils
    before = [p.grad.clone() for p in net.parameters()]
    utils.clip_grad_norm_(net.weight, 100.0)
    return [
        before,
        [p.grad for p in net.parameters()],
        utils.clip_grad_norm_([torch.ones(1)], 1.0),
        utils.get_total_norm([]),
        utils.clip_grad_norm_((p for p in []), 1.0),
        utils.clip_grads_with_norm_([torch.ones(1)], 1.0, torch.tensor(3.0)),
    ]


@on_both
def test_a_norm_that_is_not_finite_can_be_an_error(torch):
    net = with_gradients(torch)
    net.weight.grad[0, 0] = float("inf")
    return attempt(lambda: torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True))


@on_both
def test_gradients_are_held_between_bounds(torch):
    net = with_gradients(torch)
    torch.nn.utils.clip_grad_value_(net.parameters(), 2)
    return [p.grad for p in net.parameters()]


@on_both
def test_the_old_name_of_clip_grad_norm_warns(torch):
    return torch.nn.utils.clip_grad_norm(with_gradients(torch).parameters(), 1.0)


@on_both
def test_parameters_become_a_vector_and_back(torch):
    net = with_gradients(torch)
    vector = torch.nn.utils.parameters_to_vector(net.parameters())
    torch.nn.utils.vector_to_parameters(torch.arange(8.0), net.parameters())
    return (
        vector,
        [p for p in net.parameters()],
        attempt(lambda: torch.nn.utils.vector_to_parameters(3, net.parameters())),
    )


@on_both
def test_batch_norm_is_folded_into_the_layer_before_it(torch):
    torch.manual_seed(0)
    nn = torch.nn
    conv, norm = nn.Conv2d(2, 3, 2, bias=False), nn.BatchNorm2d(3)
    turned = nn.ConvTranspose2d(2, 3, 2)
    linear, norm1 = nn.Linear(2, 3), nn.BatchNorm1d(3)
    for each in (norm, norm1):
        each.running_mean.copy_(torch.tensor([0.1, 0.2, 0.3]))
        each.running_var.copy_(torch.tensor([1.5, 0.5, 2.0]))
    too_early = attempt(lambda: nn.utils.fuse_conv_bn_eval(conv, norm))
    for each in (conv, norm, turned, linear, norm1):
        each.eval()
    x = torch.arange(18.0).reshape(1, 2, 3, 3)
    fused = nn.utils.fuse_conv_bn_eval(conv, norm)
    return [
        too_early,
        fused(x),
        norm(conv(x)),
        nn.utils.fuse_conv_bn_eval(turned, norm, transpose=True)(x),
        nn.utils.fuse_linear_bn_eval(linear, norm1)(torch.ones(1, 2)),
        attempt(lambda: nn.utils.fuse_linear_bn_eval(nn.Linear(2, 4).eval(), norm1)),
        attempt(
            lambda: nn.utils.fuse_linear_bn_eval(
                nn.Linear(2, 3).eval(), nn.BatchNorm1d(3, track_running_stats=False).eval()
            )
        ),
        repr(fused),
    ]


@on_both
def test_weights_of_convolutions_change_their_memory_format(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Conv3d(2, 3, 2), nn.ConvTranspose2d(2, 3, 2))
    nn.utils.convert_conv2d_weight_memory_format(net, torch.channels_last)
    nn.utils.convert_conv3d_weight_memory_format(net, torch.channels_last_3d)
    return [layer.weight.stride() for layer in net]


@on_both
def test_a_module_can_be_made_without_drawing_numbers(torch):
    nn = torch.nn
    torch.manual_seed(0)
    made = nn.utils.skip_init(nn.Linear, 3, 4, dtype=torch.float64)
    return repr(made), str(made.weight.dtype), torch.rand(2), attempt(lambda: nn.utils.skip_init(nn.ReLU))


@on_both
def test_a_module_is_called_with_other_parameters(torch):
    call = torch.nn.utils.stateless.functional_call
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    weight = torch.ones(2, 2, requires_grad=True)
    given = {"0.weight": weight, "1.running_mean": torch.zeros(2)}
    out = call(net, given, (torch.arange(4.0).reshape(2, 2),))
    out.sum().backward()
    return [
        out,
        weight.grad,
        given["1.running_mean"],
        all(
            bool((before[name] == value).all())
            for name, value in net.state_dict().items()
            if name != "1.num_batches_tracked"
        ),
        attempt(lambda: call(net, {"0.weight": weight}, torch.ones(2, 2), strict=True)),
        attempt(lambda: call(net, {"0.weight": 3}, torch.ones(2, 2))),
    ]


@on_both
def test_tied_parameters_are_replaced_together(torch):
    call = torch.nn.utils.stateless.functional_call
    nn = torch.nn
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    net[1].weight = net[0].weight
    x, two, three = torch.ones(1, 1), torch.full((1, 1), 2.0), torch.full((1, 1), 3.0)
    with torch.no_grad():
        net[0].weight.fill_(1.0)
    return [
        call(net, {"0.weight": two}, x),
        call(net, {"0.weight": two}, x, tie_weights=False),
        call(net, {"0.weight": two, "1.weight": three}, x, tie_weights=False),
        attempt(lambda: call(net, {"0.weight": two, "1.weight": three}, x)),
    ]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions_are_functions_of_their_own(n):
    @on_both
    def program(torch):
        made = Inputs(torch)
        x, w = made.plain(2, 4, *[5] * n), made.plain(6, 2, *[3] * n)
        settings = {"stride": 2, "padding": 1, "groups": 2}
        grad = made.plain(*getattr(torch.nn.functional, f"conv{n}d")(x, w, **settings).shape)
        functions = torch.nn.grad
        return (
            getattr(functions, f"conv{n}d_input")(x.shape, w, grad, **settings),
            getattr(functions, f"conv{n}d_weight")(x, w.shape, grad, **settings),
        )

    program()


@on_both
def test_data_parallel_without_devices_calls_its_module(torch):
    torch.manual_seed(0)
    if torch.__name__ == "torch":
        torch.cuda.is_available()
    net, chosen = torch.nn.DataParallel(torch.nn.Linear(2, 2)), torch.nn.DataParallel(torch.nn.ReLU(), [0, 1])
    return repr(net), list(net.state_dict()), net(torch.ones(1, 2)), chosen.device_ids, chosen(torch.ones(1))


@on_both
def test_prefixes_of_state_dicts_are_taken_away(torch):
    net = torch.nn.Sequential(torch.nn.Linear(1, 1))
    state = net.state_dict(prefix="module.")
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return list(state), list(state._metadata)


@on_both
def test_arguments_for_tensors_are_gathered(torch):
    gather = torch.nn.factory_kwargs
    return [
        gather(None),
        gather({"device": "cpu", "factory_kwargs": {"dtype": 3}}),
        attempt(lambda: gather({"some": 3})),
        attempt(lambda: gather({"device": "cpu", "factory_kwargs": {"device": "cpu"}})),
    ]


@on_both
def test_a_linear_layer_with_its_loss(torch):
    torch.manual_seed(0)
    made = Inputs(torch)
    x, target = made.x(5, 3), made.i(4, 5)
    layer = torch.nn.LinearCrossEntropyLoss(3, 4, bias=True, ignore_index=1)
    loss = layer(x, target)
    loss.backward()
    return repr(layer), loss, x.grad, [p.grad for p in layer.parameters()], list(layer.state_dict())


@on_both
def test_a_linear_layer_with_its_loss_refuses_wrong_settings(torch):
    nn = torch.nn
    options = nn.LinearCrossEntropyOptions
    return [
        attempt(lambda: nn.LinearCrossEntropyLoss(3, 4, weight=torch.ones(3))),
        attempt(lambda: nn.LinearCrossEntropyLoss(3, 4, label_smoothing=2.0)),
        attempt(lambda: options(acc_policy="some")),
        attempt(lambda: options(chunking_method="some")),
        attempt(lambda: options(chunking_method="aspect_ratio:0")),
        attempt(lambda: options(batch_chunk_size=0)),
        attempt(lambda: options(acc_dtype=torch.int64)),
        repr(options(chunking_method="aspect_ratio:2")),
    ]
