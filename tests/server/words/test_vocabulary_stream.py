"""An endless stream of new words through the real server and node: memory stays flat."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import numpy as np
import pyarrow as pa
import torch

from constants import with_constants
from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, Push
from embedding.kernel.records import Calendar, Table, TokenBlock, Window, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
from embedding.server.snapshotting.snapshotter import Snapshotter
from embedding.server.state import ServerState
from embedding.stream.replay import UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.words import lexicon

DIM, WORDS, CANDIDATES = 8, 300, 600
START = datetime(2020, 1, 6, tzinfo=UTC)
ASP = SyncConfig(policy="asp")


class InProcess:
    """What a learner asks a server for, without a network."""

    def __init__(self, state: ServerState) -> None:
        self.state = state
        state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0)

    def admit(self, words, counts, contributors=None):
        return self.state.words.admit(words, counts)

    def vocabulary(self, since=0):
        return self.state.words.delta(since)

    def pull(self, request):
        return self.state.pull("n0", request)

    def push(self, push):
        return self.state.push(push)


def make_state(**changes) -> ServerState:
    settings = {
        "min_count": 3,
        "max_words": WORDS,
        "max_candidates": CANDIDATES,
        "half_life_tokens": 20_000.0,
        "initial_rows": 64,
        "pip_words": 50,
        "window": WindowUnit.WEEK,
        "device": "cpu",
        **changes,
    }
    return ServerState(with_constants(ServerConfig, **settings), ASP, RowShape(DIM, seed=1))


def drifting(day: int, tokens: int = 2000) -> list[str]:
    """Zipf words of a day: the first twenty are always the same, the others move on day by day."""
    rng = np.random.default_rng(day)
    rank = np.minimum(rng.zipf(1.1, tokens), 1500)
    return [f"늘{r}" if r <= 20 else f"말{r + 90 * day}" for r in rank.tolist()]


def block(day: int) -> TokenBlock:
    words = drifting(day)
    texts = [[words[i : i + 20]] for i in range(0, len(words), 20)]
    moment = (START + timedelta(days=day)).timestamp()
    keys = [f"{day}/{i}" for i in range(len(texts))]
    return TokenBlock.build("뉴스", texts, published=[moment] * len(texts), keys=keys)


def size(root: object, seen: set[int]) -> int:
    """Bytes of arrays, tensors, tables, and 100 for every other thing that is reached."""
    if id(root) in seen or isinstance(root, (type, bool, int, float, type(None), ServerConfig)):
        return 0
    seen.add(id(root))
    if isinstance(root, (np.ndarray, torch.Tensor, pa.Table, pa.Array)):
        inner = root.tolist() if isinstance(root, np.ndarray) and root.dtype == object else []
        return int(root.nbytes) + sum(size(each, seen) for each in inner)
    if isinstance(root, (str, bytes)):
        return 50 + len(root)
    if isinstance(root, Mapping):
        return 100 + sum(100 + size(k, seen) + size(v, seen) for k, v in root.items())
    if isinstance(root, (list, tuple, set, frozenset, deque)):
        return 100 + sum(8 + size(each, seen) for each in root)
    return (
        100 + sum(size(each, seen) for each in vars(root).values() if not callable(each))
        if (hasattr(root, "__dict__"))
        else 0
    )


def parts(state: ServerState) -> dict[str, int]:
    names = (
        "vocabulary",
        "tables",
        "scores",
        "ledger",
        "machine",
        "held",
        "meters._read_at",
    )
    accounts = vars(state.accounts)
    held = {name: attrgetter(name)(state) for name in names}
    held |= {f"accounts.{name}": accounts[name] for name in accounts if name != "vocabulary"}
    return {name: size(each, set()) for name, each in held.items()}


def weeks(state: ServerState, snapshotter: Snapshotter, days: int) -> Iterator[int]:
    for day in range(days):
        yield day
        if day % 7 == 6:
            start = START + timedelta(days=day - 6)
            snapshotter.cut(Window.holding(start, WindowUnit.WEEK))


def test_memory_stays_flat_on_a_stream_ten_times_larger_than_every_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(lexicon, "MAX_UNKNOWN_WORDS", CANDIDATES)
    state = make_state(snapshots=str(tmp_path))
    snapshotter = Snapshotter(state, state.config)
    learner = Learner(
        InProcess(state),
        make_trainer(ModelConfig(dim=DIM, window=2)),
        UniformReplay(4_000, 1),
        LearnerSetup(
            node="n0",
            model=ModelConfig(dim=DIM, window=2),
            config=NodeConfig(replay_ratio=1.0).model_copy(update={"vocabulary_blocks": 3}),
            calendar=Calendar(WindowUnit.WEEK),
        ),
    )
    met: set[str] = set()
    given: dict[int, str] = {}
    sizes: list[dict[str, int]] = []
    for day in weeks(state, snapshotter, 140):
        read = block(day)
        met.update(read.words)
        learner.learn([read])
        state.scores.tick(10.0 * len(sizes))
        vocabulary = state.vocabulary
        alive = vocabulary.alive()
        for id_, word in zip(alive.tolist(), vocabulary.names(alive), strict=True):
            assert given.setdefault(id_, word) == word, "an id was given to another word"
        assert len(vocabulary) <= vocabulary.rows <= WORDS
        assert len(vocabulary.candidates) <= CANDIDATES
        assert len(learner.lexicon) <= 2 * WORDS, "the node's mirror is bounded too"
        sizes.append({**parts(state), "lexicon": size(learner.lexicon, set())})
    snapshotter.stop()
    assert len(met) > 10 * (WORDS + CANDIDATES)
    assert vocabulary.next_id > 10 * WORDS, "ten times as many rows were given as there are"
    assert (vocabulary.ids([f"늘{i}" for i in range(1, 21)]) >= 0).all()
    for name in sizes[0]:
        early = max(each[name] for each in sizes[30:70])
        late = max(each[name] for each in sizes[-70:])
        # Each cut window leaves its summary, some hundred bytes, for the status.
        assert late <= 1.1 * early + 20_000, f"{name} grew from {early} to {late} bytes"


def push(state: ServerState, sequence: int, ids: np.ndarray, words: list[str]) -> None:
    """One occurrence of each word, and a step of its row by the word's own mark."""
    count = len(ids)
    order = np.argsort(ids)
    values = np.repeat(np.array([[mark(word)] for word in words], dtype=np.float32), DIM, axis=1)
    ones = np.ones(count, dtype=np.int64)
    counts = BlockCounts((CountGroup("뉴스", 0, count),), ids, (), ones, ones)
    delta = RowDelta(Table.OUT, ids[order], values[order])
    state.push(Push("n0", sequence, 0, (delta,), counts, tokens=count))


