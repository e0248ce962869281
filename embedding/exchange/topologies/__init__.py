"""Topologies: how a node's rows travel. `traits.TOPOLOGIES` knows them by name."""
