"""Answers as others read them: terminal, CSV, JSON, Parquet, notices, and what a team shares."""
