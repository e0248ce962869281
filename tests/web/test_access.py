"""Every view in a real Chromium: narrow screens, themes, keys, names, hostile words."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from unguarded import unguarded

from browsing import CHROMIUM, drawn, visit
from embedding.web.app import create_app

playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]

PAGES = (
    *("/", "/word/코로나", "/compare?a=코로나&b=마스크", "/windows"),
    *("/sources?a=뉴스&b=게시판", "/map?w=코로나", "/watch?w=코로나&w=마스크&w=없음"),
    *("/snapshots", "/search?q=가", "/over?w=코로나&w=마스크&w=없음", "/team"),
    *("/window/2020-02", "/no/such/page"),
)
"""Each page once."""
VIEWS = (
    *PAGES,
    *("/compare", "/word/쀍쀍", "/over", "/word", "/sources", "/?from=2031-01-01"),
    "/?from=2020-01-01&to=2020-03-31&source=뉴스&topic=코로나",
    *("/?source=없음", "/?from=2020-13-01"),
)
"""And what a page is of little, of nothing, or of what is wrong."""
SETTINGS = [("ko-KR", "light", 1280, VIEWS), ("en-GB", "dark", 390, PAGES)]
"""Language, theme and width of a screen, and what is looked at; other widths and the other theme
are looked at in the same page.
"""


NAMELESS = """
() => [...document.querySelectorAll('a, button, input:not([type=hidden]), select, svg[role=img]')]
  .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.title
    || (e.labels && e.labels.length)))
  .map(e => e.outerHTML.slice(0, 100))
"""


async def named_and_in_order(page) -> None:
    """Everything one can use has a name, and headings go in order."""
    assert await page.evaluate(NAMELESS) == []
    levels = await page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


async def fits(page) -> None:
    """A narrow screen needs no sideways scrolling, and what is pressed there is large enough."""
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390, page.url
    small = await page.evaluate(
        "[...document.querySelectorAll('button,select,input:not([type=hidden])')]"
        ".filter(e => e.offsetHeight && e.offsetHeight < 24).length"
    )
    assert small == 0, page.url
    cut = await page.evaluate(
        "[...document.querySelectorAll('.scroll')]"
        ".filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth).length"
    )
    assert cut == 0, page.url


async def test_a_narrow_screen_needs_no_sideways_scrolling_for_a_word_without_end(page_of, address):
    async with page_of(viewport={"width": 390, "height": 844}) as page:
        await visit(page, address + "/word?w=" + "가" * 1500)
        await drawn(page)
        await fits(page)
        await named_and_in_order(page)


CONTRAST = Path(__file__).with_name("contrast.js").read_text().partition("\n")[2]


# Of what passes nothing is gathered, which takes as long as looking for it.
AXE = {"resultTypes": ["violations"]}


async def widened(page, width: int) -> None:
    """Make the window so wide, and wait until the page is laid out."""
    await page.set_viewport_size({"width": width, "height": 900})
    await page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")


async def ground_of(page, path: str) -> int:
    """How bright a page is, from 0 to 765, once all its text was found to stand out from it."""
    assert await page.evaluate(CONTRAST) == [], path
    color = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(v) for v in color[4:-1].split(","))


@pytest.mark.parametrize(("language", "scheme", "width", "views"), SETTINGS)
async def test_axe_finds_nothing_in_any_view_and_text_is_readable(
    page_of, address, language, scheme, width, views
):
    """Each page in each language; in the same page, every other width and the other theme."""
    axe = pytest.importorskip("axe_playwright_python.async_playwright").Axe()
    # Run beside the page's own scripts, which its content policy allows and an injected one's not.
    view = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    async with page_of(locale=language, bypass_csp=True, reduced_motion="reduce", **view) as page:
        wrong = []
        for path in views:
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size(view["viewport"])
            await visit(page, address + path)
            await drawn(page)
            await named_and_in_order(page)
            for wide in (1280, 1000, 768, 390):
                await widened(page, wide)
                if await page.evaluate("document.documentElement.scrollWidth") > wide:
                    wrong.append((path, wide, "too wide"))
            await fits(page)
            await page.emulate_media(color_scheme="light")
            assert await ground_of(page, path) > 600
            await page.emulate_media(color_scheme="dark")
            assert await ground_of(page, path) < 150
            await page.emulate_media(color_scheme=scheme)
            await widened(page, width)
            await page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
            found = (await axe.run(page, options=AXE)).response["violations"]
            wrong += [(path, one["id"], one["nodes"][0]["html"][:200]) for one in found]
        assert wrong == []


@pytest.fixture(scope="module")
def outside(config, serve, tmp_path_factory) -> tuple[str, str]:
    """A page of login, and one of a store that is empty."""
    folder = tmp_path_factory.mktemp("outside")
    alone = config.model_copy(
        update={"token_file": folder / "token", "tokens": folder / "tokens.sqlite"}
    )
    empty = config.model_copy(update={"snapshots": str(folder / "none"), "reports": None})
    return serve(create_app(alone)) + "/login", serve(unguarded(empty)) + "/"


@pytest.mark.parametrize(("language", "scheme", "width"), [one[:3] for one in SETTINGS])
async def test_axe_finds_nothing_before_the_login_in_an_empty_store_or_in_a_report(
    page_of, outside, address, tmp_path, language, scheme, width
):
    axe = pytest.importorskip("axe_playwright_python.async_playwright").Axe()
    view = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    async with page_of(locale=language, bypass_csp=True, **view) as page:
        wrong = []
        for at in (*outside, address + "/window/2020-03/report.html"):
            if at.endswith(".html"):  # a file to save
                saved = tmp_path / "report.html"
                saved.write_bytes(await (await page.request.get(at)).body())
                at = saved.as_uri()
            await page.goto(at)
            found = (await axe.run(page, options=AXE)).response["violations"]
            wrong += [(at, one["id"], one["nodes"][0]["html"][:200]) for one in found]
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, at
            await named_and_in_order(page)
        assert wrong == []


async def test_every_page_is_among_the_views(config, tmp_path):
    app = unguarded(config.model_copy(update={"team": tmp_path / "team.json"}))
    pages = {
        route.path
        for route in app.routes
        if "GET" in getattr(route, "methods", ())
        and not re.search(
            r"^/(?:api|static)/|[.](?:csv|atom|[{]format[}])$|^/health$|/(?:disagreement|timeline)$",
            route.path,
        )
    }
    seen = {urlsplit(view).path for view in VIEWS}
    # A window's brief is that of the front page; an address of a word is one of its own.
    known = {"/window/{id}", "/word/{word:path}"}
    assert pages - seen - known == set()


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


async def test_a_hostile_word_is_a_word_in_every_view(page_of, address, hostile):
    async with page_of(viewport={"width": 390, "height": 844}) as page:
        for name in ("script", "attribute", "emoji", "rtl", "template"):
            word = hostile[name]
            coded = quote(word, safe="")
            for path in (f"/word?w={coded}", f"/map?w={coded}", f"/compare?a={coded}&b=코로나"):
                await visit(page, address + path)
                await drawn(page)
                assert word in await page.locator("h1").inner_text()
                assert await page.evaluate("document.documentElement.scrollWidth") <= 390, name
                assert await page.locator("main script").count() == 0, name
            await page.goto(address + f"/watch?w={coded}")
            assert word in await page.locator("table.watch").inner_text()
