"""Where results lie, what lies there before, and what is written while it is read."""

from __future__ import annotations

import re

import numpy as np

from tests.fuzz.known.reason import (
    Case,
    Known,
    complex_numbers,
    empties,
    expanded,
    grows_over_an_operand,
    in_the_end,
    into_bytes,
    laid_apart,
    left_alone,
    left_over,
    lies_on_itself,
    lies_on_operand,
    of_fewer_dimensions,
    ones_in_other_order,
    places,
    replayed,
    stepped,
    stretched_and_turned,
    writes,
    written_through_views,
)


def into_conjugates(case: Case) -> bool:
    """A lazy conjugate is written, as torch's inverse transforms of real signals are."""
    return any(target.is_conj() or target.is_neg() for target, _ in writes(case))


def statistics_on_themselves(case: Case) -> bool:
    """Running statistics are written of which several indices name one element."""
    given = [tensors.values() for line, tensors in replayed(case) if re.search(r"(batch|instance)_norm\(", line)]
    vectors = [places(tensor) for tensors in given for tensor in tensors if tensor.ndim == 1]
    return any(np.unique(at).size < at.size for at in vectors)


MEMORY = [
    Known(
        "windows onto more memory than a tensor shows, which torch may have kept from what it computed there before",
        "raised value",
        whole=r"as_strided",
        given=(left_over,),
    ),
    Known(
        "writes to tensors that overlap themselves, of which torch does not ask",
        "raised",
        line=r"\b(tril|triu|addmv|baddbmm)_\(|\bout=|\bembedding(_bag)?\(.*max_norm=",
        said="of the written-to tensor",
    ),
    Known(
        "writes to tensors that overlap themselves, of which torch does not ask",
        "value accepted",
        given=(lies_on_itself,),
    ),
    Known(
        "writes to tensors that overlap themselves, of which torch does not ask",
        "value accepted",
        given=(statistics_on_themselves,),
    ),
    Known(
        "writes to tensors that overlap themselves, of which torch does not ask inside vmap",
        "raised",
        line=r"\bindex_fill_\(",
        said="of the written-to tensor",
        modes=("vmap",),
    ),
    Known(
        "views that out= makes larger, for which torch takes the memory beyond",
        "value",
        given=(in_the_end, written_through_views),
    ),
    Known(
        "views that out= makes larger, for which torch takes the memory of the operand it reads",
        "value",
        given=(grows_over_an_operand,),
    ),
    Known(
        "versions of tensors that kron, nanmean and diff write to once more, or once less",
        "value",
        whole=r"\b(kron|nanmean|diff)\(.*out=",
        said=r"^expected \d, got \d$",
        given=(in_the_end,),
    ),
    Known(
        "strides of Hermitian transforms of expanded tensors, of which torch takes the conjugate first",
        "strides",
        line=r"\bhfft[2n]?\(",
        given=(expanded,),
    ),
    Known(
        "strides of what LAPACK solved",
        "accepted raised",
        whole=r"\b(lu_solve|solve|solve_ex)\([\s\S]*\.view\(",
        said="view size is not compatible",
    ),
    Known(
        "strides of roll, addr, stack, group_norm and kron", "strides", line=r"\b(roll|addr|stack|group_norm|kron)\("
    ),
    Known("strides of what LAPACK solved", "strides", line=r"\b(lu_solve|solve|solve_ex)\("),
    Known(
        "strides of pointwise results of tensors both stretched and transposed, for which NumPy has its own order",
        "strides",
        given=(stretched_and_turned,),
    ),
    Known(
        "strides of pointwise results, for which torch looks at the steps of dimensions of size one too",
        "strides",
        given=(ones_in_other_order,),
    ),
    Known(
        "running statistics that are weights as well, which torch reads after it has written them",
        "value accepted",
        line=r"(batch|instance)_norm\(\w+, (\w+, )*([a-z]\d*), (.*\W)?\3\b",
    ),
    Known(
        "a tensor written into itself, which torch reads while it writes",
        "value",
        line=r"\b(\w+)\.(addmv|addmm|baddbmm|addbmm|masked_scatter|index_copy|index_add|scatter\w*|put|index_put)_\(.*\b\1\b",
    ),
    Known(
        "a tensor written into itself, which torch reads while it writes",
        "value",
        given=(lies_on_operand,),
    ),
    Known(
        "results written into memory that an operand looks at, of which torch does not ask",
        "raised",
        line=r"\bout=",
        said="elements of the input tensor and the written-to tensor",
    ),
    Known(
        "lazy conjugates written into themselves, which torch computes before it asks what they overlap",
        "raised",
        line=r"\b(\w+)\.\w+_\(.*\b\1\b",
        said="elements of the input tensor and the written-to tensor",
        given=(into_conjugates,),
    ),
    Known(
        "products written into one of their factors, which torch clears before it reads them",
        "value raised accepted",
        line=r"\b(matmul|mm|mv|bmm|dot|vdot|chain_matmul|multi_dot)\((.*\W)?(\w+)\b.*out=\3\b",
    ),
    Known(
        "weights that are not contiguous, of which torch reads what lies between",
        "value",
        line=r"native_group_norm\(",
        given=(stepped,),
    ),
    Known(
        "parts copied into a tensor that is not contiguous, which torch writes as if it were",
        "value",
        line=r"\b(narrow_copy|avg_pool3d)\(.*out=",
        given=(laid_apart,),
    ),
    Known(
        "normal numbers drawn into a tensor that is not contiguous, which torch draws by another algorithm",
        "value",
        line=r"\b(randn|normal)\(.*out=",
        given=(laid_apart,),
    ),
    Known(
        "results that torch does not write into out=",
        "value shape",
        line=r"\b(fft\.ihfft[2n]|gelu)\(.*out=",
        given=(left_alone,),
    ),
    Known(
        "truths written into bytes, which torch makes bytes of before it asks them",
        "value",
        line=r"\b(any|all)\(.*out=",
        given=(into_bytes,),
    ),
    Known(
        "samples by a method there is none of, for which torch gives what lies in memory",
        "value",
        line=r"grid_sampler_[23]d\(\w+, \w+, (\d, )?(?![012],)",
    ),
    Known(
        "bags whose last offset is not the number of indices, for which torch gives two answers",
        "value",
        line=r"embedding_bag\(.*include_last_offset=True",
        given=(expanded,),
    ),
    Known(
        "right-hand sides of fewer dimensions, of which torch takes the rows for a batch",
        "shape",
        line=r"lstsq\(",
        given=(of_fewer_dimensions,),
    ),
    Known(
        "sums with products of no matrix, which torch leaves in the shape of the tensor they are added to",
        "shape value",
        whole=r"addmv\(",
        given=(empties,),
    ),
    Known("convolutions of complex numbers are one node", "node", line="conv"),
    Known(
        "convolutions of complex numbers are one node",
        "value",
        whole=r"conv[\s\S]*\.data\.",
        given=(complex_numbers,),
    ),
]
