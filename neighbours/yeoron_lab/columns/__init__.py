"""Shards that hold columns, not rows, and learn blocks themselves (Ordentlich et al. 2016,
section 4; docs/adr/0013-columns.md)."""
