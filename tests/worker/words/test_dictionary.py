"""A word that a node finds is in snapshots with its parts, and reports hold nothing out for it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from crawling_node import Node

from embedding.kernel.records import Window, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.snapshots.store import SnapshotStore
from embedding.text.config import TextConfig
from embedding.trends.config import TrendsConfig
from embedding.trends.report import build_report

TAILS = ("", "이", "은", "을", "에", "의", "도", "만", "으로", "과", "까지", "보다")
TEXT = TextConfig(tokenizer="kiwi").model_copy(update={"new_words_every": 100})
TEXTS = [(None, f"요즘 김밥맛{tail} {end}") for tail in TAILS for end in ("좋다", "많다", "크다")]
JANUARY, FEBRUARY, MARCH = (datetime(2020, month, 3, tzinfo=UTC) for month in (1, 2, 3))


def test_a_word_found_in_the_stream_is_told_with_its_parts_and_holds_no_other_out(
    tmp_path: Path,
) -> None:
    config = ServerConfig(
        min_count=1,
        min_authors=1,
        min_sources=1,
        window=WindowUnit.MONTH,
        snapshots=str(tmp_path),
        device="cpu",
    )
    with running_server(config, SyncConfig(policy="asp"), dim=4) as server:
        node = Node(server, "n0", text=TEXT)
        manifests = []
        for month in (JANUARY, FEBRUARY, MARCH):
            # January's block finds the word, the next one has it.
            node.read("news", *TEXTS, when=month)
            ref = node.client.cut(Window.holding(month, WindowUnit.MONTH))
            manifests.append(SnapshotStore(str(tmp_path)).open(ref.id).manifest)
        node.client.close()
    snapshot = SnapshotStore(str(tmp_path)).open("latest")
    assert "김밥맛" in snapshot.words
    found = snapshot.phrases["김밥맛"]
    assert found.parts == ("김밥", "맛")
    # January's block held it, February's is the first that reads it as one.
    assert (found.since, found.joined) == (JANUARY.timestamp(), FEBRUARY.timestamp())
    assert found.earlier >= len(TAILS)
    assert len({manifest.tokenizer_digest for manifest in manifests}) == 1
    report = build_report(SnapshotStore(str(tmp_path)), manifests[1].id, TrendsConfig())
    assert "tokenizer_changed" not in [note.code for note in report.notes]
    assert not report.held_out
