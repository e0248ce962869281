"""Poisoned text and windows that say nothing, from the documents to the report."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from embedding.cli import app
from embedding.show.terminal import ranking_table
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import BUSIEST_FILE, USAGE
from embedding.trends.config import TrendsConfig
from embedding.trends.copies import _once, counted_once
from embedding.trends.frequency import Frequency
from embedding.trends.report import build_report
from embedding.trends.rows import RANKINGS, TrendReport
from embedding.web import brief
from embedding.web.text import PageText

sys.path.insert(0, str(Path(__file__).parent))

from texts import TOPICS, Text, make, usual

from embedding.snapshots import erasing

LOUD = TOPICS[0][3]
PASTED = ["광고", *TOPICS[1][:4], "대박", "수익", *TOPICS[2][:3], "보장", "지금", "바로"]


def days(random: np.random.Generator, n: int = 4) -> list[list[Text]]:
    return [usual(random, 700) for _ in range(n)]


def called(report: TrendReport) -> dict[str, list[str]]:
    found = {name: [row.word for row in report.significant(name)] for name in RANKINGS}
    return {name: words for name, words in found.items() if words}


def note(report: TrendReport, code: str) -> str:
    return next((one.text for one in report.notes if one.code == code), "")


def on_the_page(report: TrendReport, code: str) -> list[str]:
    """The note in both languages."""
    notes = [one for one in report.notes if one.code == code]
    return [
        sentence
        for language in ("en", "ko")
        for sentence in brief.say(notes, report.snapshot.label, PageText(language, "day"))
    ]


def pasted(random: np.random.Generator, *, alike: bool) -> list[Text]:
    """A thousand accounts write these words, the same text or each its own."""
    found = []
    for _ in range(1000):
        words = PASTED if alike else [str(one) for one in random.choice(PASTED, 9)]
        found.append(Text(words, int(random.integers(1 << 40))))
    return found


def test_nothing_is_called_where_nothing_happens(tmp_path) -> None:
    report = build_report(make(tmp_path, days(np.random.default_rng(1))))
    assert called(report) == {}
    assert report.notes == ()
    assert report.ranked["moved"] > 250


@pytest.mark.parametrize("documents", [1, 10_000])
def test_one_author_who_writes_a_word_ten_thousand_times_calls_nothing(tmp_path, documents) -> None:
    random = np.random.default_rng(2)
    stream = days(random)
    others = [str(one) for one in random.choice(TOPICS[4], 10_000)]
    if documents == 1:
        stream[-1].append(Text([one for other in others for one in (LOUD, other)], 77))
    else:
        stream[-1] += [Text([LOUD, other, str(random.choice(TOPICS[5]))], 77) for other in others]
    report = build_report(make(tmp_path, stream))
    assert called(report) == {}
    assert all(LOUD in one for one in on_the_page(report, "repeated_word"))
    said = note(report, "repeated_word")
    assert LOUD in said
    assert "few authors write" in said


def test_a_thousand_accounts_that_paste_one_text_call_nothing(tmp_path) -> None:
    random = np.random.default_rng(3)
    stream = days(random)
    stream[-1] += pasted(random, alike=True)
    report = build_report(make(tmp_path, stream))
    assert called(report) == {}
    assert all("광고" in one for one in on_the_page(report, "copied_text"))
    said = note(report, "copied_text")
    assert "copies of the same text; copies count once" in said
    assert "광고" in said
    rows = [row for name in RANKINGS for row in report.to_dict()[name]]
    assert all(row["documents_deduplicated"] <= row["documents"] for row in rows)
    copied = [row for row in rows if row["documents"] >= 1000]
    assert copied
    assert all(row["documents_deduplicated"] < 200 for row in copied)


def test_a_word_with_a_little_less_text_than_another_does_not_lose_half_of_its_documents() -> None:
    texts = np.arange(5.0, 101.0)
    held = np.full(len(texts), 100)
    usual = np.full(400, 100.0)
    found = _once(
        np.r_[held, usual.astype(int)], np.r_[texts, usual], np.ones(len(texts) + 400, dtype=bool)
    )
    found = found[: len(texts)]
    assert found[0] == 5
    assert (found[texts >= 50] == 100).all()
    assert np.diff(found).min() >= 0
    assert np.diff(found).max() <= 6, "no edge"


def test_a_thousand_accounts_that_write_their_own_are_heard(tmp_path) -> None:
    random = np.random.default_rng(4)
    stream = days(random)
    stream[-1] += pasted(random, alike=False)
    report = build_report(make(tmp_path, stream))
    assert {"광고", "대박", "수익"} <= set(called(report)["born"])
    assert note(report, "copied_text") == ""


def test_what_was_pasted_does_not_fall_when_nobody_pastes_it_any_more(tmp_path) -> None:
    random = np.random.default_rng(5)
    stream = days(random)
    stream[-2] += pasted(random, alike=True)
    assert called(build_report(make(tmp_path, stream))) == {}


def test_a_change_that_the_busiest_authors_make_is_shown_as_theirs(tmp_path) -> None:
    random = np.random.default_rng(11)
    stream = days(random)
    for author in range(1, 9):
        for _ in range(40):
            others = [str(one) for one in random.choice(TOPICS[4], 6)]
            stream[-1].append(Text([*others[:3], LOUD, *others[3:]], author))
    store = make(tmp_path, stream)
    report = build_report(store, config=TrendsConfig(false_discovery=0.3))
    row = next(row for row in report.moved if row.word == LOUD)
    assert row.significant
    assert row.support.busiest_authors
    caption = str(ranking_table(report, "moved").caption)
    assert LOUD in caption.partition("the busiest 1 % of authors: ")[2].partition(".")[0]
    folder = store.open().path
    size = {name: (folder / name).stat().st_size for name in (BUSIEST_FILE, USAGE)}
    assert size[BUSIEST_FILE] < 0.1 * size[USAGE]
    assert erasing.erase(folder, source="게시판")
    assert not len(SnapshotStore(str(tmp_path)).open().usage.busiest)


def test_a_source_whose_sums_are_missing_counts_as_it_is(tmp_path) -> None:
    """A node that died before it told of its texts makes no copies of them."""
    random = np.random.default_rng(8)
    store = make(tmp_path, [usual(random, 700, ("게시판", "뉴스")) for _ in range(3)])
    snapshot = store.open()
    lost = replace(
        snapshot.usage,
        **{
            name: np.asarray(getattr(snapshot.usage, name))[snapshot.usage.by_source["뉴스"]]
            for name in ("rows", "sources", "mentions", "pairs", "means")
        },
    )
    counted = Frequency.read(snapshot)
    once = counted_once(counted, _Without(snapshot, lost))
    assert (once.documents == counted.documents).all()


class _Without:
    """A snapshot with other sums."""

    def __init__(self, snapshot, usage) -> None:
        self._snapshot = snapshot
        self.usage = usage
        self.manifest = snapshot.manifest
        self.rows = snapshot.rows

    def __len__(self) -> int:
        return len(self._snapshot)


def silent(random: np.random.Generator, which: str) -> list[Text]:
    if which == "few_documents":
        return usual(random, 10)
    if which == "one_author":
        return [Text(one.words, 77) for one in usual(random, 400)]
    one = usual(random, 1)[0].words
    return [Text(one, at) for at in range(400)]


SAID = {
    "few_documents": "only 10 documents were read, too few to say",
    "one_author": "its 400 documents are of too few authors to say whether anything changed",
    "only_copies": "its 400 documents are copies of few texts, and copies count once",
}


@pytest.mark.parametrize("which", SAID)
def test_a_window_that_says_nothing_says_why(tmp_path, which) -> None:
    random = np.random.default_rng(6)
    store = make(tmp_path / "now", [*days(random, 3), silent(random, which)])
    report = build_report(store)
    assert SAID[which] in note(report, which)
    assert report.significant("moved") == ()
    assert called(report) == {}
    later = make(tmp_path / "later", [*days(random, 3), silent(random, which), usual(random, 700)])
    assert called(build_report(later)) == {}
    assert all("2019" in one and "{" not in one for one in on_the_page(report, which))
    shown = CliRunner().invoke(app, ["trends", "moved", "--snapshots", store.uri])
    assert (shown.exit_code, shown.exception) == (0, None)
    assert SAID[which].split(",")[0] in " ".join(shown.output.split())
    stories = CliRunner().invoke(app, ["trends", "stories", "--snapshots", store.uri]).output
    assert SAID[which].split(",")[0] in " ".join(stories.split())
    assert "Nothing stands out" not in stories, "nobody can say so"
    assert brief.quiet_headline(report, PageText("en")).endswith("is not known")
    told = CliRunner().invoke(app, ["trends", "moved", "--snapshots", store.uri, "--json"])
    assert SAID[which] in json.loads(told.output)["notes"][0]["text"]
    again = TrendReport.from_dict(report.to_dict())
    assert again.notes == report.notes
