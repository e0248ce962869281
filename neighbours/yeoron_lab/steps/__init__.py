"""Rows in whole steps (Strom 2015): how pushes are compressed, and pulls of changes."""
