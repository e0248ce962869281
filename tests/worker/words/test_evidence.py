"""What a node notes of where words were read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.snapshots.evidence import NAMING_WORDS, EvidenceStore
from embedding.worker.words.evidence import EvidenceKeeper

DAY = datetime(2020, 2, 3, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)


def block(keys: list[str], words=("마스크", "공장", "드문말"), inline: bool = False) -> TokenBlock:
    found = TokenBlock.build(
        "뉴스",
        [[list(words)] for _ in keys],
        published=[DAY.timestamp() + 60.0 * at for at in range(len(keys))],
        keys=keys,
    )
    return replace(found, inline=np.full(len(keys), inline, dtype=np.int8))


def rows(folder: Path) -> list[dict]:
    tables = [pq.read_table(path, partitioning=None) for path in folder.rglob("*.parquet")]
    return [row for table in tables for row in table.to_pylist()]


def ids(one: TokenBlock, unknown: str = "드문말") -> np.ndarray:
    return np.array([-1 if word == unknown else at for at, word in enumerate(one.words)])


def test_words_with_a_row_lead_to_addresses_and_others_to_none(tmp_path):
    keeper = EvidenceKeeper(tmp_path, "node-1", Calendar(WindowUnit.DAY))
    one = block([f"https://news.example/{n}" for n in range(9)] + ["line 7 of a file"])
    keeper.read([one], [ids(one)])
    keeper.write()
    store = EvidenceStore(tmp_path)
    found = store.find("마스크", DAY, NEXT)
    assert len(found) == 3
    assert all(e.url.startswith("https://news.example/") and e.source == "뉴스" for e in found)
    assert store.find("드문말", DAY, NEXT) == []
    # Each word has a sample of its own: no document is listed with all its words.
    assert {e.url for e in found} != {e.url for e in store.find("공장", DAY, NEXT)}


def test_what_a_node_reads_twice_counts_once(tmp_path):
    one = block([f"https://news.example/{n}" for n in range(40)])
    keeper = EvidenceKeeper(tmp_path, "node-1", Calendar(WindowUnit.DAY))
    for _ in range(2):
        keeper.read([one], [ids(one)])
        keeper.write()
    store = EvidenceStore(tmp_path)
    assert len(store.find("마스크", DAY, NEXT, n=99)) == 3
    (counted,) = store.days(["마스크"], DAY, NEXT)
    assert counted.documents == 40


@pytest.mark.parametrize("known", [range(40), range(0, 40, 2)])
def test_a_document_names_its_address_for_eight_words_whenever_they_get_a_row(tmp_path, known):
    """The words are chosen among all; a document read again after a kill names no others."""
    words = [f"낱말{at}" for at in range(40)]
    one = block(["https://news.example/1"], words)
    for rows_known in (known, range(40)):
        keeper = EvidenceKeeper(tmp_path, "node-1", Calendar(WindowUnit.DAY))
        keeper.read([one], [np.array([at if at in rows_known else -1 for at in range(40)])])
        keeper.write()
    found = rows(tmp_path)
    assert {row["word"] for row in found} == set(words)
    assert len({row["word"] for row in found if row["url"]}) == NAMING_WORDS
    assert {row["published"] for row in found} == {DAY.timestamp()}


def test_hashes_of_one_document_are_not_found_by_its_address(tmp_path):
    """Under another key they are all others, and so they are for who has no key."""
    one = block(["https://news.example/1"], [f"낱말{at}" for at in range(40)])
    for node in ("node-1", "node-2"):
        keeper = EvidenceKeeper(tmp_path, node, Calendar(WindowUnit.DAY))
        keeper.read([one], [np.arange(40)])
        keeper.write()
    hashes = [row["hash"] for row in rows(tmp_path)]
    assert len(set(hashes)) == 80


def test_a_place_that_cannot_be_written_stops_nothing(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    keeper = EvidenceKeeper(tmp_path / "file", "node-1", Calendar(WindowUnit.DAY))
    one = block(["https://news.example/1"])
    keeper.read([one], [ids(one)])
    keeper.write()
    assert "were not kept" in caplog.text


def test_no_documents_no_file(tmp_path):
    keeper = EvidenceKeeper(tmp_path, "node-1", Calendar(WindowUnit.DAY))
    one = block(["a file"])
    keeper.read([one], [ids(one)])
    keeper.write()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("inline", [False, True])
def test_addresses_are_those_of_pages_and_none_of_comments(tmp_path, inline):
    keeper = EvidenceKeeper(tmp_path, "node-1", Calendar(WindowUnit.DAY))
    page = "https://board.example/p/1"
    one = block([f"{page}#comment-{n}" for n in range(40)], inline=inline)
    keeper.read([one], [ids(one)])
    keeper.write()
    found = rows(tmp_path)
    # A page with many comments counts as one document of the word's sample.
    assert sorted(row["word"] for row in found) == ["공장", "마스크"]
    assert {row["url"] for row in found} == {"" if inline else page}
