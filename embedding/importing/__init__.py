"""Other people's files become a dated corpus: readers, columns, dates, the file itself."""
