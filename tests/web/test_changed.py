"""When a word changed: on its page, and in the brief."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import httpx
import numpy as np
import pytest
from unguarded import unguarded

from embedding.exchange.payload import UNITS
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage
from embedding.trends import storage
from embedding.trends.report import build_report
from embedding.web.config import WebConfig

WINDOWS, SINCE = 6, 3
CHANGED = "코로나"


@pytest.fixture(scope="module")
def changed(planted, tmp_path_factory, client_of) -> Iterator[httpx.Client]:
    """A store in which one word is used otherwise from window `SINCE` on; its report says so."""
    root = tmp_path_factory.mktemp("changed")
    rng = np.random.default_rng(0)
    store, parent, true = SnapshotStore(root / "snapshots"), None, None
    earlier: tuple[Usage, ...] = ()
    plan = planted.Plan(windows=WINDOWS, fillers=100, born={}, rotate=False)
    for at, data in enumerate(planted.stream(plan)):
        n, dim = data.vectors.shape
        true = rng.normal(size=(n, dim)) * 0.2 if true is None else true
        means = np.repeat(true[:, None], UNITS, axis=1) + rng.normal(size=(n, UNITS, dim)) * 0.03
        means[data.words.index(CHANGED)] += 0.3 * (at >= SINCE)
        pairs = np.full((n, UNITS), 4.0, dtype=np.float32)
        usage = Usage(np.arange(n), ["뉴스"] * n, np.full(n, 50), pairs, means.astype(np.float32))
        read = replace(usage, reread=(usage, *earlier))
        parent = store.publish(replace(data, parent=parent), read).id
        earlier = (usage, *earlier)
    report = build_report(store)
    row = next(row for row in report.moved if row.word == CHANGED)
    assert row.since == "2020-02"
    sure = replace(row, significant=True, since_low="2020-01", since_high="2020-02")
    storage.save(replace(report, moved=(sure,)), root / "trends")
    config = WebConfig(snapshots=str(root / "snapshots"), reports=root / "trends")
    with client_of(unguarded(config)) as client:
        client.headers["accept-language"] = "ko"
        yield client


def test_a_words_page_names_the_date_with_its_interval(changed: httpx.Client) -> None:
    found = changed.get("/api/since", params={"w": CHANGED}).json()
    assert found["date"] == {"since": "2020-02", "low": "2020-02", "high": "2020-02"}
    assert found["clear"]
    html = changed.get(f"/word/{CHANGED}").text
    said = html[html.index("<dt>달라진 때</dt>") :].split("</div>")[0]
    assert "2020년 2월" in said
    assert "글 일부를 빼고 계산해도 결과가 같음" in said
    assert "data-change" not in html  # it was known when the page was made


def test_a_words_page_begins_with_the_date_and_not_with_the_models_shift(
    changed: httpx.Client,
) -> None:
    """The model remembers earlier windows: its figure contradicts the words of the window's use."""
    html = changed.get(f"/word/{CHANGED}").text
    hero = html[: html.index('id="then-now"')]
    assert "모델로 보면" not in hero
    assert "<dt>변화량</dt>" not in hero
    assert hero.index("<dt>달라진 때</dt>") < hero.index("<dt>문서 1,000건당</dt>")


def test_a_word_that_did_not_change_has_no_date(changed: httpx.Client) -> None:
    said = [changed.get("/api/since", params={"w": w}).json() for w in ("국회", "버스", "배우")]
    assert [one["text"] for one in said] == ["뚜렷한 변화 없음"] * 3
    unknown = changed.get("/api/since", params={"w": "쀍쀍"}).json()
    assert (unknown["date"], unknown["text"]) == (None, "알 수 없음")


def test_the_brief_dates_its_finds(changed: httpx.Client) -> None:
    html = changed.get("/").text
    first = html[html.index('aria-labelledby="moved"') :].split("</li>")[0]
    assert CHANGED in first
    assert "2020년 2월부터" in first
    assert "(2020년 1월 – 2020년 2월)" in first
