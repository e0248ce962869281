"""Servers that follow another, and what their nodes push."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from constants import with_constants
from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from yeoron_lab.settings import GroupConfig

DIM = 8


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@contextlib.contextmanager
def following(
    leader: ParameterServer,
    name: str = "b",
    *,
    sync: SyncConfig | None = None,
    dim: int = DIM,
    every_s: float = 0.1,
    rows: str = "float32",
    curvature: float = 0.0,
    buckets: int = 0,
    **given: object,
) -> Iterator[ParameterServer]:
    group = GroupConfig(leader=leader.location, name=name, every_s=every_s, rows=rows).model_copy(
        update={"curvature": curvature}
    )
    sync = sync or SyncConfig(liveness_timeout_s=max(60.0, 2 * every_s))
    settings = {"min_count": 1, "half_life_tokens": None, "group": group, **given}
    config = with_constants(ServerConfig, **settings)
    with running_server(config, sync, dim=dim, seed=9, buckets=buckets) as server:
        yield server


def moved(ids: np.ndarray, by: float, table: Table = Table.OUT) -> tuple[RowDelta, ...]:
    return (RowDelta(table, ids, np.full((len(ids), DIM), by, dtype=np.float32)),)


def read(server: ParameterServer, ids: np.ndarray, table: Table = Table.OUT) -> np.ndarray:
    state = server.state
    with state.lock:
        return state.tables.read(table, state.vocabulary.slots(ids, "test"))


def counted(ids: np.ndarray, n: int = 1, *, window: int = 0) -> BlockCounts:
    times = np.full(len(ids), n, dtype=np.int64)
    return BlockCounts((CountGroup("뉴스", window, len(ids)),), ids, (), times, times * 0 + 1)
