"""Batches hidden from a program: tensors with one more dimension than it sees, carried through every op.

    tensor.py ....... BatchedTensor: what it looks like (logical) and what it holds (physical)
    run.py .......... an op called with one: run physically, wrap, record
    strategies.py ... ways to run an op on a whole batch, believed once they have agreed with a loop
    rules*.py ....... ops that deserve a better way than those
    views.py ........ writing through views
    custom.py ....... autograd Functions inside transforms
    random.py ....... random numbers inside vmap; allocating.py: functions that make tensors

`vmap`, `grad(is_grads_batched=True)` and the Jacobians are built on it. See note: batching.
"""
