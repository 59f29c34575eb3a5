"""Kernels described in Python and compiled by LLVM: loops over arrays that NumPy would walk several times.

    language/   what is computed: expression.py a small typed tree per element, evaluated by NumPy or made vectors
                by emit.py; code.py the text of one LLVM function; elementary.py, angles.py, remainders.py functions;
                halves.py float16 and bfloat16, which are read into float32 and rounded back; device_trace.py,
                complex_parts.py and powers.py what kernels of a device compute beside that
    compiler/   engine.py from that text to a callable, cache.py the objects kept on disk, target.py this machine,
                switch.py whether kernels are compiled at all
    runtime/    calls.py the entry of a kernel, which checks every argument before memory is touched; entries.py how
                builtins begin; threads.py the thread pool, itself a kernel; buffers.py where large arrays live
    pointwise/  fused.py NumPy code run as one kernel: traced once, then looked up; loops.py its loops over any strides;
                update.py optimizer steps in one pass
    rows/       programs.py the loops of row programs: softmax.py, nll.py, norms.py, channel_norms.py; reductions.py
                over any dimensions, positions.py, scan.py, selection.py sorting, scatter.py rows added to a table
    gemm/       product.py products of matrices; tile.py their innermost loop, pack.py the panels it reads
    conv/       plan.py convolutions; cut.py how they are cut, tables.py where windows lie, loops.py, weight.py and
                direct.py their loops; pools.py windows
    small/      choose.py functions of small arrays, which become builtins that make their result: allocating.py
                pointwise ones, viewing.py views, products.py, batches.py, sums.py
    attention.py, random.py  attention without the score matrix; torch's generator

`available()` says whether kernels can be compiled here; every caller has a NumPy path for when they cannot.
"""

from pullback.kernels.jit.compiler.switch import available, reason

__all__ = ["available", "reason"]
