"""What torch demands of a convolution's operands, in its words and its order."""

from __future__ import annotations

from operator import index
from typing import Any

from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array
from pullback._runtime.messages import shape_text
from pullback.kernels.numpy.conv import columns as kernels
from pullback.ops.supported import refuse


def expanded(name: str, value: Any, ndim: int) -> tuple[int, ...]:
    """One number for all dimensions, or one for each."""
    if type(value) is int:
        return (value,) * ndim
    sizes = tuple([index(v) for v in value]) if isinstance(value, (tuple, list)) else (index(value),)
    if len(sizes) == ndim:
        return sizes
    if len(sizes) != 1:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {ndim} values to match the convolution "
            f"dimensions, but got {name}={shape_text(sizes)}"
        )
    return sizes * ndim


def check_convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> None:
    """Torch's demands, in its order."""
    sizes, k = shape_text(weight.shape), weight.ndim
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if min(dilation) <= 0 and not transposed:
        shown = dilation if len(dilation) > 1 else (1, *dilation)  # a signal counts as an image of height one
        raise RuntimeError(f"dilation should be greater than zero, but got {shape_text(shown)}")
    if input.ndim != k:
        raise RuntimeError(
            f"Expected {k}-dimensional input for {k}-dimensional weight {sizes}, but got {input.ndim}-dimensional "
            f"input of size {shape_text(input.shape)} instead"
        )
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{sizes} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{sizes}] instead"
        )
    given = f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size {sizes}"
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if input.shape[1] != channels:
        raise RuntimeError(
            f"{given}, expected input{shape_text(input.shape)} to have {channels} channels, but got {input.shape[1]} "
            "channels instead"
        )
    made = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (made,):
        given = given if transposed else f"Given weight of size {sizes}"
        raise RuntimeError(
            f"{given}, expected bias to be 1-dimensional with {made} elements, but got bias of size "
            f"{shape_text(bias.shape)} instead"
        )
    check_reach(input, weight, stride, padding, dilation, transposed, output_padding)
    refuse_no_kernel(input, weight, transposed)
    check_dtypes(input, weight, bias, transposed)
    if max(dilation) > 1 and not transposed and input.dtype.kind in "biu" and input.size and input.dtype != "int64":
        refuse("slow_conv_dilated<>", input, "biu")
    refuse_bools(input, transposed)


def check_reach(
    input: Array, weight: Array, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any
) -> None:
    """The kernel fits into the input, and something comes out."""
    sizes, kernel = input.shape[2:], weight.shape[2:]
    if not transposed:
        whole = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
        reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
        if any(n < k for n, k in zip(whole, reach, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: ({crossed(whole)}). Kernel size: ({crossed(reach)}). "
                "Kernel size can't be greater than actual input size"
            )
        refuse_no_pixels(input.shape, input.shape)
        return
    refuse_no_pixels(input.shape, input.shape if len(sizes) > 1 else (*input.shape[:2], 1, *sizes))
    names = ("time", "height", "width")[3 - len(kernel) :] if len(kernel) > 1 else ("height", "width")
    if min(dilation) <= 0:
        shown = dilation if len(dilation) > 1 else (1, *dilation)
        listed = ", ".join(f"dilation_{n}: {d}" for n, d in zip(names, shown, strict=True))
        raise RuntimeError(f"dilation should be greater than zero, but got {listed}")
    if any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation, strict=True)):
        three = [("output_padding", output_padding, 0), ("stride", stride, 1), ("dilation", dilation, 1)]
        padded = [(what, v if len(v) > 1 else (extra, *v)) for what, v, extra in three]
        listed = " ".join(f"{what}_{n}: {v}" for what, values in padded for n, v in zip(names, values, strict=True))
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {listed}")
    if not weight.shape[1]:
        refuse_no_channels(input, weight)
    made = kernels.transposed_sizes(sizes, kernel, stride, padding, output_padding, dilation)
    if min(made) < (1 if len(input) else 0):
        raise RuntimeError(
            f"Given input size per channel: ({crossed(sizes)}). Calculated output size per channel: ({crossed(made)}). "
            "Output size is too small"
        )


def refuse_no_pixels(shape: tuple[int, ...], shown: tuple[int, ...]) -> None:
    """Batches and channels there may be none of, but an image has pixels."""
    if 0 in shape[2:] and 0 not in shape[:2]:
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {shape_text(shown)}"
        )


def refuse_no_channels(input: Array, weight: Array) -> None:
    """A transposed convolution makes channels, also of no images."""
    if not len(input):
        raise IndexError("select(): index 0 out of range for tensor of size [0] at dimension 0")
    if weight.ndim > 4:
        refuse_no_weight(weight)
    shape = weight.shape if weight.ndim > 3 else (*weight.shape[:2], 1, *weight.shape[2:])
    raise RuntimeError(f"non-empty 2D or 4D weight tensor expected, but got: {shape_text(shape)}")


def refuse_no_weight(weight: Array) -> None:
    """Raise for weights of volumes that have no elements."""
    raise RuntimeError(
        "non-empty 5D (n_output_plane x n_input_plane x kernel_depth x kernel_height x kernel_width) tensor "
        f"expected for weight, but got: {shape_text(weight.shape)}"
    )


def refuse_no_kernel(input: Array, weight: Array, transposed: bool) -> None:
    """A kernel has elements, unless there are no channels to look at."""
    kernel = weight.shape[2:]
    if 0 not in kernel or not input.shape[1]:
        return
    if not len(input):
        raise IndexError("select(): index 0 out of range for tensor of size [0] at dimension 0")
    if len(kernel) < 3:
        height, width = (1, *kernel)[-2:]
        raise RuntimeError(
            f"kernel size should be greater than zero, but got kernel_height: {height} kernel_width: {width}"
        )
    if transposed:
        refuse_no_weight(weight)
    raise RuntimeError(f"kernel size should be greater than zero, but got: {crossed(kernel)} (TxHxW)")


def crossed(sizes: Any) -> str:
    """3 x 4."""
    return " x ".join(map(str, sizes))


def check_dtypes(input: Array, weight: Array, bias: Array | None, transposed: bool) -> None:
    """All operands have one dtype."""
    if transposed:
        check_weight_dtype(input, weight)
    if bias is not None and bias.dtype != input.dtype:
        kind, found = FROM_NUMPY[input.dtype].cpp_name, FROM_NUMPY[bias.dtype].cpp_name
        raise RuntimeError(f"Input type ({kind}) and bias type ({found}) should be the same")
    check_weight_dtype(input, weight)
    if transposed:
        ndim = max(input.ndim - 2, 2)
        refuse(f"slow_conv_transpose{ndim}d_out_cpu", input, "b" if input.dtype == "int64" else "biu")


def refuse_bools(input: Array, transposed: bool) -> None:
    """Images of bools are not convolved, unless there are none."""
    kernel = "compute_columns3d" if input.ndim == 5 and not transposed else "slow_conv2d_cpu"
    if len(input) or transposed:
        refuse(kernel, input, "b")


def check_weight_dtype(input: Array, weight: Array) -> None:
    """The weight has the dtype of the input."""
    if weight.dtype != input.dtype:
        kind, found = FROM_NUMPY[input.dtype].scalar_type, FROM_NUMPY[weight.dtype].scalar_type
        if "c" in (input.dtype.kind, weight.dtype.kind):
            raise RuntimeError(f"Input type (CPU{kind}Type) and weight type (torch.{found}Tensor) should be the same")
        raise RuntimeError(f"expected scalar type {kind} but found {found}")
