"""Versioned embedding snapshots: format, store, catalogue, nearest words, export."""
