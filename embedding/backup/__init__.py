"""Backups of a home while it runs, and homes made again from them."""
