"""Sizes that choose between algorithms, or how many threads share the work, each with its reason.

A size that torch prescribes, a price in a planner's sum and the size of a tile or of a cache are no thresholds: they
stand where they are used.
"""

from __future__ import annotations

# ------------------------------------------------------------------ compiled kernels beside NumPy
LARGE = 4096
"""From this many elements on, a kernel's call (2 us) is paid for by its speed."""
MANY = 16384
"""The same for what is one call of NumPy: up to 8192 (exp) or 32768 (products) elements NumPy was measured quicker."""
PLENTY = 1 << 16
"""The same for one that writes over an array: up to here NumPy's takes 5 us and a kernel 6 on one thread."""
STRIDED = 256
"""From this many elements on, several calls of NumPy take longer than a kernel for arrays that are not row-major."""
HUGE = 16 * 2**20
"""Results of this many bytes are written around the cache, which they would only empty."""
FEW_OF_SMALL = 64
"""Fewer elements than this may be computed in another way: see `Chooser` in kernels/jit/small/choose.py."""
LARGE_SCAN = 512
"""From this size on compiled running sums, products and extrema are quicker than NumPy's."""
MANY_DRAWS = 16
"""From this many numbers on compiled kernels are quicker than NumPy's passes; a handful does not start the compiler."""
MANY_WORDS = 16
"""Draws from this size on take the compiled twister, which is quicker than NumPy's (at a million, fourteen times)."""
SHORTEST_RUN = 4
"""Runs of fewer elements leave the lanes of a vector empty: many of them are NumPy's."""
FEW_IN_RUNS = 4096
"""Up to this many elements NumPy needs longer for its calls than a kernel for such runs."""
LEAST_WORK = 1 << 8
"""Up to so many multiplications of a product nothing is quicker than to ask NumPy."""
MUCH_WORK = 1 << 14
"""Up to so many multiplications of a product there is no point in asking for a plan."""
NARROW_PRODUCT = 4
"""BLAS has loops for vectors: it takes products of one row, and of at most so many columns."""

# ------------------------------------------------------------------ threads
POINTWISE_SHARE = 1 << 16
"""Cheap operations that are worth another thread: as long as one takes to wake, 5 us."""
REGION_SHARE = POINTWISE_SHARE // 8
"""Elements that are worth another thread inside of a compiled program, however cheap the operations.

Its threads are awake, and each has the data of its part in its cache: a loop that one thread does alone fetches what
the others have written, which takes several times as long as the loop.
"""
ROWS_SHARE = 32768
"""Elements of rows per share of a thread: below that, waking another costs more than it saves."""
UPDATE_SHARE = ROWS_SHARE // 2
"""An optimizer reads and writes each element several times, so shares may be smaller than those of a plain loop."""
REDUCTION_SHARE = 131072
"""Elements of a reduction that are worth another thread: 5 us."""
FEW_REDUCTIONS = 16
"""Fewer rows or strips than this are cut into blocks, so that every thread has some."""
SERIAL_PRODUCT = 1 << 19
"""Fewer multiplications than this take less time than to wake a thread."""
MOST_IN_SMALL_SUM = 1 << 16
"""Larger sums are shared among the threads."""
COPY_SHARE = 16384
"""So many elements of images are copied by one thread at least."""
FEW_WEIGHTS = 1 << 16
"""Gradients of weights up to this size may be summed in several parts, one for each thread and more."""

