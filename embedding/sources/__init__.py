"""Adapters that list what a source offers: feed, sitemap, page, rendered, comments, replayed."""
