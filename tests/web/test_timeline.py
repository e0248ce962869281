"""The windows in a line, and the way from a quiet one back to the last news."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from unguarded import unguarded

from embedding.ask.answers import Answers
from embedding.kernel.errors import SnapshotError
from embedding.snapshots.store import SnapshotStore
from embedding.trends import report as computing
from embedding.trends import storage
from embedding.trends.report import build_report
from embedding.trends.rows import findings_of
from embedding.web.config import WebConfig
from embedding.web.pages import timeline
from waiting import until

BORN = 3
"""The window that brings the only news, of eight."""


@pytest.fixture(scope="module")
def quiet(planted, tmp_path_factory) -> WebConfig:
    """Eight windows with their reports; one word is new in the fourth."""
    root: Path = tmp_path_factory.mktemp("line")
    plan = planted.Plan(
        windows=8, fillers=120, moved={}, risen={}, lone={}, born={"신천지": ("바이러스", BORN)}
    )
    store = planted.make_store(str(root / "snapshots"), plan)
    for ref in store.list():
        storage.save(build_report(store, ref.id), root / "trends")
    return WebConfig(snapshots=str(root / "snapshots"), reports=root / "trends")


def known_of(answers: Answers):
    return lambda ref: answers.known_report(ref.id)


def test_every_window_says_what_it_brought(quiet: WebConfig) -> None:
    answers = Answers(quiet)
    ids = [ref.id for ref in SnapshotStore(quiet.snapshots).list()]
    times = timeline(answers.listing().refs, ids[-1], known_of(answers))
    assert [one.id for one in times.line] == ids
    assert [one.shown for one in times.line] == [False] * 7 + [True]
    assert [one.findings for one in times.line] == [
        findings_of(answers.report(one, wait_s=60)) for one in ids
    ]
    assert "신천지" in times.line[BORN].words
    assert (times.previous.id, times.next) == (ids[-2], None)
    assert times.last.id == max(one.id for one in times.line[:-1] if one.findings)
    first = timeline(answers.listing().refs, ids[0], known_of(answers))
    assert (first.previous, first.next.id, first.last) == (None, ids[1], None)


def test_what_is_not_known_is_not_computed(quiet: WebConfig) -> None:
    answers = Answers(quiet.model_copy(update={"reports": None}))
    times = timeline(answers.listing().refs, "", known_of(answers))
    assert {one.findings for one in times.line} == {None}
    assert times.last is None


def test_a_quiet_window_leads_to_the_last_news(quiet: WebConfig, client_of) -> None:
    client: httpx.Client = client_of(unguarded(quiet))
    client.headers["accept-language"] = "ko"
    answers = Answers(quiet)
    ids = [ref.id for ref in SnapshotStore(quiet.snapshots).list()]
    known = {one: findings_of(answers.report(one, wait_s=60)) for one in ids}
    silent = [one for one in ids[BORN + 1 :] if not known[one]]
    assert silent, "the plan has quiet windows after the news"
    until(lambda: client.get(f"/window/{silent[0]}").status_code != 202)
    page = client.get(f"/window/{silent[0]}").text
    hero = page[: page.index('class="columns"')]
    assert "마지막으로 뚜렷한 변화가 있던 때는" in hero
    last = next(one for one in reversed(ids[: ids.index(silent[0])]) if known[one])
    assert f'href="/window/{last}"' in hero
    assert 'rel="prev"' in hero


def test_windows_nobody_has_analysed_are_analysed_behind_the_page(quiet, client_of) -> None:
    client: httpx.Client = client_of(unguarded(quiet.model_copy(update={"reports": None})))
    client.headers["accept-language"] = "en"
    until(lambda: client.get("/").status_code != 202)
    page = client.get("/").text
    assert page.count("not analysed yet") >= 1
    later = page[page.index("data-analyses=") :].split('"')[1]
    seen = set()

    def filled() -> bool:
        answer = client.get(later)
        assert answer.status_code in (200, 202)
        seen.add(answer.text.count("not analysed yet"))
        return answer.status_code == 200 and "data-analyses" not in answer.text

    until(filled)
    assert len(seen) > 2, "the line fills one window after the other"
    newest = SnapshotStore(quiet.snapshots).list()[-1].id
    line, page = client.get(later).text, client.get(f"/window/{newest}").text
    for found in (line, page):
        assert "not analysed yet" not in found
        assert "data-analyses" not in found
        assert "신천지" in found
    assert line.strip() in page
    assert client.get("/window/nothing/timeline").status_code == 404
    (last,) = [one for one in Answers(quiet).listing().refs if f"/window/{one.id}/" in later]
    assert last == Answers(quiet).listing().refs[-1]


def test_a_window_that_cannot_be_analysed_holds_up_no_other(quiet, client_of, monkeypatch) -> None:
    ids = [ref.id for ref in SnapshotStore(quiet.snapshots).list()]
    build = computing.build_report

    def build_or_fail(store, snapshot, *more):
        if snapshot == ids[4]:
            raise SnapshotError(f"{snapshot}: cut off.")
        return build(store, snapshot, *more)

    monkeypatch.setattr(computing, "build_report", build_or_fail)
    client: httpx.Client = client_of(unguarded(quiet.model_copy(update={"reports": None})))
    client.headers["accept-language"] = "en"
    found: list[str] = []

    def filled() -> bool:
        answer = client.get(f"/window/{ids[-1]}/timeline")
        found.append(answer.text)
        return answer.status_code == 200 and "data-analyses" not in answer.text

    until(filled)
    assert found[-1].count("not analysed yet") == 1
