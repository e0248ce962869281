"""Several words over time on one chart, day by day."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, date, datetime, timedelta

import pytest
from starlette.datastructures import QueryParams

from embedding.snapshots.evidence import DAY, DayCount
from embedding.web.charts import days_view, span
from embedding.web.filters import PageFilter
from embedding.web.text import PageText

MOST_DAYS = 400

START = datetime(2020, 3, 1, tzinfo=UTC)
FIRST = int(START.timestamp() // DAY)
MARCH = (START, START + timedelta(days=31))


def charts(page: str) -> list[dict]:
    return [json.loads(html.unescape(one)) for one in re.findall(r'data-chart="([^"]*)"', page)]


def test_days_add_up_over_sources_and_days_without_a_document_are_none() -> None:
    counts = [
        DayCount("가", "a", FIRST, 3.0, exact=True),
        DayCount("가", "b", FIRST, 2.0, exact=True),
        DayCount("가", "a", FIRST + 2, None, exact=False),
        DayCount("나", "b", FIRST + 3, 90.5, exact=False),
    ]
    t = PageText("en")
    view = days_view(["가", "나"], counts, MARCH, PageFilter(), t)
    assert view is not None
    assert [line["values"] for line in view.chart["lines"]] == [
        [5.0, 0.0, None, 0.0],
        [0.0, 0.0, 0.0, 90.5],
    ]
    assert view.rows[0] == ("2020-03-04", (0.0, 90.5))
    assert view.estimated
    one = days_view(["가"], counts, MARCH, PageFilter(sources=("b",)), t)
    assert one is not None
    assert one.rows == (("2020-03-04", (0.0,)), *one.rows[1:])
    assert days_view(["가"], [], MARCH, PageFilter(), t) is None


def test_the_days_shown_are_those_of_the_choice(client, config) -> None:
    from embedding.ask.answers import Answers

    history = Answers(config).history("코로나")
    chosen = PageFilter.of(QueryParams("from=2020-03-02&to=2020-03-05"))
    assert span([history], chosen) == (
        datetime(2020, 3, 2),
        datetime(2020, 3, 6),
    )
    first, last = span([history], PageFilter())
    assert last - first <= timedelta(days=MOST_DAYS)
    page = client.get("/over?w=코로나&w=마스크&from=2020-03-03").text
    assert [line["name"] for line in charts(page)[0]["lines"]] == ["코로나", "마스크"]
    assert charts(page)[0]["labels"] == ["3/3"]
    assert date(2020, 3, 3).isoformat() in page


def test_the_page_has_a_line_for_each_word_and_names_what_it_does_not_know(client) -> None:
    page = client.get("/over?w=코로나&w=마스크&w=신천지&w=마스그").text
    days, rates = charts(page)
    assert len(days["lines"]) == len(rates["lines"]) == 3
    assert len(rates["labels"]) == 5
    assert "‘마스그’에 대한 자료가 없습니다" in page
    many = client.get("/over?" + "&".join(f"w=없음{n}" for n in range(12)))
    assert many.status_code == 200
    assert "8개까지" in many.text


@pytest.mark.parametrize("query", ["", "?w=", "?w=%00", "?w=" + "가" * 300])
def test_no_word_is_a_page_with_fields(client, query) -> None:
    page = client.get(f"/over{query}")
    assert page.status_code == 200
    assert 'name="w"' in page.text
    assert charts(page.text) == []
