"""The node's side where rows lie on several shards."""
