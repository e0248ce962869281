"""Splitting by shard and putting together again loses and confuses nothing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange.payload import RowDelta
from embedding.kernel.records import Table
from yeoron_lab.shards.client.split import joined, places, split_deltas

ids = st.lists(st.integers(0, 2**40), max_size=60)
shards = st.integers(1, 7)


@given(ids, shards, st.sampled_from([np.float32, np.float16]))
def test_rows_come_back_in_the_order_in_which_they_were_asked_for(asked, count, dtype):
    asked = np.array(asked, dtype=np.int64)
    where = places(asked, count)

    def answer(wanted):
        return np.column_stack([wanted % 1009, wanted % 7]).astype(dtype).reshape(-1, 2)

    rows = joined(where, [answer(asked[each]) for each in where])
    assert rows.dtype == dtype
    assert np.array_equal(rows, answer(asked))


@given(st.lists(st.integers(0, 2**40), max_size=60, unique=True), shards)
def test_each_shard_gets_its_ids_and_every_row_goes_to_one(given_ids, count):
    given_ids = np.array(given_ids, dtype=np.int64)
    values = np.arange(2 * len(given_ids), dtype=np.float32).reshape(-1, 2)
    parts = split_deltas([RowDelta(Table.IN, given_ids, values)], count)
    assert len(parts) == count
    back = {}
    for shard, (delta,) in enumerate(parts):
        assert (delta.ids % count == shard).all()
        back |= dict(zip(delta.ids.tolist(), delta.values.tolist(), strict=True))
    assert back == dict(zip(given_ids.tolist(), values.tolist(), strict=True))
    assert sum(len(delta.ids) for (delta,) in parts) == len(given_ids)
