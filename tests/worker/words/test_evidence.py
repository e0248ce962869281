"""What a node notes of where words were read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow.parquet as pq

from embedding.kernel.records import TokenBlock
from embedding.snapshots.evidence import EvidenceStore
from embedding.worker.words.evidence import EvidenceKeeper

DAY = datetime(2020, 2, 3, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)


def block(keys: list[str], words=("마스크", "공장", "드문말")) -> TokenBlock:
    return TokenBlock.build(
        "뉴스",
        [[list(words)] for _ in keys],
        published=[DAY.timestamp() + 60.0 * at for at in range(len(keys))],
        keys=keys,
    )


def ids(one: TokenBlock, unknown: str = "드문말") -> np.ndarray:
    return np.array([-1 if word == unknown else at for at, word in enumerate(one.words)])


def test_words_with_a_row_lead_to_addresses_and_others_to_none(tmp_path):
    keeper = EvidenceKeeper(tmp_path, "node-1")
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


def test_what_two_nodes_read_twice_counts_once(tmp_path):
    one = block([f"https://news.example/{n}" for n in range(40)])
    for node in ("node-1", "node-2"):
        keeper = EvidenceKeeper(tmp_path, node)
        keeper.read([one], [ids(one)])
        keeper.write()
    assert len(EvidenceStore(tmp_path).find("마스크", DAY, NEXT, n=99)) == 3


def test_a_place_that_cannot_be_written_stops_nothing(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    keeper = EvidenceKeeper(tmp_path / "file", "node-1")
    one = block(["https://news.example/1"])
    keeper.read([one], [ids(one)])
    keeper.write()
    assert "were not kept" in caplog.text


def test_no_documents_no_file(tmp_path):
    keeper = EvidenceKeeper(tmp_path, "node-1")
    one = block(["a file"])
    keeper.read([one], [ids(one)])
    keeper.write()
    assert list(tmp_path.iterdir()) == []


def test_addresses_are_those_of_pages_not_of_single_comments(tmp_path):
    keeper = EvidenceKeeper(tmp_path, "node-1")
    page = "https://board.example/p/1"
    keeper.read([one := block([f"{page}#comment-{n}" for n in range(40)])], [ids(one)])
    keeper.write()
    store = EvidenceStore(tmp_path)
    assert [found.url for found in store.find("마스크", DAY, NEXT, n=99)] == [page]
    held = [path.read_bytes() for path in tmp_path.rglob("*.parquet")]
    assert held
    assert not any(b"#comment" in each for each in held)
    # A page with many comments counts as one document of the word's sample.
    tables = [pq.read_table(path, partitioning=None) for path in tmp_path.rglob("*.parquet")]
    assert sum(table.num_rows for table in tables) == 2
