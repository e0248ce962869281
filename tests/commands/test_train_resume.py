"""`yeoron train --state-dir`: killed at any moment, the same command goes on and ends right."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest
from calling import ENTRY, sentences

from embedding.snapshots.store import SnapshotStore
from embedding.training import TrainResult
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
QUICK = ("--dim", "16", "--sample", "0", "--json")


def begin(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ENTRY, "train", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed_while_learning(state: Path, tokens: int, *arguments: object) -> bool:
    """Run the command and kill -9 it once a checkpoint holds `tokens`; False: it had ended."""
    process = begin(*arguments)
    children: list[psutil.Process] = []

    def reached() -> bool:
        nonlocal children
        if process.poll() is not None or checkpointed(state) >= tokens:
            return True
        children = psutil.Process(process.pid).children(recursive=True) or children
        return False

    try:
        until(reached, "no checkpoint was written")
        ended = process.poll() is not None
    finally:
        process.kill()
        # Nodes wait for a server that is away for a minute before they give up.
        said = process.communicate(timeout=300)[1]
    assert not ended or process.returncode == 0, said
    _, alive = psutil.wait_procs(children, timeout=300)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    return not ended


def checkpointed(state: Path) -> int:
    """Tokens that the newest checkpoint holds."""
    return totals_of(state).get("tokens", 0)


def totals_of(state: Path) -> dict[str, int]:
    """Totals of the newest checkpoint: what was learnt, and learnt again."""
    for manifest in sorted((state / "server").glob("checkpoint-*/manifest.json"))[-1:]:
        with contextlib.suppress(FileNotFoundError):
            return dict(json.loads(manifest.read_text())["facts"]["totals"])
    return {}


def finish(yeoron, *arguments: object) -> dict:
    """Run the command again, in this process: only what is killed has to be one of its own."""
    done = yeoron("train", *arguments)
    assert done.code == 0, done.err
    return json.loads(done.out)


def counts_of(store: Path) -> dict[str, int]:
    """Occurrences by word, of all windows of a store."""
    total: Counter[str] = Counter()
    for ref in SnapshotStore(str(store)).list():
        counts = SnapshotStore(str(store)).open(ref.id).by_source
        for word, n in zip(counts.words, counts.counts.tolist(), strict=True):
            total[word] += n
    return dict(total)


@pytest.mark.parametrize(("vocabulary", "sync"), [("counted", "ssp"), ("growing", "hogwild")])
def test_a_killed_training_goes_on_and_learns_each_word_once(
    yeoron, tmp_path: Path, vocabulary: str, sync: str
) -> None:
    corpus, state, out = tmp_path / "c.txt", tmp_path / "state", tmp_path / "store"
    # Enough that a busy machine is not through before the kill comes.
    corpus.write_text(20 * sentences(30_000), encoding="utf-8")
    arguments = (corpus, "--out", out, "--state-dir", state, "--vocabulary", vocabulary)
    arguments = (*arguments, "--sync", sync)
    arguments = (*arguments, "--nodes", "2", "--epochs", "2", "--checkpoint-every", "0.2", *QUICK)
    assert killed_while_learning(state, 50_000, *arguments), "it ended before it could be killed"
    told = finish(yeoron, *arguments)
    words = Counter(corpus.read_text(encoding="utf-8").split())
    assert counts_of(out) == {word: 2 * n for word, n in words.items()}
    assert told["late_documents"] == 0
    # On a busy machine the checkpoint after the first is that of all words.
    assert 0 < told["resumed_tokens"] <= told["tokens_trained"]
    if vocabulary == "counted":
        assert told["tokens_trained"] == 2 * words.total()
    assert not state.exists(), "what has ended well leaves no state"


def test_a_killed_training_of_windows_cuts_each_of_them_once_and_whole(
    yeoron, tmp_path: Path
) -> None:
    sources = ["뉴스", "게시판", "댓글"]
    corpus, state, out = tmp_path / "c.jsonl", tmp_path / "state", tmp_path / "store"
    months = [(8 * sentences(10_000, seed)).splitlines() for seed in range(1, 4)]
    with corpus.open("w", encoding="utf-8") as file:
        for month, lines in enumerate(months, start=1):
            for at, text in enumerate(lines):
                date = f"2020-{month:02d}-{1 + at * 27 // len(lines):02d}"
                line = {"date": date, "text": text, "source": sources[at % len(sources)]}
                file.write(json.dumps(line) + "\n")
    arguments = (corpus, "--dated", "--window", "month", "--out", out, "--state-dir", state)
    arguments = (*arguments, "--checkpoint-every", "0.3", *QUICK)
    assert killed_while_learning(state, 100_000, *arguments)
    told = finish(yeoron, *arguments)
    assert told["late_documents"] == 0
    store = SnapshotStore(str(out))
    found = [store.open(ref.id) for ref in store.list()]
    assert [shot.ref.window_start.month for shot in found] == [1, 2, 3]
    for shot, lines in zip(found, months, strict=True):
        words = {source: Counter[str]() for source in sources}
        for at, text in enumerate(lines):
            words[sources[at % len(sources)]].update(text.split())
        counts = shot.by_source
        rows = zip(counts.sources, counts.words, counts.counts.tolist(), strict=True)
        held = {(source, word): n for source, word, n in rows}
        assert held == {(s, word): n for s, each in words.items() for word, n in each.items()}
        assert shot.manifest.tokens == {source: each.total() for source, each in words.items()}
    assert [ref.parent for ref in store.list()] == [None, *(ref.id for ref in store.list()[:-1])]


def test_killed_in_the_middle_of_a_rehearsal_it_goes_on_and_counts_nothing_twice(
    yeoron, tmp_path: Path
) -> None:
    """kill -9 of the whole training; tests/worker/process/test_kills.py has one of its node."""
    corpus, state, out = tmp_path / "c.jsonl", tmp_path / "state", tmp_path / "store"
    months = [sentences(10_000, seed).splitlines() for seed in range(1, 4)]
    with corpus.open("w", encoding="utf-8") as file:
        for month, lines in enumerate(months, start=1):
            for at, text in enumerate(lines):
                date = f"2020-{month:02d}-{1 + at * 27 // len(lines):02d}"
                file.write(json.dumps({"date": date, "text": text}) + "\n")
    arguments = (corpus, "--dated", "--window", "month", "--out", out, "--state-dir", state)
    arguments = (*arguments, "--checkpoint-every", "0.2", "--rehearsal-passes", "400", *QUICK)

    def rehearses(process: subprocess.Popen[str]) -> bool:
        assert process.poll() is None, process.communicate()
        totals = totals_of(state)
        # Of 4 million tokens that the first window may be learnt again.
        return 100_000 < totals.get("replayed_tokens", 0) < 3_000_000

    process = begin(*arguments)
    children = psutil.Process(process.pid).children
    until(lambda: rehearses(process), "it rehearses")
    alive = children(recursive=True)
    process.kill()
    process.communicate(timeout=300)
    psutil.wait_procs(alive, timeout=300)
    assert totals_of(state)["tokens"] == 10_000, "the first window was under way"
    told = finish(yeoron, *arguments)
    assert told["tokens_trained"] == 30_000
    assert told["late_documents"] == 0
    assert told["replayed_tokens"] > 1_000_000, "it went on rehearsing"
    store = SnapshotStore(str(out))
    found = [store.open(ref.id) for ref in store.list()]
    assert [shot.ref.window_start.month for shot in found] == [1, 2, 3]
    for shot, lines in zip(found, months, strict=True):
        words = Counter(word for line in lines for word in line.split())
        held = dict(zip(shot.by_source.words, shot.by_source.counts.tolist(), strict=True))
        assert held == words
        assert shot.manifest.tokens == {"corpus": words.total()}


def test_bytes_are_shared_out_among_the_tokens_that_were_sent_with_them() -> None:
    told = TrainResult(
        tokens_trained=1000,
        resumed_tokens=900,
        seconds=2.0,
        train_seconds=1.0,
        words_per_second=100.0,
        loss=1.0,
        vocabulary=5,
        documents=1,
        late_documents=0,
        bytes_pushed=300,
        bytes_pulled=500,
        peak_memory={},
        nodes={},
    ).to_dict()
    assert (told["bytes_pushed_per_token"], told["bytes_pulled_per_token"]) == (3.0, 5.0)
    assert told["bytes_sent_per_token"] == 8.0


def test_another_training_does_not_go_on_from_this_state(
    yeoron, corpus: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    kept = (corpus, "--state-dir", state, "--checkpoint-every", "0.1", *QUICK)
    assert killed_while_learning(state, 1, *kept, "--epochs", "100000")
    other = yeoron("train", *kept, "--epochs", "7")
    assert other.code == 2
    assert "it holds a training begun with epochs 100000, and now it is 7" in other.err
    text = corpus.read_text(encoding="utf-8")
    changed = tmp_path / "changed.txt"
    changed.write_text(text, encoding="utf-8")
    other = yeoron("train", changed, "--state-dir", state, "--epochs", "100000", *QUICK)
    assert other.code == 2
    assert "begun with corpus" in other.err
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("")
    other = yeoron("train", corpus, "--state-dir", tmp_path / "photos", *QUICK)
    assert other.code == 2
    assert "something else than a training" in other.err
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]
