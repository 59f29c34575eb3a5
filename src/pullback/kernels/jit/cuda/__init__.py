"""Kernels for CUDA devices, as LLVM IR and PTX. What runs them is in kernels/cuda/; no GPU is needed to make them."""
