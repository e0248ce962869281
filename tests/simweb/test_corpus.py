from __future__ import annotations

import json
import logging
import lzma
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError, InputError
from generated import examples
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import CorpusDocument, from_records, parse_lines, read_corpus

CONFIG = SimwebConfig()
PETITION = (
    '{"date":"2020-02-01","category":"보건","title":"마스크","content":"부족하다","source":"x"}'
)
REVIEW = '{"date":"2003-11-21","id":"7","movie":"29354","rating":6,"text":"뻔한 스토리"}'


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_petitions_and_reviews_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    corpus = read_corpus(write(tmp_path / "c.jsonl", PETITION, "", REVIEW), CONFIG)
    assert [d.text for d in corpus.documents] == ["뻔한 스토리", "부족하다"]
    assert corpus.documents[1].title == "마스크"
    assert corpus.documents[0].when == datetime(2003, 11, 21, tzinfo=UTC)
    assert corpus.malformed == 0


def test_an_xz_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.xz"
    path.write_bytes(lzma.compress(PETITION.encode()))
    assert len(read_corpus(path, CONFIG).documents) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ('{"date":"2020-01-01"}', "no text"),
        ('{"date":"2020-01-01","text":"  "}', "no text"),
        ('{"text":"글"}', 'no "date"'),
        ('{"date":20200101,"text":"글"}', 'no "date"'),
        ('{"date":"어제","text":"글"}', "is no date"),
        ('{"date":"0001-01-01","text":"글"}', "outside"),
        ('{"date":"0001-01-01T00:00+23:00","text":"글"}', "is no date"),
        ('{"date":"2020-01-01","text":"글","part":"cellar"}', "none of politics"),
    ],
)
def test_a_malformed_line_is_named_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str, reason: str
) -> None:
    path = write(tmp_path / "c.jsonl", PETITION, line)
    with caplog.at_level(logging.WARNING):
        corpus = read_corpus(path, CONFIG)
    assert len(corpus.documents) == corpus.malformed == 1
    assert f"{path}:2: " in caplog.text
    assert reason in caplog.text
    assert "YYYY-MM-DD" in caplog.text
    assert "글" not in caplog.text


def test_bytes_that_are_no_utf8_are_a_malformed_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(PETITION.encode() + b"\n" + REVIEW.encode("euc-kr"))
    read_corpus(path, CONFIG)
    assert f"{path}:2: not UTF-8" in caplog.text


def test_many_malformed_lines_do_not_flood_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = read_corpus(write(tmp_path / "c.jsonl", PETITION, *["{"] * 500), CONFIG)
    assert corpus.malformed == 500
    assert len(caplog.records) == 11
    assert "490 more" in caplog.text


def test_missing_unreadable_and_empty_corpora_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such corpus"):
        read_corpus(tmp_path / "none.jsonl", CONFIG)
    broken = tmp_path / "broken.jsonl.xz"
    broken.write_bytes(lzma.compress(PETITION.encode() * 50)[:-20])
    with pytest.raises(InputError, match="not a complete xz"):
        read_corpus(broken, CONFIG)
    plain = write(tmp_path / "plain.jsonl.xz", PETITION)
    with pytest.raises(InputError, match="not a complete xz"):
        read_corpus(plain, CONFIG)
    with pytest.raises(InputError, match="cannot be read"):
        read_corpus(tmp_path, CONFIG)
    with pytest.raises(InputError, match=r"no usable document \(1 malformed"):
        read_corpus(write(tmp_path / "bad.jsonl", "{"), CONFIG)


def test_days_restrict_and_an_empty_choice_says_what_there_is(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", PETITION, REVIEW)
    config = SimwebConfig(first_day=date(2020, 2, 1), last_day=date(2020, 2, 1))
    assert [d.text for d in read_corpus(path, config).documents] == ["부족하다"]
    with pytest.raises(InputError, match="2003-11-21 to 2020-02-01"):
        read_corpus(path, SimwebConfig(first_day=date(2021, 1, 1)))


def test_times_of_day_and_zones_are_kept() -> None:
    record = {"date": "2020-02-01T09:30:00+09:00", "text": "글"}
    document = from_records([record], CONFIG).documents[0]
    assert document == CorpusDocument(
        when=datetime(2020, 2, 1, 0, 30, tzinfo=UTC), text="글", timed=True
    )


def test_what_cannot_be_sent_is_replaced() -> None:
    record = {"date": "2020-02-01", "text": "가\ud800나\x00다\r\n라"}
    [document] = from_records([record], CONFIG).documents
    assert document.text == "가?나 다\n라"


@settings(max_examples=examples(50))
@given(st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_are_read_or_counted(lines: list[bytes]) -> None:
    good = PETITION.encode()
    corpus = parse_lines([good, *lines], "x", CONFIG)
    blank = sum(not line.strip() for line in lines)
    assert len(corpus.documents) + corpus.malformed + blank == len(lines) + 1


@settings(max_examples=examples(50))
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_any_json_value_is_read_or_counted(value: object) -> None:
    line = json.dumps({"date": value, "text": value, "title": value}).encode()
    assert parse_lines([PETITION.encode(), line], "x", CONFIG).malformed in (0, 1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"first_day": "2020-02-02", "last_day": "2020-02-01"}, "lies before"),
        ({"shares": {"cellar": 1.0}}, "cellar"),
        ({"shares": {"board": 0.0}}, "all zero"),
        ({"shares": {"board": float("nan")}}, "finite"),
        ({"seconds_per_month": 0}, "seconds_per_month"),
        ({"sped": 3}, "sped"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        validate(SimwebConfig, wrong, "simweb")


def test_speed_takes_the_place_of_seconds_per_month() -> None:
    assert SimwebConfig(seconds_per_month=10).event_speed == pytest.approx(262_980)
    assert SimwebConfig(seconds_per_month=10, speed=5).event_speed == 5
