"""What torch has and this library does not: every such name answers, with the truth or with an error that helps.

There is one kind of tensor here: strided, in the memory of the CPU, of NumPy's dtypes. So questions about other kinds
have an answer (`is_quantized` is False), conversions from them have one (`to_dense` gives the tensor itself), and
whatever would make one raises an error that says what is missing and what to use instead.
"""

from __future__ import annotations

from typing import Any

from pullback._arrays.layout import layout
from pullback._dtype import float32
from pullback._op.declare import spaces
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.ops import load_all
from pullback.ops.create.cast import converted
from pullback.ops.create.storage import reduce_tensor
from pullback.ops.linalg.matmul import mm

# ------------------------------------------------------------------ the truth

PROPERTIES = ("is_mkldnn", "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "is_vulkan")
"""Properties of tensors of other kinds: False."""

for name in PROPERTIES:
    setattr(Tensor, name, property(lambda self: False, doc="False: every tensor is strided and on the CPU."))


def volatile(self: Tensor) -> bool:
    """False, with torch's warning."""
    warn("volatile was removed (Variable.volatile is always False)")
    return False


def dequantize(self: Any) -> Any:
    """The tensor itself, which is not quantized, in float32."""
    return tuple([dequantize(item) for item in self]) if isinstance(self, (tuple, list)) else converted(self, float32)


def set_state(self: Tensor, state: Any) -> None:
    """Pickles of torch 0.1 restored tensors this way; today's name the function that rebuilds them."""
    raise NotImplementedError("Tensor.__setstate__ belongs to a format of pickles that is no longer written")


TRUTHS = {
    "__long__": Tensor.__int__,
    "__nonzero__": Tensor.__bool__,
    "__setstate__": set_state,
    "_cdata": property(id, doc="A number that tells tensors apart."),
    "_reduce_ex_internal": reduce_tensor,
    "dequantize": dequantize,
    "volatile": property(volatile),
}
for name, value in TRUTHS.items():
    setattr(Tensor, name, value)


def answering(name: str, value: Any, why: str) -> Any:
    """A function whose answer is always the same."""

    def call(*args: Any) -> Any:
        return value

    call.__name__ = call.__qualname__ = name
    call.__doc__ = why
    return call


ANSWERS = {
    "compiled_with_cxx11_abi": (False, "False: nothing here is compiled C++."),
    "cudnn_is_acceptable": (False, "False: there is no cuDNN."),
    "init_num_threads": (None, "Nothing to do: threads are started when they are needed."),
    "is_vulkan_available": (False, "False: there is no Vulkan."),
    "prepare_multiprocessing_environment": (None, "Nothing to prepare."),
    "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12": (False, "False: there is no CUDA to profile."),
    "thread_safe_generator": (None, "None: outside of the workers of a DataLoader there is no generator of a thread."),
}
for name, (value, why) in ANSWERS.items():
    spaces["torch"][name] = answering(name, value, why)
spaces["torch"].update(dequantize=dequantize, dsmm=mm, spmm=mm)

LAYOUTS = ("jagged", "_mkldnn")
spaces["torch"].update({name: layout(name) for name in LAYOUTS})

# ------------------------------------------------------------------ torch's own errors for strided tensors

NOT_FOR_THE_CPU = (
    "int_repr", "q_per_channel_axis",
    "q_per_channel_scales", "q_per_channel_zero_points", "q_scale", "q_zero_point", "qscheme", "resize_as_sparse_",
    "sparse_resize_", "sparse_resize_and_clear_", "to_padded_tensor",
)  # fmt: skip
NOT_COMPILED = {
    "ipu": (RuntimeError, "PyTorch is not linked with support for ipu devices"),
    "mtia": (AssertionError, "Torch not compiled with MTIA enabled."),
    "xpu": (AssertionError, "Torch not compiled with XPU enabled"),
}
REINFORCE = (
    "reinforce() was removed.\nUse torch.distributions instead.\nSee https://pytorch.org/docs/main/distributions.html"
)
ONLY_SPARSE = (RuntimeError, "tensor.sspaddmm(...) can only be called on sparse tensors")


def raising(name: str, error: type[Exception], text: str) -> Any:
    """A function that says why it cannot do what it is named after."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise error(text)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = text
    call.out_of_scope = True  # type: ignore[attr-defined]
    return call


for name in NOT_FOR_THE_CPU:
    text = f"Could not run 'aten::{name}' with arguments from the 'CPU' backend."
    setattr(Tensor, name, raising(name, NotImplementedError, text))
    if not name.startswith(("_", "sparse", "qscheme", "to_")):
        spaces["torch"][name] = getattr(Tensor, name)
for name, (error, text) in NOT_COMPILED.items():
    setattr(Tensor, name, raising(name, error, text))
Tensor.reinforce = raising("reinforce", RuntimeError, REINFORCE)  # type: ignore[attr-defined]
spaces["torch"]["saddmm"] = raising("saddmm", *ONLY_SPARSE)

# ------------------------------------------------------------------ methods of sparse tensors, loaded on demand


def on_first_use(name: str) -> Any:
    """A method that ops/sparse/ declares: those modules are loaded when it is first called."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        load_all()
        return getattr(self, name)(*args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "A method of sparse tensors, whose modules are loaded by the first call."
    return method


SPARSE_METHODS = (
    "_coalesced_", "_dimI", "_dimV", "_indices", "_nnz", "_to_sparse_csr", "_values", "ccol_indices", "coalesce",
    "col_indices", "crow_indices", "dense_dim", "indices", "is_coalesced", "row_indices", "smm", "sparse_dim",
    "sparse_mask", "sspaddmm", "to_dense", "to_sparse", "to_sparse_bsc", "to_sparse_bsr", "to_sparse_coo",
    "to_sparse_csc", "to_sparse_csr", "values",
)  # fmt: skip
for name in SPARSE_METHODS:
    setattr(Tensor, name, on_first_use(name))

# ------------------------------------------------------------------ not here

SPARSE = "this entry of sparse tensors is not implemented; use norm"
MKLDNN = "MKL-DNN's own layout is not implemented; strided tensors work everywhere"
QUANTIZED = "quantized tensors are not implemented; use floating point tensors"
DIMS = "first-class dimensions are not implemented; index with x[...] or use func.vmap"
STREAMS = "the tensor is on the CPU, which has no streams; it is for tensors of CUDA devices"
INVERSE = "slice_inverse is not implemented; use slice_scatter"
JIT = "TorchScript is not implemented; functions run as they are written"
THREADS = "TorchScript's fork and wait are not implemented; use concurrent.futures"
CUDNN = "cuDNN runs on NVIDIA devices only; use {}"
MIOPEN = "MIOpen runs on AMD devices only; use {}"
ONEDNN = "this entry of MKL-DNN is not implemented; use {}"
SYNC = "this step of synchronized batch normalization runs on other devices only; use batch_norm"
FBGEMM = "FBGEMM's packed matrices are not implemented; use nn.functional.linear"
OBSERVED = "the observers of quantization are not implemented; keep scales by hand for fake_quantize_per_tensor_affine"

METHODS = {
    MKLDNN: ("to_mkldnn",),
    DIMS: ("index",),
    STREAMS: ("record_stream",),
    INVERSE: ("slice_inverse",),
}  # fmt: skip
"""Methods of tensors by the reason they only raise."""

FUNCTIONS = {
    SPARSE: ("native_norm",),
    QUANTIZED: (
        "choose_qparams_optimized", "empty_quantized", "quantize_per_channel", "quantize_per_tensor",
        "quantize_per_tensor_dynamic", "quantized_batch_norm", "quantized_gru", "quantized_gru_cell", "quantized_lstm",
        "quantized_lstm_cell", "quantized_max_pool1d", "quantized_max_pool2d", "quantized_max_pool3d",
        "quantized_rnn_relu_cell", "quantized_rnn_tanh_cell",
    ),
    OBSERVED: ("fused_moving_avg_obs_fake_quant",),
    INVERSE: ("slice_inverse",),
    JIT: (
        "import_ir_module", "import_ir_module_from_buffer", "merge_type_from_type_comment", "parse_ir", "parse_schema",
        "parse_type_comment", "unify_type_list",
    ),
    THREADS: ("fork", "wait"),
    SYNC: (
        "batch_norm_backward_elemt", "batch_norm_backward_reduce", "batch_norm_elemt", "batch_norm_gather_stats",
        "batch_norm_gather_stats_with_counts", "batch_norm_stats", "batch_norm_update_stats",
    ),
    FBGEMM: (
        "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation", "fbgemm_linear_int8_weight",
        "fbgemm_linear_int8_weight_fp32_activation", "fbgemm_linear_quantize_weight", "fbgemm_pack_gemm_matrix_fp16",
        "fbgemm_pack_quantized_matrix",
    ),
    CUDNN.format("nn.functional.affine_grid"): ("cudnn_affine_grid_generator",),
    CUDNN.format("nn.functional.batch_norm"): ("cudnn_batch_norm",),
    CUDNN.format("conv2d"): (
        "cudnn_convolution", "cudnn_convolution_add_relu", "cudnn_convolution_relu",
    ),
    CUDNN.format("conv_transpose2d"): ("cudnn_convolution_transpose",),
    CUDNN.format("nn.functional.grid_sample"): ("cudnn_grid_sampler",),
    MIOPEN.format("nn.functional.batch_norm"): ("miopen_batch_norm",),
    MIOPEN.format("conv2d"): (
        "miopen_convolution", "miopen_convolution_add_relu", "miopen_convolution_relu", "miopen_depthwise_convolution",
    ),
    MIOPEN.format("conv_transpose2d"): ("miopen_convolution_transpose",),
    MIOPEN.format("nn.functional.ctc_loss"): ("miopen_ctc_loss",),
    MIOPEN.format("nn.RNN, nn.LSTM or nn.GRU"): ("miopen_rnn",),
    ONEDNN.format("nn.functional.adaptive_avg_pool2d"): ("mkldnn_adaptive_avg_pool2d",),
    ONEDNN.format("conv2d"): ("mkldnn_convolution",),
    ONEDNN.format("nn.functional.linear"): ("mkldnn_linear_backward_weights",),
    ONEDNN.format("max_pool2d"): ("mkldnn_max_pool2d",),
    ONEDNN.format("max_pool3d"): ("mkldnn_max_pool3d",),
    ONEDNN.format("nn.LSTM"): ("mkldnn_rnn_layer",),
}  # fmt: skip
"""Functions by the reason they only raise."""

for reason, names in METHODS.items():
    for name in names:
        setattr(Tensor, name, raising(name, NotImplementedError, f"Tensor.{name}: {reason}"))
for reason, names in FUNCTIONS.items():
    for name in names:
        spaces["torch"][name] = raising(name, NotImplementedError, f"{name}: {reason}")
