"""The differences a random program may show. Each is a line of docs/differences.md."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from tests.conformance.library import TORCH
from tests.fuzz.compare import WRITTEN_OVER, Difference
from tests.fuzz.program import HESSIANS, NAMES, Program

TRANSFORMS = {"double", "jvp", "vmap", *HESSIANS}


def reason(program: Program, found: Difference, smallest: bool = False) -> str | None:
    """Why a difference is accepted, or None; `smallest` says that nothing can be left out of the program."""
    if found.aspect == "value" and found.right:
        return "derivatives and batches for which torch has two answers"
    if found.aspect == "raised" and found.right:
        return "what torch refuses without a transform"
    if found.aspect == "accepted" and found.right:
        return "saved values the derivative does not need" if WRITTEN_OVER in found.text else "what torch refuses"
    whole = "\n".join(program.lines)
    half = re.search("float16|half", str(program))
    # Torch's gradients of these are wrong.
    unchecked = found.right is None or "as_strided_scatter(" in whole or (half and "matrix_exp(" in whole)
    expanded = any(leaf.layout == "expanded" for _, leaf in program.leaves)
    unchecked = unchecked or (expanded and re.search(r"\bstd\w*\(", whole))  # at zero there is no derivative
    if found.aspect == "accepted" and unchecked and program.mode in TRANSFORMS and NO_TRANSFORM.search(found.text):
        return "derivatives and batches torch refuses"
    for modes, pattern, aspects, said, why in TRANSFORMED:
        if program.mode in modes and found.aspect in aspects and re.search(pattern, whole) and said in found.text:
            return why
    if found.aspect == "accepted" and found.right is None and REFUSED.search(found.text):
        return "derivatives and batches torch refuses"
    if found.aspect == "raised" and NO_KERNEL.search(found.text) and any(0 in leaf.shape for _, leaf in program.leaves):
        return "empty tensors of dtypes an op does not support"
    text = found.where if program.mode == "eager" else whole
    if found.aspect == "raised" and "of the written-to tensor" in found.text and UNASKED.search(text):
        return "writes to tensors that overlap themselves, of which torch does not ask"
    if found.aspect == "value" and OVERLAPPING.search(whole) and WRITTEN.search(whole):
        return "writes to tensors that overlap themselves, of which torch does not ask"
    if found.aspect == "error" and len(set(CLASSES.findall(found.text)) & {"NotImplementedError"}) == 1:
        if not set(CLASSES.findall(found.text)) - TWO_WAYS:
            return "which of two errors a call names, one of which is its dtype"
    if found.aspect == "error" and smallest and two_complaints(found.text):
        return "which of two errors a call names"
    for pattern, aspects, why in SAID:
        if found.aspect in aspects and re.search(pattern, found.text):
            return why
    if found.aspect == "raised" and "expected scalar type" in found.text and STATISTICS.search(whole):
        if any(leaf.layout != "plain" for _, leaf in program.leaves) or TURNED.search(whole):
            return "statistics of another dtype beside inputs that are not contiguous, where torch may not ask"
    if found.aspect == "value" and "in the end" in found.where and written_through_views(whole, found.where[0]):
        return "views that out= makes larger, for which torch takes the memory beyond"
    if "in the end" in found.where and "kron(" in whole and re.match(r"expected \d, got \d$", found.text):
        return "versions of tensors that kron resizes"
    if found.aspect == "value" and (ranked := RANKED.search(whole)) and has_equals(program, ranked.re):
        return "order among equals"
    for pattern, aspects, why in KNOWN:
        if found.aspect in aspects and re.search(pattern, whole if ACROSS_LINES in pattern else text):
            return why
    if program.mode in PUSHED and found.aspect == "raised" and PRODUCT.search(text) and "forward AD" in found.text:
        return "tangents of scatter_reduce with products, which torch takes for zero"
    if program.mode in PUSHED and found.aspect in ("raised", "value") and "logical_not_(" in text:
        return "logical_not_, after which torch's tangents are those of before"
    if found.aspect == "value" and expanded and program.mode != "eager" and re.search(r"\b(std|nanstd)\w*\(", text):
        return "derivatives of deviations of equal numbers, of which rounding errors leave one or not"
    if found.aspect == "value" and expanded and "nan" in found.text and re.search(r"\b(std|var)\w*\([\s\S]*\n", whole):
        return "quotients of deviations of equal numbers, of which rounding errors leave one or not"
    if found.aspect == "value" and expanded and program.mode != "eager" and FACTORED.search(text):
        return "derivatives of factorisations of matrices with equal rows, which they do not have"
    if found.aspect == "value" and expanded and re.search(r"\blu(_factor\w*)?\(", text):
        return "pivots of matrices with equal rows, which rounding errors choose"
    if found.aspect == "raised" and expanded and re.search("input matrix (is singular|does not have full)", found.text):
        return "matrices with equal rows, which rounding errors keep torch from finding singular"
    if (
        found.aspect == "shape"
        and program.mode in HESSIANS
        and re.search(r"\b(unsqueeze|squeeze|t|transpose|swap\w+)_\(", whole)
    ):
        return "second derivatives by inputs that were given another shape in place"
    if found.aspect == "raised" and program.mode in HESSIANS and re.search(r"\b(eq|ne|lt|le|gt|ge)_\(", whole):
        return "comparisons written over complex numbers inside of two transforms"
    if found.aspect == "value" and program.mode in HESSIANS and "lstsq(" in text and "e-0" in found.text:
        return "second derivatives of least squares that are zero but for rounding errors"
    if found.aspect == "value" and program.mode in PULLED and "as_strided_scatter(" in text:
        return "torch's gradients of as_strided_scatter, which are those of what was overwritten"
    if found.aspect == "value" and program.mode == "double" and "expected None" in found.text:
        if re.search(r"layer_norm\(\w+, [\[(][\d, ]*[\])], None, \w", text):
            return "torch's second derivatives of layer_norm without a weight, which leave out the bias"
    if found.aspect == "value" and program.mode in ("double", *HESSIANS) and SCALED_BY_ITSELF.search(text):
        return "torch's second derivatives of normalisations that are scaled by what they normalise"
    if found.aspect == "value" and program.mode in TRANSFORMS and any(0 in leaf.shape for _, leaf in program.leaves):
        if re.search(r"expected nan, got -?0\.0|expected -?0\.0, got nan", found.text) and OF_NOTHING.search(whole):
            return "derivatives of means, medians and logarithms of sums of no elements, which are zero or NaN"
        if re.search(r"\bcum(max|min)\(", whole) and re.search(r"expected array\(\[\].*, got None", found.text):
            return "gradients of running extremes of no elements, for which torch gives the tensor itself"
    special = any(leaf.special for _, leaf in program.leaves) or bool(INFINITE.search(whole))
    if found.aspect == "value" and special and program.mode in ("double", *HESSIANS) and "sinc(" in text:
        return "second derivatives of sinc beside zero, of which only rounding errors are left"
    if found.aspect == "value" and program.mode in ("rf", "ff"):
        for pattern, why in WRONG_FORWARDS:
            if re.search(pattern, text):
                return why
    if found.aspect == "value" and "complex" in str(program) and "cholesky_inverse(" in text:
        return "inverses of what is no Cholesky factor: its diagonal is not real"
    if found.aspect == "value" and re.search(r"renorm_?\(\w+, float\('inf'\)", whole) and "expected (nan" in found.text:
        return "torch's gradients of renorm of complex numbers by the largest, which are NaN"
    if found.aspect == "value" and "logcumsumexp(" in text and "expected (nan" in found.text:
        return "running sums of exponentials of complex numbers, for which torch gives NaN"
    if found.aspect == "value" and "fft" in whole and "angle(" in text and "3.14" in found.text:
        return "the sign of a zero that a Fourier transform leaves, which its angle shows"
    if (
        found.aspect == "value"
        and re.search(r"fft[\s\S]*\b(sqrt|log\w*|pow|float_power)_?\(", whole)
        and mirrored(found)
    ):
        return "the sign of a zero that a Fourier transform leaves, which decides about a root or logarithm"
    if found.aspect == "value" and re.search(r"fft[\s\S]*\b(sqrt|log\w*|rsqrt)_?\(", whole) and "nan" in found.text:
        return "the sign of a zero that a Fourier transform leaves, which decides about a root or logarithm"
    if found.aspect == "accepted" and "kron(" in text and "view size is not compatible" in found.text:
        return "torch's kron of tensors it cannot view in another shape"
    if found.aspect == "value" and re.search(r"mvlgamma\([\s\S]*matrix_exp\(", whole):
        return "how far infinities and NaNs spread in products, transforms and factorisations"
    if found.aspect == "value" and "complex" in str(program) and re.search(r"conv[\s\S]*\.data\.", whole):
        return "convolutions of complex numbers are one node"
    if half and re.search(r"\bcomplex\(", whole):
        return "no arrays of complex32"
    if found.aspect == "value" and half and "matrix_exp(" in text and "expected nan" in found.text:
        return "torch's exponentials of matrices of half precision, which are NaN"
    if found.aspect == "value" and half and re.search(r"conv[\s\S]*\b(acosh?|asin|atanh|erfinv|logit)_?\(", whole):
        return "functions of infinite slope at the end of a range, which rounding reaches or not"
    coarse = 2.5 if "bfloat16" in str(program) else 1.0
    if found.aspect == "value" and half and re.search(r"grid_sample.*bicubic", text) and near(found, coarse):
        return "bicubic samples of half precision, for which torch rounds every product"
    if found.aspect == "strides" and STRETCHED.search(str(program)) and TURNED.search(str(program)):
        return (
            "strides of pointwise results of tensors both stretched and transposed, for which NumPy has its own order"
        )
    stepped = any(leaf.layout in ("stepped", "expanded") for _, leaf in program.leaves)
    if found.aspect == "value" and stepped and "native_group_norm(" in text:
        return "weights that are not contiguous, of which torch reads what lies between"
    if found.aspect == "value" and COMPLEX_SUM.search(text) and re.search(r"expected \([^)]*nan", found.text):
        return "infinite complex numbers, of which torch adds (1+0j) times"
    if found.aspect == "value" and special:
        for pattern, why in NOT_FINITE:
            if re.search(pattern, text):
                return why
    if found.aspect == "value" and special and smallest and program.mode in ("double", *HESSIANS):
        if re.search(r"expected \S*nan\S*, got (?!\S*nan)|expected (?!\S*nan)\S*, got \S*nan", found.text):
            return "second derivatives at infinities, of which one library multiplies a zero by one"
    if (
        found.aspect in RAISED
        and special
        and re.search(r"LinAlgError|linalg\.\w+: .*error code|lstsq\(", found.text + text)
    ):
        return "factorisations of NaN, which torch refuses by what LAPACK says of them"
    return None


def has_equals(program: Program, ranked: re.Pattern[str]) -> bool:
    """Whether a tensor that is put in order holds an element twice, in torch's run of the program."""
    library = TORCH
    names: dict[str, Any] = {"torch": library.module}
    names.update({name: leaf.build(library.module) for name, leaf in program.leaves})
    library.seed(program.leaves[0][1].seed if program.leaves else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in program.lines:
            used = [names.get(name) for name in NAMES.findall(line)] if ranked.search(line) else []
            for tensor in used:
                if isinstance(tensor, library.module.Tensor):
                    array = library.array(tensor.detach().clone()).reshape(-1)
                    if np.unique(array).size < array.size or (array != array).any():
                        return True
            try:
                exec(line, names)
            except Exception:
                return False
    return False


def numbers_of(found: Difference) -> tuple[complex, complex] | None:
    """The two numbers that differ; None for truths."""
    numbers = re.match(r"at .*: expected (?!True|False)(\S+), got (\S+) ", found.text)
    return None if numbers is None else (complex(numbers[1]), complex(numbers[2]))


def mirrored(found: Difference) -> bool:
    """Whether they are conjugates, but for rounding."""
    one, other = numbers_of(found) or (0, 1)
    return one.imag != 0 and abs(one.conjugate() - other) <= 1e-4 * abs(one)


def near(found: Difference, coarse: float = 1.0) -> bool:
    """Whether they are the same to a digit."""
    one, other = numbers_of(found) or (0, 1)
    return abs(one - other) <= 0.1 * coarse * max(abs(one), 1.0)


def written_through_views(whole: str, name: str) -> bool:
    """Whether results are written into another tensor than the one of a name, perhaps a view of it."""
    return any(target != name for target in re.findall(r"out=(\w+)", whole))


def two_complaints(text: str) -> bool:
    """Whether two errors say different things: of wrong calls, not of failures inside of the library."""
    said = re.match(r"expected (\w+): (.*), got (\w+): (.*)", text, re.DOTALL)
    if said is None or said[1] not in {"TypeError", *TWO_WAYS} or said[3] not in TWO_WAYS:
        return False
    one, other = (set(re.findall(r"[A-Za-z]{4,}", part.lower())) for part in (said[2], said[4]))
    return len(one & other) <= 0.3 * min(len(one), len(other))


OF_NOTHING = re.compile(r"\b(\w*_loss|huber_loss|logsumexp|(nan)?median|var\w*|std\w*|mean|cov|kl_div)\(")
NO_TRANSFORM = re.compile(
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
    r"|data pointer of Tensor that doesn't have storage|result type B?Float16? can't be cast to .* (Long|Int|Bool|Byte)"
)
"""Torch's errors for calls inside of transforms it has no rule for, and of Jacobians by tensors without elements."""
REFUSED = re.compile(
    r'"\w+_backward\w*" not implemented for|does not support automatic differentiation for outputs with complex dtype'
    "|input_is_complex == grad_is_complex|Autograd not support dtype|Subtraction, the `-` operator, with a bool tensor"
    "|Negation, the `-` operator, on a bool tensor"
    "|derivative for aten::_embedding_bag_per_sample_weights_backward|ZeroTensors are immutable"
    r"|Expected a proper Tensor but got None .* for argument #1 'other'|as_strided_scatter is currentl"
)
"""Torch's errors for derivatives it could have."""
CLASSES = re.compile(r"(?:expected|got) (\w+(?:Error|Exception)): ")
TWO_WAYS = {"NotImplementedError", "RuntimeError", "IndexError", "ValueError"}
"""What is raised by a call that is wrong in two ways."""
NO_KERNEL = re.compile('NotImplementedError: ".*" not implemented for \'')
OVERLAPPING = re.compile(r"\.unfold\(|as_strided\(\(2, 2\), \(1, 1\)\)")
"""Views of which several indices may name one element, other than by a stride of zero."""
WRITTEN = re.compile(r"\w_\(|\bout=|\] [-+*/]?= |^\w+ [-+*/]= ", re.MULTILINE)
FACTORED = re.compile(r"svd|pinv|nuc|cond\(|qr\(|lstsq|matrix_norm|matrix_rank|inv\(|inverse|solve|lu|det\(|eig")
UNASKED = re.compile(r"\b(tril|triu|addmv|baddbmm)_\(|\b(matrix_rank|min|max|expand_copy)\(.*out=")
STRETCHED = re.compile(r"\b(expand|expand_as|broadcast_to|broadcast_tensors)\(|expanded")
TURNED = re.compile(r"\b(permute|transpose|swap\w+|move\w+|t|adjoint)\(|\.m?[TH]\b|transposed")
COMPLEX_SUM = re.compile(
    r"\b(__[ri]?(add|sub)_|r?sub|add|diff|index_add|trapezoid|trapz|cumulative_trapezoid|logdet)_?\(|[-+]= "
)
STATISTICS = re.compile(r"(batch|instance)_norm\(")
INFINITE = re.compile(r"float\('|1e30")
RANKED = re.compile(r"kthvalue|topk|sort|\bmode\(|median")
PUSHED = ("jvp", "fr", "rf", "ff")
"""The modes that push tangents."""
PULLED = ("backward", "double", "rr", "fr", "rf")
"""The modes that pull gradients."""
TRANSFORMED: list[tuple[Any, str, tuple[str, ...], str, str]] = [
    (
        PUSHED,
        "",
        ("shape", "dtype"),
        "expected float64(), got",
        "tangents of tensors without dimensions beside numbers, which torch promotes to the number's dtype",
    ),
    (
        PUSHED,
        "",
        ("shape", "dtype"),
        "expected complex128(), got",
        "tangents of tensors without dimensions beside numbers, which torch promotes to the number's dtype",
    ),
    (
        ("rf", "ff"),
        r"cumprod_?\(",
        ("value",),
        "expected nan",
        "derivatives of tangents of running products, for which torch divides by zero",
    ),
    (
        PUSHED,
        r"logcumsumexp\(",
        ("value", "accepted"),
        "",
        "torch's tangents of logcumsumexp, which add a small number to sums that may be as small",
    ),
    (
        PUSHED,
        r"cholesky_inverse\(",
        ("value",),
        "",
        "torch's tangents of cholesky_inverse, which multiply in another order than the derivative",
    ),
    (
        PUSHED,
        r"triangular_solve\(",
        ("value",),
        "",
        "torch's tangents of triangular_solve, which count what lies on the other side of the diagonal",
    ),
    (
        TRANSFORMS,
        r"\bset_\(",
        ("raised", "error", "value", "shape", "dtype"),
        "",
        "set_ inside transforms, where torch gives the memory another tensor and keeps the shape",
    ),
    (
        ("vmap",),
        r"\b(tril|triu)_?\(",
        ("raised", "accepted"),
        "at least 2 dimensions",
        "tril and triu of vectors inside vmap, where torch takes the batch for rows",
    ),
    (
        ("vmap",),
        r"\bas_strided_\(",
        ("shape", "value"),
        "",
        "as_strided_ inside vmap, after which torch's entries have the shape of before",
    ),
    (
        ("rf", "fr"),
        r"no_grad",
        ("accepted",),
        WRITTEN_OVER,
        "writes that are not recorded inside jacfwd, which move tangents all the same",
    ),
    (
        PUSHED,
        r"\baddcmul_?\(.*value=\d*\.",
        ("shape", "dtype"),
        "128",
        "tangents of products of integers with a number, which torch promotes to the number's dtype",
    ),
    (
        ("jvp", *HESSIANS),
        r"\bsilu\(",
        ("value",),
        "j",
        "torch's tangents of silu of complex numbers, which are those of the conjugate slope",
    ),
    (
        ("backward", "double"),
        r"no_grad\(\): \w+\.(unsqueeze|squeeze|t|transpose|swap\w+)_\(",
        ("shape", "raised", "accepted"),
        "",
        "leaves that were given another shape in place, whose gradients torch gives the shape of before",
    ),
    (
        ("double",),
        r"\b(eq|ne|lt|le|gt|ge|isclose)\(.*out=",
        ("value",),
        "",
        "comparisons written into a tensor with a history, which torch keeps though the shape is another",
    ),
    (
        ("vmap",),
        r"fft[\s\S]*\.view\(",
        ("accepted", "raised"),
        "view size is not compatible",
        "strides of Fourier transforms",
    ),
    (
        HESSIANS,
        r"detach_\(",
        ("raised", "value"),
        "",
        "detach_ inside two transforms, which torch applies to the inner one alone",
    ),
]
"""Modes, what a line looks like, the aspects that may differ, what the difference says, and why."""
PRODUCT = re.compile(r"scatter_reduce_?\(.*'prod'")
SCALED_BY_ITSELF = re.compile(r"layer_norm\((\w+), [\[(][\d, ]*[\])], \1\b")
RAISED = ("raised", "accepted", "error")
SAID: list[tuple[str, tuple[str, ...], str]] = [
    ("not resizable", RAISED, "leaves in memory of NumPy's, which torch does not resize"),
    (
        "bias type .* should be the same",
        ("raised",),
        "biases of another dtype, which some of torch's convolutions take",
    ),
    ("complex32|ComplexHalf", (*RAISED, "dtype", "shape"), "no arrays of complex32"),
    (
        "should not contain infs or NaNs",
        ("raised",),
        "eigenvalues of infinite matrices, for which torch crashes or gives NaN",
    ),
    (
        r"(aten::\w+|floor_divide|diag|\w+_copy|fft_ih?fft\w*|conj_physical|linalg_eigvals|(log_)?softmax|slice_scatter)"
        r"\(\): functions with out=",
        ("raised",),
        "results without a derivative written into out= that has a history, to which torch adds a node that raises",
    ),
    (
        r"TypeError: argsort\(\).*(invalid combination|positional arguments)",
        ("accepted",),
        "argsort(out=) without stable=",
    ),
    ("derivative for set_ is not implemented", ("accepted", "error"), "derivatives and batches torch refuses"),
    ("TypeError: .* must be bool, not", ("accepted",), "flags that are truths of another type"),
]
"""What an error says, the aspects that may differ, and why."""
ACROSS_LINES = r"[\s\S]*"
KNOWN: list[tuple[str, tuple[str, ...], str]] = [
    (
        r"(fft|corrcoef|cosine_similarity|normalize|_polynomial_|\bi0)[\s\S]*(%| > 0|\b("
        r"remainder|fmod|__r?mod__|floor_divide|frac|floor|"
        r"ceil|trunc|round|sign|sgn|heaviside|signbit|eq|ne|lt|le|gt|ge|bool|int|long|type|nonzero|unique|argmax|argmin)_?\()",
        ("value", "shape"),
        "remainders, steps and comparisons of numbers that differ in their last digit",
    ),
    (
        r"(corrcoef|cosine_similarity|normalize)\([\s\S]*\b(acosh?|asin|atanh|erfinv|logit)_?\(",
        ("value",),
        "functions of infinite slope at the end of a range, which rounding reaches or not",
    ),
    (
        r"\bcross\((\w+), \1\b[\s\S]*",
        ("value", "shape"),
        "cross products of tensors with themselves, of which torch's fused products leave rounding errors",
    ),
    (r"\beigh?\(|\bsvd\(|lowrank", ("value",), "signs of eigenvectors and singular vectors"),
    (r"\beigvals\(", ("value",), "the order of eigenvalues, which is LAPACK's"),
    (r"fft", ("strides",), "strides of Fourier transforms"),
    (r"\b(roll|addr|stack|group_norm|kron)\(", ("strides",), "strides of roll, addr, stack, group_norm and kron"),
    (r"\b(set_|scatter_reduce_?|index_reduce_?|masked\.\w+)\(", ("error",), "which of two errors a call names"),
    (
        r"\b(nansum|nanmean|logsumexp|matrix_power|amax|amin|std|var|norm|any|all)\(.*out=",
        ("raised",),
        "results that torch computes in the memory or the dtype of out=, or after resizing it",
    ),
    (
        r"(fft\.\w+|\b(abs|diff|inner|std|var|nansum|nanmean|median|bernoulli|multinomial|logsigmoid|argsort))\(.*out=",
        ("accepted",),
        "kinds of out= that torch does not take",
    ),
    (r"\bout=", ("error",), "which of two errors a call with out= names"),
    (r"\b(lu_solve|solve|solve_ex)\(", ("strides",), "strides of what LAPACK solved"),
    (r"\b(bessel_[jy][01]|airy_ai)\(", ("value",), "Bessel and Airy functions, of which torch knows 5 to 8 digits"),
    (
        r"(batch|instance)_norm\(\w+, (\w+, )*([a-z]\d*), (.*\W)?\3\b",
        ("value",),
        "running statistics that are weights as well, which torch reads after it has written them",
    ),
    (
        r"\b(\w+)\.(addmv|addmm|baddbmm|addbmm|masked_scatter|index_copy|index_add|scatter\w*|put|index_put)_\(.*\b\1\b",
        ("value",),
        "a tensor written into itself, which torch reads while it writes",
    ),
    (
        r"\b(matmul|mm|mv|bmm|dot|vdot|chain_matmul|multi_dot)\((.*\W)?(\w+)\b.*out=\3\b",
        ("value", "raised"),
        "products written into one of their factors, which torch clears before it reads them",
    ),
    (r"\bnan\b[\s\S]*\b(signbit|copysign)_?\(", ("value",), "the sign of NaN"),
    (r"\b(log\w*|sqrt|acosh?|asin|atanh)_?\([\s\S]*\b(signbit|copysign)_?\(", ("value",), "the sign of NaN"),
    (
        r"\b(\w+) = [^\n]*\b(\w+)\b[^\n]*\n(?:[\s\S]*\n)?\2\.copy_\(\1\)",
        ("value",),
        "a tensor written into itself, which torch reads while it writes",
    ),
    (
        r"igammac?\([\s\S]*\blog\(",
        ("value",),
        "logarithms of the ends of incomplete gamma functions, of which single precision leaves few digits",
    ),
    (
        r"grid_sampler_[23]d\(\w+, \w+, (?![012],)",
        ("value",),
        "samples by a method there is none of, for which torch gives what lies in memory",
    ),
    (r"conv", ("node",), "convolutions of complex numbers are one node"),
    (r"native_batch_norm\(", ("dtype", "shape"), "statistics of a batch of halves, which torch rounds"),
]
"""What a line looks like, the aspects that may differ, and why."""
WRONG_FORWARDS: list[tuple[str, str]] = [
    (r"layer_norm|batch_norm|instance_norm", "torch's derivatives of jacfwd of normalisations are not those of jacrev"),
    (r"\b(slog|log)?det\(", "torch's derivatives of jacfwd of determinants are not those of jacrev"),
]
"""What a line looks like whose tangents torch itself differentiates wrongly, and how."""
NOT_FINITE: list[tuple[str, str]] = [
    (r"conv|matmul|@|mm\(|bmm|mv\(|einsum|dot|linear|fft|linalg|lu|cholesky|solve|inverse|det|qr\(|geqrf|householder|ormqr|attention|cov|corrcoef|cdist|kron",
     "how far infinities and NaNs spread in products, transforms and factorisations"),
    (r"\b(std|var)\w*\(", "deviations of large numbers that are equal"),
    (r"\bprod\(", "derivatives of products of several zeros and NaN"),
    (r"_polynomial_\w+\(", "polynomials of NaN, for which torch gives what lies in memory"),
    (r"(layer|batch|instance|group|rms)_norm\(", "statistics of numbers whose squares are infinite"),
    (r"\b(__rmod__|remainder_?|fmod_?)\(|%", "derivatives of remainders at infinities, zero times which torch adds"),
    (r"signbit|copysign", "the sign of NaN"),
    (r"\bcross\(", "differences of equal products of large numbers, of which torch rounds one twice"),
    (r"__rmul__", "derivatives of products of complex numbers with infinities"),
    (r"\baddr\(", "products of complex numbers with infinities"),
    (r"polar\(", "tangents of infinite complex numbers"),
    (r"ldexp_?\(", "products of complex numbers with infinities"),
    (r"logaddexp2?\(", "exponentials of infinite complex numbers"),
    (r"cumprod", "tangents of running products at infinities"),
    (r"\bgradient\(", "quotients of infinite complex numbers"),
    (r"\bunique\(.*dim=", "NaN among slices, which torch sorts in no order"),
]  # fmt: skip
"""The same for values, where leaves hold infinities and NaNs."""
