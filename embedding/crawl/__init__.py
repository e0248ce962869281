"""Fetching: robots, rates, frontier, extraction, near-duplicates, and what to fetch next."""
