"""Dated lines in columns: what Arrow reads is what reading line by line gives."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.records import Calendar, WindowUnit
from embedding.training.survey import WindowCharacters
from embedding.worker.corpus import corpus, datedlines
from embedding.worker.corpus.corpus import CorpusStretch
from embedding.worker.corpus.datedlines import (
    DatedLines,
    dated_columns,
    dated_stretches,
    passing,
)
from embedding.worker.spec import CorpusShare
from yeoron_bench.datedlines import dated_lines

DATES = ["2020-02-01", "2020-02-01T09:30", "2020-02-01 23:59:59.25", "1599-12-31", "2301-01-01"]
DATES += ["1700-03-04", "2040-07-01T08:15"]
ZONED = ["2020-02-01T09:30:00+09:00", "2020-02-01T00:00:00Z", "2020-01-31T23:00-0500"]
TEXTS = st.text(st.sampled_from('가나 a\n\\"é😀'), max_size=6)


@st.composite
def records(draw: st.DrawFn, dates: list[str]) -> str:
    found: dict[str, Any] = {"date": draw(st.sampled_from(dates))}
    for name in ("text", "content", "title", "source"):
        if draw(st.booleans()):
            found[name] = draw(TEXTS | st.none())
    if draw(st.integers(0, 9)) == 0:
        found["rating"] = draw(st.sampled_from([1, [2], {"text": "no"}, None]))
    return json.dumps(found, ensure_ascii=draw(st.booleans()))


BLANK = st.sampled_from(["", "  "])
ZONES = [UTC, ZoneInfo("Asia/Seoul"), ZoneInfo("America/New_York")]
LINES = st.one_of(*(st.lists(records(dates) | BLANK, max_size=6) for dates in (DATES, ZONED)))


@given(LINES, st.integers(0, 4), st.booleans(), st.sampled_from(ZONES))
def test_arrow_reads_what_is_read_line_by_line(
    lines: list[str], since: int, ends: bool, zone: tzinfo
) -> None:
    stretch = CorpusStretch(2, "\n".join(lines) + "\n" * ends, 0.75, 0.5)
    quick = datedlines._by_arrow(stretch, 2 + since, zone)
    wrong: dict[int, str] = {}
    slow = datedlines._one_by_one(stretch, 2 + since, zone, wrong.__setitem__)
    if quick is None:
        return
    assert not wrong
    assert quick.texts.to_pylist() == slow.texts.to_pylist()
    assert quick.sources.to_pylist() == slow.sources.to_pylist()
    for name in ("numbers", "lengths", "when", "done"):
        assert getattr(quick, name).tolist() == getattr(slow, name).tolist(), name


@pytest.mark.parametrize("dates", [DATES[:3], ZONED[:2]])
def test_usual_lines_are_read_by_arrow(dates: list[str]) -> None:
    lines = [json.dumps({"date": date, "text": "말", "id": 7}) for date in dates]
    found = datedlines._by_arrow(CorpusStretch(0, "\n".join(lines), 1.0), 0, UTC)
    assert found is not None
    assert isinstance(found.sources, pa.StringArray)
    assert not found.name_sources
    assert len(found) == len(dates)


def test_lines_of_two_objects_or_of_a_part_are_read_line_by_line() -> None:
    one = json.dumps({"date": "2020-02-01", "text": "말"})
    for text in (one + one, one[:-1] + "\n}", one + "\n[]", one + '\n{"date": 5, "text": "말"}'):
        assert datedlines._by_arrow(CorpusStretch(0, text, 1.0), 0, UTC) is None


def test_characters_of_windows_are_those_of_each_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 300)
    path = tmp_path / "c.jsonl"
    lines = [
        json.dumps({"date": f"2020-{1 + at // 40:02}-07", "text": "가" * (1 + at % 7)})
        for at in range(120)
    ]
    path.write_text("\n\nno date\n" + "\n".join(lines), encoding="utf-8")
    counted = WindowCharacters(3, Calendar(WindowUnit.MONTH))
    for at, part in dated_stretches(CorpusShare(path=str(path))):
        counted.add(at, part)
    for index, found in enumerate(counted.by_node()):
        expected: Counter[int] = Counter()
        for line in dated_lines(CorpusShare(path=str(path), index=index, count=3)):
            expected[Calendar(WindowUnit.MONTH).start(line.when)] += len(line.text)
        assert dict(found) == expected


@pytest.mark.parametrize("since", [0, 1, 37, 120])
def test_what_has_passed_of_a_window_goes_from_0_to_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, since: int
) -> None:
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 300)
    months = [1 + at // 40 for at in range(120)]
    path = tmp_path / "c.jsonl"
    path.write_text(
        "".join(
            json.dumps({"date": f"2020-{month:02}-07", "text": "가" * (1 + at % 7)}) + "\n"
            for at, month in enumerate(months)
        ),
        encoding="utf-8",
    )
    share = CorpusShare(path=str(path))
    lines = list(dated_lines(share))
    expected = []
    for line in lines:
        of_window = [each for each in lines if each.when == line.when]
        before = sum(len(each.text) for each in of_window if each.number < line.number)
        whole = sum(len(each.text) for each in of_window)
        expected.append((before + len(line.text) / 2) / whole)
    counted = WindowCharacters(1, Calendar(WindowUnit.MONTH))
    for at, part in dated_stretches(share):
        counted.add(at, part)
    share = share.model_copy(update={"window_characters": counted.by_node()[0]})
    parts = list(passing(share, Calendar(WindowUnit.MONTH), since))
    assert np.concatenate([part.passed for part in parts] or [[]]).tolist() == expected[since:]
    plain = list(dated_columns(share, since))
    assert [int(n) for part in plain for n in part.numbers] == list(range(since, 120))
    assert (len(DatedLines.joined(plain)) if plain else 0) == 120 - since
