"""Why a word moved: the contexts that its snapshot names, in the report and where it is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from embedding.show.terminal import ranking_table
from embedding.snapshots.pulls import ContextPulls
from embedding.snapshots.store import SnapshotStore
from embedding.trends import storage
from embedding.trends.moved import pulling
from embedding.trends.report import build_report
from embedding.trends.rows import ContextPull, TrendReport


@pytest.fixture(scope="module")
def told(store, planted, tmp_path_factory) -> tuple[SnapshotStore, TrendReport, str]:
    """The stream again, with contexts of a word that moves and of one that does not."""
    plain = build_report(store)
    moved = plain.significant("moved")[0].word
    again, parent = SnapshotStore(tmp_path_factory.mktemp("told")), None
    windows = list(planted.stream(planted.Plan()))
    for data in windows:
        pulled = None
        if data is windows[-1]:
            words = np.array([data.words.index(moved)] * 3 + [0])
            places = np.argsort(words, kind="stable")
            contexts = np.array([3, 4, 5, 6])[places]
            figures = np.array(
                [[0.1, 0.4, 0.7], [0.5, 0.2, 0.4], [0.1, 0.2, -0.1], [0, 1, 1]], np.float32
            )[places]
            pulled = ContextPulls(words[places], contexts, *figures.T)
        parent = again.publish(replace(data, parent=parent), None, pulled).id
    return again, build_report(again), moved


def test_a_called_word_says_what_pulled_it_and_others_do_not(told):
    again, report, moved = told
    row = next(row for row in report.moved if row.word == moved)
    words = again.open().words
    assert [(one.word, round(one.share, 3)) for one in row.contexts] == [
        (words[3], 0.7),
        (words[4], 0.4),
        (words[5], -0.1),
    ]
    assert row.pulled_by() == ((words[3],), (words[4],))
    assert all(one.contexts == () for one in report.moved if not one.significant)
    assert pulling(again.open(), "없는 낱말") == ()


def test_it_is_kept_with_the_report(told, tmp_path):
    _, report, moved = told
    storage.save(report, tmp_path)
    back = storage.load(tmp_path, report.snapshot.id)
    mine, theirs = (
        next(row for row in one.moved if row.word == moved).contexts for one in (report, back)
    )
    assert [one.word for one in mine] == [one.word for one in theirs]
    assert isinstance(theirs[0], ContextPull)
    assert theirs[0].share == pytest.approx(mine[0].share, abs=1e-5)


def test_the_table_says_what_stands_beside_a_word_more_and_less(told):
    again, report, _ = told
    console = Console(width=200, record=True)
    console.print(ranking_table(report, "moved", 10))
    words = again.open().words
    assert f"+ {words[3]}  − {words[4]}" in console.export_text()
    bare = replace(report, moved=tuple(replace(row, contexts=()) for row in report.moved))
    console.print(ranking_table(bare, "moved", 10))
    assert " − " not in console.export_text()
