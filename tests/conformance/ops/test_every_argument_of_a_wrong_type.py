"""Every function of torch's table of signatures, with each argument of a wrong type in turn: torch's own error.

Only calls that torch refuses for the types of their arguments count. Where ours differ is listed below, by name and
number of calls: a difference that is new fails, and so does one that is gone.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import pullback
from pullback._op import parser
from tests.conformance.both import ADDRESS, evaluated

USUAL = {
    "Tensor": "x",
    "Number": "2",
    "int": "0",
    "symint": "1",
    "float": "0.5",
    "bool": "True",
    "str": "'a'",
    "ints": "[0]",
    "symints": "[3]",
    "floats": "[0.5]",
    "Tensors": "[x, x]",
    "Numbers": "[2]",
}
WRONG = ("'s'", "0.5", "[1, 'q']", "None", "object()", "{}", "True", "1j")
SPACES = ("", "nn.functional.", "linalg.", "fft.", "special.")
ABOUT_TYPES = ("(): argument '", "invalid combination", " missing ", "expected Tensor as element")
LEFT_OUT = ("from_file", "mkldnn_rnn_layer")  # makes files; is called by nobody


def public(module: Any, name: str) -> str | None:
    """Where a function is found in a module, as source."""
    for space in SPACES:
        short = name.removeprefix(space.replace(".", "_")) if space != "nn.functional." else name
        holder = module
        for part in space.split(".")[:-1]:
            holder = getattr(holder, part)
        if hasattr(holder, short) and (short != name or space in SPACES[:2]):
            return f"torch.{space}{short}"
    return None


def lists(signature: parser.Signature) -> Iterator[str]:
    """Lists of arguments with one wrong value each, by position and by keyword."""
    params = [p for p in signature.params if not p.keyword_only]
    if any(p.kind not in USUAL for p in params):
        return
    usual = [USUAL[p.kind] for p in params]
    for nr in range(len(params)):
        behind = [f"{p.name}={value}" for p, value in zip(params, usual, strict=True) if p.default is None][nr + 1 :]
        required = [value for p, value in zip(params, usual, strict=True) if p.default is None][nr + 1 :]
        for value in WRONG:
            yield ", ".join([*usual[:nr], value, *required])
        yield ", ".join([*usual[:nr], f"{params[nr].name}='s'", *behind])


def calls(name: str) -> Iterator[str]:
    """Wrong calls of a function and of the method of its name, as source."""
    path = public(torch, name)
    builtin = (types.BuiltinFunctionType, types.BuiltinMethodType, types.MethodDescriptorType)
    if path is not None and public(pullback, name) == path and isinstance(eval(path), builtin):
        for signature in parser.signatures(name, False)[:2]:
            for arguments in lists(signature):
                yield f"{path}({arguments})"
    if isinstance(getattr(torch.Tensor, name, None), builtin) and hasattr(pullback.Tensor, name):
        for signature in parser.signatures(name, True)[:2]:
            for arguments in lists(signature):
                yield f"x.{name}({arguments})"


def outcome(module: Any, source: str) -> str:
    """What a call ends with."""
    try:
        evaluated(source, {"torch": module, "x": module.ones(3, 3), "object": object})
    except Exception as error:
        return ADDRESS.sub("", f"{type(error).__name__}: {error}")
    return "accepted"


def differences(name: str) -> Iterator[tuple[str, str, str]]:
    """The calls that torch refuses because of types, and pullback otherwise or not at all."""
    for source in dict.fromkeys(calls(name)):
        theirs = outcome(torch, source)
        if theirs.startswith("TypeError") and any(text in theirs for text in ABOUT_TYPES):
            ours = outcome(pullback, source)
            if ours != theirs:
                yield source, theirs, ours


NAMES = sorted({name.removeprefix(".") for name in parser.table()} - set(LEFT_OUT))
INITIALS = sorted({name.lstrip("_")[0] for name in NAMES})


def counted(text: str) -> dict[str, int]:
    """A list of names and numbers."""
    return {name: int(count) for name, count in (item.split(":") for item in text.split())}


# Values that count for True or False as flags, and True and False as integers: asking for their type would cost calls
# that succeed.
ACCEPTED = counted("""
    adaptive_avg_pool1d:1 adaptive_max_pool1d:1 all:2 allclose:16 alpha_dropout:8 alpha_dropout_:8 amax:2 amin:2
    any:2 argmax:16 argmin:16 argsort:16 as_strided:2 as_strided_:2 as_strided_copy:1 avg_pool1d:1 bartlett_window:8
    bernoulli:2 binary_cross_entropy_with_logits:9 blackman_window:8 cat:1 cholesky_inverse:16 cholesky_solve:16
    chunk:2 constant_pad_nd:1 copy_:8 count_nonzero:2 cumprod:2 cumsum:2 diag:2
    diag_embed:6 diagflat:2 diagonal:8 diagonal_copy:2 diff:4 dropout:8 dropout_:8 eye:1
    fake_quantize_per_tensor_affine:2 feature_alpha_dropout:8 feature_alpha_dropout_:8 feature_dropout:8
    feature_dropout_:8 fft_fft:2 fft_fft2:2 fft_fftfreq:5 fft_fftn:2 fft_fftshift:1 fft_hfft:2 fft_hfft2:2
    fft_hfftn:2 fft_ifft:2 fft_ifft2:2 fft_ifftn:2 fft_ifftshift:1 fft_ihfft:2 fft_ihfft2:2 fft_ihfftn:2 fft_irfft:2
    fft_irfft2:2 fft_irfftn:2 fft_rfft:2 fft_rfft2:2 fft_rfftfreq:5 fft_rfftn:2 fill_diagonal_:8 flatten:4
    frobenius_norm:2 group_norm:1 hamming_window:8 hann_window:8 hash_tensor:2 hinge_embedding_loss:9 hsplit:2
    is_distributed:9 isclose:16 kaiser_window:8 kl_div:9 kthvalue:18 linalg_lstsq:2 linalg_norm:1 linalg_svd:4
    linalg_vector_norm:1 logsumexp:18 lu_unpack:2 margin_ranking_loss:11 max:2 max_pool1d:1
    max_pool1d_with_indices:1 mean:2 median:18 min:2 mode:18 multinomial:18 nan_to_num:18 nan_to_num_:18
    nanmean:2 nanmedian:18 nanquantile:18 nansum:2 narrow:6 narrow_copy:6 native_dropout:7 new_full:1
    norm_except_dim:3 pinverse:2 poisson_nll_loss:30 polygamma:2 prod:2 qr:16 quantile:18
    randint_like:3 random_:1 renorm:2 repeat_interleave:1 rot90:2 scaled_dot_product_attention:2
    select:4 select_copy:3 slice_copy:4 slice_scatter:2 sort:18 split_copy:2 split_with_sizes:2
    split_with_sizes_copy:1 squeeze:2 squeeze_copy:1 stack:1 std:4 std_mean:2 sum:2 svd:32 swapaxes:4
    swapdims:4 tensor_split:6 to_sparse:2 to_sparse_csc:1 to_sparse_csr:1 topk:34 transpose:4
    transpose_copy:2 triangular_solve:40 tril:2 triplet_margin_loss:17 triu:2 unbind:2
    unbind_copy:1 unflatten:1 unfold:1 unfold_copy:1 unsafe_chunk:2 unsafe_split:4 unsafe_split_with_sizes:2
    unsqueeze:6 unsqueeze_copy:3 var:4 var_mean:2 vsplit:2
