"""Embedding models: numba kernels for CPUs and their torch references."""
