from __future__ import annotations

import shutil

import httpx
import pytest


def test_the_shell_holds_no_post(web: httpx.Client) -> None:
    page = web.get("/board").text
    assert "소식" not in page
    assert "<article" not in page


def test_the_api_pages_through_all_posts(web: httpx.Client) -> None:
    found, cursor = [], ""
    while cursor is not None:
        answer = web.get("/board/api/posts", params={"before": cursor}).json()
        found += answer["posts"]
        cursor = answer["next"]
    assert len({post["id"] for post in found}) == 45
    times = [post["time"] for post in found]
    assert times == sorted(times, reverse=True)
    one = web.get(f"/board/api/posts/{found[3]['id']}").json()
    assert one == found[3]


def test_unknown_posts_are_not_found(web: httpx.Client) -> None:
    assert web.get("/board/p/0000000000000000").status_code == 404
    assert web.get("/board/api/posts/0000000000000000").status_code == 404


PATIENCE = 90_000
"""Milliseconds: the machine may be busy."""
SCROLLED_TO_THE_END = """() => {
  scrollTo(0, document.body.scrollHeight);
  return document.querySelector("#more").dataset.state === "end";
}"""


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
    if path is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"], timeout=PATIENCE
        )
        yield chromium
        chromium.close()


@pytest.mark.browser
def test_posts_appear_by_script_and_scrolling_loads_the_rest(browser, url: str) -> None:
    page = browser.new_page(viewport={"width": 800, "height": 600})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{url}/board")
    page.wait_for_selector("article.post")
    first = page.locator("article.post").count()
    assert 0 < first < 45
    page.wait_for_function(SCROLLED_TO_THE_END, polling=50)
    posts = page.locator("article.post")
    assert posts.count() == 45
    assert posts.nth(0).get_attribute("data-time").startswith("2020-02-28")
    assert "마스크가 부족하다는" in posts.nth(0).inner_text()
    assert "<뷁>" in posts.nth(0).inner_text()
    page.goto(f"{url}{posts.nth(0).locator('h2 a').get_attribute('href')}")
    page.wait_for_selector("article.post")
    assert page.locator("article.post").count() == 1
    page.close()
