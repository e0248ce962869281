"""The report over a published stream with planted changes, and over bad input."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow.parquet as pq
import pytest

from embedding.kernel.errors import ConfigError, InputError, SnapshotError
from embedding.kernel.records import SnapshotRef, WordCounts
from embedding.show import terminal
from embedding.snapshots.store import SnapshotStore
from embedding.trends import storage
from embedding.trends.config import TrendsConfig
from embedding.trends.material import lineage
from embedding.trends.plain import to_plain
from embedding.trends.report import build_report
from embedding.trends.rows import RANKINGS, TrendReport


@pytest.fixture(scope="module")
def report(store):
    return build_report(store)


def names(rows):
    return [row.word for row in rows]


def test_what_was_planted_is_found_and_nothing_else_is_sure(report):
    assert [r.word for r in report.moved if r.significant] == ["코로나"]
    assert names(report.born) == ["신천지"]
    assert [r.word for r in report.risen if r.significant] == ["마스크", "도배"]
    assert not any(r.significant for r in report.fallen)


@pytest.mark.parametrize("ranking", RANKINGS)
def test_a_report_says_how_many_words_each_ranking_was_chosen_from(report, ranking):
    assert report.compared(ranking) >= len(getattr(report, ranking)) > 0


def test_the_terminal_says_when_nothing_is_clear(report):
    assert "No word is clear" in str(terminal.ranking_table(report, "fallen").title)
    assert str(terminal.ranking_table(report, "moved").caption).startswith("* clear. q is")


def test_a_word_that_only_became_frequent_has_not_moved(report):
    row = next((r for r in report.moved if r.word == "마스크"), None)
    assert row is None or not row.significant


def test_a_burst_in_one_source_ranks_below_one_in_all(report):
    by_word = {row.word: row for row in report.risen}
    assert by_word["도배"].spread < 0.7 < by_word["마스크"].spread


def test_rows_carry_their_evidence(report):
    row = report.moved[0]
    assert row.figures.keys() == {"neighbours", "procrustes"}
    assert row.shift > row.expected
    assert len(row.neighbours) == len(row.neighbours_before) == 10
    assert all(n.changed for n in row.neighbours)
    assert len(row.series) == len(report.windows) == 4
    assert row.series[-1] == pytest.approx(row.rate)
    assert row.documents == sum(s.documents for s in row.sources)
    born = report.born[0]
    assert born.documents_before == 0 < born.documents
    assert born.neighbours_before == ()
    assert born.neighbours
    assert not any(n.changed for n in born.neighbours)


def test_windows_are_named_with_what_was_read(report):
    assert report.snapshot.label == "2020-02"
    assert report.compared_with.label == "2020-01"
    assert report.snapshot.documents == {"게시판": 2000, "뉴스": 3000, "댓글": 1500}
    assert report.snapshot.total_tokens == 60 * 6500


def test_the_same_input_gives_the_same_bytes(store, report):
    again = build_report(SnapshotStore(store.uri), report.snapshot.id)
    assert storage.dumps(again) == storage.dumps(report)
    assert TrendReport.from_dict(report.to_dict()).to_dict() == report.to_dict()


def test_an_earlier_window_is_judged_without_later_ones(store):
    first_three = build_report(store, store.list()[2].id)
    assert first_three.snapshot.label == "2020-01"
    assert "코로나" not in [r.word for r in first_three.moved if r.significant]
    assert first_three.born == ()


@pytest.mark.parametrize("estimator", ["procrustes", "neighbours"])
def test_other_estimators_rank_the_same_word_first(store, estimator):
    report = build_report(store, config=TrendsConfig(estimator=estimator, rows=3))
    assert report.moved[0].word == "코로나"
    assert report.estimator == estimator
    assert len(report.moved) == 3


def test_rare_words_and_signs_are_not_ranked(store):
    report = build_report(store, config=TrendsConfig(min_count=100_000))
    assert report.moved == ()
    assert report.risen
    report = build_report(store, config=TrendsConfig(skip="코로나|마스크"))
    assert not {"코로나", "마스크"} & {*names(report.moved), *names(report.risen)}


def test_one_snapshot_says_so(planted, tmp_path):
    store = planted.make_store(str(tmp_path), planted.Plan(windows=1, fillers=50))
    report = build_report(store)
    assert all(getattr(report, name) == () for name in RANKINGS)
    assert [note.code for note in report.notes] == ["one_snapshot"]
    assert report.compared_with is None


def test_an_empty_store_and_an_unknown_id_are_sentences(tmp_path, store):
    with pytest.raises(SnapshotError):
        build_report(SnapshotStore(tmp_path))
    with pytest.raises(SnapshotError, match="2031-01-00000000"):
        build_report(store, "2031-01-00000000")


def publish(planted, uri, change):
    """Two windows, the last one changed."""
    store = SnapshotStore(uri)
    parent = None
    data = planted.stream(planted.Plan(windows=2, fillers=80, moved={}, born={}))
    for at, one in enumerate(data):
        one = change(one) if at == 1 else one
        parent = store.publish(replace(one, parent=parent)).id
    return store


def test_an_empty_window_says_so(planted, tmp_path):
    nothing = WordCounts((), (), *(np.zeros(0, np.int64),) * 3)
    store = publish(
        planted,
        tmp_path,
        lambda d: replace(d, by_source=nothing, tokens={"뉴스": 0}, documents={"뉴스": 0}),
    )
    report = build_report(store)
    assert [note.code for note in report.notes] == ["empty_window"]
    assert report.moved == report.risen == ()


def test_a_changed_tokenizer_is_noted(planted, tmp_path):
    store = publish(planted, tmp_path, lambda d: replace(d, tokenizer_digest="t2"))
    assert "tokenizer_changed" in [note.code for note in build_report(store).notes]


def test_other_sources_are_noted(planted, tmp_path):
    def rename(data):
        rows = data.by_source
        renamed = WordCounts(
            rows.words,
            ["새" + s for s in rows.sources],
            rows.windows,
            rows.counts,
            rows.documents,
        )
        documents = {"새" + s: n for s, n in data.documents.items()}
        return replace(data, by_source=renamed, documents=documents, tokens=documents)

    report = build_report(publish(planted, tmp_path, rename))
    assert "sources_changed" in [note.code for note in report.notes]


def test_a_broken_earlier_snapshot_is_left_out_and_noted(planted, tmp_path):
    store = planted.make_store(str(tmp_path), planted.Plan(windows=3, fillers=80))
    refs = store.list()
    opened = SnapshotStore(tmp_path)
    real = opened.open

    def failing(name="latest"):
        if name == refs[1].id:
            raise SnapshotError(f"snapshot {name}: vectors.arrow is damaged.")
        return real(name)

    opened.open = failing
    report = build_report(opened)
    assert report.compared_with.id == refs[0].id
    assert [note.code for note in report.notes] == ["broken_snapshot"]


def ref(name, month, parent=None):
    start = datetime(2020, month, 1, tzinfo=UTC)
    return SnapshotRef(name, "", start, datetime(2020, month + 1, 1, tzinfo=UTC), 1, parent)


def test_lineage_follows_parents_and_falls_back_to_windows():
    a, b, c = ref("a", 1), ref("b", 2, "a"), ref("c", 3, "b")
    other = ref("other", 2)
    assert lineage([a, b, other, c], c) == [a, b, c]
    pruned = ref("c2", 3, "gone")
    assert lineage([a, other, pruned], pruned) == [a, other, pruned]
    again = ref("b2", 2, "b")
    after = ref("c3", 3, "b2")
    assert lineage([a, b, again, after], after) == [a, again, after]
    assert lineage([a], a) == [a]


def test_lineage_ends_where_parents_run_in_a_circle():
    a, b = ref("a", 1, "b"), ref("b", 2, "a")
    assert lineage([a, b], b) == [a, b]


def test_saved_reports_come_back_and_tables_agree(report, tmp_path):
    folder = storage.save(report, tmp_path / "trends")
    assert folder.name == report.snapshot.id
    assert storage.load(tmp_path / "trends", report.snapshot.id).to_dict() == report.to_dict()
    assert storage.saved(tmp_path / "trends") == [report.snapshot.id]
    for name in RANKINGS:
        rows = pq.read_table(folder / f"{name}.parquet")
        assert rows.column("word").to_pylist() == names(getattr(report, name))
    assert rows.schema.equals(storage.REPORT_SCHEMA)
    assert sorted(p.name for p in (tmp_path / "trends").iterdir()) == [report.snapshot.id]


def test_saving_again_replaces_what_differs(report, tmp_path):
    first = storage.save(report, tmp_path)
    kept = (first / storage.REPORT).stat().st_mtime_ns
    storage.save(report, tmp_path)
    assert (first / storage.REPORT).stat().st_mtime_ns == kept
    storage.save(replace(report, moved=report.moved[:1]), tmp_path)
    assert len(storage.load(tmp_path, report.snapshot.id).moved) == 1
    assert len([*tmp_path.iterdir()]) == 1


def test_the_figures_of_all_words_are_kept_beside_the_report(report, tmp_path):
    storage.save(report, tmp_path)
    key = report.scores.key
    found = storage.load_scores(tmp_path, report.snapshot.id, key)
    assert found.table.equals(report.scores.table)
    rows = [*found.rows()]
    assert len(rows) == len(found) == report.ranked["moved"]
    for row, shown in zip(rows, report.moved, strict=False):
        kept = {name: getattr(shown, name) for name in row if name != "rank"}
        assert {k: v for k, v in row.items() if k != "rank"} == pytest.approx(to_plain(kept))
    assert found.of(["없는말", rows[7]["word"]]) == {rows[7]["word"]: rows[7]}


def test_stale_or_damaged_figures_are_none_and_saving_again_mends_them(report, tmp_path):
    folder = storage.save(report, tmp_path)
    name, key = report.snapshot.id, report.scores.key
    assert storage.load_scores(tmp_path, name, "other") is None
    for spoil in (lambda p: p.write_bytes(b"PAR1"), lambda p: p.unlink()):
        spoil(folder / storage.SCORES)
        assert storage.load_scores(tmp_path, name, key) is None
        storage.save(report, tmp_path)
        assert storage.load_scores(tmp_path, name, key) is not None
    again = replace(report.scores, key="other")
    storage.save(replace(report, scores=again), tmp_path)
    assert storage.load_scores(tmp_path, name, key) is None
    assert storage.load_scores(tmp_path, name, "other") is not None


def test_a_report_without_a_comparison_has_an_empty_table(planted, tmp_path):
    store = planted.make_store(str(tmp_path), planted.Plan(windows=1, fillers=80))
    report = build_report(store)
    assert len(report.scores) == 0
    assert "scores" not in report.to_dict()


def test_bad_folders_and_reports_are_sentences(report, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be written"):
        storage.save(report, tmp_path / "file")
    with pytest.raises(InputError, match="no report of snapshot 2020-01-x"):
        storage.load(tmp_path, "2020-01-x")
    with pytest.raises(InputError, match="not a snapshot id"):
        storage.load(tmp_path, "../file")
    (tmp_path / "bad").mkdir()
    for text in ("{", "[]", "{}"):
        (tmp_path / "bad" / storage.REPORT).write_text(text)
        with pytest.raises(InputError, match="not a"):
            storage.load(tmp_path, "bad")


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("estimator", "magic", "neighbours, procrustes"),
        ("skip", "(", "not a regular expression"),
        ("false_discovery", 0, "greater than 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(field, value, says):
    with pytest.raises(ValueError, match=says):
        TrendsConfig(**{field: value})
