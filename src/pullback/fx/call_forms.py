"""How torch's Python functions hand a call to `__torch_function__`: which arguments by place, which by name.

A function of torch that is written in Python reads its arguments, defaults included, and passes them on in a form of
its own: `F.relu(x)` arrives as `relu(x, inplace=False)`. Functions of torch written in C++ pass a call on as it was.
The forms are seen in the code that a graph prints.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pullback import functional
from pullback.nn import functional as nn_functional

# Function names, then the parameters: those before the bar are passed by place, those behind it by name.
NN_FUNCTIONAL = """
adaptive_avg_pool2d adaptive_avg_pool3d: input, output_size
adaptive_max_pool1d adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
    adaptive_max_pool3d adaptive_max_pool3d_with_indices: input, output_size | return_indices=False
affine_grid: theta, size | align_corners=None
alpha_dropout feature_alpha_dropout: input | p=0.5, training=False, inplace=False
batch_norm: input, running_mean, running_var | weight=None, bias=None, training=False, momentum=0.1, eps=1e-05
binary_cross_entropy multilabel_soft_margin_loss: input, target | weight=None, size_average=None, reduce=None,
    reduction='mean'
binary_cross_entropy_with_logits: input, target | weight=None, size_average=None, reduce=None, reduction='mean',
    pos_weight=None
celu elu: input | alpha=1.0, inplace=False
cosine_embedding_loss margin_ranking_loss: input1, input2, target | margin=0, size_average=None, reduce=None,
    reduction='mean'
cross_entropy: input, target | weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean',
    label_smoothing=0.0
ctc_loss: log_probs, targets, input_lengths, target_lengths | blank=0, reduction='mean', zero_infinity=False
dropout dropout1d dropout2d dropout3d: input | p=0.5, training=True, inplace=False
embedding: input, weight | padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
embedding_bag: input, weight | offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean',
    sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None
fold: input, output_size, kernel_size | dilation=1, padding=0, stride=1
fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices:
    input, kernel_size | output_size=None, output_ratio=None, return_indices=False, _random_samples=None
gaussian_nll_loss: input, target, var | full=False, eps=1e-06, reduction='mean'
glu: input | dim=-1
grid_sample: input, grid | mode='bilinear', padding_mode='zeros', align_corners=None
group_norm: input, num_groups | weight=None, bias=None, eps=1e-05
gumbel_softmax: logits | tau=1, hard=False, eps=1e-10, dim=-1
hardsigmoid hardswish mish relu relu6 selu silu: input | inplace=False
hardtanh: input | min_val=-1.0, max_val=1.0, inplace=False
hinge_embedding_loss: input, target | margin=1.0, size_average=None, reduce=None, reduction='mean'
huber_loss: input, target | reduction='mean', delta=1.0, weight=None
instance_norm: input | running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
    momentum=0.1, eps=1e-05
interpolate: input | size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None,
    antialias=False
kl_div: input, target | size_average=None, reduce=None, reduction='mean', log_target=False
l1_loss mse_loss: input, target | size_average=None, reduce=None, reduction='mean', weight=None
layer_norm: input, normalized_shape | weight=None, bias=None, eps=1e-05
leaky_relu: input | negative_slope=0.01, inplace=False
linear_cross_entropy: input, linear_weight, target | linear_bias=None, weight=None, reduction='mean',
    ignore_index=None, label_smoothing=0.0, options=None
local_response_norm: input, size | alpha=0.0001, beta=0.75, k=1.0
log_softmax softmax softmin: input | dim=None, _stacklevel=3, dtype=None
lp_pool1d lp_pool2d lp_pool3d: input, norm_type, kernel_size | stride=None, ceil_mode=False
max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices: input,
    kernel_size | stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
max_unpool1d max_unpool2d max_unpool3d: input, indices, kernel_size | stride=None, padding=0, output_size=None
multi_head_attention_forward: query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias,
    bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias | training=True, key_padding_mask=None,
    need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None,
    v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, is_causal=False
multi_margin_loss: input, target | p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean'
multilabel_margin_loss soft_margin_loss: input, target | size_average=None, reduce=None, reduction='mean'
nll_loss: input, target | weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'
normalize: input | p=2.0, dim=1, eps=1e-12, out=None
pad: input, pad | mode='constant', value=None
poisson_nll_loss: input, target | log_input=True, full=False, size_average=None, eps=1e-08, reduce=None,
    reduction='mean'
rms_norm: input, normalized_shape | weight=None, eps=None
rrelu: input | lower=0.125, upper=0.3333333333333333, training=False, inplace=False
smooth_l1_loss: input, target | size_average=None, reduce=None, reduction='mean', beta=1.0
softsign tanhshrink: input
threshold: input, threshold, value | inplace=False
triplet_margin_loss: anchor, positive, negative | margin=1.0, p=2, eps=1e-06, swap=False, size_average=None,
    reduce=None, reduction='mean'
triplet_margin_with_distance_loss: anchor, positive, negative | distance_function=None, margin=1.0, swap=False,
    reduction='mean'
unfold: input, kernel_size | dilation=1, padding=0, stride=1
"""
FUNCTIONAL = """
cdist: x1, x2 | p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary'
lu: A | pivot=True, get_infos=False, out=None
norm: input | p='fro', dim=None, keepdim=False, out=None, dtype=None
pca_lowrank: A | q=None, center=True, niter=2
split: tensor, split_size_or_sections | dim=0
stft: input, n_fft | hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect',
    normalized=False, onesided=None, return_complex=None, align_to_window=None
svd_lowrank: A | q=6, niter=2, M=None
tensordot: a, b | dims=2, out=None
unravel_index: indices | shape
unique: input | sorted=True, return_inverse=False, return_counts=False, dim=None
unique_consecutive: input | return_inverse=False, return_counts=False, dim=None
"""
# Parameters torch does not pass on, or passes on in another order than that of the signature.
LEFT_OUT = {("l1_loss", "weight")}
ORDERS = {"multi_head_attention_forward": ("attn_mask", "is_causal")}


@cache
def forms() -> dict[Any, Any]:
    """By function: what makes the arguments and keyword arguments of a call into those torch passes on."""
    found: dict[Any, Any] = {}
    for module, table in ((functional, FUNCTIONAL), (nn_functional, NN_FUNCTIONAL)):
        for line in table.replace("\n    ", " ").strip().splitlines():
            names, _, parameters = line.partition(": ")
            for name in names.split():
                function = getattr(module, name, None)
                if function is not None:
                    found[function] = form(name, parameters)
    return found


def form(name: str, parameters: str) -> Any:
    """A function with these parameters that gives the arguments by place and those by name."""
    placed, _, named = parameters.partition(" | ")
    keywords = [part.partition("=")[0].strip() for part in named.split(",") if part.strip()]
    keywords = [keyword for keyword in keywords if (name, keyword) not in LEFT_OUT]
    if name in ORDERS:
        before, moved = ORDERS[name]
        keywords.remove(moved)
        keywords.insert(keywords.index(before) + 1, moved)
    pairs = ", ".join([f"{keyword!r}: {keyword}" for keyword in keywords])
    source = f"lambda {parameters.replace(' |', ',')}: (({placed},), {{{pairs}}})"
    return eval(compile(source, "<pullback form>", "eval"))


def as_passed_on(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments and keyword arguments with which torch tells of this call."""
    known = forms().get(function)
    return (args, kwargs) if known is None else known(*args, **kwargs)
