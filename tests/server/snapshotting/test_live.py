"""Questions to the tables while they are trained: answers, bounds, refusals, who waits."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading

import numpy as np
import pytest
from named import LEARNT, QUICK, named
from threads import fleet, sharded

from embedding.evaluation.gold import AnalogyGold, PairGold
from embedding.evaluation.judging import NearestRows
from embedding.exchange.payload import RowDelta
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import PullRequest
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import ScorePairs, Table
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from embedding.server.snapshotting.live import LiveModel
from embedding.snapshots.nearness import RowScales, centre_of, frequent, sureness, unit_rows

DIM = 8
WORDS = [f"w{i}" for i in range(500)]


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.fixture
def server(device):
    with running_server(ServerConfig(min_count=2, device=device), dim=DIM, seed=3) as running:
        yield running


@pytest.fixture
def node(server, connect):
    """A node that admitted 500 words, read often and rarely, and moved their rows at random."""
    found = connect(server)
    ids = found.words(*WORDS)
    random = np.random.default_rng(1)
    steps = random.normal(size=(len(ids), DIM)).astype(np.float32)
    with server.state.lock:
        server.state.vocabulary.set_counts(ids, random.integers(1, 60, len(ids)).astype(np.float64))
    found.pull(contexts=ids)
    found.push((RowDelta(Table.IN, ids, steps), RowDelta(Table.OUT, ids, steps[::-1].copy())))
    return found


@pytest.fixture
def ask(server):
    channel = Channel(server.location, QUICK)
    yield channel.action
    channel.close()


def rows(server, table=Table.IN) -> np.ndarray:
    state = server.state
    ids = state.vocabulary.ids(WORDS)
    return state.tables.read(table, state.vocabulary.slots(ids, "test"))


@pytest.mark.parametrize("block", [7, 100, 10_000])
def test_nearest_words_are_those_of_the_whole_table(server, node, block):
    live = LiveModel(server.state)
    live.block = block
    vectors = rows(server)
    counts = server.state.vocabulary.counts(node.ids)
    assert len(np.unique(counts)) > 20
    centre = centre_of(vectors[frequent(counts)])
    scales = RowScales.of(vectors, centre, sureness(counts))
    at, near = scales.nearest(vectors, vectors[0], 12, 0)
    found = live.neighbours("w0", 12)
    assert [each.word for each in found] == [WORDS[i] for i in at]
    assert np.allclose([each.nearness for each in found], near, atol=1e-5)


def test_what_a_node_just_pushed_is_in_the_answer(server, node, ask):
    ids = node.ids
    target = rows(server)[:1]
    (sure,) = sureness(server.state.vocabulary.counts(ids[7:8])).tolist()
    node.push((RowDelta(Table.IN, ids[7:8], 100 * target),))
    (first, *rest) = ask("neighbours", {"word": "w0", "n": 3})
    assert first["word"] == "w7"
    assert first["nearness"] == pytest.approx(sure, abs=1e-3)
    assert len(rest) == 2
    assert len(ask("neighbours", {"word": "w0"})) == 10


def test_what_cannot_be_read_yet_is_refused_with_what_is_missing(server, node, ask):
    node.push((RowDelta(Table.IN, node.ids, np.full((len(node.ids), DIM), 50, np.float32)),))
    with pytest.raises(RefusedError, match=r"nearly the same way .* more words are needed"):
        ask("neighbours", {"word": "w0"})


def test_what_predicts_no_better_than_frequencies_is_refused(server, node, ask):
    assert len(ask("neighbours", {"word": "w0"})) == 10
    figures = {**LEARNT["rehearsal"], "held_out_loss": 2.69}
    server.state.report(node.client.node, {"rehearsal": figures})
    with pytest.raises(RefusedError, match="no better than word frequencies"):
        ask("neighbours", {"word": "w0"})


def test_all_words_are_fewer_than_were_asked_for(connect, server, ask):
    node = connect(server)
    node.words("하나", "둘")
    with pytest.raises(RefusedError, match="about 50,000 more words are needed"):
        ask("neighbours", {"word": "하나", "n": 1000})
    server.state.report(node.client.node, LEARNT)
    (only,) = ask("neighbours", {"word": "하나", "n": 1000})
    assert only["word"] == "둘"


def test_a_word_without_a_row_is_refused_in_one_sentence(server, node, ask):
    node.push(counts=named(["드문"], 1))
    for word, why in (("드문", "read 1 times and gets one at 2"), ("x", "none of the 500 words")):
        with pytest.raises(RefusedError, match=why) as caught:
            ask("neighbours", {"word": word})
        assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"word": 3},
        {"word": "w0", "n": 0},
        {"word": "w0", "n": 1_001},
        {"word": "w0", "n": -1},
        {"word": "w0", "n": 2.5},
        {"word": "w0", "n": True},
        {"word": "w" * 100_000},
    ],
)
def test_questions_that_make_no_sense_are_refused(server, node, ask, body):
    with pytest.raises(RefusedError) as caught:
        ask("neighbours", body)
    assert len(str(caught.value)) < 300


PAIRS = PairGold("made", tuple((f"w{i}", f"W{i + 1}", float(i % 7)) for i in range(0, 100, 2)))
ANALOGIES = AnalogyGold(
    "four", {"a": (("w0", "w1", "w2", "w3"), ("w0", "w1", "w2", "unknown")), "b": ()}
)


def test_quality_is_that_of_the_same_rows_evaluated_at_rest(server, node, ask):
    from embedding.evaluation.judging import analogy, similarity

    index = {word: at for at, word in enumerate(WORDS)}

    def find(words):
        return np.array([index.get(word, -1) for word in words], dtype=np.int64)

    vectors = rows(server)
    wanted = similarity(vectors, find, PAIRS)
    found = ask("evaluate", {"gold": PAIRS.__dict__})
    assert found["similarity/made"] == pytest.approx(wanted.rho, abs=1e-6)
    assert found["coverage/made"] == 1.0
    assert "nll_sample" not in found, "nothing was scored yet"
    total, _ = analogy(vectors, find, ANALOGIES)
    found = ask("evaluate", {"gold": ANALOGIES.__dict__})
    assert found["analogy/four"] == total.accuracy
    assert found["asked/four"] == 0.5


def test_likelihood_of_kept_pairs_is_that_of_the_live_rows(server, node, ask):
    ids = node.ids
    pairs = ScorePairs("뉴스", ids[:3], ids[3:6], ids[6:12].reshape(3, 2), np.zeros(3, "i8"))
    node.pull(score=[pairs])
    vectors, contexts = rows(server), rows(server, Table.OUT)
    u, v, n = vectors[:3], contexts[3:6], contexts[6:12].reshape(3, 2, DIM)
    positive = np.log1p(np.exp(-(u * v).sum(1)))
    noise = np.log1p(np.exp((n * u[:, None]).sum(2))).sum(1)
    found = ask("evaluate", {})
    assert found["nll_sample"] == pytest.approx(float((positive + noise).mean()), rel=1e-4)
    assert found["pause_ms"] >= 0


@pytest.mark.parametrize(
    "gold",
    [
        3,
        {},
        {"name": "x"},
        {"name": "x", "pairs": []},
        {"name": "x", "pairs": [["a", "b"]]},
        {"name": "x", "pairs": [["a", "b", "c"]]},
        {"name": "x", "sections": {"s": 3}},
        {"name": "x", "sections": {"s": [["a", "b", "c"]]}},
        {"name": "x" * 1_000, "pairs": [["a", "b", 1]]},
        {"name": "x", "pairs": [["a", "b", "1.5"]]},
        {"name": "x", "pairs": [["a", "b", True]]},
        {"name": "x", "pairs": [["a", "b", "inf"]]},
        {"name": "x", "pairs": [["a", "b", 10**400]]},
    ],
)
def test_gold_sets_that_are_none_are_refused(server, ask, gold):
    with pytest.raises(RefusedError, match="gold"):
        ask("evaluate", {"gold": gold})


def test_what_is_empty_in_a_gold_set_is_passed_over(server, node, ask):
    for gold, empty in ((PAIRS, {"sections": {}}), (ANALOGIES, {"pairs": []})):
        plain = ask("evaluate", {"gold": gold.__dict__})
        figures = ask("evaluate", {"gold": gold.__dict__ | empty})
        assert plain.keys() == figures.keys() > {"pause_ms"}


def test_an_empty_server_has_nothing_to_judge(server, ask):
    assert set(ask("evaluate", {})) == {"pause_ms"}
    found = ask("evaluate", {"gold": PAIRS.__dict__})
    assert found["coverage/made"] == 0
    assert all(math.isfinite(value) for value in found.values())


def test_no_more_than_a_block_is_copied_while_others_wait(server, node, monkeypatch):
    """Each hold of the lock gathers a block at most; between two, whoever waits gets it."""
    state = server.state
    live = LiveModel(state)
    live.block = 16
    gathered: list[int] = []
    pushed: list[bool] = []
    gather = state.tables.gather

    def watched(table, slots):
        gathered.append(len(slots))
        assert state.lock._is_owned()
        if len(gathered) == 3:
            waiting = threading.Thread(target=lambda: pushed.append(take_lock(state)))
            waiting.start()
            waiters.append(waiting)
        return gather(table, slots)

    waiters: list[threading.Thread] = []
    monkeypatch.setattr(state.tables, "gather", watched)
    live.evaluate(ANALOGIES)
    live.neighbours("w0", 5)
    for waiter in waiters:
        waiter.join(60)
    assert max(gathered) <= 16
    assert len(gathered) >= 2 * (500 // 16)
    assert pushed == [True]


def take_lock(state) -> bool:
    with state.lock:
        return True


def test_a_word_that_is_evicted_meanwhile_is_left_out(server, node, monkeypatch):
    live = LiveModel(server.state)
    live.block = 50
    state = server.state
    vectors = rows(server)
    units = unit_rows(vectors)
    gone = WORDS[1 + int(np.argmax(units[1:] @ units[0]))]
    gather, calls = state.tables.gather, []

    def evict(table, slots):
        found = gather(table, slots)
        calls.append(1)
        if len(calls) == 9:
            state.vocabulary._evict(state.vocabulary.ids([gone]))
        return found

    monkeypatch.setattr(state.tables, "gather", evict)
    found = [each.word for each in live.neighbours("w0", 5)]
    assert gone not in found
    assert "" not in found


def test_questions_wait_their_turn_for_a_while(server, node, monkeypatch):
    monkeypatch.setattr("embedding.server.snapshotting.live._PATIENCE_S", 0.05)
    live = LiveModel(server.state)
    with live._turn, pytest.raises(UnavailableError, match="ask again"):
        live.neighbours("w0", 1)
    assert live.neighbours("w0", 1)


def test_vectors_of_fasttext_are_composed(connect, device):
    with running_server(
        ServerConfig(min_count=1, device=device), dim=DIM, buckets=64, seed=1
    ) as server:
        node = connect(server)
        node.words("바다", "바다가", "하늘")
        server.state.report(node.client.node, LEARNT)
        vectors = server.state.composer.centres(
            node.ids, server.state.vocabulary.slots(node.ids, "")
        )
        a, b = vectors[0], vectors[1]
        found = LiveModel(server.state).neighbours("바다", 2)
        cosine = float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))
        (sure,) = sureness(server.state.vocabulary.counts(node.ids[1:2])).tolist()
        assert {each.word: each.nearness for each in found}["바다가"] == pytest.approx(
            cosine * sure, abs=1e-5
        )


def test_rows_of_zeros_are_near_nothing():
    best = NearestRows(np.array([1.0, 0.0]), 3)
    best.show(np.arange(2), np.array([[0.0, 0.0], [-1.0, 0.0]]), np.ones(2))
    assert best.best() == [(1, -1.0)]


def test_the_commands_ask_a_running_server(server, node, tmp_path):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "embedding.cli", "live", *arguments],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            cwd=tmp_path,
        )

    found = run("neighbours", "w0", "-n", "2", "--json", "--server", server.location)
    assert found.returncode == 0, found.stderr
    assert [each["word"] for each in json.loads(found.stdout)] == [
        each.word for each in LiveModel(server.state).neighbours("w0", 2)
    ]
    missing = run("neighbours", "없는", "--server", server.location)
    assert missing.returncode == 2
    assert missing.stderr.count("\n") == 1
    gold = tmp_path / "pairs.tsv"
    gold.write_text("w0\tw1\t3\nw2\tw3\t5\nw4\tw5\t1\n")
    judged = run("evaluate", "--gold", str(gold), "--server", server.location)
    assert judged.returncode == 0, judged.stderr
    assert "coverage/pairs" in judged.stdout


@pytest.mark.parametrize(("shards", "split"), [(2, "rows"), (3, "columns")])
def test_questions_to_shards_have_the_answers_of_one_table(connect, shards, split):
    """Also of what was pushed a moment ago, and of contexts (`nll_sample`)."""
    gold = PairGold("some", (("w0", "w1", 1.0), ("w2", "w3", 2.0), ("w4", "w5", 0.0)))
    found = []
    for config in ({}, {"shards": shards, "split": split}):
        chosen = ServerConfig(min_count=2, device="cpu", **config)
        with sharded(chosen, dim=DIM, seed=3) as server:
            one = connect(server)
            ids = one.words(*WORDS)
            pairs = ScorePairs("x", ids[:9], ids[9:18], ids[18:27, None], np.zeros(9, np.int64))
            if split == "columns":
                # Rows start alike; what a block adds to columns is tested with the columns.
                one.client.pull(
                    PullRequest({Table.IN: ids, Table.OUT: ids}, clock=0, score=[pairs])
                )
            else:
                steps = np.random.default_rng(1).normal(size=(len(ids), DIM)).astype(np.float32)
                one.pull(contexts=ids, score=[pairs])
                one.push((RowDelta(Table.IN, ids, steps), RowDelta(Table.OUT, ids, steps[::-1])))
            live = LiveModel(server.state)
            judged = live.evaluate(gold)
            assert (judged.pop("pause_ms") == 0) is bool(config)
            judged.pop("pip", None)  # of words that the ticker chooses, perhaps later
            found.append(([n.__dict__ for n in live.neighbours("w7", 5)], judged))
            one.client.close()
    assert "nll_sample" in found[0][1]
    for near, alone in zip(found[1][0], found[0][0], strict=True):
        assert near == {**alone, "nearness": pytest.approx(alone["nearness"], abs=1e-6)}
    assert found[1][1] == pytest.approx(found[0][1], abs=1e-6)


def test_a_question_while_a_shard_is_away_is_unavailable_not_wrong(connect, monkeypatch):
    monkeypatch.setattr("yeoron_lab.shards.rows._CATCH_UP_S", 0.3)
    with sharded(ServerConfig(min_count=2, device="cpu", shards=2), dim=DIM) as server:
        connect(server).words(*WORDS[:10])
        server.state.rows.links.catch_up(60)
        fleet(server).crash(1)
        with pytest.raises(UnavailableError, match="shard 1 did not answer within"):
            LiveModel(server.state).neighbours("w7", 5)
