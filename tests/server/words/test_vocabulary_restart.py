"""A server that is killed comes back with the same words in the same rows, evictions included."""

import numpy as np

from embedding.exchange.payload import BlockCounts, CountGroup
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, Push
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer


def start(folder) -> ParameterServer:
    config = ServerConfig(
        state_dir=folder, min_count=1, max_words=40, half_life_tokens=None, checkpoint_every_s=600
    )
    server = ParameterServer(config, SyncConfig(policy="asp"), dim=4)
    server.start()
    return server


def crash(server: ParameterServer) -> None:
    """End it as kill -9 would: without flush and last checkpoint."""
    server.state.flush = lambda: None
    server.recovery._try_write = lambda: "crashed"
    server.stop()


def admit(server: ParameterServer, *numbers: int) -> None:
    server.state.words.admit([f"말{i}" for i in numbers], np.ones(len(numbers), dtype=np.int64))


def read(server: ParameterServer, sequence: int, number: int, n: int) -> None:
    ids = server.state.vocabulary.ids([f"말{number}"])
    column = np.array([n], dtype=np.int64)
    counts = BlockCounts((CountGroup("뉴스", 0, 1),), ids, (), column, column)
    server.state.push(Push("n0", sequence, 0, (), counts, tokens=n))


def words(server: ParameterServer) -> dict[str, int]:
    alive = server.state.vocabulary.alive()
    return dict(zip(server.state.vocabulary.names(alive), alive.tolist(), strict=True))


def test_after_a_crash_the_same_words_have_been_evicted(tmp_path):
    server = start(tmp_path)
    server.state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0)
    admit(server, *range(40))
    server.recovery.request(wait=True)
    # Counted after the checkpoint: by what the checkpoint knows, 말0 would be the first to go.
    for i in range(20):
        read(server, i + 1, i, 5)
    for i in range(40, 55):
        admit(server, i)
    before = words(server)
    assert {"말0", "말54"} <= set(before)
    assert "말20" not in before
    crash(server)
    server = start(tmp_path)
    try:
        assert words(server) == before
        assert server.state.vocabulary.next_id == 55
        admit(server, 20)
        assert words(server)["말20"] == 55, "an id of before the crash is not given again"
    finally:
        server.stop()


def test_a_checkpoint_keeps_words_rows_and_candidates_of_a_vocabulary_with_gaps(tmp_path):
    server = start(tmp_path)
    admit(server, *range(40))
    for i in range(40, 60):
        admit(server, i)
    before = words(server)
    server.state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0)
    alive = server.state.vocabulary.alive()
    held = server.state.pull("n0", PullRequest({Table.IN: alive, Table.OUT: alive}, 0))
    server.stop()
    server = start(tmp_path)
    try:
        assert words(server) == before
        server.state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0)
        again = server.state.pull("n0", PullRequest({Table.IN: alive, Table.OUT: alive}, 0))
        assert np.array_equal(again.rows[Table.IN], held.rows[Table.IN])
        gone = np.setdiff1d(np.arange(server.state.vocabulary.next_id), alive)
        assert (server.state.vocabulary.slots(gone, "test") == -1).all()
    finally:
        server.stop()
