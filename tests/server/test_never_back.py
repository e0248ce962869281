"""A node that never comes back to a server that was restarted."""

from __future__ import annotations

import time

from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore.interface import RowShape
from embedding.server.state import ServerState


def test_it_is_waited_for_no_longer_though_nobody_asks() -> None:
    """Nothing but time passes: nobody pushes, reports or asks for the status."""
    state = ServerState(ServerConfig(device="cpu"), SyncConfig(), RowShape(2, seed=1))
    tracker = state.accounts.tracker
    tracker.expect(["n0"], until=time.monotonic() + 1_000)
    state.tick()
    assert tracker.expected == {"n0"}
    tracker.expect(["n0"], until=time.monotonic())
    state.tick()
    assert tracker.expected == set()
