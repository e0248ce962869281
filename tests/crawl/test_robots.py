import asyncio

import pytest

from embedding.crawl.robots import Robots
from embedding.kernel.errors import FetchError

URL = "https://example.org/news/1"


def robots(status: int, text: str = "", asked: list[str] | None = None, ttl: float = 60) -> Robots:
    async def get(url: str, proxy: str | None) -> tuple[int, str]:
        if asked is not None:
            asked.append(url)
        await asyncio.sleep(0.01)
        return status, text

    return Robots("yeoron", ttl, get)


@pytest.mark.parametrize(("status", "allowed"), [(200, True), (404, True), (403, True)])
async def test_a_missing_file_allows_all(status: int, allowed: bool) -> None:
    assert (await robots(status).verdict(URL)).allowed is allowed


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_failing_server_forbids_all_and_says_when_to_ask_again(status: int) -> None:
    verdict = await robots(status, "User-agent: *\nAllow: /").verdict(URL)
    assert not verdict.allowed
    assert verdict.retry_after
    assert verdict.retry_after > 1


async def test_an_unreachable_server_forbids_all() -> None:
    async def get(url: str, proxy: str | None) -> tuple[int, str]:
        raise FetchError("timeout", "no answer", retry_after=0)

    assert not (await Robots("yeoron", 60, get).verdict(URL)).allowed


async def test_our_group_wins_and_the_longest_match_decides() -> None:
    text = (
        "User-agent: *\nDisallow: /\n\nUser-agent: Yeoron\nDisallow: /news/\n"
        "Allow: /news/1\nCrawl-delay: 2.5\n"
    )
    one = robots(200, text)
    assert (await one.verdict(URL)).allowed
    assert (await one.verdict(URL)).crawl_delay == 2.5
    forbidden = await one.verdict("https://example.org/news/2")
    assert not forbidden.allowed
    assert forbidden.retry_after is None


async def test_an_origin_is_asked_once_however_many_wait() -> None:
    asked: list[str] = []
    one = robots(200, "", asked)
    await asyncio.gather(*(one.verdict(f"{URL}{i}") for i in range(5)))
    assert asked == ["https://example.org:443/robots.txt"]
    await one.verdict("http://example.org/news/1")
    assert len(asked) == 2


async def test_it_is_asked_again_when_it_is_old() -> None:
    asked: list[str] = []
    one = robots(200, "", asked, ttl=0.02)
    await one.verdict(URL)
    await asyncio.sleep(0.05)
    await one.verdict(URL)
    assert len(asked) == 2


async def test_rubbish_is_no_rule() -> None:
    assert (await robots(200, "<html>\0\xff not robots </html>").verdict(URL)).allowed


NAMES = ["yeoron", "Yeoron", "YEORON/0.1", "Yeoron bot", "yeoron/2 (research; a@news.example)"]
OTHERS = ["yeo", "yeoronbot", "yeoron-news", "other", "xyeoron"]
BETWEEN = ["", "Noindex: /y", "Host: news.example", "# a remark", "Crawl-delay: 1", "nonsense"]


async def allowed(text: str) -> bool:
    return (await robots(200, text).verdict(URL)).allowed


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("between", BETWEEN)
async def test_a_group_names_us_with_a_version_and_among_other_lines(
    name: str, between: str
) -> None:
    for names in ([name], ["other", name], [name, "other"], [name, "*"]):
        lines = [part for one in names for part in (f"User-agent: {one}", between)]
        assert not await allowed("\n".join([*lines, "Disallow: /", ""]))
        assert await allowed("\n".join([*lines, "Allow: /", "User-agent: x", "Disallow: /"]))


@pytest.mark.parametrize("name", OTHERS)
async def test_a_name_that_begins_or_ends_as_ours_is_another(name: str) -> None:
    assert await allowed(f"User-agent: {name}\nDisallow: /\n")
    assert not await allowed(f"User-agent: {name}\nAllow: /\nUser-agent: *\nDisallow: /\n")


async def test_a_group_of_ours_without_rules_allows_all() -> None:
    assert await allowed("User-agent: *\nDisallow: /\n\nUser-agent: yeoron\n")


async def test_groups_that_name_us_are_joined_and_misspelt_fields_are_meant() -> None:
    text = "useragent: yeoron\nDisalow: /news\n\nUser-agent: x\nDisallow: /\n\nUser agent: yeoron\n"
    assert not await allowed(text + "Allow: /open\n")
    assert not await allowed("\ufeffUser-Agent yeoron\nDisallow /\n")


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0b", "\x0c"])
async def test_only_cr_and_lf_end_a_line(mark: str) -> None:
    text = f"User-agent: *\n# what follows is a comment{mark}Disallow: /\n"
    assert (await robots(200, text).verdict(URL)).allowed
