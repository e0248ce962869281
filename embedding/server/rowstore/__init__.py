"""Rows of words and n-grams as the server uses them, wherever they lie."""
