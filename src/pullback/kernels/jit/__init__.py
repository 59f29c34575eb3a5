"""Kernels described in Python and compiled by LLVM: loops over arrays that NumPy would walk several times.

    expression.py  what is computed per element, as a small typed tree; evaluated by NumPy or turned into vectors
    fused.py       pointwise NumPy code run as one kernel: traced once, then looked up
    pointwise.py   its loops, over any strides; emit.py the steps of an expression as instructions
    reductions.py  sums, products, extrema over any dimensions; positions.py where they are; scan.py running ones
    small.py       functions of small arrays, which become builtins that make their result: making.py pointwise ones,
                   viewing.py views, small_products.py, small_batches.py, small_sums.py; entries.py how they begin
    rows.py        the loops of row programs: softmax.py, nll.py, norms.py, channel_norms.py, attention.py
    pools.py       windows; scatter.py rows added to a table; selection.py sorting; random.py torch's generator
    update.py      optimizer steps in one pass
    gemm.py        products of matrices; gemm_tile.py their innermost loop, pack.py the panels it reads
    conv.py        convolutions; conv_cut.py how they are cut, conv_tables.py where windows lie, conv_kernels.py,
                   conv_weight.py and conv_direct.py their loops
    code.py        the text of one LLVM function: values, loops, loads and stores
    elementary.py  exp, log, tanh and their kin as polynomials; angles.py sine and cosine; remainders.py fmod, %, //
    halves.py      float16 and bfloat16, which are read into float32 and rounded back
    engine.py      from that text to a callable: the compiler and the object cache
    calls.py       the Python-facing entry of a kernel, which checks every argument before memory is touched
    threads.py     the thread pool, itself a kernel
    buffers.py     where large arrays live: NumPy's allocator with free lists

`available()` says whether kernels can be compiled here; every caller has a NumPy path for when they cannot.
"""

from pullback.kernels.jit.switch import available, reason

__all__ = ["available", "reason"]
