"""Aggregators, which add up the pushes of nodes on one host (docs/concepts/topologies.md)."""
