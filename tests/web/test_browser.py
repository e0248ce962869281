"""The pages in a real Chromium: what a reader does with them."""

from __future__ import annotations

from shutil import copytree

import pytest
from fastapi import FastAPI
from unguarded import unguarded

from browsing import CHROMIUM, drawn, headed
from embedding.web.app import create_app

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


async def test_from_the_brief_to_a_word_by_search(page_of, address):
    async with page_of() as page:
        await page.goto(address + "/")
        said = [await page.locator(".hero h1").inner_text()]
        said += await page.locator(".hero .further").all_inner_texts()
        words = ["신천지", "<script>alert(1)</script>", "마스크"]
        assert [word in one for word, one in zip(words, said, strict=True)] == [True] * 3
        assert await page.locator(".hero h1 a.word").inner_text() == words[0]
        await page.fill("#q", "마스")
        await page.locator("#suggestions li").first.wait_for()
        await page.keyboard.press("ArrowDown")
        assert await page.get_attribute("#q", "aria-activedescendant") == "suggestions-0"
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/word/**")
        await headed(page, "마스크")


async def test_the_operations_page_says_that_the_stream_is_not_there(page_of, address):
    async with page_of() as page:
        await page.goto(address + "/snapshots")
        await page.locator(".live.lost").wait_for()
        assert "연결되지 않습니다" in await page.locator(".live .state").inner_text()


async def test_a_term_is_explained_one_hover_or_focus_away(page_of, address):
    for width in (1280, 390):
        async with page_of(viewport={"width": width, "height": 844}) as page:
            await page.goto(address + "/")
            # A section that comes later takes the place of another, and the focus with it.
            await page.locator("[data-later][aria-busy=true]").wait_for(state="detached")
            for at in range(await page.locator("button.term").count()):
                term = page.locator("button.term").nth(at)
                gloss = term.locator(".gloss")
                assert not await gloss.is_visible()
                await term.focus()
                assert await gloss.is_visible()
                assert await gloss.inner_text() in await term.get_attribute("aria-label")
                box = await gloss.bounding_box()
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= width
            assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_enter_on_a_whole_word_opens_its_page_and_on_a_part_the_list(page_of, address):
    async with page_of(locale="en-GB") as page:
        await page.goto(address + "/")
        await page.fill("#q", "마스크")
        await page.keyboard.press("Enter")
        await headed(page, "마스크")
        await page.get_by_role("link", name="Search similar spellings").click()
        await headed(page, "Search for “마스크”")
        await page.fill("#q", "ㅋㄹㄴ")
        await page.keyboard.press("Enter")
        await headed(page, "Search for “ㅋㄹㄴ”")
        assert await page.locator("a.chip").all_inner_texts() == ["코로나"]


async def test_the_word_page_by_keyboard_and_by_choice(page_of, address):
    async with page_of(viewport={"width": 1280, "height": 900}) as page:
        await page.goto(address + "/word/코로나")
        await page.locator(".near-list .new").nth(4).wait_for()
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
        await page.locator("summary", has_text="표로 보기").click()
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


async def test_the_brief_works_without_javascript(page_of, address):
    async with page_of(java_script_enabled=False) as page:
        await page.goto(address + "/")
        await page.fill("#q", "코로")
        await page.click(".find button")
        await page.click("a.chip >> text=코로나")
        await headed(page, "코로나")
        await page.fill("#q", "마스크")
        await page.click(".find button")
        await headed(page, "마스크")


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
        await page.click("text=로그아웃")
        await page.wait_for_url("**/login")


async def test_an_empty_store_in_the_browser(page_of, serve, tmp_path, config):
    empty = config.model_copy(update={"snapshots": str(tmp_path), "reports": None})
    address = serve(unguarded(empty))
    async with page_of() as page:
        await page.goto(address + "/")
        assert "아직 끝난 기간이" in await page.locator("h1").inner_text()


async def test_the_first_page_shows_what_is_read_and_then_the_first_window(
    page_of, serve, tmp_path, config
):
    status = {
        "documents": 1234,
        "sources": {"뉴스": {"documents": 1234}},
        "windows": {"2020-01": {}},
        "faults": {"게시판": {"undated": 12, "http_4xx": 3}},
    }
    server = FastAPI()
    server.get("/status")(lambda: status)
    store = tmp_path / "store"
    store.mkdir()
    changes = {"snapshots": str(store), "reports": None, "refresh_s": 0.1}
    empty = config.model_copy(update={**changes, "status_url": f"{serve(server)}/status"})
    address = serve(unguarded(empty))
    async with page_of() as page:
        await page.goto(address + "/")
        assert "아래에서 볼 수 있습니다" in await page.locator(".lede").inner_text()
        await page.wait_for_selector(".live-sources li")
        said = await page.locator(".live-sources").inner_text()
        assert "1,234" in said
        assert "날짜를 알 수 없어 어느 기간에도 들지 않음 12" in said
        assert "제외: http_4xx 3" in said
        copytree(config.snapshots, store, dirs_exist_ok=True)
        status["windows"] = {"2020-01": {"snapshot": "2020-01-x"}}
        await page.wait_for_selector("h1:not(:has-text('아직 끝난 기간이'))")


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
        await headed(page, "관심어")
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


async def test_the_axis_comes_after_the_page_and_says_what_it_shows(page_of, address):
    async with page_of(locale="en-GB") as page:
        await page.goto(address + "/word/코로나")
        await drawn(page)
        chart = page.locator(".axis-card .chart")
        assert "negative words" in await chart.get_attribute("aria-label")
        await chart.focus()
        await page.keyboard.press("End")
        tip = await page.locator(".axis-card .tip").inner_text()
        assert "All sources: −0.65 (−1.00 … −0.26)" in tip
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
        await headed(page, "관심어")
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
