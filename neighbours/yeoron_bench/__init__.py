"""Measurements that a user runs on their own machine and corpora (`yeoron bench`).

Those that only say how the project itself is doing lie in `benchmarks/` at the root of a checkout.
"""
