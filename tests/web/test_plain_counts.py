"""Every figure of documents and authors that anything tells is a plain count over the texts."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner
from unguarded import unguarded

import yeoron
from embedding.cli import app
from embedding.kernel.records import (
    Calendar,
    Document,
    SnapshotData,
    TokenBlock,
    Window,
    WindowUnit,
    WordCounts,
)
from embedding.server.words.counts import WindowCounts, as_word_counts
from embedding.snapshots.store import SnapshotStore
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from embedding.trends import storage
from embedding.trends.report import build_report
from embedding.web.config import WebConfig
from embedding.worker.corpus.authors import Authors
from embedding.worker.corpus.counting import count_words
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import CorpusDocument
from yeoron_simweb.generated import generate

BORN = "메타버스"
BLOCK = 40
"""Documents of a block: authors write in several of them."""


@dataclass(frozen=True)
class Truth:
    """By month: all documents, those that hold the word, and who wrote these."""

    read: dict[str, int]
    held: dict[str, int]
    authors: dict[str, int]


@dataclass(frozen=True)
class Stores:
    """A store of texts whose authors are known, one of the same texts without, and the truth."""

    signed: Path
    unsigned: Path
    truth: Truth


def texts() -> list[CorpusDocument]:
    config = SimwebConfig(first_day=date(2021, 2, 1), last_day=date(2021, 4, 30))
    return [*generate(config).documents]


def counted(found: list[CorpusDocument]) -> Truth:
    read: dict[str, int] = defaultdict(int)
    held: dict[str, int] = defaultdict(int)
    authors: dict[str, set[tuple[str | None, str]]] = defaultdict(set)
    for one in found:
        month = f"{one.when:%Y-%m}"
        read[month] += 1
        if BORN in one.text.split():
            held[month] += 1
            authors[month].add((one.part, one.author))
    return Truth(read, held, {month: len(who) for month, who in authors.items()})


def spaced(one: CorpusDocument) -> CorpusDocument:
    """The word stands apart from its particles, so that any tokenizer finds it."""
    return replace(one, title="", text=one.text.replace(BORN, f"{BORN} "))


def blocks(found: list[CorpusDocument], *, signed: bool) -> Iterator[TokenBlock]:
    pipeline = TextPipeline(TextConfig(tokenizer="whitespace"))
    by_source: dict[str, list[Document]] = defaultdict(list)
    for at, one in enumerate(found):
        author = one.author if signed else None
        source = str(one.part)
        by_source[source].append(
            Document(
                url=f"https://{source}.example/{at}",
                source=source,
                text=one.text,
                published_at=one.when,
                fetched_at=one.when,
                author=author,
            )
        )
    for own in by_source.values():
        for first in range(0, len(own), BLOCK):
            part = own[first : first + BLOCK]
            yield pipeline.block(part, [0.0] * len(part))


def published(found: list[CorpusDocument], folder: Path, *, signed: bool) -> Path:
    """As nodes and the server count: by block, by id or name, then by window."""
    windows, authors = WindowCounts(lambda ids: []), Authors()
    tokens: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    read: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for block in blocks(found, signed=signed):
        nameless = [np.full(len(block.words), -1)]
        windows.add(count_words([block], nameless, Calendar(WindowUnit.MONTH), authors))
        for at, when in enumerate(block.published.tolist()):
            month = Window.holding(_moment(when), WindowUnit.MONTH).label
            read[month][block.source] += 1
            tokens[month][block.source] += int(np.diff(block.document_tokens())[at])
    store, parent = SnapshotStore(folder / "snapshots"), None
    random = np.random.default_rng(0)
    words: list[str] = []
    for start in windows.windows():
        rows = as_word_counts({start: windows.table(start)})
        window = Window.holding(_moment(start), WindowUnit.MONTH)
        words += sorted({*rows.words} - {*words})
        vectors = random.normal(size=(len(words), 8)).astype(np.float32)
        data = SnapshotData(
            window=window,
            words=[*words],
            ids=np.arange(len(words)),
            counts=_running(words, rows),
            last_seen=np.full(len(words), window.start.timestamp()),
            vectors=vectors,
            contexts=vectors,
            by_source=rows,
            tokens=dict(tokens[window.label]),
            documents=dict(read[window.label]),
            parent=parent,
        )
        parent = store.publish(data).id
    for ref in store.list():
        storage.save(build_report(store, ref.id), folder / "trends")
    return folder


def _moment(when: float) -> datetime:
    return datetime.fromtimestamp(when, UTC)


def _running(words: list[str], rows: WordCounts) -> np.ndarray:
    held: dict[str, int] = defaultdict(int)
    for word, n in zip(rows.words, rows.counts.tolist(), strict=True):
        held[word] += n
    return np.array([held[word] for word in words], dtype=np.int64)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    root, found = tmp_path_factory.mktemp("counts"), [spaced(one) for one in texts()]
    made = {
        name: published(found, root / name, signed=name == "signed")
        for name in ("signed", "unsigned")
    }
    truth = counted(found)
    assert truth.held["2021-04"] > truth.authors["2021-04"] > 5, "some write of it more than once"
    return Stores(made["signed"], made["unsigned"], truth)


Client = Callable[[object], httpx.Client]


@pytest.fixture(scope="module")
def page(stores: Stores, client_of: Client) -> Iterator[httpx.Client]:
    config = WebConfig(snapshots=str(stores.signed / "snapshots"), reports=stores.signed / "trends")
    with client_of(unguarded(config)) as client:
        yield client


def test_a_snapshot_counts_documents_and_their_authors(stores: Stores) -> None:
    truth = stores.truth
    for ref in SnapshotStore(stores.signed / "snapshots").list():
        snapshot = SnapshotStore(stores.signed / "snapshots").open(ref.id)
        month = snapshot.manifest.window.label
        found = [*snapshot.source_counts(BORN).values()]
        assert sum(n for _, n, _ in found) == truth.held.get(month, 0)
        assert sum(n for *_, n in found) == truth.authors.get(month, 0)
        assert sum(snapshot.manifest.documents.values()) == truth.read[month]


def test_the_api_says_what_the_texts_hold(page: httpx.Client, stores: Stores) -> None:
    truth = stores.truth
    for point in page.get(f"/api/word/{BORN}").json()["points"]:
        month = point["label"]
        assert point["documents"] == truth.held.get(month, 0)
        assert point["authors"] == truth.authors.get(month)
        rate = 1000 * truth.held.get(month, 0) / truth.read[month]
        assert point["per_1000_documents"] == pytest.approx(rate)
    report = page.get("/api/report").json()
    (row,) = (row for row in report["born"] if row["word"] == BORN)
    assert (row["documents"], row["authors"]) == (
        truth.held["2021-04"],
        truth.authors["2021-04"],
    )
    assert row["rate"] == pytest.approx(1000 * truth.held["2021-04"] / truth.read["2021-04"], 1e-5)


def test_the_page_and_what_is_handed_out_say_the_same(page: httpx.Client, stores: Stores) -> None:
    documents, authors = stores.truth.held["2021-04"], stores.truth.authors["2021-04"]
    page.headers["accept-language"] = "ko"
    html = page.get(f"/word/{BORN}").text
    assert f"가운데 {documents}건이 이 말을 썼습니다" in html
    assert f"글쓴이는 {authors}명입니다." in html
    assert f"{documents} <small>글쓴이 {authors}명</small>" in html
    last = SnapshotStore(stores.signed / "snapshots").list()[-1].id
    for text in (page.get("/").text, page.get(f"/window/{last}/report.html").text):
        assert f"문서 {documents}건" in text
        assert f"글쓴이는 {authors}명입니다." in text
    one = page.get("/?source=board").text
    assert "글쓴이는" not in one, "who wrote of it is not known by source"
    assert "고른 출처만의 것입니다" in one


def test_a_source_alone_has_its_own_figures(page: httpx.Client, stores: Stores) -> None:
    own = [spaced(one) for one in texts() if one.part == "board"]
    truth = counted(own)
    page.headers["accept-language"] = "ko"
    html = page.get("/?source=board").text
    assert f"문서 {truth.read['2021-04']}건" in html
    assert f"4월 문서 {truth.held['2021-04']}건" in html
    assert f"문서 {stores.truth.held['2021-04']}건" not in html


def test_the_command_and_python_say_the_same(stores: Stores) -> None:
    truth, uri = stores.truth, str(stores.signed / "snapshots")
    run = CliRunner().invoke(app, ["trends", "word", BORN, "--snapshots", uri, "--json"])
    for point in json.loads(run.stdout)["points"]:
        assert point["documents"] == truth.held.get(point["label"], 0)
        assert point["authors"] == truth.authors.get(point["label"])
    lines = CliRunner().invoke(app, ["trends", "born", "--snapshots", uri, "--csv"]).stdout
    (row,) = (row for row in csv.DictReader(io.StringIO(lines)) if row["word"] == BORN)
    assert row["documents"] == str(truth.held["2021-04"])
    assert row["authors"] == str(truth.authors["2021-04"])
    for found in (yeoron.open(uri).word(BORN).history()[-1], yeoron.open(uri).born()[0]):
        assert found["documents"] == truth.held["2021-04"]
        assert found["authors"] == truth.authors["2021-04"]


def test_a_new_word_is_new_everywhere(page: httpx.Client, stores: Stores) -> None:
    uri = str(stores.signed / "snapshots")
    page.headers["accept-language"] = "ko"
    assert page.get("/api/since", params={"w": BORN}).json()["kind"] == "born"
    assert "2021년 4월에 새로 떠오름" in page.get(f"/word/{BORN}").text
    word = yeoron.open(uri).word(BORN)
    assert (word.born, word.changed) == ("2021-04", None)
    assert BORN in [row["word"] for row in yeoron.open(uri).born() if row["significant"]]
    told = CliRunner().invoke(app, ["trends", "word", BORN, "--snapshots", uri]).stdout
    assert "New in 2021-04" in " ".join(told.split())
    stories = page.get("/api/stories").json()["stories"]
    assert BORN in [one["word"] for story in stories for one in story["words"]]


def test_texts_without_authors_tell_documents_only(stores: Stores, client_of: Client) -> None:
    config = WebConfig(
        snapshots=str(stores.unsigned / "snapshots"), reports=stores.unsigned / "trends"
    )
    with client_of(unguarded(config)) as client:
        client.headers["accept-language"] = "ko"
        html = client.get(f"/word/{BORN}").text
        points = client.get(f"/api/word/{BORN}").json()["points"]
    assert f"가운데 {stores.truth.held['2021-04']}건이" in html
    assert "글쓴이" not in html
    assert [point["authors"] for point in points] == [None] * len(points)


def test_chosen_days_are_shown_as_whole_windows(page: httpx.Client) -> None:
    page.headers["accept-language"] = "ko"
    html = page.get("/?from=2021-04-01&to=2021-04-15").text
    assert "2021년 4월 전체로 보여 드립니다." in html
    assert "2021년 4월 15일" not in html
