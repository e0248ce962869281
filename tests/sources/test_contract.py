"""What every adapter must do, whatever it lists."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from embedding.kernel.errors import FetchError
from embedding.sources.base import Adapter, Found, Inline, Pseudonyms, Reference
from embedding.sources.config import SourceConfig
from embedding.sources.kafka import KafkaAdapter
from embedding.sources.kinds import SOURCES, make_adapter
from memorytopic import MemoryTopic
from redisserver import redis_server

BASE = "https://example.org"
N = 3

RSS = (
    '<?xml version="1.0" encoding="euc-kr"?><rss version="2.0"><channel><title>t</title>'
    + "".join(
        f"<item><title>제목 {i}</title><link>{BASE}/a/{i}</link>"
        f"<pubDate>Mon, 03 Feb 2020 0{i}:00:00 +0900</pubDate></item>"
        for i in range(N)
    )
    + "</channel></rss>"
)
SITEMAP = (
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">'
    + "".join(
        f"<url><loc>{BASE}/a/{i}</loc><news:news><news:publication_date>2020-02-03T0{i}:00:00+09:00"
        f"</news:publication_date><news:title>제목 {i}</news:title></news:news></url>"
        for i in range(N)
    )
    + "</urlset>"
)
LIST = "".join(
    f'<li><a href="/a/{i}">제목 {i}</a> <time>2020.02.03 0{i}:00</time></li>' for i in range(N)
)
COMMENTS = json.dumps(
    {
        "comments": [
            {"id": i, "text": f"댓글 {i}", "time": f"2020-02-03T0{i}:00:00", "author": "홍길동"}
            for i in range(N)
        ]
    }
)


POSTS = json.dumps(
    [
        {
            "id": str(i),
            "url": f"{BASE}/@hong/{i}",
            "created_at": f"2020-02-02T{15 + i}:00:00.000Z",
            "content": f"<p>글 {i}</p>",
            "language": "ko",
            "account": {"acct": "홍길동"},
        }
        for i in range(N)
    ]
)
RECORDS = [
    {"text": f"글 {i}", "date": f"2020-02-03T0{i}:00:00", "author": "홍길동"} for i in range(N)
]
"""What streams and files hold."""


def source(kind: str, **more: Any) -> SourceConfig:
    url = {} if kind == "replayed" else {"url": f"{BASE}/list"}
    return SourceConfig(**{"name": "s", "kind": kind, **url, **more})


def build(kind: str, web: Any, folder: Path, **more: Any) -> Adapter:
    extra: dict[str, Any] = {}
    match kind:
        case "feed":
            web.pages[f"{BASE}/list"] = RSS
        case "sitemap":
            web.pages[f"{BASE}/list"] = SITEMAP
        case "page":
            web.pages[f"{BASE}/list"] = f"<ul>{LIST}</ul>"
            extra = {"items": "li", "time": "time"}
        case "comments":
            web.pages[f"{BASE}/list"] = COMMENTS
        case "rendered":
            web.found = [
                Found(str(i), "", "", f"2020-02-03T0{i}:00:00", f"글 {i}", "홍길동")
                for i in range(N)
            ]
            extra = {"items": "li", "text": "p"}
        case "replayed":
            path = folder / "old.jsonl"
            path.write_text("\n".join(map(json.dumps, RECORDS)), encoding="utf-8")
            extra = {"path": path, "author": "author"}
        case "mastodon":
            # The same posts come before every ID, as nothing here looks at it.
            web.pages[f"{BASE}/list?limit=40"] = POSTS
            for i in range(N):
                web.pages[f"{BASE}/list?limit=40&max_id={i}"] = "[]"
        case "kafka":
            values = [json.dumps(record).encode() for record in RECORDS]
            chosen = source(kind, url="kafka://broker", stream="posts", **more)
            return KafkaAdapter(chosen, Pseudonyms(b"key"), MemoryTopic(values))
        case "redis":
            extra = {"url": web.redis(RECORDS), "stream": "posts"}
        case _:  # of another package
            web.pages[f"{BASE}/list"] = sys.modules[SOURCES.get(kind).__module__].EXAMPLE
    return make_adapter(source(kind, **{**extra, **more}), Pseudonyms(b"key"))


@pytest.fixture(params=SOURCES.names())
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(kind: str, web: Any, tmp_path: Path) -> Iterator[Callable[..., Adapter]]:
    with ExitStack() as stack:
        if kind == "redis":
            url = stack.enter_context(redis_server(tmp_path))
            web.redis = partial(filled, url)
        yield lambda **more: build(kind, web, tmp_path, **more)


def filled(url: str, records: list[dict[str, str]]) -> str:
    """The server with these records and no others in the stream `posts`."""
    from redis import Redis

    with Redis.from_url(url) as client:
        client.delete("posts")
        for at, record in enumerate(records):
            client.xadd("posts", record, id=f"{1_580_000_000_000 + at}-0")
    return url


async def poll(adapter: Adapter, web: Any) -> list[Any]:
    return [item async for item in adapter.poll(web)]


async def test_all_items_are_listed_with_their_times(make: Any, web: Any) -> None:
    adapter = make()
    items = await poll(adapter, web)
    hours = sorted(item.published_at.isoformat() for item in items)
    assert hours == [f"2020-02-02T{15 + i}:00:00+00:00" for i in range(N)]
    assert adapter.complete


async def test_keys_are_unique_and_stay_the_same(make: Any, web: Any) -> None:
    def keys(items: list[Any]) -> set[str]:
        return {item.url if isinstance(item, Reference) else item.key for item in items}

    first = keys(await poll(make(), web))
    assert len(first) == N
    assert keys(await poll(make(), web)) == first


async def test_at_most_max_items(make: Any, web: Any, kind: str) -> None:
    items = await poll(make(max_items=1), web)
    # An answer of a comments API is never cut: its cursor cannot point into its middle.
    assert len(items) == (N if kind == "comments" else 1)


async def test_no_name_of_an_author_gets_out(make: Any, web: Any) -> None:
    items = [item for item in await poll(make(), web) if isinstance(item, Inline)]
    assert all(item.author and "홍길동" not in repr(item) for item in items)
    assert len({item.author for item in items}) <= 1


async def test_rubbish_is_a_fetch_error(kind: str, make: Any, web: Any) -> None:
    if kind in ("replayed", "rendered", "page", "redis", "kafka"):
        pytest.skip("lines are skipped one by one; a page without links is only empty")
    adapter = make()
    web.pages = dict.fromkeys([*web.pages, f"{BASE}/list"], "<<<%%% not what you think")
    with pytest.raises(FetchError) as caught:
        await poll(adapter, web)
    assert caught.value.reason == "parse"
    assert not adapter.complete


async def test_an_unreachable_listing_is_a_fetch_error(kind: str, make: Any, web: Any) -> None:
    if kind in ("replayed", "rendered", "redis", "kafka"):
        pytest.skip("no listing of its own to fetch")
    adapter = make()
    web.pages.clear()
    with pytest.raises(FetchError):
        await poll(adapter, web)
    assert not adapter.complete
