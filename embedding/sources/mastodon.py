"""Public timelines of Mastodon and its kin (docs.joinmastodon.org/methods/timelines)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar
from urllib.parse import urlencode, urlsplit, urlunsplit

from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, Inline
from embedding.sources.comments import CursorAdapter
from embedding.sources.dotted import dotted_text, page_json
from embedding.sources.kinds import COMMON_SETTINGS, SOURCES, WEB, SourceTraits
from embedding.sources.markup import plain_text
from embedding.sources.times import parse_time

_TIMELINE = "/api/v1/timelines/public"
_PAGE = 40
"""Posts of one answer: the most that servers give."""


@SOURCES.register(
    "mastodon", SourceTraits(settings=(*COMMON_SETTINGS, *WEB, "pages"), noun="a public timeline")
)
class MastodonAdapter(CursorAdapter):
    """Lists posts, newest first, until all of an answer are known.

    `url` is a server, or the address of another timeline there, as that of a tag. Posts that say
    they are in another language than the source's are passed over.
    """

    WHOLE: ClassVar = False

    def _address(self, cursor: str) -> str:
        parts = urlsplit(self.source.url)
        path = parts.path if parts.path.strip("/") else _TIMELINE
        query = {"limit": str(_PAGE), **({"max_id": cursor} if cursor else {})}
        joined = "&".join(filter(None, (parts.query, urlencode(query))))
        return urlunsplit((parts.scheme, parts.netloc, path, joined, ""))

    def _read(self, page: FetchedPage, now: datetime) -> tuple[Sequence[Inline], str]:
        del now  # a post says when it was written
        source, posts, texts = self.source, page_json(page), []
        if not isinstance(posts, list):
            raise FetchError("parse", f"{page.url}: no list of posts in the answer.")
        wanted = (source.language or "").lower()
        for post in posts:
            text = plain_text(dotted_text(post, "content"))
            key = dotted_text(post, "url") or dotted_text(post, "uri")
            language = dotted_text(post, "language").partition("-")[0].lower()
            if text and key and (not wanted or language in ("", wanted)):
                texts.append(
                    self.inline(
                        key,
                        text,
                        parse_time(dotted_text(post, "created_at"), source.timezone),
                        dotted_text(post, "spoiler_text"),
                        dotted_text(post, "account.acct"),
                    )
                )
        return texts, dotted_text(posts[-1], "id") if posts else ""
