"""The tools, asked by a real client over standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")

PAGE = "https://page.example/yeoron/"


@asynccontextmanager
async def session(config, home: Path) -> AsyncIterator:
    """A client of `yeoron mcp` in a process of its own."""
    options = ["--snapshots", config.snapshots, "--evidence", str(config.evidence), "--page", PAGE]
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "embedding.cli", "mcp", *options],
        env={**os.environ, "YEORON_PATHS__HOME": str(home)},
    )
    async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as one:
        await one.initialize()
        yield one


async def answer(one, tool: str, **arguments):
    found = await one.call_tool(tool, arguments)
    assert not found.is_error, found.content
    return found.structured_content


async def test_an_assistant_finds_what_was_planted(config, tmp_path):
    async with session(config, tmp_path) as one:
        tools = (await one.list_tools()).tools
        assert {tool.name for tool in tools} == {"stories", "moved", "word", "compare", "sources"}
        for tool in tools:
            assert tool.description
            assert tool.annotations.read_only_hint

        stories = await answer(one, "stories")
        story = next(s for s in stories["stories"] if "코로나" in [w["word"] for w in s["words"]])
        assert "At most 1 in" in story["said"][1]
        assert story["page"].startswith(PAGE + "window/")
        assert "https://news.example/0" in [a["url"] for a in story["addresses"]]

        moved = await answer(one, "moved", window="2020-03", limit=3)
        first = moved["rows"][0]
        assert (first["word"], first["significant"]) == ("코로나", True)
        assert first["said"][-1].startswith("At most 1 in")
        assert first["documents"][0]["url"].startswith("https://")

        word = await answer(one, "word", word="코로나")
        assert word["windows"][-1]["label"] == "2020-03"
        assert word["changed"]["said"]
        assert word["documents"]

        pair = await answer(one, "compare", first="코로나", second="영화")
        assert [w["word"] for w in pair["words"]] == ["코로나", "영화"]
        assert pair["nearness"][-1]["cosine"] is not None

        sources = await answer(one, "sources", first="뉴스", second="게시판", limit=2)
        assert sources["rows"][0]["word"] == "배"
        assert "게시판" in sources["rows"][0]["said"][0]
        assert {row["source"] for row in sources["sources"]} == {"뉴스", "게시판", "댓글"}

        for tool, arguments, part in (
            ("word", {"word": "쀍쀍"}, "no snapshot holds it"),
            ("stories", {"window": "2030-01"}, "2030-01"),
            ("sources", {"first": "뉴스"}, "name two sources"),
            ("sources", {"first": "뉴스", "second": "x"}, "has 게시판, 뉴스, 댓글"),
            ("moved", {"limit": 0}, "limit"),
        ):
            refused = await one.call_tool(tool, arguments)
            assert refused.is_error
            assert part in refused.content[0].text


def test_without_snapshots_there_is_a_sentence(config, tmp_path):
    from embedding.kernel.errors import SnapshotError
    from embedding.web.mcp_server import WordTools

    (tmp_path / "none").mkdir()
    empty = config.model_copy(update={"snapshots": str(tmp_path / "none"), "reports": None})
    with pytest.raises(SnapshotError, match="it holds no snapshot yet"):
        WordTools(empty, PAGE).stories()
