"""One contract of rows by table and id, wherever they lie and however they travel."""

from __future__ import annotations

import numpy as np
import pytest
from named import QUICK
from threads import sharded

from embedding.exchange.payload import RowDelta
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from embedding.models.starting import first_vectors
from embedding.server.config import ServerConfig, SyncConfig

pytestmark = pytest.mark.laboratory

DIM, WORDS, SEED = 16, 30, 3
STEP = 0.02
STORES = {"tables": 1, "shards": 3}
CACHE = 1 << 20
WAYS = {
    "as they are": {},
    "halves": {"rows": "float16", "compression": "fp16"},
    "kept": {"cache_bytes": CACHE},
    "kept, few": {"cache_bytes": 2_000},
    "changes": {"pulls": "changes", "cache_bytes": CACHE},
    "packed, threshold": {"compression": "threshold"},
    "packed, onebit": {"compression": "onebit"},
    "packed, topk": {"compression": "topk"},
    "packed and kept": {"compression": "threshold", "cache_bytes": CACHE},
    "packed, by changes": {"compression": "onebit", "pulls": "changes", "cache_bytes": CACHE},
}


@pytest.fixture(params=STORES)
def server(request):
    shards = STORES[request.param]
    settings = ServerConfig(shards=shards, min_count=1, half_life_tokens=None, device="cpu")
    with sharded(settings, SyncConfig(policy="asp"), dim=DIM) as running:
        yield running


@pytest.fixture(params=WAYS)
def node(server, connect, request):
    return connect(server, "n0", config=exactly(**WAYS[request.param]))


@pytest.fixture
def plain(server, connect):
    """A node that gets the rows of the server as they are."""
    return connect(server, "plain", config=exactly())


@pytest.fixture
def ids(node) -> np.ndarray:
    return node.words(*(f"말{i}" for i in range(WORDS)))


def exactly(**more):
    settings = {"rows": "float32", "compression": "none", "threshold": STEP, "top_share": 0.2}
    return QUICK.model_copy(update={**settings, "relative_threshold": 0.0, **more})


def deltas(rng, ids: np.ndarray) -> tuple[RowDelta, ...]:
    values = rng.normal(size=(len(ids), DIM), scale=0.05).astype(np.float32)
    return tuple(RowDelta(table, ids, values) for table in (Table.IN, Table.OUT))


def agree(node, plain, ids: np.ndarray) -> None:
    """The node has the rows of the server, with what it learnt and has not sent."""
    wanted = plain.pull(ids, ids)
    for _ in range(12 if node.client.config.pulls == "changes" else 1):  # each brings some more
        seen = node.pull(ids, ids)
    for table in (Table.IN, Table.OUT):
        rows = wanted.rows[table].copy()
        node.client.feedback.add_to(table, ids, rows, node.sequence)
        within = STEP + 1e-4 if node.client.config.pulls == "changes" else 1e-3
        assert np.allclose(seen.rows[table], rows, atol=within)


def test_rows_of_new_words_are_a_function_of_seed_and_id(node, ids):
    rows = node.pull(ids[::-1].copy(), ids)
    assert np.allclose(rows.rows[Table.IN], first_vectors(ids, DIM, SEED)[::-1], atol=1e-4)
    assert not rows.rows[Table.OUT].any()


def test_what_any_node_adds_is_in_the_rows_of_all(node, plain, ids):
    rng = np.random.default_rng(1)
    for turn in range(6):
        some = np.sort(rng.choice(ids, 12, replace=False))
        (node, plain)[turn % 2].push(deltas(rng, some))
        agree(node, plain, some)
    agree(node, plain, ids)


def test_rows_come_in_the_order_in_which_they_are_asked_for(node, plain, ids):
    node.push(deltas(np.random.default_rng(2), ids))
    agree(node, plain, ids[np.random.default_rng(3).permutation(WORDS)])


def test_a_stream_that_breaks_adds_nothing_twice_and_loses_nothing(node, plain, ids):
    rng = np.random.default_rng(4)
    for _ in range(3):
        node.push(deltas(rng, ids))
        node.client.drop()
        agree(node, plain, ids)


def test_an_id_that_was_never_given_is_refused_and_changes_nothing(node, plain, ids):
    node.push(deltas(np.random.default_rng(5), ids))
    unknown = np.array([ids[0], 10_000], dtype=np.int64)
    with pytest.raises(RefusedError, match="given so far"):
        node.pull(unknown, unknown)
    agree(node, plain, ids)
