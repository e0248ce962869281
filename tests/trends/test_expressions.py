"""Phrases in reports: born once, dated by their first document, and their parts not beside them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from rich.console import Console

from embedding.kernel.records import Phrase, SnapshotData, Window, WindowUnit, WordCounts
from embedding.show.terminal import ranking_title, word_table
from embedding.snapshots.store import SnapshotStore
from embedding.trends.history import word_history
from embedding.trends.report import build_report
from embedding.trends.rows import TrendReport
from embedding.web.findings import headline_sentence, row_sentences
from embedding.web.text import PageText
from embedding.web.wordview import history_sentences

EN = PageText("en")
SOURCE, READ = "글판", 1000
USUAL = [f"말{i}" for i in range(80)]
DAY = 86_400


def start(month: int) -> int:
    window = Window.holding(datetime(2001, month + 1, 5, tzinfo=UTC), WindowUnit.MONTH)
    return int(window.start.timestamp())


def phrase(word: str, parts: str, since: float, joined: float, earlier: int) -> Phrase:
    return Phrase(word, tuple(parts.split()), since, joined, earlier)


def report(folder: str, use: dict[str, list[int]], *phrases: Phrase) -> TrendReport:
    return build_report(store(folder, use, *phrases))


def store(folder: str, use: dict[str, list[int]], *phrases: Phrase) -> SnapshotStore:
    """A window for each entry of `use`: documents that hold the word; usual words hold 50 each."""
    snapshots, parent = SnapshotStore(folder), None
    rng = np.random.default_rng(0)
    for at in range(len(next(iter(use.values())))):
        held = {**{w: int(rng.poisson(50)) for w in USUAL}, **{w: n[at] for w, n in use.items()}}
        held = {word: n for word, n in held.items() if n}
        words, n = list(held), len(held)
        window = Window.holding(datetime(2001, at + 1, 5, tzinfo=UTC), WindowUnit.MONTH)
        counts = np.array(list(held.values()))
        vectors = rng.normal(size=(n, 8)).astype(np.float32)
        data = SnapshotData(
            window=window,
            words=words,
            ids=np.array([[*USUAL, *use].index(word) for word in words]),
            counts=counts,
            last_seen=np.full(n, window.start.timestamp()),
            vectors=vectors,
            contexts=vectors,
            by_source=WordCounts(words, [SOURCE] * n, np.full(n, start(at)), counts, counts),
            tokens={SOURCE: 10 * READ},
            documents={SOURCE: READ},
            parent=parent,
            phrases=[each for each in phrases if each.word in words],
        )
        parent = snapshots.publish(data).id
    return snapshots


def words(rows) -> list[str]:
    return [row.word for row in rows]


def sure(rows) -> list[str]:
    return [row.word for row in rows if row.significant]


def test_a_phrase_is_born_once_and_its_parts_are_not_listed_beside_it(tmp_path):
    use = {
        "우한폐렴": [0, 0, 0, 0, 60],
        "우한": [0, 0, 0, 0, 30],  # a word of its own, though less than within the phrase
        "폐렴": [10, 9, 11, 10, 65],
        "대구": [0, 0, 0, 0, 70],
    }
    late = phrase("우한폐렴", "우한 폐렴", start(4) + DAY, start(4) + 2 * DAY, 20)
    found = report(str(tmp_path), use, late)
    assert sure(found.born) == ["우한폐렴", "대구"]
    assert "우한" not in words(found.born)
    assert "폐렴" not in words(found.risen)
    row = next(row for row in found.born if row.word == "우한폐렴")
    assert row.parts == ("우한", "폐렴")
    assert TrendReport.from_dict(found.to_dict()).born[0].parts == row.parts
    # Without the phrase the same counts make words of the parts.
    apart = report(str(tmp_path / "apart"), {**use, "우한폐렴": [0] * 5})
    assert sure(apart.born) == ["대구", "우한"]
    assert "폐렴" in sure(apart.risen)


def test_a_part_that_came_up_by_more_than_the_phrase_stays(tmp_path):
    use = {"공적마스크": [0, 0, 0, 0, 30], "마스크": [10, 9, 11, 10, 200]}
    one = phrase("공적마스크", "공 마스크", start(4), start(4), 0)
    found = report(str(tmp_path), use, one)
    assert sure(found.born) == ["공적마스크"]
    assert "마스크" in sure(found.risen)


def test_documents_of_the_window_from_before_it_was_joined_count_for_its_birth(tmp_path):
    use = {"온라인개학": [0, 0, 0, 0, 4]}
    assert report(str(tmp_path / "a"), use).born == ()  # four documents are too few
    late = phrase("온라인개학", "온라인 개학", start(4) + DAY, start(4) + 9 * DAY, 12)
    (row,) = report(str(tmp_path / "b"), use, late).born
    assert row.significant
    # Of the window before, they speak against a birth in this one.
    before = replace(late, since=float(start(3)))
    (row,) = report(str(tmp_path / "c"), use, before).born
    assert not row.significant


def test_a_phrase_written_before_its_window_is_not_said_to_appear_first_in_it(tmp_path):
    late = phrase("코로나사태", "코로나 사태", start(3) + DAY, start(4) + DAY, 3)
    for at, (one, before) in enumerate([(late, True), (replace(late, since=late.joined), False)]):
        found = report(str(tmp_path / str(at)), {"코로나사태": [0, 0, 0, 0, 60]}, one)
        (row,) = found.born
        assert (row.significant, row.written_before) == (True, before)
        (said,) = row_sentences("born", row, found, EN)
        assert ("Up to April 2001 no document had it." in said) != before
        assert ("written before, too, and read as 코로나, 사태." in said) == before
        assert ("first appeared" in headline_sentence("born", row, found, EN)) != before


@pytest.mark.parametrize("since", [0.0, float(start(0) + DAY)])
def test_a_phrase_written_since_the_oldest_window_is_not_born_nor_risen(tmp_path, since):
    use = {"국민청원": [0, 0, 0, 0, 90], "국민": [300, 310, 290, 300, 220]}
    old = phrase("국민청원", "국민 청원", since, start(4) + DAY, 40)
    found = report(str(tmp_path), use, old)
    assert found.born == ()
    assert "국민청원" not in words(found.risen)
    assert "국민" not in words(found.fallen)  # the phrase took what it lacks
    assert "국민" in sure(report(str(tmp_path / "apart"), use).fallen)


def test_a_part_that_went_down_by_more_than_the_phrase_took_is_listed(tmp_path):
    use = {"국민청원": [0, 0, 0, 0, 20], "국민": [300, 310, 290, 300, 100]}
    found = report(str(tmp_path), use, phrase("국민청원", "국민 청원", 0.0, start(4) + DAY, 40))
    assert sure(found.fallen) == ["국민"]


def test_a_history_says_how_a_phrase_was_read_before(tmp_path):
    one = phrase("우한폐렴", "우한 폐렴", start(1), start(1), 0)
    snapshots = store(str(tmp_path), {"우한폐렴": [0, 20, 30]}, one)
    history = word_history(snapshots, "우한폐렴")
    assert history.parts == ("우한", "폐렴")
    assert any("read as 우한, 폐렴;" in said for said in history_sentences(history, EN))
    console = Console(width=120, record=True, file=None)
    with console.capture() as shown:
        console.print(word_table(history))
    assert "Read before as: 우한 · 폐렴." in " ".join(shown.get().split())
    with console.capture() as shown:
        console.print(word_table(word_history(snapshots, USUAL[0])))
    assert "Read before" not in shown.get()


def test_a_title_names_the_windows_that_rates_are_compared_with(tmp_path):
    found = report(str(tmp_path), {"마스크": [10, 10, 10, 10, 90]})
    assert ranking_title(found, "moved") == "moved · 2001-05 against 2001-04"
    three = "risen · 2001-05 against the 3 windows before, taken together"
    assert ranking_title(found, "risen") == three
    between = replace(found, baseline=found.baseline[-1:])
    assert ranking_title(between, "risen") == "risen · 2001-05 against 2001-04"
