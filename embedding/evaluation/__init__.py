"""Judging an embedding: likelihood, similarity, analogy, PIP loss, MLflow tracking."""
