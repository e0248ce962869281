"""Log lines as JSON: one schema, no secrets, no words of what a library read."""

from __future__ import annotations

import json
import logging
from datetime import datetime

import pytest

from embedding.kernel.errors import InputError
from embedding.kernel.logs import JsonFormatter, as_json, blanked

KEYS = ("time", "level", "process", "node", "window", "message", "fields")


def line(logger: logging.Logger, caplog: pytest.LogCaptureFixture) -> dict:
    return json.loads(JsonFormatter("server", "n0").format(caplog.records[-1]))


@pytest.fixture
def logger(caplog: pytest.LogCaptureFixture) -> logging.Logger:
    caplog.set_level(logging.DEBUG)
    return logging.getLogger("방")


def test_a_line_has_every_key_and_what_was_given(logger, caplog) -> None:
    logger.info("창 %s", "하나", extra={"window": "2021-04-01", "words": 7})
    found = line(logger, caplog)
    assert tuple(found) == KEYS
    assert datetime.fromisoformat(found["time"]).utcoffset() is not None
    assert (found["level"], found["process"], found["node"]) == ("info", "server", "n0")
    assert (found["window"], found["message"]) == ("2021-04-01", "창 하나")
    assert found["fields"]["words"] == 7
    assert found["fields"]["logger"] == "방"


def test_the_words_of_a_librarys_error_are_left_out_and_ours_are_kept(logger, caplog) -> None:
    try:
        raise ValueError("홍길동의 글")
    except ValueError:
        logger.exception("a block was lost")
    found = line(logger, caplog)
    assert found["fields"]["error"] == "ValueError"
    assert "test_logs.py" in found["fields"]["stack"][-1]
    assert "홍길동" not in json.dumps(found, ensure_ascii=False)
    try:
        raise InputError("corpus.txt: no such file.")
    except InputError:
        logger.exception("nothing to read")
    assert line(logger, caplog)["fields"]["sentence"] == "corpus.txt: no such file."


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://yeoron:S3CRET@db/frontier is away",
        "token=S3CRET",
        "Cookie: session=S3CRET",
        'headers {"Authorization": "Bearer S3CRET"}',
        "api_key = 'S3CRET'",
        "password: S3CRET, user: x",
    ],
)
def test_secrets_are_blanked(text: str) -> None:
    assert "S3CRET" not in blanked(text)
    assert "***" in blanked(text)


def test_words_that_only_look_alike_stay() -> None:
    text = "node n0 pushed 500 tokens; https://example.org/a?b=1@c"
    assert blanked(text) == text


def test_a_long_line_is_cut() -> None:
    assert len(blanked("가" * 10_000)) < 2_100


def test_lines_of_other_programs_come_into_the_schema() -> None:
    own = JsonFormatter("shard").format(logging.makeLogRecord({"msg": "x", "levelname": "INFO"}))
    given = [
        own,
        "2026-01-01 - distributed.worker - WARNING - slow",
        '{"timestamp": "2026", "event": "task ran", "level": "error", "logger": "airflow"}',
        "[1, 2] {broken",
        "{not json",
        "",
        "Traceback (most recent call last):",
        '  File "/a/b.py", line 3, in read',
        "    raise ValueError(text)",
        "package.OddError: 홍길동의 글",
        "after",
    ]
    found = [json.loads(each) for each in as_json((f"{each}\n" for each in given), "mlflow")]
    assert all(tuple(each) == KEYS for each in found)
    assert found[0] == json.loads(own)
    assert (found[1]["level"], found[1]["process"]) == ("warning", "mlflow")
    assert (found[2]["level"], found[2]["message"]) == ("error", "task ran")
    assert found[5]["fields"] == {"error": "OddError", "stack": ["/a/b.py:3 read"]}
    assert found[6]["message"] == "after"
    assert "홍길동" not in json.dumps(found, ensure_ascii=False)
