"""Models of co-occurrences that are counted: GloVe, and shifted positive PMI with its SVD."""
