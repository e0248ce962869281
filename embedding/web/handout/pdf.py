"""The report as PDF: its HTML printed by the Chromium that renders sources."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from embedding.crawl.chromium_process import BrowserFailedError, ChromiumProcess
from embedding.kernel.errors import FetchError, PlatformError

_ONE = threading.Lock()
"""A Chromium takes some hundred megabytes: one at a time."""
_LATE_S = 120.0


def print_pdf(html: str, executable: Path | None) -> bytes:
    """The pages of a file that loads nothing; not in a thread that runs an event loop.

    executable  Chromium; None: the system's, or Playwright's own
    Raises PlatformError where none can be started, or it fails.
    """
    try:
        with _ONE:
            return asyncio.run(_print(html, executable))
    except FetchError as error:
        raise PlatformError(f"report as pdf: {error} html and pptx need none.") from error
    except (BrowserFailedError, TimeoutError) as error:
        raise PlatformError("report as pdf: Chromium failed at it; try again, or html.") from error


async def _print(html: str, executable: Path | None) -> bytes:
    async with asyncio.timeout(_LATE_S):
        chromium = await ChromiumProcess.start(executable)
        try:
            return await chromium.doing(_pages(chromium, html))
        finally:
            await chromium.end()


async def _pages(chromium: ChromiumProcess, html: str) -> bytes:
    context = await chromium.browser.new_context(java_script_enabled=False, offline=True)
    page = await context.new_page()
    await page.set_content(html)
    return await page.pdf(prefer_css_page_size=True, print_background=True)
