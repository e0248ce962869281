"""Finding sources: what a search proposes, and what a person decided about it."""
