"""Charts, links, formats, texts, search: the parts pages are made of."""

from __future__ import annotations

import hashlib
import json
import string
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.ask.search import SearchVocabulary
from embedding.web import formats
from embedding.web.charts import ChartLine, chart, differ, lines, share_bar, shift_bar, sparkline
from embedding.web.links import PagePaths
from embedding.web.text import PageText, choose

values = st.lists(st.none() | st.floats(0, 1e7, allow_nan=False), min_size=1, max_size=40)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)


@given(values, names)
def test_charts_are_well_formed_for_any_figures_and_names(figures, name):
    n = len(figures)
    high = [None if v is None else v * 1.1 for v in figures]
    shown = [
        ChartLine(name, figures, low=figures, high=high),
        ChartLine(name, figures, dashed=True),
    ]
    data = lines(shown, [name] * n, [name] * n, title=name)
    box = ET.fromstring(chart(data, "frequency", name)).find("div")
    held = json.loads(box.get("data-chart"))
    assert held == json.loads(json.dumps(data))
    assert [len(line["values"]) for line in held["lines"]] == [n, n]
    assert box.get("aria-label").startswith(name)
    for small in (sparkline(figures, name), shift_bar(0.5, None, name), share_bar(2.0, name)):
        if small:
            ET.fromstring(small)


@given(st.text(min_size=1, max_size=50))
def test_a_words_address_is_plain_ascii_below_the_root(word):
    link = PagePaths("/yeoron").word(word)
    assert link.startswith("/yeoron/word")
    assert set(link) <= set(string.ascii_letters + string.digits + "/?=%-._~")
    assert "/../" not in link
    assert not link.endswith(("/.", "/.."))


def test_an_address_no_server_takes_is_left_out():
    assert PagePaths("").word("가" * 10_000) == ""


@pytest.mark.parametrize(
    ("label", "ko", "en", "short"),
    [
        ("2020-02", "2020년 2월", "February 2020", "20.02"),
        ("2020-02-03", "2020년 2월 3일", "3 February 2020", "2/3"),
        ("2020-02-03T04", "2020년 2월 3일 4시", "3 February 2020, 04:00", "2/3 04h"),
        (
            "20200203T0000_20200210T0000",
            "2020년 2월 3일 – 2020년 2월 9일",
            "3 February 2020 – 9 February 2020",
            "2/3",
        ),
        ("a_b", "a_b", "a_b", "a_b"),
        ("2020-99", "2020년 99", "99 2020", "20.99"),
    ],
)
def test_windows_are_named(label, ko, en, short):
    assert PageText("ko").window(label) == ko
    assert PageText("en").window(label) == en
    assert formats.short_label(label) == short


def test_figures_are_written_for_people():
    assert (formats.rate(0.0), formats.rate(0.123), formats.rate(12.34)) == ("0", "0.12", "12.3")
    assert (formats.rate(1234.5), formats.rate(None), formats.number(None)) == ("1,234", "–", "–")
    assert (formats.change(40, 10), formats.change(9, 10), formats.change(1, 0)) == (
        "×4.0",
        "−10 %",
        "–",
    )
    assert (formats.change(999, 1000), formats.change(1001, 1000)) == ("0 %", "0 %")
    assert (formats.chance(1e-9), formats.chance(0.02)) == ("< 0.001", "0.020")
    assert (formats.seconds(0.84), formats.seconds(200), formats.seconds(1e5)) == (
        "0.8 s",
        "3 min",
        "27.8 h",
    )
    at = "2020-03-01T00:00:00+00:00"
    assert formats.moment(at, "UTC") == "2020-03-01 00:00 UTC"
    assert formats.moment(at, "Asia/Seoul") == "2020-03-01 09:00 Asia/Seoul"
    assert formats.moment("later", "UTC") == "later"


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_two_rates_that_differ_are_written_so_that_they_do(before, now):
    was, is_now = formats.rates(before, now)
    if abs(before - now) > 1e-6 * max(1.0, before):
        assert float(was.replace(",", "")) != float(is_now.replace(",", ""))
        assert (float(was.replace(",", "")) < float(is_now.replace(",", ""))) == (before < now)


@pytest.mark.parametrize(
    ("asked", "kept", "accept", "language"),
    [
        ("en", "ko", "ko", "en"),
        (None, "en", "ko", "en"),
        ("xx", None, "en;q=0.3, ko;q=0.7", "ko"),
        (None, None, "fr, en;q=0.5", "en"),
        (None, None, "fr", "ko"),
        (None, None, "en;q=nonsense, ko;q=0.1", "ko"),
        (None, "<script>", "", "ko"),
    ],
)
def test_the_language_is_chosen(asked, kept, accept, language):
    assert choose(asked, kept, accept) == language
    assert language not in PageText(language).others


WORDS = ("코로나", "코로나19", "신코로나", "마스크", "Covid", "일본")


@pytest.fixture(scope="module")
def vocabulary():
    return SearchVocabulary(WORDS, np.asarray([10, 30, 99, 5, 4, 3]))


def test_suggestions_begin_then_hold(vocabulary):
    assert vocabulary.suggest("코로나") == ["코로나", "코로나19", "신코로나"]
    assert vocabulary.suggest("코로나", 1) == ["코로나"]
    assert vocabulary.suggest("covid ") == ["Covid"]
    # the same letters, decomposed as some systems send them
    assert vocabulary.suggest("\u1106\u1161\u1109\u1173") == ["마스크"]
    assert vocabulary.suggest("  ") == []


def test_nearest_spellings_differ_by_a_jamo_or_two(vocabulary):
    assert vocabulary.nearest_spellings("코르나")[0] == "코로나"
    assert vocabulary.nearest_spellings("마스그") == ["마스크"]
    assert vocabulary.nearest_spellings("") == []


@given(st.text(max_size=300))
def test_any_query_is_answered(query):
    vocabulary = SearchVocabulary(WORDS, np.arange(len(WORDS)))
    assert set(vocabulary.suggest(query)) <= set(WORDS)
    assert set(vocabulary.nearest_spellings(query)) <= set(WORDS)


def test_the_chart_library_is_the_published_one_and_calls_nobody():
    folder = Path(__file__).parents[2] / "embedding" / "web" / "vendor"
    code = (folder / "echarts.common.min.js").read_bytes()
    assert hashlib.sha256(code).hexdigest() in (folder / "README.md").read_text()
    for name in ("charts.js", "map.js", "app.js"):
        own = (folder.parent / "static" / name).read_text()
        assert "http://" not in own
        assert "https://" not in own
        assert "innerHTML" not in own


def test_bars_are_told_from_each_other_where_they_differ() -> None:
    assert differ([0.99, 0.6])
    assert not differ([0.99, 0.97])
