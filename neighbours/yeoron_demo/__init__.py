"""The demo: the whole platform over the simulated web, and whether each part really ran."""
