"""Reading the items of an open page: from its answers where they hold them, else as it is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from embedding.crawl.page_requests import PageRequests
from embedding.kernel.errors import FetchError
from embedding.sources.answers import ANSWER_FIELDS, PageAnswers
from embedding.sources.base import Found
from embedding.sources.config import SourceConfig

if TYPE_CHECKING:
    from playwright.async_api import Page

_QUIET = 0.1
"""Seconds between two looks at a page."""
_STILL = 8
"""Looks without anything new after which a page that asks for nothing is taken to have ended."""
_EMPTY = 48
"""The same for a page that has not shown any item."""
_LONGEST = 100_000
"""Characters of one field."""
_MOVED = ("context was destroyed", "navigating", "Cannot find context")
"""Playwright's words for a page that goes to another address just now."""

_EXTRACT = """([items, fields, most]) => {
  const pick = (node, where, wantLink) => {
    if (!where) return "";
    const at = where.lastIndexOf("@");
    const selector = at < 0 ? where : where.slice(0, at);
    const found = selector ? node.querySelector(selector) : node;
    if (!found) return "";
    if (at >= 0) return found.getAttribute(where.slice(at + 1)) || "";
    if (wantLink) return found.href || "";
    return found.innerText || found.textContent || "";
  };
  return Array.from(document.querySelectorAll(items || "a[href]")).slice(0, most).map(node => ({
    id: pick(node, fields.id, false),
    link: fields.link ? pick(node, fields.link, true) : (node.href || ""),
    title: fields.title ? pick(node, fields.title, false) : (items ? "" : node.innerText || ""),
    time: (() => {
      const where = fields.time;
      if (!where || where.includes("@")) return pick(node, where, false);
      const found = node.querySelector(where);
      return found ? found.getAttribute("datetime") || found.innerText || "" : "";
    })(),
    text: pick(node, fields.text, false),
    author: pick(node, fields.author, false),
  }));
}"""
_SCROLL = "window.scrollTo(0, document.documentElement.scrollHeight)"


async def collect(
    page: Page,
    source: SourceConfig,
    requests: PageRequests,
    answers: PageAnswers,
    enough: Callable[[Sequence[Found]], bool],
    *,
    patience: float,
) -> Sequence[Found]:
    """Wait for items, then scroll until there are enough, no more come, or `pages` scrolls.

    While the page waits for an answer more may come: the looks at it do not count, for `patience`
    seconds at most, as some pages keep a request open for ever. Raises FetchError (`empty`).
    """
    found: Sequence[Found] = ()
    still = scrolls = 0
    changed = time.monotonic()
    while True:
        # Read before the page is: an answer that comes meanwhile is one more to wait for.
        arrived = requests.arrived
        seen = await _seen(page, source, answers)
        if not requests.open or time.monotonic() - changed > patience:
            still += 1
        if len(seen) > len(found):
            found, still, changed = seen, 0, time.monotonic()
            if enough(found) or scrolls >= source.pages:
                return found
            scrolls += 1
            await _evaluate(page, _SCROLL)
        elif found and still >= _STILL:
            return found
        elif found and still and scrolls:
            # An answer is read before the page has drawn it: then it was not yet long enough.
            await _evaluate(page, _SCROLL)
        elif not found and still >= _EMPTY:
            raise FetchError("empty", f"{source.url}: no item of it appeared.")
        if requests.arrived == arrived:
            await asyncio.sleep(_QUIET)


async def _seen(page: Page, source: SourceConfig, answers: PageAnswers) -> Sequence[Found]:
    from playwright.async_api import Error

    found = answers.found()
    if found or answers.exclusive:
        return found
    fields = {name: getattr(source, name) for name in ANSWER_FIELDS}
    try:
        rows = await _evaluate(page, _EXTRACT, [source.items, fields, source.max_items])
    except Error as error:
        # Only what the source's settings say is told on: all else is the page's.
        for selector in _selectors(source):
            if f"{selector!r} is not a valid selector" in str(error):
                raise FetchError(
                    "render", f"{source.url}: {selector!r} is not a CSS selector."
                ) from None
        raise
    # The page may have changed what its own functions give back.
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return ()
    return [
        Found(**{name: str(row.get(name) or "")[:_LONGEST] for name in ANSWER_FIELDS})
        for row in rows
    ]


def _selectors(source: SourceConfig) -> Iterator[str]:
    """The selectors among the source's settings, each without its `@attribute`."""
    for name in ("items", *ANSWER_FIELDS):
        text = getattr(source, name) or ""
        selector, at, _ = text.rpartition("@")
        yield selector if at else text


async def _evaluate(page: Page, script: str, argument: Any = None) -> Any:
    """Run a script in the page; None while the page goes to another address."""
    from playwright.async_api import Error

    try:
        return await page.evaluate(script, argument)
    except Error as error:
        if any(words in str(error) for words in _MOVED):
            return None
        raise
