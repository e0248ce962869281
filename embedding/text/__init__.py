"""Text preparation: normalise, mask personal data, tokenise, count.

Nothing is imported here: a server, which keeps words but prepares no text, would compile the
patterns of `mask` each time it starts.
"""
