"""Shards where messages are small."""

from __future__ import annotations

import numpy as np
import pytest
from threads import sharded

from embedding.kernel.records import Table
from embedding.server.config import ServerConfig
from waiting import until

pytestmark = pytest.mark.timeout(600)


def test_evictions_that_no_message_holds_travel_in_several(connect) -> None:
    config = ServerConfig(min_count=1, shards=2, max_message_bytes=1 << 16, device="cpu")
    with sharded(config) as server:
        node = connect(server)
        ids, state = node.words("봄"), server.state
        with state.lock:
            state.rows.log.admit(1, 1, np.arange(10**9, 10**9 + 20_000))
            state.vocabulary.next_id = 2
        until(
            lambda: all(link.position == state.rows.log.position for link in state.rows.links.links)
        )
        assert [each["reason"] for each in server.status()["shards"]] == [None, None]
        assert node.pull(ids).rows[Table.IN].shape == (1, 4)
