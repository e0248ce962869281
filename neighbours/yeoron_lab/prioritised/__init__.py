"""Replay that draws sentences by how much they teach, and ranks documents ahead of that."""