""")
# Functions that run as they are written, without the wrapper that explains errors, for they are called often; errors of
# Python itself for the number and names of arguments; what a call gives that is the default anyway; and the order of
# three and more keywords, for which torch's is that of a hash table.
OTHER_WORDS = counted("""
    acos_:1 adaptive_max_pool1d:2 addbmm:5 addcdiv:4 addcmul:4 addmm:2 addmv:5 addmv_:2 addr:5 arange:13 asin_:1
    atan_:1 baddbmm:2 bitwise_and:1 bitwise_left_shift:1 bitwise_or:1 bitwise_right_shift:1 bitwise_xor:1
    bucketize:1 ceil_:1 celu_:1 copy_:1 cos_:1 cosh_:1 deg2rad_:1 detach:9 detach_:9 dsplit:1 elu_:1 empty:1
    empty_like:1 erf_:1 erfc_:1 exp2_:1 exp_:1 expand:2 expm1_:1 fill_:26 flip:2 float_power:1 floor_:1 frac_:1
    full:2 full_like:2 gcd_:1 gru:5 hardtanh_:1 histogramdd:2 hsplit:1 i0_:1 index_fill:6 is_nonzero:1
    is_same_size:9 lcm_:1 ldexp_:1 leaky_relu_:1 linalg_cross:2 linalg_solve_triangular:18 log10_:1 log1p_:1 log2_:1
    log_:1 logit_:1 lstm:5 masked_fill:2 matmul:11 max_pool1d:6 max_pool1d_with_indices:6 max_pool2d:6 max_pool3d:6
    nan_to_num_:1 neg_:1 negative:9 new_empty:1 new_ones:1 new_zeros:1 ones:1 ones_like:1 permute:12 pow:1
    rad2deg_:1 rand:1 rand_like:1 randn:1 randn_like:1 randperm:1 reciprocal_:1 relu_:1 remainder:1 repeat:2
    repeat_interleave:2 requires_grad_:8 reshape:3 resize_:2 rnn_relu:5 rnn_tanh:5 rsqrt_:1 scalar_tensor:1
    scatter:1 searchsorted:2 selu:1 selu_:9 sigmoid_:1 sin_:1 sinc_:1 sinh_:1 smm:27 sparse_mask:9
    special_xlog1py:1 special_zeta:1 sqrt_:1 sspaddmm:52 sym_constrain_range:6 sym_constrain_range_for_size:6 tan_:1
    tanh_:1 threshold_:1 to_sparse:7 to_sparse_bsc:17 to_sparse_bsr:17 to_sparse_csc:7 to_sparse_csr:7 trunc_:1
    type_as:1 view:3 vsplit:1 where:37 xlogy:1 zeros:1 zeros_like:1
""")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("initial", INITIALS)
def test_arguments_of_wrong_types_are_refused_in_torchs_words(initial: str) -> None:
    accepted, other, shown = Counter[str](), Counter[str](), []
    for name in NAMES:
        if name.lstrip("_").startswith(initial):
            for source, theirs, ours in differences(name):
                (accepted if ours == "accepted" else other)[name] += 1
                shown.append(f"{source}\n    torch: {theirs}\n    ours:  {ours}")
    known = {name: count for name, count in ACCEPTED.items() if name.lstrip("_").startswith(initial)}
    worded = {name: count for name, count in OTHER_WORDS.items() if name.lstrip("_").startswith(initial)}
    assert (dict(accepted), dict(other)) == (known, worded), "\n".join(shown)


def test_the_table_says_what_torch_says() -> None:
    assert len(NAMES) > 500
    assert str(parser.signatures("gather", True)[0]) == "(int dim, Tensor index, *, bool sparse_grad = False)"
