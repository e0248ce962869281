"""Any two windows go through the test of neighbours, or the request is refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from types import ModuleType

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import yeoron
from embedding.cli import app
from embedding.exchange.payload import UNITS
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage
from embedding.trends.config import TrendsConfig
from embedding.trends.report import NOT_ADJACENT, build_between, build_report
from embedding.trends.rows import TrendReport, word_change

WINDOWS, SINCE = 5, 3
CHANGED = "국회"
FEW = "백신"
"""A word of too few documents to say by itself how it is used."""


@dataclass(frozen=True)
class Planted:
    """A store in which the use of one word changes in window SINCE; ids and labels of windows."""

    uri: str
    ids: list[str]
    labels: list[str]

    def between(self, before: int, after: int, config: TrendsConfig | None = None) -> TrendReport:
        store = SnapshotStore(self.uri)
        return build_between(store, self.ids[before], self.ids[after], config)


def used(windows: list[np.ndarray], turn: np.ndarray, documents: np.ndarray) -> Usage:
    """Sums of windows by the vectors that `turn` makes."""
    n, means = len(documents), np.mean(windows, axis=0) @ turn
    counts = np.full(n, 64)
    return Usage(np.arange(n), ["뉴스"] * n, counts, documents, means.astype(np.float32))


@pytest.fixture(scope="module")
def store(planted: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """As the server keeps it: each window's sums, those of the one before, and of all older ones,
    by the vectors of its own end, which others' cannot be compared with.
    """
    uri = str(tmp_path_factory.mktemp("between"))
    random = np.random.default_rng(0)
    ids: list[str] = []
    labels: list[str] = []
    plan = planted.Plan(windows=WINDOWS, fillers=100, born={}, moved={}, risen={}, rotate=False)
    own: list[np.ndarray] = []
    true = None
    for at, data in enumerate(planted.stream(plan)):
        n, dim = data.vectors.shape
        true = random.normal(size=(n, dim)) * 0.2 if true is None else true
        means = true[:, None] + random.normal(size=(n, UNITS, dim)) * 0.03
        means[data.words.index(CHANGED)] += 0.3 * (at >= SINCE)
        own.append(means)
        turn = np.linalg.qr(random.normal(size=(dim, dim)))[0]  # the vectors of this window
        documents = np.full((n, UNITS), 4.0, dtype=np.float32)
        documents[data.words.index(FEW)] = 1.0

        times = [own[at : at + 1], own[at - 1 : at], own[: max(at - 1, 0)]]
        now, *earlier = (used(windows, turn, documents) for windows in times if windows)
        parent = ids[-1] if ids else None
        ids.append(
            SnapshotStore(uri)
            .publish(replace(data, parent=parent), replace(now, reread=(now, *earlier)))
            .id
        )
        labels.append(data.window.label)
    return Planted(uri, ids, labels)


@pytest.mark.parametrize(("before", "after"), combinations(range(WINDOWS), 2))
def test_no_pair_of_windows_calls_nothing_where_the_test_cannot_see(
    store: Planted, before: int, after: int
) -> None:
    report = store.between(before, after)
    notes = [note for note in report.notes if note.code == NOT_ADJACENT]
    if after == before + 1:
        assert not notes
        assert report.ranked["moved"] > 50
        called = [row.word for row in report.significant("moved")]
        assert called == ([CHANGED] if after == SINCE else [])
        return
    assert report.moved == ()
    (note,) = notes
    for one, other in pairwise(store.labels[before : after + 1]):
        assert f"{one} {other}" in note.text


def test_an_estimator_of_vectors_compares_any_two(store: Planted) -> None:
    report = store.between(0, 2, TrendsConfig(estimator="neighbours"))
    assert report.moved
    assert all(note.code != NOT_ADJACENT for note in report.notes)


def test_windows_that_cannot_be_compared_have_no_scores_of_others(store: Planted) -> None:
    opened = yeoron.open(store.uri)
    assert len(opened.scores(store.ids[3], against=store.ids[2])) > 50
    assert list(opened.scores(store.ids[3], against=store.ids[1])) == []


def test_the_command_and_python_refuse_with_the_pairs_to_look_at(store: Planted) -> None:
    first, last = store.labels[1], store.labels[3]
    steps = f"{store.labels[1]} {store.labels[2]}; {store.labels[2]} {store.labels[3]}."
    for command in (["moved"], ["moved", "--all"]):
        options = ["--snapshots", store.uri, "--between", first, last]
        run = CliRunner().invoke(app, ["trends", *command, *options])
        assert run.exit_code != 0
        assert steps in str(run.exception or "") + " ".join(run.output.split())
    opened = yeoron.open(store.uri)
    with pytest.raises(yeoron.YeoronError, match="cannot be compared") as error:
        opened.moved(last, against=first)
    assert steps in str(error.value)
    assert [row["word"] for row in opened.moved(last, against=store.labels[2])][:1] == [CHANGED]


def test_the_verdict_is_that_of_the_reports(store: Planted) -> None:
    reports = [build_report(SnapshotStore(store.uri), id) for id in store.ids]
    change = word_change(CHANGED, reports)
    assert (change.kind, change.since) == ("moved", store.labels[SINCE])
    for word in {row.word for report in reports for row in report.moved} - {CHANGED}:
        assert word_change(word, reports).kind is None
    for report in reports:
        for row in report.moved:
            assert (row.since is not None) == row.significant
            marked = [one.changed for one in (*row.neighbours_before, *row.neighbours)]
            assert row.significant or not any(marked)


def test_a_word_of_few_documents_has_the_neighbours_of_the_model(store: Planted) -> None:
    rows = {row.word: row for row in store.between(1, 2, TrendsConfig(rows=1000)).moved}
    assert rows[CHANGED].by_use
    assert not rows[FEW].by_use
    last = SnapshotStore(store.uri).open(store.ids[2])
    near = [word for word, _ in last.neighbours(FEW, 10)]
    assert [one.word for one in rows[FEW].neighbours] == near


def test_windows_that_could_not_be_compared_are_named(store: Planted) -> None:
    first, second, *rest = (build_report(SnapshotStore(store.uri), id) for id in store.ids)
    blind = replace(second, ranked={"moved": 0}, moved=())
    assert word_change(CHANGED, [first, blind, *rest]).unjudged == (store.labels[1],)


def test_the_page_leads_to_the_pairs_of_neighbours(
    store: Planted, tmp_path: Path, client_of: Callable[[object], httpx.Client]
) -> None:
    from unguarded import unguarded

    from embedding.web.config import WebConfig

    config = WebConfig(snapshots=store.uri, reports=tmp_path)
    with client_of(unguarded(config)) as client:
        client.headers["accept-language"] = "ko"
        html = _answer(client, "/windows", then=store.ids[1], now=store.ids[3])
        assert "이웃한 달 사이에서만" in html
        for then, now in ((1, 2), (2, 3)):
            assert f"then={store.ids[then]}&amp;now={store.ids[now]}" in html
        assert 'aria-labelledby="moved"' not in html
        # One of the windows lies before the days that are asked for.
        days = {"from": f"{store.labels[2]}-01"}
        html = _answer(client, "/windows", then=store.ids[1], now=store.ids[3], **days)
        assert f"then={store.ids[1]}&amp;now={store.ids[2]}" in html
        usual = _answer(client, "/windows")
        assert f'value="{store.ids[-2]}" selected' in usual, "begins with the last two"
        assert 'aria-labelledby="moved"' in usual


def _answer(client: httpx.Client, path: str, **values: str) -> str:
    from waiting import until

    answer = until(lambda: (a := client.get(path, params=values)).status_code == 200 and a)
    return str(answer.text)