def mark(word: str) -> float:
    return 1.0 + int(word[1:])


def test_each_row_belongs_to_its_word_however_often_its_slot_changed_hands():
    state = make_state(min_count=1, max_words=50, half_life_tokens=None)
    InProcess(state)
    rng = np.random.default_rng(3)
    rows: dict[int, float] = {}
    word_of: dict[int, str] = {}
    for sequence in range(1, 400):
        words = [f"말{i}" for i in np.unique(rng.zipf(1.3, 12) % 1000).tolist()]
        ids = state.words.admit(words, np.ones(len(words), dtype=np.int64))
        # A word may have to make room for its neighbours in the same offer.
        words = [word for word, id_ in zip(words, ids.tolist(), strict=True) if id_ >= 0]
        ids = ids[ids >= 0]
        push(state, sequence, ids, words)
        for id_, word in zip(ids.tolist(), words, strict=True):
            assert word_of.setdefault(id_, word) == word
            rows[id_] = rows.get(id_, 0.0) + mark(word)
    alive = state.vocabulary.alive()
    assert len(alive) <= 50 < state.vocabulary.next_id / 10
    pulled = state.pull("n0", PullRequest({Table.IN: alive, Table.OUT: alive}, 0))
    expected = np.array([rows[i] for i in alive.tolist()], dtype=np.float32)
    np.testing.assert_allclose(pulled.rows[Table.OUT], np.repeat(expected[:, None], DIM, axis=1))
    gone = np.setdiff1d(np.arange(state.vocabulary.next_id), alive)
    assert (
        not state.pull("n0", PullRequest({Table.IN: gone, Table.OUT: gone}, 0)).rows[Table.IN].any()
    ), "an evicted id has no row"
    assert state.vocabulary.names(alive) == [word_of[i] for i in alive.tolist()]
