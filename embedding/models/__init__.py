"""Embedding models: numba kernels for CPUs, and one in Triton for GPUs."""
