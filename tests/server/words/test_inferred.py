"""Vectors of young words: laid over for readers, never trained on; bounded, kept, counted once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy.sparse import csr_array

from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta, WordContexts, summed
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, Push
from embedding.kernel.devices import to_host
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table, Window, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
from embedding.server.service import running_server
from embedding.server.snapshotting.live import LiveModel
from embedding.server.state import ServerState
from embedding.server.words.inferred import IdRows, trust
from embedding.snapshots.store import SnapshotStore
from server.saving import NO_WORDS
from yeoron_lab.aggregating.aggregator import decode_together, encode_together

DIM, KNOWN, YOUNG = 4, 40, 10
WINDOW = Window.holding(datetime(2020, 2, 1, tzinfo=UTC), WindowUnit.DAY)
AT = int(WINDOW.start.timestamp())
NAMES = [f"말{i}" for i in range(KNOWN)]


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def told(ids, *, around: int = 7, mentions: int = 5, weight: float = 40.0) -> WordContexts:
    """Each of these words stood beside one other, and half as much beside the next."""
    n = len(ids)
    return WordContexts(
        np.asarray(ids, np.int64),
        np.full(n, mentions),
        np.full(n, 2),
        np.tile([around, around + 1], n),
        np.tile(np.array([weight, weight / 2], np.float32), n),
    )


def lesson(ids, mentions: int = 20) -> WordContexts:
    """What known words are told to stand among: each something else."""
    rng = np.random.default_rng(4)
    around = np.concatenate([np.sort(rng.permutation(KNOWN)[:6]) for _ in ids])
    weights = (1.0 + rng.integers(0, 8, len(around))).astype(np.float32)
    sizes = np.full(len(ids), 6)
    return WordContexts(
        np.asarray(ids, np.int64), np.full(len(ids), mentions), sizes, around, weights
    )


def rows_of(state: ServerState, ids: np.ndarray) -> list[IdRows]:
    """Vectors and output rows of some words."""
    slots = state.vocabulary.slots(ids, "t")
    return [IdRows(ids, state.tables.read(table, slots)) for table in (Table.IN, Table.OUT)]


def counts(ids, n: int) -> BlockCounts:
    ids = np.asarray(ids, dtype=np.int64)
    group = (CountGroup("뉴스", AT, len(ids)),)
    return BlockCounts(group, ids, (), np.full(len(ids), n), np.ones(len(ids), dtype=np.int64))


class Server:
    """A state with known words, whose rows differ, and the pushes of one node."""

    def __init__(self, **changes) -> None:
        settings = {"min_count": 1, "half_life_tokens": None, "device": "cpu"}
        settings |= {"rare_mentions": YOUNG} | changes
        self.state = ServerState(
            ServerConfig(**settings), SyncConfig(policy="asp"), RowShape(DIM, seed=1)
        )
        self.state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0)
        self.sequence = 0
        self.known = self.admit(*NAMES)
        rng = np.random.default_rng(3)
        rows = [rng.normal(size=(KNOWN, DIM)).astype(np.float32) for _ in range(2)]
        deltas = tuple(map(RowDelta, (Table.IN, Table.OUT), (self.known,) * 2, rows))
        self.push(deltas=deltas, counts=counts(self.known, 200))

    def admit(self, *words: str) -> np.ndarray:
        return self.state.words.admit(list(words), np.ones(len(words), dtype=np.int64))

    def push(self, **fields) -> None:
        self.sequence += 1
        self.state.push(Push("n0", self.sequence, 0, **fields))

    def held(self, ids) -> list[int]:
        """Which of these ids are read with an inferred vector."""
        ids = np.asarray(ids)
        return ids[
            self.state.accounts.rare.held(ids, self.state.vocabulary.counts(ids)).at
        ].tolist()

    def row(self, id_: int) -> np.ndarray:
        slots = self.state.vocabulary.slots(ints(id_), "t")
        return self.state.tables.read(Table.IN, slots)[0]

    def read(self, id_: int) -> np.ndarray:
        live = LiveModel(self.state)
        with live._taking_turns():
            return to_host(live._copied(ints(id_), Table.IN)[0])


def test_readers_get_what_is_inferred_and_training_the_row():
    server = Server()
    (rare,) = server.admit("새말")
    row, known = server.row(rare), server.row(server.known[3])
    server.push(counts=counts([rare], 4), rare=told([rare]))
    row_before = server.read(rare)
    assert np.array_equal(row_before, row), "nobody has taught how vectors follow from contexts"
    taught = lesson(server.known)
    server.push(rare=taught)
    reading = server.state.accounts.rare.taught().reading(
        *rows_of(server.state, server.state.vocabulary.alive())
    )
    bags = server.state.accounts.rare.held(ints(rare), np.ones(1)).bags
    inferred = reading.infer(row[None], bags)[0]
    assert np.abs(inferred - row).max() > 0.1
    share = float(trust(np.array([4.0]), YOUNG)[0])
    np.testing.assert_allclose(
        server.read(rare), share * row + (1 - share) * inferred, rtol=1e-4, atol=1e-5
    )
    assert np.array_equal(server.row(rare), row)
    pulled = server.state.pull("n0", PullRequest({Table.IN: ints(rare), Table.OUT: ints(rare)}, 0))
    assert np.array_equal(np.asarray(pulled.rows[Table.IN])[0], row)
    assert np.array_equal(server.row(server.known[3]), known)


def test_known_words_are_read_by_what_stands_around_them_too():
    """A new word and the known one that it stands for are compared alike."""
    server = Server()
    server.push(rare=lesson(server.known))
    known = server.known[3]
    row = server.row(known)
    state = server.state
    reading = state.accounts.rare.taught().reading(*rows_of(state, state.vocabulary.alive()))
    held = state.accounts.rare.held(ints(known), np.array([200.0]))
    assert (held.rare, held.at.tolist()) == (0, [0])
    inferred = reading.infer(row[None], held.bags, other_names=False)[0]
    assert np.abs(inferred - row).max() > 0.01
    share = 200.0 / (200.0 + YOUNG)
    expected = share * row + (1 - share) * inferred
    np.testing.assert_allclose(server.read(known), expected, rtol=1e-4, atol=1e-5)
    assert np.array_equal(server.row(known), row)


def test_a_known_word_is_no_other_name_of_itself():
    server = Server()
    (rare,) = server.admit("새말")
    server.push(counts=counts([rare], 4), rare=told([rare]))
    server.push(rare=lesson(server.known))
    asked: list[int] = []

    class Names:
        def shares(self, means: np.ndarray, weights: np.ndarray) -> csr_array:
            asked.append(len(weights))
            return csr_array((len(means), KNOWN), dtype=np.float32)

    state = server.state
    ids = np.array([*server.known, rare])
    held = state.accounts.rare.held(ids, state.vocabulary.counts(ids))
    assert (held.rare, held.at.tolist()) == (1, [KNOWN, *range(KNOWN)])
    reading = state.accounts.rare.taught().reading(*rows_of(state, state.vocabulary.alive()))
    named = replace(reading, frame=replace(reading.frame, twins=Names()))
    held.over(np.stack([server.row(id_) for id_ in ids[held.at]]), named)
    assert asked == [1]


def test_sums_of_pushes_add_up_and_too_few_mentions_say_nothing():
    server = Server()
    (rare,) = server.admit("새말")
    server.push(rare=told([rare], mentions=2))
    assert server.held([rare]) == []
    server.push(rare=told([rare], mentions=2, around=8))
    bag = server.state.accounts.rare.held(ints(rare), np.ones(1)).bags
    assert bag.contexts.tolist() == [7, 8, 9]
    assert bag.weights.tolist() == [40.0, 60.0, 20.0]


def test_a_word_goes_over_to_its_row_without_a_jump():
    shares = trust(np.arange(0.0, 1000 * YOUNG), YOUNG)
    assert shares[0] == 0.0
    assert shares[YOUNG] == 0.5
    assert shares[-1] > 0.998
    assert (np.diff(shares) > 0).all()
    assert np.abs(np.diff(shares)).max() <= 1.0 / YOUNG


def test_a_grown_word_keeps_its_row_even_when_it_is_read_less():
    server = Server(half_life_tokens=1000.0)
    (rare,) = server.admit("새말")
    server.push(counts=counts([rare], 5), rare=told([rare]))
    assert server.held([rare]) == [rare]
    server.push(counts=counts([rare], YOUNG), rare=told([rare]))
    assert server.held([rare]) == []
    server.push(counts=counts(server.known, 1), tokens=5000)
    assert server.state.vocabulary.counts(ints(rare))[0] < YOUNG
    server.push(rare=told([rare]))
    assert server.held([rare]) == []
    assert len(server.state.accounts.rare) == 0


def test_a_grown_word_teaches_with_what_it_was_told_of():
    server = Server()
    (rare,) = server.admit("새말")
    server.push(counts=counts([rare], 5), rare=told([rare], mentions=15))
    assert rare not in server.state.accounts.rare.taught().ids
    server.push(counts=counts([rare], YOUNG))
    assert rare not in server.state.accounts.rare.taught().ids, "too few mentions"
    server.push(rare=told([rare], mentions=5))
    taught = server.state.accounts.rare.taught()
    assert taught.bags.of(taught.ids == rare).weights.tolist() == [80.0, 40.0]


def test_contexts_are_drawn_as_often_as_they_are_read():
    server = Server()
    (often,) = server.admit("흔말")
    server.push(counts=counts([often], 200 * KNOWN))
    drawn = server.state.accounts.rare.taught().drawn
    times = np.array([(drawn == id_).sum() for id_ in (*server.known, often)])
    assert times[-1] == 2048
    assert set(times[:-1]) <= {51, 52}, "half of 4,096 for 40 words"


def test_what_known_words_are_told_to_stand_among_follows_the_latest():
    server = Server()
    server.push(rare=told(server.known[:1], mentions=1000))
    assert server.state.accounts.rare.taught().bags.weights.tolist() == [40.0, 20.0]
    server.push(rare=told(server.known[:1], mentions=2, around=9))
    bag = server.state.accounts.rare.taught().bags
    assert bag.contexts.tolist() == [7, 8, 9, 10]
    assert bag.weights.tolist() == [20.0, 10.0, 20.0, 10.0], "all of it halved"


def test_what_a_cut_or_a_checkpoint_has_does_not_change_behind_its_moment():
    server = Server()
    (rare,) = server.admit("새말")
    server.push(counts=counts([rare], 4), rare=told([rare]))
    server.push(rare=lesson(server.known))
    copy, kept = server.state.accounts.rare.copied(), server.state.accounts.rare.save()
    drawn = copy.taught().drawn
    server.push(counts=counts([rare], 2 * YOUNG), rare=told([rare]))
    assert len(server.state.accounts.rare) == 0
    held = copy.held(ints(rare), np.ones(1))
    assert held.bags.weights.tolist() == [40.0, 20.0]
    assert np.array_equal(copy.taught().drawn, drawn)
    assert kept.files(NO_WORDS)["rare.ids"].tolist() == [rare]
    assert kept.files(NO_WORDS)["rare.weights"].tolist() == [40.0, 20.0]


def test_an_evicted_word_is_forgotten_and_its_place_is_young_again():
    server = Server(max_words=KNOWN + 1)
    (rare,) = server.admit("새말")
    server.push(counts=counts([rare], 2), rare=told([rare]))
    server.state.vocabulary.slot_map["born"][:] = -1000
    (other,) = server.admit("딴말")
    assert server.state.vocabulary.slots(ints(rare), "t")[0] < 0
    assert len(server.state.accounts.rare) == 0
    server.push(rare=told([rare]))
    assert len(server.state.accounts.rare) == 0, "late sums of an evicted word"
    server.push(counts=counts([other], 2 * YOUNG))
    rows = server.state.vocabulary.slot_map
    rows["stored"][rows.slots(ints(other))] = 0.0
    rows["born"][:] = -1000
    (third,) = server.admit("셋말")
    server.push(counts=counts([third], 2), rare=told([third]))
    assert server.held([third]) == [third], "the grown word before it left nothing behind"


def test_the_words_kept_are_bounded_and_the_latest_stay():
    server = Server(rare_words=3)
    ids = server.admit(*[f"새말{i}" for i in range(8)])
    for id_ in ids:
        server.push(rare=told([id_]))
    assert server.held(ids) == ids[-3:].tolist()


def test_a_server_that_wants_none_keeps_none():
    server = Server(rare_mentions=0)
    (rare,) = server.admit("새말")
    server.push(rare=told([rare]))
    assert len(server.state.accounts.rare) == 0
    assert np.array_equal(server.read(rare), server.row(rare))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sizes": ints(3)}, "sizes"),
        ({"sizes": ints(2, 0)}, "sizes"),
        ({"weights": np.array([np.nan, 1.0], np.float32)}, "finite"),
        ({"weights": np.array([1e30, 1.0], np.float32)}, "at most 1e"),
        ({"weights": np.array([-1.0, 1.0], np.float32)}, "above 0"),
        ({"weights": np.array([1.0], np.float32)}, "differ in length"),
        ({"mentions": ints(0)}, "at least 1"),
        ({"contexts": ints(7, 10_000)}, "ids given so far"),
        ({"contexts": ints(7, -1)}, "ids given so far"),
        ({"ids": ints(10_000)}, "ids given so far"),
        ({"ids": ints(-1)}, "ids given so far"),
    ],
)
def test_wrong_sums_are_refused_and_nothing_of_the_push_is_taken(change, reason):
    server = Server()
    (rare,) = server.admit("새말")
    bad = replace(told([rare]), **change)
    with pytest.raises(RefusedError, match=reason):
        server.push(counts=counts([rare], 3), rare=bad)
    assert len(server.state.accounts.rare) == 0
    assert server.state.vocabulary.counts(ints(rare))[0] == 0.0


def test_a_word_is_named_once():
    server = Server()
    (rare,) = server.admit("새말")
    with pytest.raises(RefusedError, match="twice"):
        server.push(rare=told([rare, rare]))


def prepared(node) -> np.ndarray:
    """Known words and two young ones, learnt over the wire; ids of all."""
    ids = node.words(*NAMES, "새말", "딴말")
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(KNOWN, DIM)).astype(np.float32)
    node.push(
        (RowDelta(Table.IN, ids[:KNOWN], rows), RowDelta(Table.OUT, ids[:KNOWN], rows)),
        counts(ids[:KNOWN], 200),
        window=AT,
    )
    node.push(counts=counts(ids[KNOWN:], 4), window=AT)
    return ids


def test_a_snapshot_has_it_a_push_counts_once_and_a_restart_keeps_it(tmp_path, connect):
    config = ServerConfig(
        snapshots=str(tmp_path / "snapshots"),
        state_dir=tmp_path / "state",
        min_count=2,
        half_life_tokens=None,
        rare_mentions=YOUNG,
        checkpoint_every_s=600.0,
    )
    with running_server(config, dim=DIM, seed=5) as server:
        node = connect(server)
        ids = prepared(node)
        everything = summed([told(ids[-2:-1]), lesson(ids[:KNOWN])])
        push = Push(node.name, node.sequence + 1, node.clock, rare=everything)
        server.state.push(push)
        assert server.state.push(push).duplicate
        held = server.state.accounts.rare.held(ids[-2:], server.state.vocabulary.counts(ids[-2:]))
        assert held.bags.weights.tolist() == [40.0, 20.0], "once"
        assert server.status()["rare_words"] == {"held": 1, "mentions": YOUNG}
        trained = node.client.pull(
            PullRequest({Table.IN: ids, Table.OUT: ints()}, clock=push.clock + 1)
        ).rows[Table.IN]
    with running_server(config, dim=DIM, seed=5) as server:
        assert server.state.accounts.rare._rare.keys() == [ids[-2]]
        kept = server.state.accounts.rare.taught().bags
        assert np.array_equal(kept.contexts, lesson(ids[:KNOWN]).contexts)
        assert np.array_equal(kept.weights, lesson(ids[:KNOWN]).weights)
        assert server.state.accounts.rare._grown[: KNOWN + 2].sum() == KNOWN
        ref = connect(server).client.cut(WINDOW)
        snapshot = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id)
        read = np.stack(
            [snapshot.vectors[snapshot.index(word)] for word in (*NAMES, "새말", "딴말")]
        )
        other = np.flatnonzero(np.any(read != trained, axis=1))
        assert KNOWN in other
        assert KNOWN + 1 not in other, "a word of which nothing else is known is as it is trained"
        live = LiveModel(server.state)
        with live._taking_turns():
            same = to_host(live._copied(ids[-2:-1], Table.IN)[0])
        np.testing.assert_allclose(read[KNOWN], same, rtol=1e-4, atol=1e-5)


def test_it_travels_over_the_wire_and_a_server_says_what_it_wants(connect):
    with running_server(ServerConfig(min_count=2, rare_mentions=YOUNG), dim=DIM) as server:
        node = connect(server)
        assert node.client.hello().rare_mentions == YOUNG
        ids = prepared(node)
        node.client.push(Push(node.name, node.sequence + 1, node.clock, rare=told(ids[-1:])))
        assert server.state.accounts.rare._rare.keys() == [ids[-1]]


def test_sums_of_a_group_travel_with_its_first_push():
    pushes = [Push(node, 1, 0, rare=told(ids)) for node, ids in (("a", [3]), ("b", [3, 1]))]
    first, second = decode_together(encode_together(pushes, [1, 1]))[0]
    assert first.rare is not None
    assert first.rare.ids.tolist() == [1, 3]
    assert first.rare.mentions.tolist() == [5, 10]
    assert first.rare.sizes.tolist() == [2, 2]
    assert first.rare.contexts.tolist() == [7, 8, 7, 8]
    assert first.rare.weights.tolist() == [40.0, 20.0, 80.0, 40.0]
    assert second.rare is None
