"""A month without its use: the true reason in its report and in that of the next month."""

from __future__ import annotations

import pytest

from embedding.trends.report import build_report
from embedding.trends.rows import judged
from incomplete import JANUARY, incomplete_store


@pytest.fixture(scope="module")
def broken(planted, tmp_path_factory):
    return incomplete_store(tmp_path_factory.mktemp("broken"), planted)


def codes(report) -> list[str]:
    return [note.code for note in report.notes]


def test_the_month_says_why_no_word_is_judged(broken) -> None:
    report = build_report(broken, broken.list()[JANUARY].id)
    assert codes(report)[:2] == ["usage_not_handed_in", "not_converged"]
    assert "too_few_documents" not in codes(report)
    assert report.notes[0].text.startswith("2020-01: ")
    assert "yeoron snapshot amend 2020-01" in report.notes[0].text
    assert report.moved == ()
    assert not judged(report)
    assert report.risen, "how often words are used is known"


def test_the_next_month_names_it_and_is_judged_itself(broken) -> None:
    """It is not compared with an earlier month in silence: its own texts say how words were used
    in the month before.
    """
    report = build_report(broken)
    (note,) = [one for one in report.notes if one.code == "before_unjudged"]
    assert note.window == "2020-01"
    assert note.text.startswith("2020-01 could not be judged")
    assert "yeoron snapshot amend 2020-01" in note.text
    assert report.compared_with.label == "2020-01"
    assert judged(report)


def test_a_whole_stream_says_nothing_of_it(planted, tmp_path) -> None:
    store = incomplete_store(tmp_path, planted, lacking=())
    for ref in store.list():
        found = {"before_unjudged", "usage_not_handed_in", "not_converged"}
        assert not found & set(codes(build_report(store, ref.id)))
