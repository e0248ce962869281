"""What is made of the tables: snapshots, quality figures, answers to questions."""
