"""What a whole home gives back of single documents to whoever reads all of its files."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embedding.crawl.config import CrawlConfig
from embedding.kernel.config import WITH_SECRETS
from embedding.snapshots.evidence import NAMING_WORDS
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.spec import NodeSpec
from onenode import MODEL, RUN, serving, sources, windows
from waiting import until
from yeoron_simweb.testing import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SYLLABLES = "가나다라마바사아자차카타파하거너더러머버"
VOCABULARY = [f"말{a}{b}" for a in SYLLABLES for b in SYLLABLES]
PER_DOCUMENT = 25
N_DOCUMENTS = 80
CHANCE = 5
"""Words of a group that may lie in one document by chance: six of 25 in 400 do so once in 10^7."""


def documents() -> list[dict[str, Any]]:
    """Two days of two sources, of each twenty documents a day."""
    draw = random.Random(3)
    return [
        {
            "date": f"2020-02-{1 + i // 40:02d}T{i % 20:02d}:{i % 40:02d}:00+00:00",
            "title": "",
            "text": " ".join(draw.sample(VOCABULARY, PER_DOCUMENT)) + ".",
            "author": f"글쓴이{i}",
            "part": ("politics", "comments")[i % 2],
        }
        for i in range(N_DOCUMENTS)
    ]


def test_no_file_of_a_home_gives_back_more_than_a_few_words_of_a_document(
    tmp_path: Path,
) -> None:
    home, read = tmp_path / "home", documents()
    home.mkdir()
    with serving(tmp_path) as server, running(None, read) as base:
        spec = NodeSpec(
            name="n0",
            server=server.location,
            sources=sources(base),
            crawl=CrawlConfig(
                frontier=f"sqlite:///{home / 'frontier.db'}",
                allow_private_hosts=(base.removeprefix("http://"),),
                rate=200.0,
            ).model_copy(update={"near_window": 0, "dedupe_min_chars": 10_000}),
            text=TextConfig(tokenizer="whitespace"),
            model=MODEL,
            node=NodeConfig(flush_seconds=0.2).model_copy(
                update={"batch_seconds": 0.1, "report_seconds": 0.2}
            ),
            evidence=home / "evidence",
        )
        node = subprocess.Popen(
            [sys.executable, "-c", RUN, spec.model_dump_json(context=WITH_SECRETS)]
        )
        try:
            until(lambda: node.poll() is None and server.state.meters.documents == N_DOCUMENTS)
            node.send_signal(signal.SIGTERM)
            assert node.wait(90) == 0
        finally:
            node.kill()
            node.wait(30)
        server.snapshotter.cut(windows(server)[0])
    tables = list(every_table(tmp_path))
    names = {name for name, _ in tables}
    assert {"parquet", "arrow", "db", "json"} <= {name.rpartition(".")[2] for name in names}
    evidence = [row for name, rows in tables if "evidence" in name for row in rows]
    assert {row["source"] for row in evidence} == {"feed", "comments"}
    assert not [row for row in evidence if row["source"] == "comments" and row["url"]]
    assert [row for row in evidence if row["source"] == "feed" and row["url"]]
    groups = list(every_group(tables))
    for document in read:
        words = set(document["text"].strip(".").split())
        best = max(groups, key=lambda group: given_back(group, words))
        most = CHANCE if document["part"] == "comments" else NAMING_WORDS
        assert given_back(best, words) <= most, (best, document)


def test_an_attacker_finds_the_words_of_a_document_where_they_are_linked() -> None:
    """The look itself: rows that share a time to the second are one document."""
    rows = [
        {"word": word, "source": "s", "published": 100 + at}
        for at in range(3)
        for word in VOCABULARY[20 * at : 20 * at + 20]
    ]
    groups = list(every_group([("t", rows)]))
    assert max(given_back(group, set(VOCABULARY[:20])) for group in groups) == 20


def given_back(group: frozenset[str], words: set[str]) -> int:
    """How many words of a document a group gives back; a group of many documents gives none."""
    right = len(group & words)
    return right if right >= 0.8 * len(group) else 0


def every_table(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each table of each file that can be read as one, and each list in JSON as a table."""
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".parquet":
            yield name, pq.read_table(path, partitioning=None).to_pylist()
        elif path.suffix == ".arrow":
            with pa.memory_map(str(path)) as source:
                yield name, pa.ipc.open_file(source).read_all().to_pylist()
        elif path.suffix == ".db":
            with closing(sqlite3.connect(path)) as database:
                database.row_factory = sqlite3.Row
                tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                for (table,) in tables.fetchall():
                    yield name, [dict(row) for row in database.execute(f'SELECT * FROM "{table}"')]
        elif path.suffix == ".json" and path.is_file():
            yield name, [{"whole": strings(json.loads(path.read_text(encoding="utf-8")))}]


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return strings([*value.keys(), *value.values()])
    if isinstance(value, list):
        return [found for each in value for found in strings(each)]
    return [value] if isinstance(value, str) else []


def every_group(tables: list[tuple[str, list[dict[str, Any]]]]) -> Iterator[frozenset[str]]:
    """The words of all rows that agree in one, two or three columns, of every table."""
    known = set(VOCABULARY)
    for _, rows in tables:
        columns = list(rows[0]) if rows else []
        held = [known & set(strings(list(row.values()))) for row in rows]
        for n in (1, 2, 3):
            for chosen in combinations(columns, n):
                groups: dict[tuple[str, ...], set[str]] = defaultdict(set)
                for row, words in zip(rows, held, strict=True):
                    groups[tuple(str(row[name]) for name in chosen)] |= words
                yield from (frozenset(group) for group in groups.values() if group)
