"""Which words there are and how often they are read: vocabulary, counts, windows of event time."""
