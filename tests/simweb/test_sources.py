from __future__ import annotations

import re
from pathlib import Path

import httpx

from embedding.sources.config import load_sources
from yeoron_simweb.sources import PART_OF_SOURCE, sources_toml


def test_the_file_is_what_the_sources_room_reads(tmp_path: Path, url: str) -> None:
    path = tmp_path / "sources.toml"
    path.write_text(sources_toml(url + "/", every=2), encoding="utf-8")
    sources = load_sources(path)
    assert [source.name for source in sources] == list(PART_OF_SOURCE)
    assert [source.kind for source in sources] == [
        "feed",
        "sitemap",
        "page",
        "feed",
        "rendered",
        "comments",
    ]
    assert {source.group for source in sources} == {"news", "board", "comments"}
    assert {source.every for source in sources} == {2}
    for source in sources:
        assert httpx.get(source.url).status_code == 200


def test_without_a_browser_the_board_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "sources.toml"
    path.write_text(sources_toml("http://127.0.0.1:1", rendered=False), encoding="utf-8")
    assert "sim-board" not in {source.name for source in load_sources(path)}


def test_no_source_lists_an_article_of_another(url: str) -> None:
    listed = {}
    for part in ("politics/rss.xml", "society/sitemap.xml", "life/list", "euckr/rss.xml"):
        text = httpx.get(f"{url}/news/{part}").text
        listed[part] = set(re.findall(r"/news/a/([0-9a-f]{16})", text))
        assert listed[part]
    assert sum(map(len, listed.values())) == len(set().union(*listed.values()))
