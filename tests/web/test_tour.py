"""A tour on the first visit: by keys, skipped, remembered, asked for again."""

from __future__ import annotations

import pytest

from browsing import CHROMIUM

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]
STEPS = 5
FRAMED = (".hero h1", ".stories", ".timeline", ".filter", ".find")


async def test_the_tour_goes_by_keys_and_is_not_shown_again(page_of, address):
    async with page_of(locale="en-GB") as page:
        await page.goto(address + "/")
        tour = page.locator("[data-tour]")
        button = tour.locator("[data-tour-next]")
        for part in FRAMED:  # some come after the page
            await page.locator(part).first.wait_for(state="attached")
        await button.focus()
        for step in range(1, STEPS + 1):
            assert f"{step}/{STEPS}" in await tour.inner_text()
            await playwright.expect(page.locator(".tour-at")).to_have_count(1)
            framed = f"{FRAMED[step - 1]}.tour-at"
            assert await page.locator(framed).count() == 1, "what the step speaks of is framed"
            await page.keyboard.press("Enter")
        assert await tour.is_hidden()
        assert await page.locator(".tour-at").count() == 0
        await page.reload()
        assert await tour.is_hidden()
        await page.get_by_role("button", name="Short tour").click()
        assert f"1/{STEPS}" in await tour.inner_text()
        await page.keyboard.press("Escape")
        assert await tour.is_hidden()


async def test_the_tour_is_skipped(page_of, address):
    async with page_of(viewport={"width": 390, "height": 844}) as page:
        await page.goto(address + "/")
        await page.get_by_role("button", name="건너뛰기").click()
        await page.goto(address + "/")
        assert await page.locator("[data-tour]").is_hidden()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_without_scripts_there_is_no_tour(page_of, address):
    async with page_of(java_script_enabled=False) as page:
        await page.goto(address + "/")
        assert await page.locator("[data-tour]").is_hidden()
        assert await page.locator("[data-tour-again]").is_hidden()
