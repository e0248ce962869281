"""What became of pushes and of words, noted before it is answered."""
