"""`yeoron train`, from a file to exported vectors."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from calling import ENTRY, TOPICS, sentences
from gensim.models import KeyedVectors

from embedding.snapshots.store import SnapshotStore
from embedding.worker.process.forking import forked
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
QUICK = ("--dim", "16", "--sample", "0")


def train(process, corpus: Path, out: Path, *options: str) -> dict:
    done = process("train", corpus, "--out", out, "--json", *QUICK, *options)
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_from_a_file_to_vectors_that_gensim_opens(process, corpus: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    options = ("--min-count", "100", "--epochs", "5", "--learning-rate", "0.1")
    told = train(process, corpus, store, *options)
    words = corpus.read_text(encoding="utf-8").split()
    counts = {word: words.count(word) for word in set(words)}
    frequent = {word for word, count in counts.items() if count >= 100}

    # A word has its row from the start, so that nothing of any epoch is missed.
    assert told["tokens_trained"] == 5 * sum(counts[word] for word in frequent)
    assert told["vocabulary"] == len(frequent) < len(counts)
    assert told["seconds"] > told["train_seconds"] > 0
    assert told["words_per_second"] == pytest.approx(told["tokens_trained"] / told["train_seconds"])
    assert 0 < told["loss"] < 6 * 0.7
    assert told["bytes_sent_per_token"] == pytest.approx(
        told["bytes_pushed_per_token"] + told["bytes_pulled_per_token"]
    )
    assert told["bytes_pushed_per_token"] > 0
    assert told["bytes_pulled_per_token"] > 0
    peaks = told["peak_memory"]
    assert set(peaks) == {"train", "train-node-0-reader", "train-node-0-gradient"}
    assert all(1 << 24 < peak < 1 << 36 for peak in peaks.values())
    assert len(told["snapshots"]) == 1

    for kind in ("word2vec", "word2vec-text", "keyedvectors"):
        out = tmp_path / kind
        done = process("export", "vectors", store, "--format", kind, "--out", out)
        assert done.code == 0, done.err
        if kind == "keyedvectors":
            vectors = KeyedVectors.load(str(out))
        else:
            vectors = KeyedVectors.load_word2vec_format(str(out), binary=kind == "word2vec")
        assert set(vectors.index_to_key) == frequent
        # Most frequent first, and near are words of the same topic: the vectors are those learnt.
        assert counts[vectors.index_to_key[0]] == max(counts.values())
        near = [word for i in range(TOPICS) for word, _ in vectors.most_similar(f"t{i}w0", topn=3)]
        asked = [f"t{i}w" for i in range(TOPICS) for _ in range(3)]
        same = [word.startswith(topic) for word, topic in zip(near, asked, strict=True)]
        assert sum(same) > 0.8 * len(same)
    folder = store / told["snapshots"][0]["id"]
    one = process("export", "vectors", folder, "--format", "word2vec", "--out", tmp_path / "x")
    assert one.code == 0, one.err
    assert (tmp_path / "x").read_bytes() == (tmp_path / "word2vec").read_bytes()

    again = process("train", corpus, "--out", store)
    assert again.code == 2
    assert told["snapshots"][0]["id"] in again.err


def test_one_node_and_one_seed_give_identical_bytes(
    process, own_process, corpus: Path, tmp_path: Path
) -> None:
    """Every file: the snapshot's own and what is exported from it, whatever a process hashes by."""
    seen = []
    for name, seed, how in (("a", "7", process), ("b", "7", own_process), ("c", "8", process)):
        told = train(how, corpus, tmp_path / name, "--seed", seed, "--epochs", "2")
        snapshot = tmp_path / name / told["snapshots"][0]["id"]
        exported = ("--format", "word2vec", "--out", tmp_path / f"{name}.bin")
        assert process("export", "vectors", tmp_path / name, *exported).code == 0
        files = (snapshot / "vectors.arrow", tmp_path / f"{name}.bin")
        seen.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
        config = SnapshotStore(tmp_path / name).open().manifest.config
        assert (config["model"]["model"], config["model"]["seed"]) == ("sgns", int(seed))
        known = {"compression": "fp16", "topology": "ps", "tokenizer": "whitespace", "nodes": 1}
        assert known.items() <= config.items()
    assert seen[0] == seen[1]
    assert seen[0][0] != seen[2][0]
    assert seen[0][1] != seen[2][1]


@pytest.mark.parametrize("vocabulary", ["counted", "growing"])
def test_the_vocabulary(process, corpus: Path, tmp_path: Path, vocabulary: str) -> None:
    options = ("--vocabulary", vocabulary, "--min-count", "100", "--nodes", "2")
    told = train(process, corpus, tmp_path / "store", *options)
    words = corpus.read_text(encoding="utf-8").split()
    counts = {word: words.count(word) for word in set(words)}
    known = sum(count for count in counts.values() if count >= 100)
    frequent = sum(count >= 100 for count in counts.values())
    if vocabulary == "counted":
        assert (told["tokens_trained"], told["vocabulary"]) == (known, frequent)
    else:
        assert 0 < told["tokens_trained"] < known
        assert 0 < told["vocabulary"] <= frequent
    assert len(told["peak_memory"]) == 5


