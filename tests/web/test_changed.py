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
    for ref in store.list():
        report = build_report(store, ref.id)
        label = report.snapshot.label
        assert [row.word for row in report.significant("moved")] == (
            [CHANGED] if label == "2020-02" else []
        )
        storage.save(report, root / "trends")
    config = WebConfig(snapshots=str(root / "snapshots"), reports=root / "trends")
    with client_of(unguarded(config)) as client:
        client.headers["accept-language"] = "ko"
        yield client


def test_a_words_page_names_the_window_whose_report_calls_it(changed: httpx.Client) -> None:
    found = changed.get("/api/since", params={"w": CHANGED}).json()
    assert (found["kind"], found["since"], found["unjudged"]) == ("moved", "2020-02", [])
    html = changed.get(f"/word/{CHANGED}").text
    said = html[html.index("<dt>달라진 때</dt>") :].split("</div>")[0]
    assert "2020년 2월" in said
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
    for word in ("국회", "버스", "배우", "쀍쀍"):
        said = changed.get("/api/since", params={"w": word}).json()
        assert (said["kind"], said["since"], said["text"]) == (None, None, "뚜렷한 변화 없음")
    html = changed.get("/word/국회").text
    assert "멀어짐" not in html
    assert "새로 가까워짐" not in html


def test_the_brief_dates_its_finds_and_marks_no_other_word(changed: httpx.Client) -> None:
    window = next(
        one["id"]
        for one in changed.get("/api/snapshots").json()["snapshots"]
        if one["id"].startswith("2020-02-")
    )
    html = changed.get(f"/window/{window}").text
    clear, *unclear = (
        html[html.index('aria-labelledby="moved"') :]
        .split("</section>")[0]
        .split('class="rank"')[1:]
    )
    assert CHANGED in clear
    assert "2020년 2월부터" in clear
    assert "chip lost" in clear
    assert unclear
    for row in unclear:
        assert "부터" not in row
        assert "chip lost" not in row
        assert "chip new" not in row
