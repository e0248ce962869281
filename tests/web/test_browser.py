"""The pages in a real Chromium."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio
from fastapi import Depends

from embedding.web.app import create_app

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]
PATIENCE = 90_000
"""Milliseconds: the machine may be busy."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator:
    async with playwright.async_playwright() as p:
        one = await p.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS], timeout=PATIENCE)
        yield one
        await one.close()


@pytest.fixture
def page_of(browser) -> Callable:
    """Opens a page of its own; an error of its scripts or of the content policy fails the test."""

    @asynccontextmanager
    async def opened(**options) -> AsyncIterator:
        context = await browser.new_context(**{"locale": "ko-KR", **options})
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if "Policy" in m.text else None)
        page.on("dialog", lambda dialog: errors.append(f"dialog {dialog.message}"))
        try:
            yield page
            assert errors == []
        finally:
            await context.close()

    return opened


async def headed(page, text: str) -> None:
    """Wait until the page's heading says so: a click may return before the next page is there."""
    await playwright.expect(page.locator("h1")).to_have_text(text, timeout=PATIENCE)


async def drawn(page) -> None:
    """Wait until every chart and the position on the axis are there."""
    for box in await page.locator("[data-chart], [data-map]").all():
        await playwright.expect(box).to_have_attribute("data-drawn", "yes", timeout=PATIENCE)
    for state in await page.locator("[data-axis] > .state").all():
        await playwright.expect(state).not_to_have_text(re.compile("…$"), timeout=PATIENCE)


def let_in() -> None:
    """A guard that lets everybody in."""


@pytest.fixture(scope="module")
def address(config, serve) -> str:
    live = config.model_copy(update={"status_url": "http://127.0.0.1:9/status"})
    return serve(create_app(live, dependencies=[Depends(let_in)]))


async def test_from_the_brief_to_a_word_by_search(page_of, address):
    async with page_of() as page:
        await page.goto(address + "/")
        assert await page.locator("h1").inner_text() == "코로나·신천지·마스크"
        await page.locator(".live.lost").wait_for()
        assert "연결되지 않습니다" in await page.locator(".live .state").inner_text()
        await page.fill("#q", "마스")
        await page.locator("#suggestions li").first.wait_for()
        await page.keyboard.press("ArrowDown")
        assert await page.get_attribute("#q", "aria-activedescendant") == "suggestions-0"
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/word/**")
        await headed(page, "마스크")


async def test_the_word_page_by_keyboard_and_by_choice(page_of, address):
    async with page_of(viewport={"width": 1280, "height": 900}) as page:
        await page.goto(address + "/word/코로나")
        assert await page.locator(".near-list .new").count() >= 5
        chart = page.locator(".chart[data-drawn]").first
        await chart.focus()
        await page.keyboard.press("End")
        tip = page.locator(".tip:visible")
        assert "2020년 3월" in await tip.inner_text()
        await page.keyboard.press("ArrowLeft")
        assert "2020년 2월" in await tip.inner_text()
        await page.keyboard.press("Escape")
        assert await tip.count() == 0
        async with page.expect_navigation():
            await page.select_option("select[name=now]", index=1)
        assert await page.locator(".near-list .new").count() <= 5
        await page.locator("summary").click()
        assert await page.locator("table tbody tr").count() == 5


async def test_hostile_words_run_nothing(page_of, address):
    async with page_of() as page:
        await page.goto(address + "/")
        link = page.locator("a.lead", has_text="<script>").first
        await link.click()
        await headed(page, "<script>alert(1)</script>")
        await page.fill("#q", "<script")
        await page.locator("#suggestions li").first.wait_for()
        assert await page.locator("#suggestions script").count() == 0


VIEWS = (
    *("/", "/word/코로나", "/compare", "/compare?a=코로나&b=마스크", "/windows"),
    *("/sources?a=뉴스&b=게시판", "/map?w=코로나", "/watch?w=코로나&w=마스크&w=없음"),
    *("/snapshots", "/search?q=가", "/word/쀍쀍"),
)


@pytest.mark.parametrize("path", [*VIEWS, "/word?w=" + "가" * 1500])
async def test_a_narrow_screen_needs_no_sideways_scrolling(page_of, address, path):
    async with page_of(viewport={"width": 390, "height": 844}) as page:
        await page.goto(address + path)
        await drawn(page)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        small = await page.evaluate(
            "[...document.querySelectorAll('button,select,input:not([type=hidden])')]"
            ".filter(e => e.offsetHeight && e.offsetHeight < 24).length"
        )
        assert small == 0


CONTRAST = Path(__file__).with_name("contrast.js").read_text().partition("\n")[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_is_readable_in_both_themes(page_of, address, scheme):
    async with page_of(color_scheme=scheme) as page:
        grounds = set()
        for path in VIEWS:
            await page.goto(address + path)
            assert await page.evaluate(CONTRAST) == [], path
            grounds.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
        (ground,) = grounds
        bright = sum(int(v) for v in ground[4:-1].split(","))
        assert bright < 150 if scheme == "dark" else bright > 600


NAMELESS = """
() => [...document.querySelectorAll('a, button, input:not([type=hidden]), select, svg[role=img]')]
  .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.title
    || (e.labels && e.labels.length)))
  .map(e => e.outerHTML.slice(0, 100))
"""


@pytest.mark.parametrize("path", VIEWS)
async def test_everything_one_can_use_has_a_name_and_headings_go_in_order(page_of, address, path):
    async with page_of() as page:
        await page.goto(address + path)
        assert await page.evaluate(NAMELESS) == []
        levels = await page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
        )
        assert levels.count(1) == 1
        assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


async def test_the_brief_works_without_javascript(page_of, address):
    async with page_of(java_script_enabled=False) as page:
        await page.goto(address + "/")
        await page.fill("#q", "코로나")
        await page.click(".find button")
        await page.click("a.chip >> text=코로나")
        await headed(page, "코로나")


async def test_login_in_the_browser(page_of, config, serve, tmp_path):
    token_file = tmp_path / "token"
    alone = serve(create_app(config.model_copy(update={"token_file": token_file})))
    async with page_of() as page:
        await page.goto(alone + "/word/코로나")
        assert "/login" in page.url
        await page.fill("#token", "not the token at all")
        await page.click("main button")
        assert "맞지 않습니다" in await page.locator("[role=alert]").inner_text()
        await page.fill("#token", token_file.read_text().strip())
        await page.click("main button")
        await page.wait_for_url("**/word/**")
        await headed(page, "코로나")
        await page.click("text=나가기")
        await page.wait_for_url("**/login")


