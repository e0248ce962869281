"""fastText's n-gram rows on the server: pulled, pushed, kept, composed; bad buckets refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from named import named

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.kernel.devices import to_host
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import ScorePairs, Table, Window
from embedding.models import subwords
from embedding.models.subwords import GramIndex, gram_buckets
from embedding.server.config import ServerConfig
from embedding.server.rows.composing import GramComposer
from embedding.server.rows.devices import pick_device
from embedding.server.rows.tables import Optimizer, Tables
from embedding.server.service import ParameterServer, running_server
from embedding.snapshots.store import SnapshotStore

DIM, BUCKETS = 4, 500
DAY = Window(datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 2, tzinfo=UTC))
HALVES = ExchangeConfig(connect_timeout_s=60).model_copy(update={"request_timeout_s": 60})


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def delta(*buckets: int, value: float = 1.0) -> tuple[RowDelta, ...]:
    values = np.full((len(buckets), DIM), value, dtype=np.float32)
    return (RowDelta(Table.SUB, ints(*buckets), values),)


def grams_of(server: ParameterServer) -> np.ndarray:
    """The whole table as it is now."""
    with server.state.lock:
        return server.state.tables.read(Table.SUB, np.arange(server.state.tables.buckets))


@pytest.fixture
def server(tmp_path: Path, device: str) -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=1, device=device, snapshots=str(tmp_path / "store"))
    with running_server(config, dim=DIM, seed=3, buckets=BUCKETS) as running:
        yield running


def test_rows_of_buckets_are_pulled_and_moved_by_pushes(server, connect):
    node = connect(server)
    first = node.pull(ints(), grams=ints(0, 499, 7)).rows[Table.SUB]
    assert first.shape == (3, DIM)
    assert np.abs(first).max() <= 0.5 / DIM
    assert len(np.unique(first)) == first.size, "they start at random, each its own"
    node.push(delta(7, 499))
    moved = node.pull(ints(), grams=ints(0, 499, 7)).rows[Table.SUB] - first
    assert moved == pytest.approx(np.array([[0.0] * DIM, [1.0] * DIM, [1.0] * DIM]))


def test_they_travel_as_float16_like_words(server, connect):
    node = connect(server, config=HALVES)
    rows = node.pull(ints(), grams=ints(1, 2))
    assert rows.rows[Table.SUB].dtype == np.float16
    exact = grams_of(server)[[1, 2]]
    assert np.array_equal(rows.rows[Table.SUB], exact.astype(np.float16))


def test_a_pull_that_names_no_bucket_brings_no_rows(server, connect):
    assert Table.SUB not in connect(server).pull(ints()).rows


def test_the_first_rows_are_a_function_of_the_seed(device):
    def start(seed: int) -> np.ndarray:
        tables = Tables(
            DIM,
            device=pick_device(device),
            capacity=4,
            seed=seed,
            optimizer=Optimizer(),
            buckets=BUCKETS,
        )
        return tables.read(Table.SUB, np.arange(BUCKETS))

    assert np.array_equal(start(1), start(1))
    assert not np.array_equal(start(1), start(2))


@pytest.mark.parametrize("bad", [(-1,), (BUCKETS,), (3, BUCKETS + 10)])
def test_a_bucket_out_of_range_is_refused_and_changes_nothing(server, connect, bad):
    node = connect(server)
    ids = node.words("말")
    before, counted = grams_of(server), server.status()["tokens"]
    one = RowDelta(Table.OUT, ids, np.ones((1, DIM), dtype=np.float32))
    with pytest.raises(RefusedError, match="0 to 499 are accepted"):
        node.push((one, *delta(*bad)), named(["말"]))
    with pytest.raises(RefusedError, match="0 to 499 are accepted"):
        node.pull(grams=ints(*bad))
    assert np.array_equal(grams_of(server), before)
    assert not node.pull(ids, ids).rows[Table.OUT].any(), "nor did the rest of the push come in"
    assert server.status()["tokens"] == counted
    node.sequence -= 1
    node.push(delta(3), named(["말"]))
    assert server.status()["tokens"] == counted + 1, "the next push is taken"


def test_a_bucket_named_twice_or_a_value_that_is_not_finite_is_refused(server, connect):
    node = connect(server)
    before = grams_of(server)
    with pytest.raises(RefusedError, match="names one twice"):
        node.push(delta(5, 5))
    node.sequence -= 1
    with pytest.raises(RefusedError, match="not finite"):
        node.push(delta(5, value=np.nan))
    assert np.array_equal(grams_of(server), before)


def test_a_server_of_another_model_has_no_such_rows(connect):
    with running_server(ServerConfig(min_count=1), dim=DIM) as server:
        node = connect(server)
        for ask in (lambda: node.pull(ints(), grams=ints()), lambda: node.push(delta())):
            with pytest.raises(RefusedError, match="its model is not fasttext"):
                ask()


def test_they_survive_a_restart(tmp_path, connect):
    config = ServerConfig(state_dir=tmp_path / "state", min_count=1, optimizer="adagrad")
    with running_server(config, dim=DIM, seed=3, buckets=BUCKETS) as server:
        node = connect(server)
        ids = node.words("말", "글")
        node.push(delta(7, 499), named(["말"]))
        node.pull(ids)
        before = grams_of(server)
    with running_server(config, dim=DIM, seed=99, buckets=BUCKETS) as server:
        assert np.array_equal(grams_of(server), before)
        node = connect(server)
        node.push(delta(7))
        moved = grams_of(server)[7] - before[7]
        assert moved == pytest.approx(0.5**0.5), "the optimiser remembers how far they moved"


@pytest.mark.parametrize("other", [0, BUCKETS + 1])
def test_a_checkpoint_of_other_buckets_is_refused(tmp_path, connect, other):
    config = ServerConfig(state_dir=tmp_path / "state", min_count=1)
    with running_server(config, dim=DIM, buckets=BUCKETS) as server:
        connect(server).words("말")
    with pytest.raises(ConfigError, match=f"buckets {BUCKETS}, the server was started"):
        ParameterServer(config, dim=DIM, buckets=other)


def test_a_copy_is_of_one_moment(device):
    tables = Tables(
        DIM,
        device=pick_device(device),
        capacity=4,
        seed=1,
        optimizer=Optimizer(),
        buckets=BUCKETS,
    )
    wanted = tables.read(Table.SUB, np.arange(BUCKETS))
    copy = tables.copy(0, accumulators=False)
    tables.add(Table.SUB, ints(0, 499), np.ones((2, DIM), dtype=np.float32))
    copy.finish(threading.RLock())
    assert np.array_equal(copy.rows(Table.SUB), wanted)


WORDS = ["확진자", "cat", "확진", "·"]


def composed(server: ParameterServer, ids: np.ndarray) -> np.ndarray:
    """What the paper says, in plain numpy."""
    sub = grams_of(server).astype(np.float64)
    with server.state.lock:
        slots = server.state.vocabulary.slots(ids, "test")
        own = server.state.tables.read(Table.IN, slots)
    hashed = [gram_buckets(word, BUCKETS) for word in WORDS]
    return np.array(
        [
            np.vstack([row, *sub[buckets]]).mean(axis=0)
            for row, buckets in zip(own, hashed, strict=True)
        ]
    )


def test_a_snapshot_holds_the_mean_of_a_words_row_and_its_n_grams(server, connect, tmp_path):
    node = connect(server)
    ids = node.words(*WORDS)
    rows = RowDelta(Table.IN, ids, np.full((4, DIM), 2.0, dtype=np.float32))
    node.push((rows, *delta(*range(0, BUCKETS, 3))), named(WORDS, 5))
    ref = node.client.cut(DAY)
    snapshot = SnapshotStore(str(tmp_path / "store")).open(ref.id)
    at = [snapshot.index(word) for word in WORDS]
    assert np.allclose(np.asarray(snapshot.vectors)[at], composed(server, ids), atol=1e-5)
    config = snapshot.manifest.config
    assert config["vectors"] == "mean of a word's own row and its n-gram rows"
    assert config["buckets"] == BUCKETS


def test_pairs_are_scored_by_the_composed_vector(server, connect):
    node = connect(server)
    ids = node.words(*WORDS)
    out = RowDelta(Table.OUT, ids, np.ones((4, DIM), dtype=np.float32))
    node.push((out, *delta(*range(BUCKETS))))
    negatives = np.tile(ids[3], (3, 2))
    windows = np.zeros(3, dtype=np.int64)
    pairs = ScorePairs("뉴스", ids[[0, 1, 0]], ids[[1, 2, 2]], negatives, windows)
    dot = composed(server, ids)[[0, 1, 0]].sum(axis=1)
    wanted = (np.log1p(np.exp(-dot)) + 2 * np.log1p(np.exp(dot))).mean()
    assert node.pull(ints(), score=[pairs]).nll[0] == pytest.approx(wanted, rel=1e-4)


def test_an_evicted_word_is_scored_as_nothing_and_its_n_grams_are_forgotten(connect):
    config = ServerConfig(min_count=1, max_words=2)
    with running_server(config, dim=DIM, buckets=BUCKETS) as server:
        state = server.state
        found = state.composer.centres(state.words.admit(["말", "글"], ints(1, 1)), ints(0, 1))
        assert np.count_nonzero(to_host(found))
        assert len(state.composer._grams) == 2
        with state.lock:
            state.words.install(["새말"], ints(0))
        assert len(state.composer._grams) == 1
        assert not state.composer.centres(ints(0), ints(-1)).any()


def test_glove_shows_its_vectors_without_the_bias(tmp_path, connect):
    config = ServerConfig(min_count=1, snapshots=str(tmp_path / "store"))
    with running_server(config, dim=DIM + 1, biases=1) as server:
        node = connect(server)
        ids = node.words("말", "글")
        far = np.zeros((2, DIM + 1), dtype=np.float32)
        far[:, -1] = 100.0
        node.push(
            (RowDelta(Table.IN, ids, far), RowDelta(Table.OUT, ids, far)), named(["말", "글"])
        )
        pairs = ScorePairs("뉴스", ids[:1], ids[1:], ids[None, :1], ints(0))
        assert node.pull(ints(), score=[pairs]).nll[0] == pytest.approx(2 * np.log(2), rel=0.1)
        snapshot = SnapshotStore(str(tmp_path / "store")).open(node.client.cut(DAY).id)
        for table in (snapshot.vectors, snapshot.contexts):
            assert np.asarray(table).shape == (2, DIM)
            assert np.abs(np.asarray(table)).max() < 1


def test_a_word_is_hashed_once(monkeypatch):
    hashed: list[str] = []

    def buckets(word: str, most: int) -> np.ndarray:
        hashed.append(word)
        return gram_buckets(word, most)

    monkeypatch.setattr(subwords, "gram_buckets", buckets)
    index = GramIndex(BUCKETS)
    index.note(ints(4, -1, 5), ["말", "모름", "글"])
    for _ in range(3):
        flat, offsets = index.of(ints(5, 4, 9), lambda rows: [f"새{n}" for n in rows])
    assert hashed == ["말", "글", "새9"]
    assert flat[: offsets[1]].tolist() == gram_buckets("글", BUCKETS).tolist()
    assert flat[offsets[2] :].tolist() == gram_buckets("새9", BUCKETS).tolist()


def test_the_index_is_bounded_by_the_words_that_are_there():
    index = GramIndex(BUCKETS)
    index.note(np.arange(5000), [f"말{n}" for n in range(5000)])
    index.keep(np.arange(4000, 5000))
    assert len(index) == 1000
    index.forget(ints(4500, 17))
    assert len(index) == 999


def test_composing_no_word_gives_no_row():
    tables = Tables(
        DIM, device=pick_device("cpu"), capacity=4, seed=1, optimizer=Optimizer(), buckets=9
    )
    assert GramComposer(tables, lambda ids: [], buckets=9).centres(ints(), ints()).shape == (0, DIM)
