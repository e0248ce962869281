"""The headline of a page, fetched again: by the crawler's client, with all that it refuses."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from embedding.crawl.extract import headline_of
from embedding.crawl.fetcher import Fetcher, Request
from embedding.kernel.errors import FetchError

HeadlineState = Literal["read", "gone", "login", "refused", "later", "none"]
TURN_PATIENCE_S = 15.0
"""Seconds to wait for the host's next turn."""
_HEAD = 400_000
"""Characters of a page in which its headline is looked for."""
_GONE = (404, 410, 451)
_LOGIN = (401, 402, 403, 407)
_LOGIN_PATH = re.compile(r"/(?:log-?in|sign-?in|auth|member/login|nidlogin)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Headline:
    """A headline, or why there is none.

    state  `read`: `text` is it; `gone`: the page is not there any more; `login`: the site asks for
           a login; `refused`: robots.txt or the address guard forbids it; `later`: the site does
           not answer now; `none`: the page has no headline
    """

    state: HeadlineState
    text: str = ""


async def fetch_headline(fetcher: Fetcher, url: str) -> Headline:
    """The headline of the page at `url` as it is now; nothing of it is kept."""
    try:
        answer = await fetcher.fetch(Request(url, patience=TURN_PATIENCE_S))
        path = urlsplit(answer.url).path
        if path != urlsplit(url).path and _LOGIN_PATH.search(path):
            return Headline("login")
        text = await asyncio.to_thread(headline_of, answer.text()[:_HEAD])
    except FetchError as error:
        return Headline(_state(error))
    return Headline("read", text) if text else Headline("none")


def _state(error: FetchError) -> HeadlineState:
    if error.status in _GONE:
        return "gone"
    if error.status in _LOGIN:
        return "login"
    if error.reason in ("robots", "private_address", "port"):
        return "refused"
    if error.retry_after is not None or error.reason in ("host_busy", "timeout", "connect"):
        return "later"
    return "none"
