"""Reading a corpus from a file."""
