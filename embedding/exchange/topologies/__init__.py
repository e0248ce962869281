"""Topologies: which ways a node's rows travel. `traits.TOPOLOGIES` knows them by name."""
