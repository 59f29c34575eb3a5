"""Programs as native code: steps become loops over memory, and loops become one LLVM function.

pieces.py     windows on memory, and the four things done to them: pointwise, products, reductions, views
lowering.py   from a step of a program to such pieces; parts.py the calls of NumPy in it, templates.py steps alike
regions.py    from the pieces of a program to functions that are called once each
loops.py      from pieces to LLVM; folds.py large sums, products.py products
checks.py     guards
"""
