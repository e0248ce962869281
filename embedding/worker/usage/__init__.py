"""What later tells whether a word's use changed."""
