"""A site that does what it can to lead the crawler astray: to private addresses, and past robots.

`victim` stands for a machine of one's own network: loopback, not named as an exception. Names under
`.rebind` are public when they are looked at and private when they are looked at again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pytest

from browsing import CHROMIUM
from crawling import crawl
from embedding.crawl.crawler import Crawler
from embedding.crawl.fetcher import SystemResolver
from embedding.crawl.frontier import Frontier
from embedding.sources.config import SourceConfig

TEXT = "시민들은 새로 문을 연 도서관을 찾아 책을 읽고 이야기를 나누었다. " * 6
ARTICLE = "<html><title>글</title><body><article><p>" + TEXT + "</p></article></body></html>"
ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /*?secret\n"

FORBIDDEN = [
    "/private/1",
    "/%70rivate/2",
    "/a/../private/3",
    "/a/%2e%2e/private/4",
    "/./private/5",
    "//private/6",
    "/\\private\\7",
    "/a/x/../../private/8#comment-1",
    "/a?secret=1",
]
"""Ways to write what robots.txt forbids."""


def lures(port: str) -> list[str]:
    """Ways to write the victim's address, and addresses that are none of the web's."""
    return [
        f"http://127.0.0.1:{port}/v1",
        f"http://localhost:{port}/v2",
        f"http://2130706433:{port}/v3",
        f"http://0x7f000001:{port}/v4",
        f"http://0177.0.0.1:{port}/v5",
        f"http://127.1:{port}/v6",
        f"http://[::ffff:127.0.0.1]:{port}/v7",
        f"http://[::1]:{port}/v8",
        f"http://127。0。0。1:{port}/v9",
        f"http://example.org@127.0.0.1:{port}/v10",
        f"http://127.0.0.1.:{port}/v11",
        f"http://0.0.0.0:{port}/v12",
        f"http://a.rebind:{port}/v13",
        f"http://b.rebind:{port}/v14",
        f"//127.0.0.1:{port}/v15",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "data:text/html,<a href='/private/9'>x</a>",
        "javascript:location='/private/10'",
        "ftp://127.0.0.1/x",
        "http://[broken/",
        "http://h:99999/x",
        "http:///nowhere",
    ]


@pytest.fixture
def rebinding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that turn private from one look to the next."""
    look_up, looks = SystemResolver.__call__, {}  # type: ignore[var-annotated]

    async def resolve(self: SystemResolver, host: str, port: int) -> Sequence[str]:
        if not host.endswith(".rebind"):
            return await look_up(self, host, port)
        looks[host] = looks.get(host, 0) + 1
        # 192.0.2.0/24 is nobody's, and not public either; 0.0.0.0 stands for this machine.
        return ["127.0.0.1"] if looks[host] % 2 else ["93.184.215.14", "127.0.0.1"]

    monkeypatch.setattr(SystemResolver, "__call__", resolve)


def dress(site: Any, victim: Any, reply: Any) -> list[str]:
    """Fill the hostile site; paths of the pages that redirect or refresh to lures."""
    port = victim.host.partition(":")[2]
    targets = [*lures(port), *FORBIDDEN]
    site.answers["/robots.txt"] = reply(ROBOTS)
    paths = []
    for n, target in enumerate(targets):
        location = target.encode("ascii", "ignore").decode()
        site.answers[f"/go/{n}"] = reply("", "302 Found", location=location)
        refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
        site.answers[f"/fresh/{n}"] = reply(ARTICLE.replace("<title>", refresh + "<title>"))
        site.answers[f"/based/{n}"] = reply(
            ARTICLE.replace(
                "<title>",
                f'<base href="{target}"><link rel="canonical" href="x">'
                f'<link rel="amphtml" href="{target}"><title>',
            )
        )
        paths += [f"/go/{n}", f"/fresh/{n}", f"/based/{n}"]
    links = "".join(f'<a href="{target}">글</a>' for target in [*targets, *paths])
    site.answers["/list"] = reply(links + f'<a rel="next" href="http://127.0.0.1:{port}/next">')
    site.answers["/based-list"] = reply(
        f'<base href="{victim.base}/"><a href="a/1">글</a><a rel="next" href="more">다음</a>'
    )
    locations = "".join(f"<url><loc>{escaped(t)}</loc></url>" for t in [*targets, *paths])
    site.answers["/map.xml"] = reply(f"<urlset>{locations}</urlset>")
    children = "".join(
        f"<sitemap><loc>{escaped(t)}</loc></sitemap>" for t in [*targets, f"{site.base}/map.xml"]
    )
    site.answers["/index.xml"] = reply(f"<sitemapindex>{children}</sitemapindex>")
    entries = "".join(f"<item><link>{escaped(t)}</link></item>" for t in [*targets, *paths])
    site.answers["/feed.xml"] = reply(
        f'<rss version="2.0"><channel><title>x</title>{entries}</channel></rss>'
    )
    site.answers["/api"] = reply(
        json.dumps(
            {
                "comments": [{"id": n, "text": TEXT, "link": t} for n, t in enumerate(targets)],
                "next": f"{victim.base}/cursor",
            }
        )
    )
    return paths


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def sources(base: str) -> list[SourceConfig]:
    shared: dict[str, Any] = {"every": 30.0, "rate": 1000.0}
    return [
        SourceConfig(
            undated="fetched",
            name="page",
            kind="page",
            url=f"{base}/list",
            next="a[rel=next]",
            **shared,
        ),
        SourceConfig(
            undated="fetched",
            name="based",
            kind="page",
            url=f"{base}/based-list",
            next="a[rel=next]",
            **shared,
        ),
        SourceConfig(
            undated="fetched", name="map", kind="sitemap", url=f"{base}/map.xml", **shared
        ),
        SourceConfig(
            undated="fetched",
            name="index",
            kind="sitemap",
            url=f"{base}/index.xml",
            pages=100,
            **shared,
        ),
        SourceConfig(undated="fetched", name="feed", kind="feed", url=f"{base}/feed.xml", **shared),
        SourceConfig(
            undated="fetched", name="api", kind="comments", url=f"{base}/api", link="link", **shared
        ),
    ]


