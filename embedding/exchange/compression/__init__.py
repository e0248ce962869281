"""Compressing pushes (docs/concepts/wire.md)."""
