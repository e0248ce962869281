"""What sources disagree on comes into the brief when it has been computed, in a real Chromium."""

from __future__ import annotations

import threading

import pytest
from unguarded import unguarded

from browsing import CHROMIUM, PATIENCE
from embedding.kernel.errors import InputError
from embedding.trends import contrast
from embedding.trends import report as computing
from embedding.trends.contrast import disagreement
from embedding.web import pages

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


@pytest.fixture
def gate(monkeypatch) -> threading.Event:
    """Sources are compared once this is set."""
    opened = threading.Event()

    def slowly(*given, **named):
        assert opened.wait(PATIENCE / 1000)
        return disagreement(*given, **named)

    monkeypatch.setattr(contrast, "disagreement", slowly)
    monkeypatch.setattr(pages, "LATER_S", 0.1)
    return opened


async def test_the_section_comes_by_itself_and_its_sentence_too(page_of, config, serve, gate):
    address = serve(unguarded(config))
    async with page_of(locale="en-GB") as page:
        await page.goto(address + "/")
        section = page.locator("section:has(#disagree)")
        expect = playwright.expect
        await expect(section).to_contain_text("still comparing the sources", timeout=PATIENCE)
        await expect(section.locator("[data-reload]")).to_be_hidden()
        before = await page.locator(".lede").all_inner_texts()
        async with page.expect_response(lambda one: one.url.endswith("/disagreement")) as asked:
            pass
        assert (await asked.value).status == 202
        await page.evaluate("window.same = true")
        gate.set()
        await expect(section.locator("a.lead").first).to_have_text("배", timeout=PATIENCE)
        assert await page.evaluate("window.same")
        after = await page.locator(".lede").all_inner_texts()
        assert [one for one in after if one not in before] == [
            "“배” is the word 게시판 uses least like the other sources."
        ]
        assert (after[:-2], after[-1]) == (before[:-1], before[-1])
        # A brief that comes later says the same at once.
        await page.reload()
        assert await page.locator(".lede").all_inner_texts() == after
        assert await page.locator("[data-later]").count() == 0


async def test_without_script_a_link_loads_the_page_again(page_of, config, serve, gate):
    address = serve(unguarded(config))
    async with page_of(java_script_enabled=False) as page:
        await page.goto(address + "/")
        assert "분석하고 있습니다" in await page.locator("main").inner_text()
        gate.set()
        again = page.get_by_role("link", name="다시 불러오기")
        while await again.count():
            async with page.expect_navigation():
                await again.click()
        assert await page.locator("section:has(#disagree) a.lead").first.inner_text() == "배"


async def test_where_there_is_nothing_to_show_the_section_goes(
    page_of, config, serve, gate, monkeypatch
):
    def refuses(*given, **named):
        assert gate.wait(PATIENCE / 1000)
        raise InputError("no sums of usage.")

    monkeypatch.setattr(contrast, "disagreement", refuses)
    address = serve(unguarded(config))
    async with page_of() as page:
        await page.goto(address + "/")
        section = page.locator("[data-later]")
        await section.wait_for()
        gate.set()
        await section.wait_for(state="detached")
        assert await page.locator("#disagree").count() == 0


async def test_a_word_marks_what_came_and_went_once_its_change_is_known(
    page_of, config, serve, monkeypatch
):
    opened = threading.Event()
    built = computing.build_report

    def slowly(*given, **named):
        assert opened.wait(PATIENCE / 1000)
        return built(*given, **named)

    monkeypatch.setattr(computing, "build_report", slowly)
    address = serve(unguarded(config))
    async with page_of() as page:
        await page.goto(address + "/word/코로나")
        await page.locator(".near-list li").first.wait_for()
        assert await page.locator(".near-list .new").count() == 0
        opened.set()
        await page.locator(".near-list .new").nth(4).wait_for()
        await page.locator(".near-list .lost").first.wait_for()


async def test_the_line_of_windows_fills_by_itself(page_of, config, serve):
    address = serve(unguarded(config.model_copy(update={"reports": None})))
    async with page_of(locale="en-GB") as page:
        await page.goto(address + "/")
        await page.locator(".stories").wait_for()
        await page.locator(".timeline[data-analyses]").wait_for(state="detached")
        line = page.locator(".timeline")
        assert await line.count() == 1
        assert "not analysed yet" not in await line.inner_text()
        assert await line.locator("[aria-current=page]").count() == 1
