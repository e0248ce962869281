"""A node that never comes back to a server that was restarted."""

from __future__ import annotations

import time

from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
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


def test_it_is_waited_for_until_it_greets_though_it_reports_before() -> None:
    """Another of its threads reports while the one that learns has yet to come back."""
    state = ServerState(ServerConfig(device="cpu"), SyncConfig(), RowShape(2, seed=1))
    tracker = state.accounts.tracker
    tracker.expect(["n0"], until=time.monotonic() + 1_000)
    state.report("n0", {})
    assert tracker.expected == {"n0"}
    state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0)
    state.report("n0", {})
    assert tracker.expected == set()
