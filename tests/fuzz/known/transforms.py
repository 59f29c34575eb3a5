"""Derivatives and batches: what torch refuses there, gives two answers to, or gets wrong."""

from __future__ import annotations

from tests.fuzz.compare import WRITTEN_OVER
from tests.fuzz.known.copies import right_if_recorded, right_of_copies
from tests.fuzz.known.reason import (
    PULLED,
    PUSHED,
    TRANSFORMS,
    TWICE,
    Known,
    answered_by_views,
    empty,
    expanded,
    half,
    leaf_set,
    of_nothing,
    of_one_size,
    outgrown,
    right,
    tangents_of_another_dtype,
    unchecked,
    unknown,
    unsigned,
    written_later,
)
from tests.fuzz.program import HESSIANS

NO_TRANSFORM = (
    "Trying to use forward AD with|the derivative for '.*' is not implemented|would mutate a captured Tensor"
    r"|more than one element of the written-to tensor refers|index 0 out of range for tensor of size \[0"
    "|Batching rule not implemented|We do not support batching operators|we do not yet support aten::"
    "|does not yet have a batching rule"
    r"|as_strided_scatter is currentl|scatter\(\): Expected self.dtype|required rank 4 tensor to use channels_last"
    "|forward gradient that has a different size|input tensor and the written-to tensor refer"
    "|accessing `data` under vmap|inside of a function being transf"
    "|functions with out=... arguments don't support automatic|0 elements into shape|has non-empty output"
    "|is a view and its base or another view of its base has been modified"
    "|a (view of a )?leaf Variable that requires grad is being used|Can't detach views in-place"
    "|data pointer of Tensor that doesn't have storage|SmallVector unable to grow"
    r"|expected ValueError: torch.cat\(\): expected a non-empty list"
    r"|result type B?Float(16)? can't be cast to .* (Long|Int|Short|Char|Bool|Byte)"
)
"""Torch's errors for calls inside of transforms it has no rule for, and of Jacobians by tensors without elements."""

REFUSED = (
    r'"\w+_backward\w*" not implemented for|does not support automatic differentiation for outputs with complex dtype'
    "|input_is_complex == grad_is_complex|Autograd not support dtype|Subtraction, the `-` operator, with a bool tensor"
    "|Negation, the `-` operator, on a bool tensor|_backward.*: Expected grad_output to have non-zero size"
    "|derivative for aten::_embedding_bag_per_sample_weights_backward|ZeroTensors are immutable"
    r"|is not differentiable with respect to argument|as_strided_scatter is currentl"
    "|addmv input tensors must have the same dtype"
    r"|Expected a proper Tensor but got None .* for argument #(0 'self'|1 'other')"
)
"""Torch's errors for derivatives it could have."""

RESHAPED = r"(unsqueeze|squeeze|t|transpose|swap\w+)_\("

TORCH_HAS_TWO_ANSWERS = [
    Known("derivatives and batches for which torch has two answers", "value shape", given=(right,)),
    Known("what torch refuses without a transform", "raised", given=(right,)),
    Known("saved values the derivative does not need", "accepted", said=WRITTEN_OVER, given=(right,)),
    Known("what torch refuses", "accepted", given=(right,)),
    Known(
        "saved values the derivative does not need, of tensors without elements",
        "accepted",
        said=WRITTEN_OVER,
        modes=TRANSFORMS,
        given=(unknown, empty),
    ),
    Known(
        "writes to tensors without elements, for which torch finds no room inside vmap",
        "accepted",
        said=r"\(self, \*extra_args\) is not possible because there exists a Tensor `other`",
        modes=TRANSFORMS,
        given=(unknown, empty),
    ),
    Known(
        "results that need more room than out= has, which torch does not make inside vmap",
        "accepted",
        line=r"\bout=",
        said="output with shape .* doesn't match the broadcast shape",
        modes=TRANSFORMS,
        given=(unchecked,),
    ),
    Known("derivatives and batches torch refuses", "accepted", said=NO_TRANSFORM, modes=TRANSFORMS, given=(unchecked,)),
    Known("derivatives and batches torch refuses", "accepted", said=REFUSED, given=(unknown,)),
    Known(
        "derivatives of clamp between a number and a tensor with dimensions, which torch writes into what has none",
        "accepted",
        line=r"\bclamp_?\(",
        said=r"output with shape \[\] doesn't match the broadcast shape",
        modes=("backward", *TRANSFORMS),
    ),
    Known(
        "derivatives of quotients by integers, which torch divides in their dtype",
        "accepted",
        line=r"\baddcdiv_?\(",
        said=r"result type \w+ can't be cast to the desired output type (Byte|Char|Short|Int|Long|Bool)",
        modes=("backward", *TRANSFORMS),
        given=(unknown,),
    ),
    Known(
        "derivatives of norms by a bias without a weight, for the dtype and size of which torch asks the weight",
        "accepted",
        line=r"(layer|group)_norm\(.*None, \w",
        said=r"shape '\[0\]' is invalid|tensor does not have a device|expected scalar type (Half|BFloat16) but found",
        modes=("backward", *TRANSFORMS),
        given=(unknown,),
    ),
    Known("what torch fails in, by its own words", "accepted error", said="expected RuntimeError: .*INTERNAL ASSERT"),
    Known("derivatives and batches torch refuses", "accepted error", said="derivative for set_ is not implemented"),
]
"""Differences that torch shows against itself."""

