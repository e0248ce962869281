"""A hook of MkDocs: result files lie outside the site, so their links become plain names."""

from __future__ import annotations

import re

RESULT = re.compile(r"\[([^\]]*)\]\((?:\.\./)+(benchmarks/results/[^)#]+)[^)]*\)")


def on_page_markdown(markdown: str, **_: object) -> str:
    """`[figures](../../benchmarks/results/x.md)` as "figures (`benchmarks/results/x.md`)"."""
    return RESULT.sub(lambda found: f"{found[1]} (`{found[2]}`)", markdown)
