"""What is refused by one library, or with other words."""

from __future__ import annotations

import re

from tests.fuzz.known.reason import (
    Known,
    empties,
    empty,
    expanded,
    half,
    not_contiguous,
    one_of_dtypes,
    smallest,
    special,
    two_complaints,
)
from tests.fuzz.known.sizes import only_of_large_sizes

RAISED = "raised accepted error"

ERRORS = [
    Known(
        "empty tensors of dtypes an op does not support",
        "raised",
        said='NotImplementedError: ".*" not implemented for \'',
        given=(empties,),
    ),
    Known("which of two errors a call names, one of which is its dtype", "error", given=(one_of_dtypes,)),
    Known(
        "which of two errors a call names, one of which is its dtype",
        "error",
        said=r'expected NotImplementedError: "\w+" not implemented for .*got TypeError: \w+\(\)(: arg| received)',
    ),
    Known(
        "which of two errors a call names, one of which is its dtype",
        "error",
        said=r'expected TypeError: \w+\(\): argument .*got NotImplementedError: "\w+" not implemented for',
    ),
    Known("which of two errors a call names", "error", given=(smallest, two_complaints)),
    Known("which of two errors a call names", "error", line=r"\b(set_|scatter_reduce_?|index_reduce_?|masked\.\w+)\("),
    Known("which of two errors a call with out= names", "error", line=r"\bout="),
    Known(
        "Fourier transforms of no signals, of which MKL does not know what to make",
        "accepted",
        said="expected RuntimeError: MKL FFT error: Intel oneMKL DFTI ERROR: Inconsistent configuration parameters",
        given=(empty,),
    ),
    Known(
        "strides of tensors without elements, which nobody keeps",
        "accepted",
        said="Tensor must have a last dimension with stride 1",
        given=(empty,),
    ),
    Known(
        "what torch has not the memory for, which another way of computing does not need",
        "accepted",
        said="expected RuntimeError: .*can't allocate memory",
    ),
    Known(
        "sizes whose overflow torch lets wrap around",
        "raised accepted error",
        line=r"\d{10}",
        given=(only_of_large_sizes,),
    ),
    Known(
        "where tensors without elements lie in memory, which nobody keeps",
        "error",
        said=r"IndexError: [\s\S]*is out of bounds for dimension [\s\S]*setStorage|setStorage[\s\S]*IndexError",
        given=(empties,),
    ),
    Known("leaves in memory of NumPy's, which torch does not resize", RAISED, said="not resizable"),
    Known(
        "biases of another dtype, which some of torch's convolutions take",
        "raised",
        said="bias type .* should be the same",
    ),
    Known(
        "distances of half precision, which torch has where it computes them by products",
        "raised",
        said='"cdist" not implemented for',
        given=(half,),
    ),
    Known("no arrays of complex32", f"{RAISED} dtype shape", said="complex32|ComplexHalf"),
    Known("no arrays of complex32", f"{RAISED} dtype shape value strides node", whole=r"\bcomplex\(", given=(half,)),
    Known(
        "eigenvalues of infinite matrices, for which torch crashes or gives NaN",
        "raised",
        said="should not contain infs or NaNs",
    ),
    Known(
        "results without a derivative written into several tensors, or not at all, which torch does not refuse",
        "raised",
        said=r"(aten::\w+|split\w*_copy|unbind_copy|fft_ihfft[2n])\(\): functions with out=",
    ),
    Known(
        "ranks and inverses of no matrices written into a tensor with a history, which torch fills with zeros",
        "raised",
        line=r"(matrix_rank|pinv)\(.*out=",
        said=r"(sum|linalg_pinv)\(\): functions with out=|forward AD with (sum|linalg_pinv)_out",
        given=(empty,),
    ),
    Known(
        "argsort(out=) without stable=",
        "accepted",
        said=r"TypeError: argsort\(\).*(invalid combination|positional arguments)",
    ),
    Known("flags that are truths of another type", "accepted", said="TypeError: .* must be bool, not"),
    Known(
        "statistics of another dtype beside inputs that are not contiguous, where torch may not ask",
        "raised",
        whole=r"(batch|instance)_norm\(",
        said="expected scalar type",
        given=(not_contiguous,),
    ),
    Known(
        "results that torch computes in the memory or the dtype of out=, or after resizing it",
        "raised",
        line=r"\b(nansum|nanmean|logsumexp|matrix_power|amax|amin|std|var|norm|any|all)\(.*out=",
    ),
    Known(
        "powers of one, with which torch fills out= of any dtype",
        "raised",
        line=r"\bpow\((1|1\.0|True), .*out=",
        said="can't be cast",
    ),
    Known(
        "kinds of out= that torch does not take",
        "accepted",
        line=(
            r"(fft\.\w+|\b(abs|diff|inner|std|var|nansum|nanmean|median|bernoulli|multinomial|logsigmoid|argsort))"
            r"\(.*out="
        ),
    ),
    Known(
        "kinds of out= that torch does not take",
        "accepted",
        line=r"\blerp\(.*out=",
        said="Found dtype .* but expected",
    ),
    Known(
        "torch's kron of tensors it cannot view in another shape",
        "accepted",
        line=r"kron\(",
        said="view size is not compatible",
    ),
    Known(
        "matrices with equal rows, of which rounding errors decide whether they are found singular",
        "raised accepted",
        said="input matrix (is singular|does not have full)",
        given=(expanded,),
    ),
    Known(
        "factorisations of NaN, which torch refuses by what LAPACK says of them",
        RAISED,
        given=(
            special,
            lambda case: re.search(
                r"LinAlgError|linalg\.\w+: .*error code|U\[\d+,\d+\] is zero|lstsq\(|svd_backward: The singular",
                case.found.text + case.text,
            ),
        ),
    ),
]
