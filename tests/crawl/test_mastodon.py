"""A server of Mastodon on loopback, which speaks of its API what a timeline takes, and a crawler.

docs.joinmastodon.org/methods/timelines: `limit` of 40 posts at most, `max_id` for those before a
post, newest first; a server may want a login (422) or less haste (429).
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from crawling import crawl
from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.sources import mastodon
from embedding.sources.config import SourceConfig

POSTS = 95
MOST = 40
PUBLIC, TAG = "/api/v1/timelines/public", "/api/v1/timelines/tag/%EC%BD%94%EB%A1%9C%EB%82%98"
WANTS_LOGIN = json.dumps({"error": "This method requires an authenticated user"})


class Timelines(dict):
    """The answers of a server that holds so many public posts, every tenth with a tag."""

    def __init__(self, base: str, reply: Any) -> None:
        self.base, self.reply = base, reply
        self.posts = [self.post(at) for at in range(POSTS)]
        self.refused: list[bytes] = []

    def post(self, at: int) -> dict[str, Any]:
        return {
            "id": str(105_000_000 + at),
            "url": f"{self.base}/@user{at % 7}/{105_000_000 + at}",
            "uri": f"{self.base}/users/user{at % 7}/statuses/{105_000_000 + at}",
            "created_at": f"2020-02-{1 + at // 4:02}T0{at % 4}:30:00.000Z",
            "language": "ja" if at % 19 == 18 else "ko",
            "spoiler_text": "",
            "content": f"<p>마스크를 {at}장 샀다.<br>줄이 길었다.</p>",
            "account": {"acct": f"user{at % 7}", "display_name": "홍길동"},
            "tags": [{"name": "코로나"}] if at % 10 == 0 else [],
        }

    def get(self, path: str, default: Any = None) -> Any:
        parts = urlsplit(path)
        if parts.path not in (PUBLIC, TAG):
            return default
        if self.refused:
            return self.refused.pop(0)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        before = int(asked.get("max_id", 10**18))
        there = [one for one in reversed(self.posts) if int(one["id"]) < before]
        if parts.path == TAG:
            there = [one for one in there if one["tags"]]
        page = there[: min(int(asked.get("limit", 20)), MOST)]
        return self.reply(json.dumps(page), content_type="application/json; charset=utf-8")


def source(base: str, **more: Any) -> SourceConfig:
    return SourceConfig(name="m", kind="mastodon", url=base, language="ko", every=0.1, **more)


async def test_a_server_is_read_to_its_first_post_and_then_what_is_new(
    site: Any, quick: Any, reply: Any, tmp_path: Path
) -> None:
    site.answers = server = Timelines(site.base, reply)
    korean = [one for one in server.posts if one["language"] == "ko"]
    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
    config = quick(site.host, poll_share=1.0)
    crawler = Crawler([source(site.base)], config, frontier)
    new = [server.post(POSTS + at) for at in range(3)]

    def enough(found: list[Any]) -> bool:
        if len(found) == len(korean) and len(server.posts) == POSTS:
            server.posts += new
        return len(found) >= len(korean) + len(new)

    found = await crawl(crawler, enough)
    assert sorted(unquote(one.url) for one in found) == sorted(one["url"] for one in korean + new)
    for one in found:
        at = int(one.url.rpartition("/")[2]) - 105_000_000
        assert one.text == f"마스크를 {at}장 샀다.\n줄이 길었다."
        assert f"{one.published_at:%Y-%m-%dT%H:%M:%S.000Z}" == server.posts[at]["created_at"]
        assert one.source == "m"
    assert len({one.author for one in found}) == 7
    assert not any("user" in str(one.author) or "홍길동" in str(one.author) for one in found)
    asked = [path for path in site.asked if path.startswith(PUBLIC)]
    assert asked[:3] == [
        f"{PUBLIC}?limit=40",
        f"{PUBLIC}?limit=40&max_id=105000055",
        f"{PUBLIC}?limit=40&max_id=105000015",
    ]
    frontier.close()


async def test_a_tag_is_read_alone(site: Any, quick: Any, reply: Any, tmp_path: Path) -> None:
    site.answers = server = Timelines(site.base, reply)
    tagged = [one["url"] for one in server.posts if one["tags"] and one["language"] == "ko"]
    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
    crawler = Crawler([source(site.base + TAG)], quick(site.host, poll_share=1.0), frontier)
    found = await crawl(crawler, lambda found: len(found) >= len(tagged))
    assert sorted(unquote(one.url) for one in found) == sorted(tagged)
    frontier.close()


async def test_a_server_that_wants_a_login_or_less_haste(
    site: Any, quick: Any, reply: Any, tmp_path: Path
) -> None:
    site.answers = server = Timelines(site.base, reply)
    server.refused = [
        reply("{}", "429 Too Many Requests", content_type="application/json", retry_after="0"),
        *[reply(WANTS_LOGIN, "422 Unprocessable Content", content_type="application/json")] * 2,
    ]
    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
    crawler = Crawler([source(site.base)], quick(site.host, poll_share=1.0), frontier)
    said: set[str] = set()

    def enough(found: list[Any]) -> bool:
        said.add(crawler.report()["m"]["last_error"])
        return bool(found) and len(said) > 1

    await crawl(crawler, enough)
    assert any("status 422" in one for one in said), said
    frontier.close()


async def test_a_post_that_names_an_article_of_another_site_hides_nothing(
    site: Any, quick: Any, reply: Any, tmp_path: Path
) -> None:
    """The author's server chooses that address; all else of the timeline is read once."""
    site.answers = server = Timelines(site.base, reply)
    article = "https://press.example.kr/politics/1"
    server.posts[-1]["url"] = article
    korean = [one for one in server.posts if one["language"] == "ko"]
    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
    crawler = Crawler([source(site.base)], quick(site.host, poll_share=1.0), frontier)
    found = await crawl(crawler, lambda found: len(found) >= len(korean) and len(site.asked) > 8)
    assert len(found) == len(korean)
    assert article not in {one.url for one in found}
    assert frontier.discover("press", [(article, None)], 1.0) == 1
    frontier.close()


async def test_texts_are_read_beside_the_loop(
    site: Any, quick: Any, reply: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of markup in a post stops no other source's reading."""
    readers: set[int] = set()

    plain_text = mastodon.plain_text

    def reading(text: str) -> str:
        readers.add(threading.get_ident())
        return plain_text(text)

    monkeypatch.setattr(mastodon, "plain_text", reading)
    site.answers = server = Timelines(site.base, reply)
    server.posts[-1]["content"] = "<a>" * 300_000
    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
    crawler = Crawler([source(site.base)], quick(site.host, poll_share=1.0), frontier)
    await crawl(crawler, lambda found: len(found) >= 40)
    assert readers
    assert threading.get_ident() not in readers
    frontier.close()
