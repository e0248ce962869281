"""The crawling process, and the documents that it waits for."""
