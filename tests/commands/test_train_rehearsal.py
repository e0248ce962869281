"""`yeoron train --dated` rehearses with several nodes, policies, topologies and kinds of replay."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from calling import sentences

from embedding.snapshots.store import SnapshotStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
WORDS = 6_000
"""In each of two months."""
PASSES = 4


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("posts") / "c.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for month in (1, 2):
            for text in sentences(WORDS, month).splitlines():
                file.write(json.dumps({"date": f"2020-{month:02}-03", "text": text}) + "\n")
    return path


def trained(yeoron, corpus: Path, out: Path, *options: str) -> dict:
    done = yeoron(
        *("train", corpus, "--dated", "--window", "month", "--out", out, "--json", "--dim", "16"),
        *("--min-count", "1", "--rehearsal-passes", PASSES, *options),
    )
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--nodes 2 --sync bsp",
        "--nodes 2 --sync asp",
        pytest.param("--nodes 2 --sync backup", marks=pytest.mark.laboratory),
        pytest.param("--nodes 2 --sync averaging", marks=pytest.mark.laboratory),
        pytest.param("--nodes 2 --sync hogwild", marks=pytest.mark.laboratory),
        "--nodes 2 --shards 2",
        pytest.param("--nodes 2 --server-groups 2", marks=pytest.mark.laboratory),
        "--nodes 2 --pulls changes --compression threshold",
    ],
)
def test_each_way_to_train_rehearses_and_counts_each_word_once(
    yeoron, posts: Path, tmp_path: Path, options: str
) -> None:
    told = trained(yeoron, posts, tmp_path / "store", *options.split())
    assert told["tokens_trained"] == 2 * WORDS
    # Most where one node has the first month and a little of the second: each month is then the
    # first of a node, and that one learns half as often what it remembers. A tenth: held out.
    assert 0 < told["replayed_tokens"] <= 1.1 * 2.5 * PASSES * WORDS
    store = SnapshotStore(str(tmp_path / "store"))
    for ref in store.list():
        snapshot = store.open(ref.id)
        assert snapshot.manifest.tokens == {"corpus": WORDS}
        assert snapshot.by_source.counts.sum() == WORDS


@pytest.mark.parametrize("replay", ["loss", "gradient"])
def test_prioritised_replay_is_rehearsed_too(
    yeoron, posts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replay: str
) -> None:
    monkeypatch.setenv("YEORON_STREAM__REPLAY", replay)
    told = trained(yeoron, posts, tmp_path / "store")
    assert told["tokens_trained"] == 2 * WORDS
    assert told["replayed_tokens"] > WORDS


def test_a_budget_of_0_rehearses_nothing(yeoron, posts: Path, tmp_path: Path) -> None:
    told = trained(yeoron, posts, tmp_path / "store", "--rehearsal-passes", "0")
    assert told["replayed_tokens"] == 0


def test_one_node_and_one_seed_rehearse_to_the_same_bytes(
    yeoron, own_process, posts: Path, tmp_path: Path
) -> None:
    found = []
    for name, how in (("a", yeoron), ("b", own_process)):
        assert trained(how, posts, tmp_path / name)["replayed_tokens"] > WORDS
        store = SnapshotStore(str(tmp_path / name))
        folders = [tmp_path / name / ref.id for ref in store.list()]
        found.append(
            [hashlib.sha256((each / "vectors.arrow").read_bytes()).hexdigest() for each in folders]
        )
    assert found[0] == found[1]
