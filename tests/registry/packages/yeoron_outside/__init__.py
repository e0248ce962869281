"""One of each kind, as another package would add it: one file each, found by entry points."""
