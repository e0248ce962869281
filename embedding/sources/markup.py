"""The words of a text that is written in HTML."""

from __future__ import annotations

import re
from html import unescape

_MARKUP = re.compile(r"<[a-zA-Z/!][^<>]*>|&(?:[a-zA-Z]{2,8}|#\d{1,7}|#x[0-9a-fA-F]{1,6});")
_BREAK = re.compile(r"<(?:br|/p|/div|/li|/h[1-6]|/tr|/blockquote)\b[^<>]*>", re.IGNORECASE)

LONGEST_FIELD = 100_000
"""Characters of a text that are looked at."""


def plain_text(text: str) -> str:
    """Without its markup, a line for each paragraph; any other text as it is. Of `LONGEST_FIELD`
    characters at most.
    """
    text = text[:LONGEST_FIELD].replace("<![CDATA[", "").replace("]]>", "")
    if not _MARKUP.search(text):
        return text.strip()
    # Where all of it was escaped, what is behind that may be markup, too.
    text = text if "<" in text else unescape(text)
    from lxml import html
    from lxml.etree import LxmlError

    try:
        root = html.fragment_fromstring(_BREAK.sub(lambda end: f"{end[0]}\n", text), "div")
    except (LxmlError, ValueError):
        return text.strip()
    for code in root.xpath(".//script|.//style"):
        code.drop_tree()
    lines = (" ".join(line.split()) for line in str(root.text_content()).splitlines())
    return "\n".join(line for line in lines if line)