def trespasses(site: Any) -> list[str]:
    """Requests against robots.txt, however they were written."""
    found = []
    for path in site.asked:
        written = unquote(path).replace("\\", "/").replace("//", "/")
        if "private" in written or "secret" in written:
            found.append(path)
    return found


async def test_nothing_leads_past_robots_or_to_a_private_address(
    site: Any, other_site: Any, quick: Any, reply: Any, rebinding: None
) -> None:
    victim = other_site
    paths = dress(site, victim, reply)
    frontier = Frontier("sqlite://")
    # One try each: what fails for good shall not be waited for.
    config = quick(site.host, attempts=1, per_host=8, near_window=0, dedupe_min_chars=10**6)
    crawler = Crawler(sources(site.base), config, frontier)

    def through() -> bool:
        rows = crawler.report().values()
        return all(row["pending"] == 0 for row in rows) and set(paths) <= set(site.asked)

    documents = len(await crawl(crawler, lambda _: through()))
    report = crawler.report()
    frontier.close()
    assert victim.asked == []
    assert trespasses(site) == []
    assert set(paths) <= set(site.asked), "the crawler must have met each trap"
    assert documents > 0
    reasons = {reason for row in report.values() for reason in row["errors"]}
    assert {"private_address", "robots", "redirect_loop"} <= reasons
    assert "internal" not in reasons, [row["last_error"] for row in report.values()]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
async def test_scripts_lead_nowhere_else_either(
    site: Any, other_site: Any, quick: Any, reply: Any, rebinding: None
) -> None:
    port = other_site.host.partition(":")[2]
    targets = [*lures(port), *FORBIDDEN]
    frames = "".join(f'<iframe src="{t}"></iframe><img src="{t}">' for t in targets)
    script = "".join(
        f"try {{ fetch({json.dumps(t)}).catch(() => 0); }} catch (e) {{ 0; }}" for t in targets
    )
    shell = (
        f'<html><head><base href="{other_site.base}/"><link rel="preload" as="script" '
        f'href="/v20"><script src="/v21"></script></head><body>{frames}'
        f'<article class="post"><p>{TEXT}</p></article><script>{script}'
        f"window.open('{other_site.base}/v22'); new Image().src = '{other_site.base}/v23';"
        f"navigator.sendBeacon('{other_site.base}/v24', 'x');"
        f"try {{ new WebSocket('ws://127.0.0.1:{port}/v25'); }} catch (e) {{ 0; }}"
        f"setTimeout(() => {{ location = '{other_site.base}/v26'; }}, 50);</script></body></html>"
    )
    site.answers |= {"/robots.txt": reply(ROBOTS), "/board": reply(shell)}
    source = SourceConfig(
        name="board", kind="rendered", url=f"{site.base}/board", items="article.post", text="p",
        rate=1000.0, every=30.0, undated="fetched",
    )  # fmt: skip
    frontier = Frontier("sqlite://")
    crawler = Crawler([source], quick(site.host, per_host=8), frontier)
    await crawl(crawler, lambda _: crawler.report()["board"]["pending"] == 0)
    frontier.close()
    assert "/board" in site.asked
    assert other_site.asked == []
    assert trespasses(site) == []
