"""Compressing pushes, and error feedback (docs/wire.md)."""
