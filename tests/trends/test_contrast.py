"""Two sources compared, and words between two poles, on a store whose truth is known."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from typer.testing import CliRunner

from embedding.cli import app
from embedding.kernel.errors import InputError
from embedding.kernel.records import SnapshotData, Window, WindowUnit, WordCounts
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage
from embedding.trends.axis import ALL, axis_history
from embedding.trends.config import TrendsConfig
from embedding.trends.contrast import OTHERS, source_contrast

N, DIM, REPLICAS = 600, 10, 16
NEWS, BOARD = "뉴스", "글판"
ODD = "배"
"""In the news it is used as ship words are, on the board as fruit words are."""
SHIPS, FRUITS = [f"항구{i}" for i in range(12)], [f"과일{i}" for i in range(12)]
WORDS = [ODD, *SHIPS, *FRUITS, *(f"말{i}" for i in range(N - 25))]
CONFIG = TrendsConfig(rows=10).model_copy(update={"shown_neighbours": 5})


def means(month: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    ship, fruit = np.eye(DIM)[0], np.eye(DIM)[1]
    true = rng.normal(size=(N, DIM)) * 0.2
    true[1:13] += ship
    true[13:25] += fruit
    # The board goes over from the ships to the fruits month by month.
    goes = {2: 0.5, 3: 1.0}.get(month, 0.0)
    news, board = true.copy(), true.copy()
    news[0], board[0] = ship, (1 - goes) * ship + goes * fruit
    return {NEWS: news, BOARD: board}


def usage(month: int) -> Usage:
    rng = np.random.default_rng(month)
    truth = means(month)
    pairs = rng.uniform(20, 60, (2 * N, REPLICAS)).astype(np.float32)
    true = np.concatenate([truth[NEWS], truth[BOARD]])
    noise = rng.normal(size=(2 * N, REPLICAS, DIM)) * 0.3 / np.sqrt(pairs)[..., None]
    return Usage(
        rows=np.tile(np.arange(N), 2),
        sources=[NEWS] * N + [BOARD] * N,
        mentions=np.full(2 * N, 40),
        pairs=pairs,
        means=(true[:, None] + noise).astype(np.float32),
    )


def data(month: int) -> SnapshotData:
    window = Window.holding(datetime(2020, month, 3, tzinfo=UTC), WindowUnit.MONTH)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(N, DIM)).astype(np.float32)
    none = np.empty(0, dtype=np.int64)
    return SnapshotData(
        window=window,
        words=WORDS,
        ids=np.arange(N),
        counts=np.full(N, 100),
        last_seen=np.full(N, window.start.timestamp()),
        vectors=vectors,
        contexts=vectors,
        by_source=WordCounts([], [], none, none, none),
        tokens={NEWS: 9, BOARD: 9},
        documents={NEWS: 3, BOARD: 3},
        quality={},
        config={},
        config_digest="c",
        tokenizer_digest="t",
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> SnapshotStore:
    store, parent = SnapshotStore(tmp_path_factory.mktemp("sources")), None
    for month in (1, 2, 3):
        parent = store.publish(replace(data(month), parent=parent), usage(month)).id
    return store


def test_the_word_that_two_sources_use_differently_is_found_with_what_it_means_to_each(store):
    found = source_contrast(store, NEWS, BOARD, CONFIG)
    assert [row.word for row in found.rows if row.significant] == [ODD]
    odd = found.rows[0]
    assert {near.word for near in odd.neighbours_first} <= set(SHIPS)
    assert {near.word for near in odd.neighbours_second} <= set(FRUITS)
    assert all(near.changed for near in (*odd.neighbours_first, *odd.neighbours_second))
    assert found.compared == N
    back = source_contrast(store, BOARD, NEWS, CONFIG).rows[0]
    assert (back.word, back.z) == (ODD, pytest.approx(odd.z, rel=0.25)), "by other permutations"


def test_a_source_is_compared_with_all_others_where_no_second_one_is_named(store):
    pair, others = (source_contrast(store, NEWS, second, CONFIG) for second in (BOARD, None))
    assert others.second == OTHERS
    assert others.rows == pair.rows, "there is one other"
    assert others.compared == pair.compared


def test_sources_that_use_all_words_alike_differ_in_none(store):
    first = store.list()[0].id
    found = source_contrast(store, NEWS, BOARD, CONFIG, id=first)
    assert not any(row.significant for row in found.rows)


def test_a_word_moves_along_an_axis_in_the_source_in_which_it_moved(store):
    found = axis_history(store, ODD, FRUITS, SHIPS, CONFIG)
    by_source = {
        source: [point for point in found.points if point.source == source]
        for source in (NEWS, BOARD, ALL)
    }
    assert [point.label for point in by_source[NEWS]] == ["2020-01", "2020-02", "2020-03"]
    assert all(point.position < -0.6 for point in by_source[NEWS])
    board = [point.position for point in by_source[BOARD]]
    assert board[0] < -0.6
    assert board[2] > 0.6
    assert board[0] < board[1] < board[2]
    for point in found.points:
        assert point.low <= point.position <= point.high
        assert point.high - point.low < 0.6
    assert found.poles == (12, 12)


def test_lists_of_words_drawn_at_random_seldom_put_a_word_on_a_side(store):
    """Although the texts alone say with certainty where it stands between these very words."""
    dice, claimed = np.random.default_rng(5), 0
    plain = [word for word in WORDS if word.startswith("말")]
    for _ in range(60):
        drawn = dice.choice(plain, 9, replace=False).tolist()
        found = axis_history(store, drawn[0], drawn[1:5], drawn[5:], CONFIG)
        (point,) = [one for one in found.points if one.source == ALL][-1:]
        claimed += point.low > 0 or point.high < 0
    assert claimed <= 12


def test_one_word_on_a_side_gives_a_position_without_an_interval(store):
    found = axis_history(store, ODD, FRUITS[:1], SHIPS, CONFIG)
    assert {(point.low, point.high) for point in found.points} == {(None, None)}
    assert found.poles == (1, 12)


def test_what_cannot_be_compared_is_said_in_a_sentence(store, tmp_path):
    with pytest.raises(InputError, match="글판, 뉴스"):
        source_contrast(store, NEWS, "없음", CONFIG)
    with pytest.raises(InputError, match="named twice"):
        source_contrast(store, NEWS, NEWS, CONFIG)
    with pytest.raises(InputError, match="positive: none of 없는말"):
        axis_history(store, ODD, ["없는말"], SHIPS, CONFIG)
    bare = SnapshotStore(tmp_path)
    bare.publish(data(1))
    for ask in (
        lambda: source_contrast(bare, NEWS, BOARD, CONFIG),
        lambda: axis_history(bare, ODD, FRUITS, SHIPS, CONFIG),
    ):
        with pytest.raises(InputError, match=r"server\.usage"):
            ask()


def test_an_unknown_word_has_no_points(store):
    assert axis_history(store, "모르는말", FRUITS, SHIPS, CONFIG).points == ()


@pytest.fixture
def run(store):
    def call(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["trends", *arguments, "--snapshots", store.uri])
        assert result.exit_code == 0, result.output
        return result.output

    return call


def test_the_commands_print_tables_json_and_csv(run):
    assert ODD in run("contrast", NEWS, BOARD)
    plain = json.loads(run("contrast", NEWS, BOARD, "--json"))
    assert plain["rows"][0]["word"] == ODD
    (first, *_) = csv.DictReader(io.StringIO(run("contrast", NEWS, BOARD, "--csv")))
    assert (first["word"], first["significant"]) == (ODD, "True")
    poles = ["--positive", ",".join(FRUITS), "--negative", ", ".join(SHIPS)]
    assert "2020-03" in run("axis", ODD, *poles)
    assert len(json.loads(run("axis", ODD, *poles, "--json"))["points"]) == 9
    assert run("axis", ODD, *poles, "--csv").startswith("window,source,mentions,position")


def test_the_same_question_has_the_same_bytes(run):
    assert run("contrast", NEWS, BOARD, "--json") == run("contrast", NEWS, BOARD, "--json")