# ------------------------------------------------------------------ algorithms of compiled kernels
MOST_IN_SMALL_PRODUCT = 1 << 19
"""Multiplications from which on the kernel for any matrices is quicker: it uses several threads.

Measured on one thread beside OpenBLAS 0.3.31, in us:

    x @ weight.T + bias     (16, 32) (256, 32): 2.8, 9.3    (16, 64) (256, 64): 5.1, 15    (4, 8) (16, 8): 0.2, 1.6
    x @ y                   (64, 64) (64, 64): 4.6, 5.1    (32, 32) (32, 32): 0.7, 1.0    (16, 256) (256, 64): 4.6, 4.9
    x.T @ y                 (16, 256) (16, 64): 4.7, 6.1    (16, 256) (16, 32): 2.5, 3.3
"""
DEEPEST_SMALL_PRODUCT = 256
"""The longest sums of a small product: as many vectors are kept on the stack, and longer ones round better in parts."""
FEWEST_ROWS = 8
"""For fewer rows BLAS has loops of its own, and most lanes of a vector would be empty, ..."""
FEW_IN_WEIGHT = 2048
"""... which does not matter for a weight of so few numbers."""
NARROWEST_PRODUCT = 8
"""Fewer columns leave most lanes empty."""
MOST_IN_SMALL_BATCH = 1 << 13
"""Multiplications up to which this is quicker than asking NumPy: 0.25 us against 1.0 for two of 4 x 4, 0.7 against 1.5
for eight of 8 x 8, and 0.9 against 1.4 for two of 16 x 16."""
NARROWEST_SUM = 8
"""Rows of fewer numbers leave most lanes of a vector empty."""
FEW_ROWS_TO_PACK = 32
"""Up to so many rows of the left matrix, packing the right one costs more than it saves."""
CLOSE = 1 << 14
"""A right matrix that lies within so many elements is read from the cache as quickly unpacked."""
NARROW_ROWS = 16
"""Rows up to this length are gathered into vectors, a row in each lane."""
ENOUGH_FOR_A_CALL = 1 << 26
"""A part of a convolution with fewer multiplications is not worth a call of its own: these take some 100 us."""
NEAR_WEIGHTS = 1 << 17
"""So many weights stay in the second-level cache while one item after another reads them."""
FEW_ITEMS = 64
"""Up to so many items of a convolution it is tried which thread would do which."""
LONG_TABLE = 1 << 12
"""About so many windows have a table of their own: more are taken image by image."""
LISTED_TAPS = 1 << 17
"""Up to so many windows times taps, those that meet the input are listed for each tap."""
LEAST_WINDOWS = 128
"""The fewest windows for which it is worth turning a result, ..."""
MANY_WINDOWS = 2048
"""... and for which it is worth turning a large one."""
LARGE_RESULT = 3 << 19
"""A gradient of a convolution's weight with more elements is large."""
NEAR_SUMS = 1 << 13
"""So many vectors of partial sums stay in the second-level cache."""
FEW_SELECTED = 32
"""So many of the largest elements are kept in order while a row is read, ..."""
MOST_SELECTED = 256
"""... and so many while it is long; others are found by sorting."""
FEW_OUTPUTS = 2
"""Up to so many outputs of a group, windows are not worth packing."""

# ------------------------------------------------------------------ algorithms of NumPy
# NumPy has one algorithm for what builtins or kernels compute where there is a compiler. The sizes below are for what
# NumPy computes there, too: without them the op took twice as long, or more memory (docs/notes/kernels.md).
MANY_TO_SORT = 1024
"""From this many elements on, rows are sorted by compiled kernels, digit by digit."""
LONG_TO_SORT = 128
"""In rows of at least so many: shorter ones NumPy sorts as quickly."""
LONG_FOR_TOPK = 256
"""Of longer rows a few largest elements are found without sorting them all."""
MOST_IN_TABLE = 8192
"""Tables of so many places are kept for the next call: larger ones would cost more memory than time."""
LARGE_TRANSFORM = 1 << 14
"""From so many elements on SciPy is quicker: it transforms several rows at once. NumPy is quicker to call."""
SHORT_TRANSFORM = 32
"""Up to so many points a transform is a product with its matrix, which is much quicker to call."""
FEW_TO_TRANSFORM = 512
"""And up to so many elements in all: more are transformed quicker than multiplied."""
FEW_TO_SORT = 512
"""Up to this many elements sorting all is quicker than to select some."""
LONG_ROW = 256
"""From so many elements per row on, adding row by row beats one `add.at` over all elements."""
FEW_ROWS_TO_ADD = 4
"""Up to so many rows it does too, however short."""
TURNS = 64
"""Rows of a table with one number are added in turns up to this many; the rest of frequent ones is summed first."""
FAR_SETTING = 4096
"""Strides, paddings and dilations up to this are what the kernels for windows are made for."""
FEW_WINDOWS = 128
"""Up to so many windows per image, several images share one matrix product."""
COLUMNS_AT_A_TIME = 1 << 22
"""About how many bytes of columns are made at a time."""
MOST_IN_MAP = 8192
"""The scaling of images is a product with a matrix; one with more elements costs more than it saves."""
DISTANCES_AT_A_TIME = 1 << 20
"""How many differences between rows are held at once."""
SMALL_MATRIX = 32
"""Exponentials of matrices up to this size are computed in double precision, which costs little then."""
FEW_DRAWS = 128
"""Fewer numbers than this are a slice of what was made of the generator's whole block."""
FEW_PAIRS = 12
"""Up to this many pairs of normal numbers, Python's own numbers are quicker than arrays."""
FEW_SAMPLES = 50
"""Above this many draws with equal parameters arrays are quicker than one draw after the other."""
TINY_PERMUTATION = 64
"""Permutations below this length are not worth starting the compiler."""
SMALL_IMAGE = 128
"""Images up to this height plus width are scaled to the nearest element by index arithmetic of their own."""
FEW_PAIRS_COMPARED = 4096
"""Up to so many pairs isin compares each element with each; beyond, it sorts."""
