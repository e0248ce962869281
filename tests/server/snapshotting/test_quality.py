"""Scores before learning, kept pairs, co-occurrences, gold files."""

import math
from datetime import UTC, datetime

import numpy as np
import pytest

from embedding.kernel.records import ScorePairs, Table, Window
from embedding.server.config import ServerConfig
from embedding.server.rows.devices import pick_device
from embedding.server.rows.tables import Optimizer, Tables
from embedding.server.scoring import Cooccurrence, ScoreKeeper, last_pairs
from embedding.server.snapshotting.live import measure_gold
from embedding.server.words.vocabulary import Vocabulary


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


class Keeper(ScoreKeeper):
    """Scores by rows of its own."""

    def __init__(self, device: str, **changes) -> None:
        config = ServerConfig(**changes)
        super().__init__(config, pick_device(device), Vocabulary.of(config, version=1))
        self.tables = Tables(
            4, device=pick_device(device), capacity=64, seed=1, optimizer=Optimizer()
        )
        self.tables.start(np.arange(64), np.arange(64))


def keeper(device: str = "cpu", **changes) -> tuple[Keeper, Tables]:
    made = Keeper(device, **changes)
    return made, made.tables


DAYS = [
    Window(datetime(2020, 1, n, tzinfo=UTC), datetime(2020, 1, n + 1, tzinfo=UTC))
    for n in (1, 2, 3)
]


def score(scores: Keeper, source: str, centres, contexts, negatives, day: int = 0) -> float | None:
    windows = np.full(len(centres), int(DAYS[day].start.timestamp()), dtype=np.int64)
    pairs = ScorePairs(source, centres, contexts, negatives, windows)
    rows = (
        scores.tables.gather(Table.IN, centres),
        scores.tables.gather(Table.OUT, contexts),
        scores.tables.gather(Table.OUT, negatives.reshape(-1)).reshape(*negatives.shape, 4),
    )
    return scores.score(pairs, (centres, contexts, negatives), rows)


def test_untrained_rows_score_the_loss_of_a_coin(device):
    scores, _ = keeper(device)
    found = score(scores, "뉴스", ints(0, 1), ints(2, 3), np.array([[4, 5], [6, 7]]))
    assert found == pytest.approx(3 * math.log(2))


def test_losses_are_kept_by_window_however_late_it_is_cut(device):
    scores, tables = keeper(device)
    ids = np.arange(64)
    score(scores, "뉴스", ints(0, 1), ints(1, 2), np.array([[2], [3]]))
    tables.add(Table.OUT, ints(3), np.full((1, 4), 1.0, dtype=np.float32))
    tables.add(Table.IN, ints(4), np.full((1, 4), 5.0, dtype=np.float32))
    score(scores, "뉴스", ints(4), ints(3), np.array([[5]]), day=1)
    rows = [tables.read(table, ids) for table in tables.kinds]
    first, second, third = (scores.measure(day, ids, *rows) for day in DAYS)
    assert first["nll"] == pytest.approx(2 * math.log(2))
    assert second["nll"] < first["nll"]
    assert "nll" not in third
    assert not scores.sources["뉴스"].windows, "older windows are forgotten"


def test_losses_are_kept_by_source(device):
    scores, tables = keeper(device)
    ids = np.arange(64)
    score(scores, "뉴스", ints(0), ints(1), np.array([[2]]))
    tables.add(Table.OUT, ints(3), np.full((1, 4), 1.0, dtype=np.float32))
    tables.add(Table.IN, ints(4), np.full((1, 4), 5.0, dtype=np.float32))
    score(scores, "글판", ints(4), ints(3), np.array([[5]]))
    rows = [tables.read(table, ids) for table in tables.kinds]
    found = scores.measure(DAYS[0], ids, *rows)
    assert found["nll.뉴스"] == pytest.approx(2 * math.log(2))
    assert found["nll.글판"] < found["nll.뉴스"]
    assert found["nll"] == pytest.approx((found["nll.뉴스"] + found["nll.글판"]) / 2)
    assert scores.measure(DAYS[0], ids, *rows) == found, "a cut that failed is tried again"


def test_pairs_of_evicted_words_are_left_out(device):
    scores, _ = keeper(device)
    assert score(scores, "뉴스", ints(-1), ints(1), np.array([[2]])) is None


def test_pip_loss_is_measured_on_words_seen_together(device):
    scores, tables = keeper(device)
    scores.follow(np.arange(32))
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 32, 500)
    contexts = (centres // 4) * 4 + rng.integers(0, 4, 500)
    score(scores, "뉴스", centres, contexts, rng.integers(0, 32, (500, 3)))
    ids = np.arange(64)
    rows = [tables.read(table, ids) for table in tables.kinds]
    found = scores.measure(DAYS[0], ids, *rows)
    assert 0 < found["pip"] <= math.sqrt(2)
    assert found["nll_sample"] == pytest.approx(4 * math.log(2))


def test_the_last_pairs_are_kept() -> None:
    sample = np.empty((0, 2), dtype=np.int64)
    for i in range(5):
        sample = last_pairs(sample, ints(i, i, i).reshape(1, 3), 3)
    assert sample[:, 0].tolist() == [2, 3, 4]
    sample = last_pairs(sample, np.repeat(np.arange(9), 3).reshape(9, 3), 3)
    assert sample[:, 0].tolist() == [6, 7, 8]
    assert last_pairs(sample, ints(1, 1, 1, 2).reshape(1, 4), 3).tolist() == [[1, 1, 1, 2]]


def test_co_occurrences_survive_a_change_of_the_followed_words():
    together = Cooccurrence(2)
    together.follow(ints(5, 9))
    together.add(ints(5, 5, 1), ints(9, 9, 5))
    together.follow(ints(9, 7))
    together.add(ints(9), ints(7))
    ids, counts = together.table()
    assert ids.tolist() == [7, 9]
    assert counts.tolist() == [[0, 0], [1, 0]]
    together.follow(ints(5, 9))
    assert together.table()[1].tolist() == [[0, 0], [0, 0]]


def test_a_gold_file_is_measured_and_a_missing_one_only_noted(tmp_path, caplog):
    gold = tmp_path / "짝.tsv"
    gold.write_text("말\t글\t9\n말\t집\t1\n글\t집\t2\n말\t없음\t5\n", encoding="utf-8")
    vectors = np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32)
    found = measure_gold(gold, ["말", "글", "집"], vectors)
    assert found["similarity/짝"] == pytest.approx(1.0)
    assert found["coverage/짝"] == pytest.approx(0.75)
    missing = tmp_path / "none.tsv"
    assert measure_gold(missing, ["말"], vectors[:1]) == {}
    assert "none.tsv" in caplog.text
