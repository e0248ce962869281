from __future__ import annotations

import pytest
from starlette.requests import Request

from yeoron_simweb.news import http_date, unchanged


def request(**headers: str) -> Request:
    pairs = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    return Request({"type": "http", "headers": pairs})


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"if_none_match": '"a"'}, True),
        ({"if_none_match": 'W/"a"'}, True),
        ({"if_none_match": '"b", "a"'}, True),
        ({"if_none_match": "*"}, True),
        ({"if_none_match": '"b"'}, False),
        ({"if_none_match": '"b"', "if_modified_since": http_date(2000)}, False),
        ({"if_modified_since": http_date(1000)}, True),
        ({"if_modified_since": http_date(999)}, False),
        ({"if_modified_since": "yesterday"}, False),
    ],
)
def test_validators(headers: dict[str, str], expected: bool) -> None:
    assert unchanged(request(**headers), '"a"', 1000.7) is expected


def test_http_date() -> None:
    assert http_date(1000.7) == "Thu, 01 Jan 1970 00:16:40 GMT"
