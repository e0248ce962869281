"""What a node keeps: rows from one pull to the next, and what compression leaves out of pushes."""
