"""Rows on several processes: the primary's log of changes, and the shards that carry it out."""
