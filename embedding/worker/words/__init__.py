"""The words that a node knows, and what it notes of those that it reads."""