INSIDE_TRANSFORMS = [
    Known(
        "tangents to which torch gives another dtype than that of their tensors",
        "shape dtype",
        modes=("jvp",),
        given=(tangents_of_another_dtype,),
    ),
    Known(
        "tangents of tensors without dimensions beside numbers, which torch promotes to the number's dtype",
        "shape dtype",
        said=r"expected (float32|float64|complex128)\(\), got",
        modes=PUSHED,
    ),
    Known(
        "derivatives of tangents of running products, for which torch divides by zero",
        "value",
        whole=r"cumprod_?\(",
        said="expected nan",
        modes=("rf", "ff"),
    ),
    Known(
        "torch's tangents of logcumsumexp, which add a small number to sums that may be as small",
        "value accepted",
        whole=r"logcumsumexp\(",
        modes=PUSHED,
    ),
    Known(
        "torch's second derivatives of logcumsumexp, which take the logarithm of gradients that are zero",
        "value",
        whole=r"logcumsumexp\(",
        said="expected nan",
        modes=TWICE,
    ),
    Known(
        "torch's tangents of cholesky_inverse, which multiply in another order than the derivative",
        "value accepted",
        whole=r"cholesky_inverse\(",
        modes=PUSHED,
    ),
    Known(
        "torch's tangents of triangular_solve, which count what lies on the other side of the diagonal",
        "value",
        whole=r"triangular_solve\(",
        modes=PUSHED,
    ),
    Known(
        "set_ inside transforms, where torch gives the memory another tensor and keeps the shape",
        "raised error value shape dtype",
        whole=r"\bset_\(",
        modes=TRANSFORMS,
    ),
    Known(
        "addbmm_ of a tensor it would have to give another shape, of which torch keeps a part inside vmap",
        "raised",
        whole=r"\baddbmm_\(",
        said="must be greater or equal to the number of dimensions",
        modes=("vmap",),
    ),
    Known(
        "addbmm_ of a tensor it gives another shape, whose tangent torch adds to that of the old one",
        "accepted",
        whole=r"\baddbmm_\(",
        said="doesn't match the broadcast shape",
        modes=PUSHED,
    ),
    Known(
        "tril and triu of vectors inside vmap, where torch takes the batch for rows",
        "raised accepted",
        whole=r"\b(tril|triu)_?\(",
        said="at least 2 dimensions",
        modes=("vmap",),
    ),
    Known(
        "ldexp_ by truths inside vmap, which torch refuses as it does outside; ldexp takes them there in both",
        "accepted",
        whole=r"\bldexp_\(",
        said='"ldexp_cpu_exp" not implemented for .Bool',
        modes=("vmap",),
    ),
    Known(
        "as_strided_ inside vmap, after which torch's entries have the shape of before",
        "shape value",
        whole=r"\bas_strided_\(",
        modes=("vmap",),
    ),
    Known(
        "writes that are not recorded inside jacfwd, which move tangents all the same",
        "accepted",
        whole="no_grad",
        said=WRITTEN_OVER,
        modes=("rf", "fr"),
    ),
    Known(
        "writes that are not recorded inside jacfwd, which move tangents all the same",
        "accepted",
        whole="no_grad",
        modes=("ff",),
        given=(right_if_recorded,),
    ),
    Known(
        "tangents of products of integers with a number, which torch promotes to the number's dtype",
        "shape dtype",
        whole=r"\baddcmul_?\(.*value=\d*\.",
        said="128",
        modes=PUSHED,
    ),
    Known(
        "torch's tangents of silu and soft margins of complex numbers, which are those of the conjugate slope",
        "value",
        whole=r"\b(silu|soft_margin_loss)\(",
        said="j",
        modes=("jvp", *HESSIANS),
    ),
    Known(
        "tensors given another shape in place unrecorded: torch's nodes get gradients of a shape they do not know",
        "shape raised accepted value",
        whole=r"no_grad\(\): \w+\." + RESHAPED,
        modes=("backward", "double"),
    ),
    Known(
        "tensors given another shape in place unrecorded: torch's nodes get gradients of a shape they do not know",
        "accepted",
        whole=r"no_grad\(\): \w+\." + RESHAPED,
        said="returned an invalid gradient at index|SmallVector unable to grow",
        modes=(*HESSIANS,),
    ),
    Known(
        "leaves that set_ gives other memory unrecorded: what was computed of them leads torch to a leaf nobody has",
        "value raised",
        whole=r"no_grad\(\): \w+\.set_\(",
        said=f"expected None|{WRITTEN_OVER}",
        modes=("backward", "double"),
        given=(leaf_set,),
    ),
    Known(
        "tensors with a history that out= gives another shape, whose nodes torch keeps and gives gradients of it",
        "shape raised accepted value",
        modes=("backward", "double", *TRANSFORMS),
        given=(outgrown,),
    ),
    Known(
        "tangents of the larger or smaller of two, to which torch adds zero times that of the other",
        "value",
        line=r"\b(maximum|minimum|fmax|fmin|max|min)\(",
        said="expected nan",
        modes=PUSHED,
    ),
    Known(
        "detach_ inside two transforms, which torch applies to the inner one alone",
        "raised value",
        whole=r"detach_\(",
        modes=(*HESSIANS,),
    ),
    Known(
        "ranks written into a tensor inside of transforms, which torch leaves as it was",
        "value",
        line=r"\bmatrix_rank\(.*out=",
        modes=("jvp", *HESSIANS),
    ),
    Known(
        "tangents of scatter_reduce with products, which torch takes for zero",
        "raised",
        line=r"scatter_reduce_?\(.*'prod'",
        said="forward AD",
        modes=PUSHED,
    ),
    Known(
        "logical_not_, after which torch's tangents are those of before",
        "raised value",
        line=r"logical_not_\(",
        modes=PUSHED,
    ),
    Known(
        "second derivatives by inputs that were given another shape in place",
        "shape",
        whole=r"\b" + RESHAPED,
        modes=(*HESSIANS,),
    ),
    Known(
        "comparisons written over complex numbers inside of two transforms",
        "raised",
        whole=r"\b(eq|ne|lt|le|gt|ge)_\(",
        modes=(*HESSIANS,),
    ),
    Known(
        "derivatives of sgn, which torch knows to be zero before it multiplies",
        "value",
        whole=r"\bsgn_?\(",
        said=r"expected -?0\.0, got nan",
        modes=("backward", *TWICE),
    ),
    Known(
        "norms of half precision scaled in single inside vmap, which torch does not round",
        "shape dtype",
        line=r"batch_norm\(",
        said="expected float32",
        modes=("vmap",),
        given=(half,),
    ),
    Known(
        "tangents of renorm of half precision, which torch leaves in float32",
        "shape dtype",
        whole=r"\brenorm_?\(",
        said="expected float32",
        modes=PUSHED,
        given=(half,),
    ),
    Known(
        "tensors that were given another shape inside vmap without recording, which are views there",
        "raised",
        whole=r"no_grad\(\): \w+\." + RESHAPED,
        said="A view was created in no_grad mode",
        modes=("vmap",),
    ),
    Known(
        "tangents of copies of views, which in torch are views and see what is written to the tensor",
        "value",
        whole=r"\w+_copy\(",
        modes=PUSHED,
        given=(written_later,),
    ),
    Known(
        "tangents of windows onto expanded tensors, which are of the mean of what lies in one place",
        "value",
        whole=r"\b(stft|as_strided\w*)\(",
        modes=PUSHED,
        given=(expanded,),
    ),
    Known(
        "second derivatives of windows onto expanded tensors: torch divides zero by zero where none of them lies",
        "value",
        whole=r"\b(stft|as_strided\w*)\(",
        said="expected nan",
        modes=TWICE,
        given=(expanded,),
    ),
    Known(
        "second derivatives of batch_norm of one channel whose weight has no dimensions, to which torch gives none",
        "accepted",
        line=r"batch_norm\(",
        said=r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 1\)",
        modes=TWICE,
    ),
    Known(
        "derivatives by weights of classes, for which torch has a derivative in two of four ways",
        "value",
        line=r"(nll_loss|cross_entropy)\(.*weight=",
        modes=("rf", "ff"),
    ),
    Known(
        "tangents of tensors written in terms of themselves, for which torch reads what it has written",
        "value",
        modes=PUSHED,
        given=(right_of_copies,),
    ),
    Known(
        "tangents of atan2 of unsigned integers, of which torch takes the negative in their dtype",
        "value",
        whole=r"\batan2_?\(",
        modes=PUSHED,
        given=(unsigned,),
    ),
    Known(
        "running sums and products written over truths inside transforms, which torch does not ask whether they fit",
        "raised",
        whole=r"\bcum(sum|prod)_\(",
        said="result type Long can't be cast to the desired output type Bool",
        modes=("vmap", *HESSIANS),
    ),
    Known(
        "second derivatives of least squares that are zero but for rounding errors",
        "value",
        line=r"lstsq\(",
        said="e-0",
        modes=(*HESSIANS,),
    ),
    Known(
        "torch's gradients of as_strided_scatter, which are those of what was overwritten",
        "value",
        line=r"as_strided_scatter\(",
        modes=PULLED,
    ),
    Known(
        "torch's gradients of block_diag beside a vector of no elements, of whose row it knows nothing",
        "value",
        line=r"block_diag\(",
        modes=PULLED,
        given=(empty,),
    ),
    Known(
        "torch's gradients of narrow_copy up to the end, counted from there, which it takes for nothing",
        "value accepted",
        line=r"\bnarrow_copy\(",
        modes=PULLED,
        given=(answered_by_views,),
    ),
    Known(
        "torch's gradients of index_add with a complex factor, which it does not conjugate",
        "value",
        line=r"\bindex_add_?\(.*alpha=-?[\d.e+]*j",
        modes=PULLED,
        given=(of_one_size,),
    ),
    Known(
        "torch's second derivatives of layer_norm without a weight, which leave out the bias",
        "value",
        line=r"layer_norm\(\w+, [\[(][\d, ]*[\])], None, \w",
        said="expected None",
        modes=("double",),
    ),
    Known(
        "torch's second derivatives of normalisations that are scaled by what they normalise",
        "value",
        line=r"layer_norm\((\w+), [\[(][\d, ]*[\])], \1\b",
        modes=TWICE,
    ),
    Known(
        "derivatives of means, medians and logarithms of sums of no elements, which are zero or NaN",
        "value",
        whole=r"\b(\w*_loss|huber_loss|logsumexp|(nan)?median|var\w*|std\w*|mean|cov|kl_div)\(",
        said=r"expected nan, got -?0\.0|expected -?0\.0, got nan",
        modes=TRANSFORMS,
        given=(empty,),
    ),
    Known(
        "gradients of running extremes of no elements, for which torch gives the tensor itself",
        "value",
        whole=r"\bcum(max|min)\(",
        said=r"expected array\(\[\].*, got None|expected None, got array\(\[\]",
        modes=TRANSFORMS,
        given=(empty,),
    ),
    Known(
        "derivatives of no elements, which one library knows to be nothing",
        "value",
        said=r"expected \d parts, got \d|expected None|got None",
        modes=("backward", *TWICE),
        given=(empty, of_nothing),
    ),
    Known(
        "derivatives of normalisations of half precision: the third power of the deviation is infinite in torch",
        "value",
        line=r"(layer|batch|instance|group)_norm\(",
        said="expected (nan|-?inf)",
        modes=(*PUSHED, "double"),
        given=(half,),
    ),
    Known(
        "torch's derivatives of jacfwd of normalisations are not those of jacrev",
        "value",
        line="layer_norm|batch_norm|instance_norm",
        modes=("rf", "ff"),
    ),
    Known(
        "torch's derivatives of jacfwd of determinants are not those of jacrev",
        "value",
        line=r"\b(slog|log)?det\(",
        modes=("rf", "ff"),
    ),
]
