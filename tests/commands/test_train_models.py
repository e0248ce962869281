"""`yeoron train --model …` as a process of its own: each model ends as vectors that make sense."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore
from embedding.training import checks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TOPICS = [["감염병", "마스크", "병원", "확진"], ["축구", "경기장", "선수", "감독"]]


@pytest.fixture(scope="session")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of one topic each; one word is read twice, always alone."""
    rng = np.random.default_rng(1)
    lines = [" ".join(rng.choice(TOPICS[i % 2], 12)) for i in range(3000)]
    lines[700] = lines[2300] = "감염병원균"
    path = tmp_path_factory.mktemp("topics") / "topics.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def train(process, corpus: Path, out: Path, *options: str) -> tuple[dict, Snapshot]:
    fixed = ("--dim", "16", "--sample", "0", "--min-count", "2", "--epochs", "8")
    done = process("train", corpus, "--out", out, "--json", *fixed, *options)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    return told, SnapshotStore(str(out)).open(told["snapshots"][0]["id"])


@pytest.mark.parametrize(
    ("model", "sync"),
    [
        ("fasttext", "ssp"),
        *(
            pytest.param(*pair, marks=pytest.mark.laboratory)
            for pair in (*product(["cbow", "glove"], ["ssp", "hogwild"]), ("fasttext", "hogwild"))
        ),
    ],
)
def test_topics_come_apart(process, topics: Path, tmp_path: Path, model: str, sync: str) -> None:
    rate = "0.2" if model == "glove" else "0.05"
    told, snapshot = train(
        process,
        topics,
        tmp_path / "store",
        *("--model", model, "--sync", sync, "--nodes", "2", "--learning-rate", rate),
    )
    assert told["tokens_trained"] == 8 * (2998 * 12 + 2)
    assert snapshot.manifest.dim == 16
    for topic in TOPICS:
        for word in topic:
            rare = "감염병원균"
            near = [found for found, _ in snapshot.neighbours(word, 4) if found != rare][:3]
            assert set(near) == set(topic) - {word}
    if model == "fasttext":
        assert snapshot.manifest.config["buckets"] == 200_000
        assert snapshot.neighbours("감염병원균", 1)[0][0] == "감염병"


@pytest.mark.cuda
@pytest.mark.parametrize(("model", "epochs"), [("sgns", 3), ("cbow", 3)])
def test_nodes_train_on_a_gpu_in_place(
    process, topics: Path, tmp_path: Path, model: str, epochs: int
) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    options = ("--device", "cuda", "--sync", "hogwild", "--nodes", "2", "--model", model)
    told, snapshot = train(process, topics, tmp_path / "store", *options, "--epochs", str(epochs))
    assert told["tokens_trained"] == epochs * (2998 * 12 + 2)
    for topic in TOPICS:
        for word in topic:
            near = [found for found, _ in snapshot.neighbours(word, 4) if found != "감염병원균"]
            assert set(near[:3]) == set(topic) - {word}


def test_the_count_baseline_separates_topics_too(process, topics: Path, tmp_path: Path) -> None:
    counted = ("--model", "sppmi", "--epochs", "1", "--dim", "4")
    told, snapshot = train(process, topics, tmp_path / "store", *counted)
    assert told["tokens_trained"] == 2998 * 12 + 2
    assert (told["vocabulary"], told["loss"]) == (9, None)
    assert (snapshot.manifest.dim, snapshot.manifest.tokens) == (4, {"corpus": 2998 * 12 + 2})
    words = topics.read_text(encoding="utf-8").split()
    assert {word: snapshot.counts[snapshot.index(word)] for word in snapshot.words} == {
        word: words.count(word) for word in set(words)
    }
    for topic in TOPICS:
        for word in topic:
            near = [found for found, _ in snapshot.neighbours(word, 3)]
            assert set(near) == set(topic) - {word}
    assert not snapshot.vectors[snapshot.index("감염병원균")].any(), "it stands beside no word"
    again, same = train(process, topics, tmp_path / "again", *counted)
    assert again["snapshots"][0]["id"] == told["snapshots"][0]["id"]
    assert same.vectors.tobytes() == snapshot.vectors.tobytes()
    done = process("evaluate", tmp_path / "store")
    assert done.code == 0, done.err


def test_words_that_all_stand_alone_cannot_be_counted_in_pairs(yeoron, tmp_path: Path) -> None:
    alone = tmp_path / "alone.txt"
    alone.write_text("하나\n둘\n셋\n" * 10, encoding="utf-8")
    done = yeoron("train", alone, "--model", "sppmi", "--out", tmp_path / "store")
    assert done.code == 2
    assert done.err.startswith("yeoron: ")
    assert "alone.txt: no co-occurrence was counted" in done.err.replace("\n", "")
    assert not (tmp_path / "store").exists()


def test_n_gram_rows_that_no_memory_holds_are_refused(
    yeoron, topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "free_memory", lambda: 1 << 33)
    done = yeoron("train", topics, "--model", "fasttext", "--dim", "65536")
    assert done.code == 2
    assert "dim 65536: with 200,000 n-gram rows (model.buckets) the tables take" in done.err
    assert "choose a smaller dim" in done.err
