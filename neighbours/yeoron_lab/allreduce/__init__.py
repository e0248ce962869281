"""Rows that live in replicas, summed over all nodes (docs/concepts/topologies.md)."""
