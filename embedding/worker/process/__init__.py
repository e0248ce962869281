"""The processes of a node: how they begin, run side by side and end."""
