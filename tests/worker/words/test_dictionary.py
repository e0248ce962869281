"""A change of the dictionary on a node is seen in the manifests of snapshots and by trends."""

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
TEXT = TextConfig(tokenizer="kiwi", new_words_every=100)
TEXTS = [(None, f"요즘 김밥맛{tail} {end}") for tail in TAILS for end in ("좋다", "많다", "크다")]
JANUARY, FEBRUARY, MARCH = (datetime(2020, month, 3, tzinfo=UTC) for month in (1, 2, 3))


def test_a_word_found_in_the_stream_changes_the_digest_of_the_next_snapshot(
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
    assert "김밥맛" in SnapshotStore(str(tmp_path)).open("latest").words
    digests = [manifest.tokenizer_digest for manifest in manifests]
    assert digests[0] != digests[1], "the word was found between them"
    assert all(digests)
    report = build_report(SnapshotStore(str(tmp_path)), manifests[1].id, TrendsConfig())
    assert "tokenizer_changed" in [note.code for note in report.notes]
