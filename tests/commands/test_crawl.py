"""`yeoron crawl` and `yeoron sources check` against a small real web."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedding.exchange.config import ExchangeConfig
from embedding.kernel.records import TokenBlock
from embedding.platform.dryrun import CountingSink
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from embedding.worker.crawling.crawling import CrawlProcess
from embedding.worker.process.making import connect as greet
from yeoron_simweb.testing import running

SECRET = "010-1234-5678"
TEXT = f"시민들은 새 도서관을 찾아 책을 읽었다. 문의는 {SECRET} 또는 hong@example.org 로 한다. " * 3
DOCUMENTS = [
    {"date": "2021-03-04", "title": f"도서관 소식 {n}", "text": f"{n}번 {text}", "part": part}
    # Two parts that say the same would be copies of each other.
    for part, text in (
        ("politics", TEXT),
        ("comments", TEXT.replace("새 도서관을 찾아 책을 읽었다", "운동장에서 아침마다 공을 찼다")),
    )
    for n in range(4)
]


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with running(documents=DOCUMENTS) as base:
        yield base


@pytest.fixture
def files(web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """sources.toml, with settings that let loopback be crawled."""
    host = web.removeprefix("http://")
    settings = tmp_path / "yeoron.toml"
    settings.write_text(
        f'[crawl]\nallow_private_hosts = ["{host}"]\nrate = 1000\nextract_processes = 0\n'
        'user_agent = "Yeoron (test@example.org)"\n[text]\ntokenizer = "whitespace"\n'
    )
    monkeypatch.setenv("YEORON_SETTINGS", str(settings))
    sources = tmp_path / "sources.toml"
    sources.write_text(
        f'[[source]]\nname = "news"\nkind = "feed"\nurl = "{web}/news/politics/rss.xml"\n'
        f'every = 0.5\n[[source]]\nname = "talk"\nkind = "comments"\nevery = 0.5\n'
        f'url = "{web}/comments/api"\ntext = "body"\ntime = "created_at"\nnext = "next_cursor"\n'
        f'[[source]]\nname = "gone"\nkind = "page"\nurl = "{web}/no-such-page"\nevery = 0.5\n'
        f'[[source]]\nname = "kept-out"\nkind = "page"\nurl = "{web}/private/list"\n'
    )
    return sources


def test_crawl_counts_by_source_and_keeps_nothing(
    files: Path, tmp_path: Path, yeoron: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    done = yeoron("crawl", str(files), "--for", "2m", "--documents", "8", "--json")
    report = json.loads(done.out)
    assert done.code == 0
    assert report["documents"] >= 8
    news, talk = report["sources"]["news"], report["sources"]["talk"]
    assert (news["documents"], talk["documents"]) == (4, 4)
    assert news["tokens"] > 0
    assert news["pages_per_minute"] > 0
    assert news["lag_p50_s"] > 0
    assert report["sources"]["gone"]["errors"].keys() == {"http_4xx"}
    assert report["sources"]["kept-out"]["errors"].keys() == {"robots"}
    assert report["text"]["masked"]["phone"] >= 8
    assert "도서관" not in done.out
    assert SECRET not in done.out
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_is_said_beside_the_json_are_its_figures(files: Path, yeoron: Any) -> None:
    done = yeoron("crawl", str(files), "--for", "2m", "--documents", "3", "--json")
    report = json.loads(done.out)
    first, *_, last = done.err.splitlines()
    assert "for 120 s, or until at least 3 documents have come" in first
    assert last.startswith(
        f"yeoron: {report['documents']:,} documents, {report['tokens']:,} tokens in "
    )
    assert ": 0 documents" not in done.err


def test_the_table_names_faults_and_what_was_masked(files: Path, yeoron: Any) -> None:
    done = yeoron("crawl", str(files), "--for", "2m", "--documents", "8")
    assert done.code == 0
    for part in ("news", "http_4xx", "robots", "documents/min", "phone"):
        assert part in done.out


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A test runner in the background may ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_shows_the_figures_so_far(
    files: Path, yeoron: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = CountingSink.put

    def interrupted(sink: CountingSink, block: TokenBlock, timeout: float | None = None) -> None:
        put(sink, block, timeout)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(CountingSink, "put", interrupted)
    done = yeoron("crawl", str(files), "--for", "2m", "--json")
    assert done.code == 0
    assert json.loads(done.out)["documents"] > 0


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_ctrl_c_while_the_analyser_is_loaded_shows_that_nothing_was_read(
    files: Path, yeoron: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    async def interrupted(_: CrawlProcess) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr(CrawlProcess, "prepare", interrupted)
    done = yeoron("crawl", str(files), *words)
    assert done.code == 0
    if words:
        assert json.loads(done.out)["documents"] == 0
    else:
        assert "0 documents" in done.out


def test_check_explains_each_source(files: Path, yeoron: Any) -> None:
    done = yeoron("sources", "check", str(files), "--json")
    found = {row["name"]: row for row in json.loads(done.out)}
    assert done.code == 1
    news, talk = found["news"], found["talk"]
    assert (news["ok"], news["robots"], news["listed"]) == (True, "allowed", 4)
    assert news["title"].startswith("도서관 소식")
    assert news["published_at"].startswith("2021-03-04")
    assert news["characters"] > 100
    assert news["masked"] == {"phone": 3, "email": 3}
    assert (talk["ok"], talk["listed"]) == (True, 4)
    assert found["gone"]["fault"] == "http_4xx"
    assert (found["kept-out"]["fault"], found["kept-out"]["robots"]) == ("robots", "forbidden")
    assert "책을 읽었다" not in done.out
    assert SECRET not in done.out


def test_check_gives_the_reason_that_crawl_counts_and_the_whole_address(
    files: Path, web: str, yeoron: Any
) -> None:
    address = f"{web}/fault/no-such-{'x' * 60}"
    files.write_text(
        f'[[source]]\nname = "feeds"\nkind = "page"\nurl = "{web}/"\nlink = "link[href]"\n'
        f'[[source]]\nname = "far"\nkind = "feed"\nurl = "{address}"\n'
    )
    rows = json.loads(yeoron("sources", "check", "--json", str(files)).out)
    found = {row["name"]: row for row in rows}
    assert (found["feeds"]["fault"], found["far"]["fault"]) == ("not_html", "http_4xx")
    shown = yeoron("sources", "check", str(files)).out
    column = "".join(line.split("│")[4].strip() for line in shown.splitlines() if "│" in line)
    assert address in column


def test_check_of_an_address_shows_what_would_be_read_of_the_page(
    files: Path, web: str, yeoron: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = files.with_name("yeoron.toml")
    settings.write_text(settings.read_text() + f'[paths]\nsources = "{files}"\n')
    listed = json.loads(yeoron("sources", "check", "--only", "news", "--json").out)[0]
    done = yeoron("sources", "check", f"{listed['address']}?utm_source=x", "--json")
    found = json.loads(done.out)[0]
    assert done.code == 0
    assert found["name"] == "news", "as the source of its host reads it"
    assert found["key"] == listed["key"]
    assert found["address"].endswith("?utm_source=x")
    assert (found["published_at"][:10], found["dated_by"]) == ("2021-03-04", "metadata")
    assert found["characters"] > 100
    assert (found["language"], found["reasons"]) == ("ko", [])
    assert len(found["author"]) == 16
    shown = yeoron("sources", "check", listed["address"])
    for part in (listed["address"], "2021-03-04", "(metadata)", "characters", "3 email"):
        assert part in shown.out
    assert "책을 읽었다" not in shown.out
    assert SECRET not in shown.out
    gone = yeoron("sources", "check", f"{web}/no-such-page", "--json")
    assert (gone.code, json.loads(gone.out)[0]["reasons"]) == (1, ["http_4xx"])
    bad = yeoron("sources", "check", "http://")
    assert bad.code == 2
    assert "Traceback" not in bad.err


def test_the_list_says_what_was_left_out_as_the_server_counts_it(
    files: Path, yeoron: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_server(ServerConfig(min_count=1)) as server:
        report = {"sources": {"news": {"errors": {"undated": 3}, "dated": {"guess": 2}}}}
        client = greet(server.location, node="n0", config=ExchangeConfig())
        client.report(report)
        monkeypatch.setenv("YEORON_SERVER__HTTP_PORT", server.http_url.rpartition(":")[2])
        listed = yeoron("sources", "list", files)
        rows = json.loads(yeoron("sources", "list", files, "--json").out)
        client.close()
    assert "news: 2 date_guess, 3 undated" in listed.out
    assert {row["name"]: row["faults"] for row in rows}["news"] == {"undated": 3, "date_guess": 2}
    assert yeoron("sources", "list", files).code == 0, "without a server it lists them all the same"


def test_check_of_good_sources_ends_well(files: Path, yeoron: Any) -> None:
    done = yeoron("sources", "check", str(files), "--only", "news")
    assert done.code == 0
    assert "도서관 소식" in done.out
    assert "3 email" in done.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["crawl", "nowhere.toml"], "nowhere.toml: no such file"),
        (["sources", "check", "nowhere.toml"], "nowhere.toml: no such file"),
        (["sources", "check", "FILE", "--only", "nobody"], "nobody"),
        (["crawl", "FILE", "--for", "soon"], "90s"),
        (["crawl", "FILE", "--documents", "0"], "documents"),
    ],
)
def test_bad_input_is_one_sentence(
    files: Path, yeoron: Any, words: list[str], sentence: str
) -> None:
    done = yeoron(*(str(files) if word == "FILE" else word for word in words))
    assert done.code == 2
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_discover_shows_whole_addresses_and_no_text(
    files: Path, web: str, yeoron: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    done = yeoron("sources", "discover", f"{web}/news", "--requests", "40")
    assert done.code == 0
    source = "".join(line.split("│")[1].strip() for line in done.out.splitlines() if "│" in line)
    assert f"{web}/news/" in source
    assert "…" not in source
    assert "책을 읽었다" not in done.out
    assert SECRET not in done.out
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_discover_refuses_what_is_no_address(files: Path, yeoron: Any) -> None:
    done = yeoron("sources", "discover", "news.example.kr")
    assert done.code == 2
    assert "an http or https address is accepted" in done.err