async def test_an_empty_store_in_the_browser(page_of, serve, tmp_path, config):
    empty = config.model_copy(update={"snapshots": str(tmp_path), "reports": None})
    address = serve(create_app(empty, dependencies=[Depends(let_in)]))
    async with page_of() as page:
        await page.goto(address + "/")
        assert "아직 창이 하나도" in await page.locator("h1").inner_text()


@pytest.mark.parametrize(("language", "scheme"), [("ko-KR", "light"), ("en-GB", "dark")])
async def test_axe_finds_nothing_serious_in_any_view(page_of, address, language, scheme):
    axe = pytest.importorskip("axe_playwright_python.async_playwright").Axe()
    # Run beside the page's own scripts, which its content policy allows and an injected one's not.
    async with page_of(locale=language, color_scheme=scheme, bypass_csp=True) as page:
        for path in VIEWS:
            await page.goto(address + path)
            await drawn(page)
            found = (await axe.run(page)).response["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            nodes = [(one["id"], one["nodes"][0]["html"][:200]) for one in serious]
            assert nodes == [], path


async def test_the_map_moves_through_time_by_slider_and_keys(page_of, address):
    async with page_of(viewport={"width": 1000, "height": 900}) as page:
        await page.goto(address + "/map?w=코로나")
        await drawn(page)
        words = page.locator(".map-list a")
        late = await words.all_inner_texts()
        assert await page.locator(".map-list .new").count() >= 6
        await page.locator("#map-time").focus()
        await page.keyboard.press("Home")
        await playwright.expect(page.locator(".map-window")).to_have_text("2019년 11월")
        assert await page.get_attribute("#map-time", "aria-valuetext") == "2019년 11월"
        early = await words.all_inner_texts()
        assert len(set(early) & set(late)) <= 3
        await page.click("[data-play]")
        await playwright.expect(page.locator(".map-window")).to_have_text("2020년 3월")
        await words.first.click()
        await headed(page, late[0])


async def test_a_word_is_watched_in_this_browser_and_its_list_can_be_sent(page_of, address):
    async with page_of() as page:
        await page.goto(address + "/word/신천지")
        star = page.locator("button.star")
        await star.focus()
        await page.keyboard.press("Enter")
        assert await star.get_attribute("aria-pressed") == "true"
        await page.locator("header a[data-watch-page]").click()
        await headed(page, "지켜보는 말")
        assert "신천지" in await page.locator("table.watch").inner_text()
        assert "%EC%8B%A0" in page.url
        await page.goto(address + "/word/신천지")
        await star.click()
        assert await star.get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("path", ["/word/코로나", "/map?w=코로나"])
async def test_a_chart_is_saved_as_a_picture(page_of, address, path):
    async with page_of(viewport={"width": 900, "height": 900}) as page:
        await page.goto(address + path)
        await drawn(page)
        async with page.expect_download() as saved:
            await page.locator("[data-png]:visible").first.click()
        file = await (await saved.value).path()
        assert (await saved.value).suggested_filename.startswith("yeoron-")
        assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert file.stat().st_size > 3000


async def test_everything_is_reached_by_keys_alone(page_of, address):
    async with page_of() as page:
        await page.goto(address + "/compare?a=코로나&b=마스크")
        await drawn(page)
        wanted = await page.evaluate(
            '[...document.querySelectorAll(\'a[href], button, input, select, [tabindex="0"],'
            " summary')].filter(e => e.checkVisibility()).length"
        )
        seen = set()
        for _ in range(wanted + 5):
            await page.keyboard.press("Tab")
            seen.add(
                await page.evaluate(
                    "(() => { const e = document.activeElement;"
                    " if (e === document.body) return 'the end'; e.dataset.seen ||= Math.random();"
                    " const s = getComputedStyle(e);"
                    " return e.dataset.seen + (s.outlineStyle === 'none' ? ' unseen' : ''); })()"
                )
            )
        assert not [one for one in seen if one.endswith("unseen")]
        assert len(seen) >= wanted


async def test_the_axis_comes_after_the_page_and_says_what_it_shows(page_of, address):
    async with page_of(locale="en-GB") as page:
        await page.goto(address + "/word/코로나")
        await drawn(page)
        chart = page.locator(".axis-card .chart")
        assert "below 0" in await chart.get_attribute("aria-label")
        await chart.focus()
        await page.keyboard.press("End")
        assert "All sources: −0.7" in await page.locator(".axis-card .tip").inner_text()
        named = await page.locator(".axis-card .legend li").all_inner_texts()
        assert named == ["All sources", "게시판", "뉴스", "댓글"]


async def test_half_a_syllable_suggests_the_word(page_of, address):
    async with page_of() as page:
        await page.goto(address + "/")
        await page.fill("#q", "신천ㅈ")
        await playwright.expect(page.locator("#suggestions li").first).to_have_text("신천지")


async def test_a_word_to_compare_is_completed_and_not_yet_sent(page_of, address):
    async with page_of(viewport={"width": 390, "height": 844}) as page:
        await page.goto(address + "/compare?a=코로나")
        await page.fill("#word-b", "마ㅅ")
        first = page.locator("#suggestions-b li").first
        await playwright.expect(first).to_have_text("마스크")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        assert await page.input_value("#word-b") == "마스크"
        assert await first.is_hidden()
        await page.keyboard.press("Enter")
        await headed(page, "코로나·마스크")


async def test_a_narrow_watch_list_shows_all_of_it_and_words_leave_it(page_of, address):
    async with page_of(viewport={"width": 390, "height": 844}) as page:
        for word in ("신천지", "코로나"):
            await page.goto(address + f"/word/{word}")
            await page.click("button.star")
        await page.locator("header a[data-watch-page]").click()
        await headed(page, "지켜보는 말")
        table = page.locator("table.watch")
        wide = await table.evaluate(
            "e => [e.parentElement.scrollWidth, e.parentElement.clientWidth]"
        )
        assert wide[0] <= wide[1]
        assert "95 % 구간" in await table.locator("td[data-label]").evaluate_all(
            "all => all.map(e => getComputedStyle(e, '::before').content).join()"
        )
        await page.get_by_role("button", name="‘신천지’ 목록에서 빼기").click()
        await playwright.expect(table).not_to_contain_text("신천지")
        await playwright.expect(table).to_contain_text("코로나")
        await page.goto(address + "/word/신천지")
        assert await page.get_attribute("button.star", "aria-pressed") == "false"
        # A list that somebody sent is not this browser's: nothing can be taken off it.
        await page.goto(address + "/watch?w=마스크")
        assert await page.locator("button[data-unwatch]:visible").count() == 0


@pytest.mark.parametrize("name", ["script", "attribute", "emoji", "rtl", "template"])
async def test_a_hostile_word_is_a_word_in_every_view(page_of, address, hostile, name):
    word = hostile[name]
    async with page_of(viewport={"width": 390, "height": 844}) as page:
        coded = quote(word, safe="")
        for path in (f"/word?w={coded}", f"/map?w={coded}", f"/compare?a={coded}&b=코로나"):
            await page.goto(address + path)
            await drawn(page)
            assert word in await page.locator("h1").inner_text()
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390
            assert await page.locator("main script").count() == 0
        await page.goto(address + f"/watch?w={coded}")
        assert word in await page.locator("table.watch").inner_text()
