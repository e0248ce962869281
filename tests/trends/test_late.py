"""Words that one window is too little for are called with the next one, since the first."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from embedding.show.columns import as_json, ranking_csv
from embedding.trends import storage
from embedding.trends.config import TrendsConfig
from embedding.trends.moved import just_short
from embedding.trends.report import build_report
from embedding.trends.rows import TrendReport, word_change

sys.path.insert(0, str(Path(__file__).parent))

from texts import COMMON, TOPICS, Text, make, usual

CONFIG = TrendsConfig(min_count=5)
CHANGED = TOPICS[0][3]
DAYS = 6
SINCE = DAYS - 2


def stream(seed: int, documents: int) -> list[list[Text]]:
    """Days of text; from SINCE on so many documents a day use CHANGED among words of a topic of
    which it is none."""
    random = np.random.default_rng(seed)
    days = [usual(random, 700) for _ in range(DAYS)]
    for day in days[SINCE:]:
        for _ in range(documents):
            words = [*random.choice(TOPICS[1], 5), *random.choice(COMMON, 8), CHANGED]
            words = [str(one) for one in random.permutation(words)]
            day.append(Text(words, int(random.integers(1 << 40))))
    return days


def reports(folder: Path, days: list[list[Text]], saved: Path | None) -> list[TrendReport]:
    """Of the last two days, the second with what was saved of the first."""
    store, found = make(folder / "store", days), []
    for ref in store.list()[SINCE:]:
        found.append(build_report(store, ref.id, CONFIG, saved))
        if saved is not None:
            storage.save(found[-1], saved)
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> list[TrendReport]:
    folder = tmp_path_factory.mktemp("late")
    return reports(folder, stream(3, 6), folder / "trends")


def moved(report: TrendReport) -> dict[str, str | None]:
    return {row.word: row.since for row in report.significant("moved")}


def test_a_small_change_is_called_a_window_late_and_since_its_own(told) -> None:
    assert moved(told[0]) == {}
    assert CHANGED in just_short(told[0].scores)
    assert moved(told[1]) == {CHANGED: told[0].snapshot.label}


def test_a_late_call_carries_its_evidence_from_both_windows(told) -> None:
    row = next(row for row in told[1].moved if row.word == CHANGED)
    assert row.significant
    assert row.q <= CONFIG.false_discovery
    assert row.shift_low < row.shift < row.shift_high
    assert row.support is not None
    scores = told[1].scores.of([CHANGED])[CHANGED]
    assert scores["significant"]
    assert scores["q"] == pytest.approx(row.q, rel=1e-3)


def test_every_door_says_since_when(told) -> None:
    since = told[0].snapshot.label
    assert word_change(CHANGED, told).since == since
    rows = json.loads(as_json(told[1].moved))
    assert f'"since": "{since}"' in json.dumps(rows)
    lines = csv.DictReader(io.StringIO(ranking_csv(told[1].moved)))
    assert next(line for line in lines if line["word"] == CHANGED)["since"] == since


def test_what_was_called_in_its_window_is_not_called_late(tmp_path) -> None:
    found = reports(tmp_path, stream(3, 25), tmp_path / "trends")
    assert moved(found[0]) == {CHANGED: found[0].snapshot.label}
    assert moved(found[1]) == {}


def test_without_the_report_before_nothing_is_called_late(tmp_path) -> None:
    assert moved(reports(tmp_path, stream(3, 6), None)[1]) == {}


def test_what_does_not_last_is_not_called_late(tmp_path) -> None:
    days = stream(3, 6)
    days[-1] = usual(np.random.default_rng(9), 700)
    found = reports(tmp_path, days, tmp_path / "trends")
    assert CHANGED in just_short(found[0].scores)
    assert moved(found[1]) == {}
