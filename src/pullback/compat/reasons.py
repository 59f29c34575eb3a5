"""Why a part of torch is not here, and what to do without it, by the start of its names: the longest start counts."""

from __future__ import annotations

COMPILER = "it sets up torch's own compilers, which are not used here"
CUDA = "it belongs to CUDA's own libraries and tools, or to torch's allocator; pullback uses the driver alone"
DEVICES = "there is no such device here: guard it with {}.is_available()"
EXPORT = "save the model with torch.save or safetensors.torch.save_file"
DISTRIBUTED = "stores, groups, collectives and DistributedDataParallel are here; train with these"
PIPES = "write a torch.utils.data.Dataset or IterableDataset"
PLAIN = "use float32, float16 or bfloat16"
TOOL = "it is a tool for torch's own build or files"

REASONS = {
    "functorch.": "use torch.func; first-class dimensions and torch's own compilers are not here",
    "torch.": "it belongs to torch's compiled parts: TorchScript's types and graphs, the dispatcher, its loggers",
    "torch.accelerator.": "use what has the same name in torch.cuda, where there is a device",
    "torch.ao.": PLAIN,
    "torch.backends.": "there is no such library here to be set up",
    "torch.backends.cuda.": CUDA,
    "torch.backends.mps.": DEVICES.format("torch.backends.mps"),
    "torch.compiler.": COMPILER,
    "torch.cpu.": "the CPU has no streams: operations are done when they return",
    "torch.cuda.": CUDA,
    "torch.distributed.": DISTRIBUTED,
    "torch.distributed.rpc.": "send objects with torch.distributed.send_object_list",
    "torch.export.": EXPORT,
    "torch.func.debug_unwrap": "there are no wrappers that could be opened while a transform runs",
    "torch.func.rearrange": "use einops.rearrange, or reshape and permute",
    "torch.futures.": "use concurrent.futures",
    "torch.fx.": "symbolic shapes, partitioners and passes for compilers are not here; graphs are plain Python",
    "torch.hub.": "build the model yourself and load its weights with torch.load",
    "torch.jit.": "the function or the module itself runs as it is",
    "torch.library.": "write the op in Python, as a torch.autograd.Function",
    "torch.masked.": "use a tensor and a bool mask, with the functions of torch.masked",
    "torch.monitor.": "use the logging module",
    "torch.mps.": DEVICES.format("torch.backends.mps"),
    "torch.mtia.": DEVICES.format("torch.mtia"),
    "torch.multiprocessing.": "use the multiprocessing module; tensors are pickled",
    "torch.nested.": "nested tensors are plain Python around their values: see torch.nested",
    "torch.nn.attention.": "use nn.functional.scaled_dot_product_attention with a mask",
    "torch.nn.cpp.": "there is no C++ module to wrap",
    "torch.nn.functional.": "scaled products of float8 belong to CUDA devices",
    "torch.nn.intrinsic.": PLAIN,
    "torch.nn.parallel.": "start a process for each device, with DistributedDataParallel",
    "torch.nn.qat.": PLAIN,
    "torch.nn.quant": PLAIN,
    "torch.numa.": "start processes with numactl",
    "torch.onnx.": EXPORT,
    "torch.optim.": "call the class of the optimizer",
    "torch.overrides.": "it lists torch's own functions for torch's own tests",
    "torch.package.": EXPORT,
    "torch.profiler.": "the profiler measures the CPU only, and writes Chrome traces",
    "torch.autograd.profiler": "the profiler measures the CPU only, and writes Chrome traces",
    "torch.q": "quantized tensors are not implemented; use floating point tensors",
    "torch.Q": "quantized tensors are not implemented; use floating point tensors",
    "torch.per_": "quantized tensors are not implemented; use floating point tensors",
    "torch.quantization.": PLAIN,
    "torch.serialization.": "it serves storages of other devices and files of torch 0.3",
    "torch.sparse.": "use a matrix of layout sparse_coo or sparse_csr",
    "torch.utils.": TOOL,
    "torch.utils.checkpoint.": "torch.utils.checkpoint.checkpoint computes everything inside it again",
    "torch.utils.cpp_extension.": "write the op in Python, as a torch.autograd.Function",
    "torch.utils.data.datapipes.": PIPES,
    "torch.utils.data.graph": PIPES,
    "torch.utils.data.": PIPES,
    "torch.utils.jit.": "the function or the module itself runs as it is",
    "torch.utils.mkldnn.": "strided tensors work everywhere",
    "torch.xpu.": DEVICES.format("torch.xpu"),
    "torchvision.": "install torchvision, which is used where it is found",
}


def reason(name: str) -> str:
    """Why a name of torch is not here; empty if nobody has said."""
    starts = [start for start in REASONS if name.startswith(start)]
    return REASONS[max(starts, key=len)] if starts else ""
