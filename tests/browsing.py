"""What the tests in a Chromium share: where it is, how long to wait, when a page is there."""

from __future__ import annotations

import re
import shutil

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 90_000
"""Milliseconds: the machine may be busy."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


async def headed(page, text: str) -> None:
    """Wait until the page's heading says so: a click may return before the next page is there."""
    from playwright.async_api import expect

    await expect(page.locator("h1")).to_have_text(text, timeout=PATIENCE)


async def visit(page, address: str) -> None:
    """Go to a page once it is computed: until then it loads itself again, which breaks a visit."""
    while (await page.request.get(address)).status == 202:
        await page.wait_for_timeout(100)
    await page.goto(address)


async def drawn(page) -> None:
    """Wait until every chart and the position on the axis are there."""
    from playwright.async_api import expect

    for box in await page.locator("[data-chart], [data-map]").all():
        await expect(box).to_have_attribute("data-drawn", "yes", timeout=PATIENCE)
    for state in await page.locator("[data-axis] > .state").all():
        await expect(state).not_to_have_text(re.compile("…$"), timeout=PATIENCE)
