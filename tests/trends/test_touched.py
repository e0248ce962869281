"""Words that a change of the tokenizer touched are held out and listed."""

from __future__ import annotations

from dataclasses import replace

from embedding.snapshots.store import SnapshotStore
from embedding.trends.moved import touched_words
from embedding.trends.report import build_report


def test_a_new_whole_word_and_its_parts_are_touched_and_others_are_not():
    before = dict.fromkeys(("노", "잼", "영화", "배우", "노잼스"), 8)
    after = {**before, "노잼": 4, "코로나": 4}
    assert touched_words(before, after) == {"노잼", "노", "잼"}
    assert touched_words(after, before) == {"노잼", "노", "잼"}
    assert touched_words(before, before) == set()


def test_a_part_that_a_new_word_hardly_takes_from_is_not_touched():
    """Any new word can be spelt with short words: a common part stays among the ranked ones."""
    before = {"거": 3, "리": 3, "거리": 400, "먹": 5, "사건": 300}
    after = {**before, "먹거리": 4, "사건거리": 3}
    assert touched_words(before, after) == {"먹거리", "사건거리", "먹"}
    often = {**before, "먹거리": 100}
    assert touched_words(before, often) == {"먹거리", "먹", "거리"}


def test_the_report_holds_them_out_only_when_the_tokenizer_changed(planted, tmp_path):
    plan = planted.Plan(windows=4, extra=("국회장관",))
    store, parent = SnapshotStore(str(tmp_path)), None
    for at, data in enumerate(planted.stream(plan)):
        keep = [i for i, word in enumerate(data.by_source.words) if at == 3 or word != "국회장관"]
        counts = replace(
            data.by_source,
            words=[data.by_source.words[i] for i in keep],
            sources=[data.by_source.sources[i] for i in keep],
            **{
                name: getattr(data.by_source, name)[keep]
                for name in ("windows", "counts", "documents")
            },
        )
        digest = "t2" if at == 3 else "t1"
        parent = store.publish(
            replace(data, by_source=counts, parent=parent, tokenizer_digest=digest)
        ).id
    report = build_report(store)
    assert report.held_out == ("국회", "국회장관", "장관")
    assert not {row.word for row in report.moved} & set(report.held_out)
    assert "tokenizer_changed" in {note.code for note in report.notes}
    earlier = build_report(store, store.list()[2].id)
    assert earlier.held_out == ()