def test_max_words_keeps_the_most_frequent(process, corpus: Path, tmp_path: Path) -> None:
    told = train(process, corpus, tmp_path / "store", "--max-words", "10")
    assert told["vocabulary"] == 10
    store = tmp_path / "store"
    done = process("export", "vectors", store, "--format", "word2vec", "--out", tmp_path / "v")
    assert done.code == 0
    words = corpus.read_text(encoding="utf-8").split()
    counts = sorted((words.count(word) for word in set(words)), reverse=True)
    kept = KeyedVectors.load_word2vec_format(str(tmp_path / "v"), binary=True).index_to_key
    assert sorted((words.count(word) for word in kept), reverse=True) == counts[:10]


def dated(path: Path, months: tuple[str, ...] = ("01", "02", "03"), *, words: int = 2000) -> Path:
    """Three months of posts on each day, each month with words of its own."""
    lines = []
    for month in months:
        posts = sentences(words, seed=int(month)).strip().split("\n")
        for at, post in enumerate(posts):
            day = 1 + at * 28 // len(posts)
            text = post.replace("t1w0", f"month{month}")
            lines.append(json.dumps({"date": f"2020-{month}-{day:02}", "text": text}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_snapshot_for_each_window(process, tmp_path: Path) -> None:
    corpus = dated(tmp_path / "posts.jsonl")
    options = ("--dated", "--window", "month", "--context", "3", "--min-count", "2")
    told = train(process, corpus, tmp_path / "store", *options)
    refs = told["snapshots"]
    assert [ref["window_start"][:7] for ref in refs] == ["2020-01", "2020-02", "2020-03"]
    assert told["late_documents"] == 0
    lines = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    store = SnapshotStore(tmp_path / "store")
    for ref in refs:
        month = ref["window_start"][:7]
        snapshot = store.open(ref["id"])
        posts = [line for line in lines if line["date"].startswith(month)]
        assert snapshot.manifest.documents == {"corpus": len(posts)}
        assert snapshot.manifest.config["model"]["window"] == 3
        assert snapshot.index(f"month{month[-2:]}") is not None
    assert [ref["parent"] for ref in refs] == [None, refs[0]["id"], refs[1]["id"]]


def uses(store: Path) -> list[dict[str, list[float]]]:
    """Of each window that is compared: documents in each unit by word and time."""
    found = []
    opened = SnapshotStore(store)
    for ref in opened.list()[1:]:
        snapshot = opened.open(ref.id)
        assert snapshot.usage is not None
        found.append(
            {
                f"{snapshot.words[row]} {time}": documents.tolist()
                for time, use in enumerate(snapshot.usage.reread)
                for row, documents in zip(use.rows.tolist(), use.pairs, strict=True)
            }
        )
    return found


def test_nodes_say_together_how_one_node_would_have_seen_words_used(
    process, tmp_path: Path
) -> None:
    corpus = dated(tmp_path / "posts.jsonl", words=40_000)
    assert corpus.stat().st_size > 6 << 16  # each node has some of each month
    options = ("--dated", "--window", "month", "--tokenizer", "whitespace", "--min-count", "2")
    for nodes in ("1", "2"):
        train(process, corpus, tmp_path / nodes, *options, "--nodes", nodes)
    alone, together = uses(tmp_path / "1"), uses(tmp_path / "2")
    assert [len(window) > 100 for window in alone] == [True, True]
    for one, other in zip(alone, together, strict=True):
        assert one.keys() == other.keys()
        # A passage that both nodes hold counts once on each.
        same = [one[word] == other[word] for word in one]
        assert sum(same) / len(same) > 0.6
        documents, others = (sum(map(sum, each.values())) for each in (one, other))
        assert documents == pytest.approx(others, rel=0.01)


def test_dated_lines_without_windows_are_one_snapshot(process, tmp_path: Path) -> None:
    corpus = dated(tmp_path / "posts.jsonl")
    told = train(process, corpus, tmp_path / "store", "--vocabulary", "counted")
    assert len(told["snapshots"]) == 1
    window = told["snapshots"][0]
    assert (window["window_start"][:10], window["window_end"][:10]) == ("2020-01-01", "2020-04-01")
    assert told["documents"] == len(corpus.read_text(encoding="utf-8").splitlines())


def test_half_past_midnight_in_seoul_is_of_the_month_that_has_begun_there(
    process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YEORON_SERVER__TIMEZONE", "Asia/Seoul")
    months = {
        "2020-02": ("2020-02-29", "2020-02-29T23:59:59", "2020-02-29T14:59:59Z"),
        "2020-03": ("2020-03-01T00:30:00+09:00", "2020-03-01", "2020-03-01T00:30"),
    }
    corpus = tmp_path / "posts.jsonl"
    with corpus.open("w", encoding="utf-8") as file:
        for month, dates in months.items():
            for date in [each for each in dates for _ in range(20)]:
                text = f"{month}월에 쓴 글과 마스크 공장"
                file.write(json.dumps({"date": date, "text": text}) + "\n")
    options = ("--dated", "--window", "month", "--min-count", "1")
    train(process, corpus, tmp_path / "store", *options)
    store = SnapshotStore(str(tmp_path / "store"))
    for ref, month in zip(store.list(), months, strict=True):
        snapshot = store.open(ref.id)
        assert (snapshot.manifest.window.label, snapshot.manifest.timezone) == (month, "Asia/Seoul")
        assert sum(snapshot.manifest.documents.values()) == 60
        counted = dict(zip(snapshot.by_source.words, snapshot.by_source.counts, strict=True))
        assert counted[f"{month}월에"] == 60
        assert ref.to_dict()["window_start"] == f"{month}-01T00:00:00+09:00"
    assert "2020-03" in process("snapshot", "list", "--snapshots", tmp_path / "store").out


@pytest.mark.parametrize("sync", ["bsp", "asp", "hogwild"])
def test_each_way_to_keep_nodes_in_step(process, corpus: Path, tmp_path: Path, sync: str) -> None:
    told = train(process, corpus, tmp_path / "store", "--sync", sync, "--nodes", "2")
    words = corpus.read_text(encoding="utf-8").split()
    known = sum(words.count(word) for word in set(words) if words.count(word) >= 5)
    assert told["tokens_trained"] == known


def test_a_loss_that_explodes_names_the_setting(process, corpus: Path, tmp_path: Path) -> None:
    """The node that did not fail is ended, too."""
    done = process(
        *("train", corpus, "--out", tmp_path / "store", "--learning-rate", "1000", *QUICK),
        *("--nodes", "2", "--epochs", "1000"),
    )
    assert done.code == 2
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert "loss" in done.err
    assert "learning_rate" in done.err
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("vocabulary", ["growing", "counted"])
def test_a_line_that_is_not_utf8_is_left_out_alone_and_named(
    process, corpus: Path, tmp_path: Path, vocabulary: str
) -> None:
    broken = tmp_path / "broken.txt"
    text = corpus.read_bytes()
    broken.write_bytes(text + b"caf\xe9\n" + text)
    store = tmp_path / "store"
    done = process("train", broken, "--vocabulary", vocabulary, "--out", store, *QUICK)
    assert done.code == 0, done.err
    line = text.count(b"\n") + 1
    assert f"1 text could not be read and was left out: broken.txt:{line}" in done.err
    assert "not UTF-8 text" in done.err


def test_a_file_of_another_encoding_is_refused_with_its_first_line(process, tmp_path: Path) -> None:
    other = tmp_path / "cp949.txt"
    other.write_bytes(("plain\n" + "한국어 문장\n" * 50).encode("cp949"))
    done = process("train", other, "--out", tmp_path / "store", *QUICK)
    assert done.code == 2
    assert "line 2 is not UTF-8 text, and 50 of the first 51 are not" in done.err
    assert "convert the file to UTF-8" in done.err
    assert not (tmp_path / "store").exists()


def test_an_interrupt_ends_every_process(corpus: Path, tmp_path: Path) -> None:
    """^C on a terminal goes to the whole foreground group."""
    out = tmp_path / "store"
    started = subprocess.Popen(
        [sys.executable, "-c", ENTRY, "train", corpus, "--out", out, "--epochs", "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        children = _wait_for_training(started.pid)
        os.killpg(started.pid, signal.SIGINT)
        _, said = started.communicate(timeout=300)
    finally:
        started.kill()
    assert started.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(children, timeout=300)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    assert not out.exists()


def _wait_for_training(pid: int) -> list[psutil.Process]:
    """The processes once both of a node's are there and have begun to use the processor."""

    def working() -> list[psutil.Process]:
        children = psutil.Process(pid).children(recursive=True)
        workers = [each for each in children if forked(each)]
        begun = len(workers) == 2 and all(sum(each.cpu_times()[:2]) > 0.5 for each in workers)
        return children if begun else []

    return until(working, "no node was started")


def test_nothing_is_shown_where_no_terminal_is(own_process, corpus: Path) -> None:
    done = own_process("train", corpus, *QUICK)
    assert done.code == 0
    assert done.err == ""
    assert "words/s" in done.out
    assert "Nothing was kept" in done.out
