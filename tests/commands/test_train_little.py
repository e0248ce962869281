"""`yeoron train` on too little text for anything: exit 0, an honest snapshot, one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from calling import sentences

from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
BUDGET = 30.0
"""node.rehearsal_passes when nobody sets it."""


def posts(path: Path, texts: Iterable[tuple[str, str]]) -> Path:
    """A dated corpus of (date, text)."""
    lines = [json.dumps({"date": date, "text": text}, ensure_ascii=False) for date, text in texts]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def trained(yeoron, corpus: Path, *options: str) -> tuple[dict, list[Snapshot], list[str]]:
    """What a training says as JSON, its snapshots, and its lines on standard error."""
    out = corpus.parent / "store"
    dated = ("--dated", "--window", "month") if corpus.suffix == ".jsonl" else ()
    done = yeoron("train", corpus, "--out", out, "--json", "--dim", "16", *dated, *options)
    assert done.code == 0, done.err
    store = SnapshotStore(str(out))
    return json.loads(done.out), [store.open(ref.id) for ref in store.list()], said(done.err)


def said(err: str) -> list[str]:
    """The sentences about the model; a log's lines begin with a date."""
    return [line for line in err.splitlines() if "cannot be read" in line]


@pytest.mark.parametrize("options", [(), ("--vocabulary", "growing"), ("--model", "sppmi")])
@pytest.mark.parametrize("text", ["one two three\nfour\n", "\n  \n\n"], ids=["rare", "blank"])
def test_plain_text_without_a_frequent_word(
    yeoron, tmp_path: Path, text: str, options: tuple[str, ...]
) -> None:
    if "sppmi" not in options and not text.strip() and options:
        pytest.skip("blank text that is not counted first is read as rare text is")
    corpus = tmp_path / "c.txt"
    corpus.write_text(text, encoding="utf-8")
    told, [snapshot], [sentence] = trained(yeoron, corpus, *options)
    assert (told["tokens_trained"], told["vocabulary"], len(snapshot.words)) == (0, 0, 0)
    assert sentence.startswith(f"{corpus}: ")
    assert "min_count" in sentence
    assert "about 50,000 more words are needed" in sentence
    assert sentence.endswith(str(snapshot.unreadable))
    assert told["unreadable"] == snapshot.unreadable
    assert snapshot.manifest.quality["words_read"] == 0


@pytest.mark.parametrize("text", ["하나 둘 셋", ""], ids=["rare", "empty"])
def test_a_dated_corpus_without_a_frequent_word(yeoron, tmp_path: Path, text: str) -> None:
    corpus = posts(tmp_path / "c.jsonl", [("2020-01-03", text), ("2020-02-03", text)])
    told, snapshots, [sentence] = trained(yeoron, corpus)
    assert [one.manifest.window.label for one in snapshots] == ["2020-01", "2020-02"]
    assert all(one.unreadable for one in snapshots)
    assert [one.manifest.tokens for one in snapshots] == 2 * [{"corpus": len(text.split())}]
    assert [one.manifest.documents for one in snapshots] == 2 * [{"corpus": 1}]
    assert told["tokens_trained"] == 0
    assert "about 50,000 more words are needed" in sentence


def test_a_dated_corpus_of_blank_lines_has_a_snapshot_of_now(yeoron, tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("\n\n  \n", encoding="utf-8")
    told, [snapshot], [_] = trained(yeoron, corpus)
    assert (told["documents"], snapshot.manifest.tokens) == (0, {})


def test_without_out_it_is_said_too(yeoron, tmp_path: Path) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("one two\n", encoding="utf-8")
    done = yeoron("train", corpus)
    assert done.code == 0
    assert len(said(done.err)) == 1
    assert "0 tokens" in done.out


def test_a_window_keeps_no_vectors_of_later_ones(yeoron, tmp_path: Path) -> None:
    """Of a first window without a frequent word, and of one without text between two with some."""
    text = sentences(6_000).splitlines()
    months = {"01": ["아직 없다"], "02": text[:300], "03": ["", " "], "04": text[300:]}
    corpus = posts(
        tmp_path / "c.jsonl",
        ((f"2020-{month}-03", line) for month, lines in months.items() for line in lines),
    )
    _, snapshots, _ = trained(yeoron, corpus)
    assert [one.manifest.window.label for one in snapshots] == [f"2020-{month}" for month in months]
    assert len(snapshots[0].words) == 0
    assert len(snapshots[1].words) > 100
    assert snapshots[2].manifest.tokens == {"corpus": 0}
    at = {word: row for row, word in enumerate(snapshots[2].words)}
    rows = [at[word] for word in snapshots[1].words]
    assert (snapshots[2].vectors[rows] == snapshots[1].vectors).all(), "nothing was read"
    assert snapshots[2].counts.sum() <= 10 * 300 + 2
    assert [one.manifest.parent for one in snapshots[1:]] == [one.id for one in snapshots[:-1]]


@pytest.mark.parametrize(
    ("line", "times"), [("말", 200), ("말 " * 9, 200), ("같은 글 을 거듭 싣는 곳 이 있다", 20_000)]
)
def test_one_document_again_and_again_ends_within_its_budget(
    yeoron, tmp_path: Path, line: str, times: int
) -> None:
    """One word, and one document so often: no endless rehearsal, nothing divided by nothing."""
    days = [f"2020-{month:02}-{day:02}" for month in (1, 2) for day in range(1, 21)]
    each = times // len(days)
    corpus = posts(tmp_path / "c.jsonl", ((day, line) for day in days for _ in range(each)))
    told, snapshots, [sentence] = trained(yeoron, corpus)
    words = set(line.split())
    assert [set(one.words) for one in snapshots] == [words, words]
    assert told["tokens_trained"] == len(days) * each * len(line.split())
    assert told["replayed_tokens"] <= 2 * BUDGET * told["tokens_trained"]
    assert "fewer than 100 words" in sentence
    assert all(one.unreadable for one in snapshots)
    assert sum(one.by_source.counts.sum() for one in snapshots) == told["tokens_trained"]


def test_one_word_in_plain_text(yeoron, tmp_path: Path) -> None:
    corpus = tmp_path / "c.txt"
    corpus.write_text("말\n" * 2000, encoding="utf-8")
    told, [snapshot], [sentence] = trained(yeoron, corpus)
    assert (told["tokens_trained"], snapshot.words) == (2000, ("말",))
    assert "about 48,000 more words are needed" in sentence
