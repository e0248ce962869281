"""Compressing pushes, and error feedback (docs/concepts/wire.md)."""
