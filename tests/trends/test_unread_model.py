"""A model that cannot be read yet takes no word away from those that documents judge."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from fastapi import Depends
from fastapi.testclient import TestClient

from embedding.snapshots.store import SnapshotStore
from embedding.trends import moved as ranking
from embedding.trends.config import TrendsConfig
from embedding.trends.estimators import ESTIMATORS
from embedding.trends.report import build_report
from embedding.trends.rows import TrendReport
from embedding.web.app import create_app
from embedding.web.config import WebConfig

sys.path.insert(0, str(Path(__file__).parent))

from texts import COMMON, TOPICS, Text, make, usual

CHANGED = TOPICS[0][3]
COLLAPSED = {"mean_cosine": 0.99, "first_axis": 0.98, "words_read": 9_400.0}
CONFIG = TrendsConfig(min_count=5)


def store_of(folder: Path, quality: dict[str, float]) -> SnapshotStore:
    """Five days; on the last one many documents use CHANGED among words of another topic."""
    random = np.random.default_rng(3)
    days = [usual(random, 700) for _ in range(5)]
    for _ in range(25):
        words = [*random.choice(TOPICS[1], 5), *random.choice(COMMON, 8), CHANGED]
        days[-1].append(Text([str(one) for one in words], int(random.integers(1 << 40))))
    return make(folder, days, quality)


@pytest.fixture(scope="module")
def unread(tmp_path_factory: pytest.TempPathFactory) -> SnapshotStore:
    return store_of(tmp_path_factory.mktemp("unread"), COLLAPSED)


@pytest.fixture(scope="module")
def report(unread: SnapshotStore) -> TrendReport:
    return build_report(unread, config=CONFIG)


def test_what_documents_say_is_called_as_with_a_model_that_can_be_read(
    report: TrendReport, tmp_path: Path
) -> None:
    known = build_report(store_of(tmp_path, {}), config=CONFIG)
    assert [row.word for row in report.significant("moved")] == [CHANGED]
    assert report.ranked["moved"] == known.ranked["moved"] > 50
    for row, other in zip(report.moved, known.moved, strict=True):
        assert (row.word, row.z, row.p, row.q, row.shift) == (
            *(other.word, other.z, other.p, other.q, other.shift),
        )


def test_no_figure_comes_from_vectors_that_cannot_be_read(report: TrendReport) -> None:
    for row in report.moved:
        assert row.figures
        assert all(ESTIMATORS.traits(name).needs_usage for name in row.figures)
        assert row.neighbours == row.neighbours_before == ()


def test_the_note_says_what_is_missing_and_what_is_not(report: TrendReport) -> None:
    notes = {note.code: note for note in report.notes}
    assert "unread_model" not in notes
    assert "about 41,000 more words are needed" in notes["unread_vectors"].text
    assert "No word is compared" not in notes["unread_vectors"].text


def test_an_estimator_that_reads_vectors_compares_nothing(unread: SnapshotStore) -> None:
    report = build_report(unread, config=CONFIG.model_copy(update={"estimator": "procrustes"}))
    assert report.moved == ()
    assert "unread_model" in {note.code for note in report.notes}


@pytest.mark.parametrize(
    ("language", "sentence"),
    [("en", "told by how documents used the words"), ("ko", "문서에서 쓰인 방식으로")],
)
def test_the_page_names_the_word_and_says_how_it_knows(
    unread: SnapshotStore, language: str, sentence: str
) -> None:
    app = create_app(
        WebConfig(snapshots=unread.uri, trends=CONFIG), dependencies=[Depends(lambda: None)]
    )
    with TestClient(app) as client:
        spoken = {"accept-language": language}
        # 202: the report is not made yet; a request waits for it for some seconds.
        while (answer := client.get("/", headers=spoken)).status_code == 202:
            pass
    assert answer.status_code == 200
    assert sentence in answer.text
    assert CHANGED in answer.text


def test_words_held_out_are_looked_for_once_a_report(
    unread: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(ranking, "held_out_of", lambda material: asked.append(material) or set())
    build_report(unread, config=CONFIG)
    assert asked == [], "the report hands them in"
