"""Rows that a node keeps for several blocks: EASGD, averaging, Downpour's n_push and n_fetch."""
