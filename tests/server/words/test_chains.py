"""What one node reads of phrases the server passes on to the others."""

from __future__ import annotations

import pytest

from embedding.server.config import ServerConfig
from embedding.server.recovery.erasing import erase_state
from embedding.server.rowstore.interface import RowShape
from embedding.server.service import running_server
from embedding.server.state import ServerState
from embedding.server.words import accounting
from tests.worker.in_process import ASP

DIM = 4
ONE = "온라인 개학\t0a1b2c3d0a1b2c3e\t0a1b2c3d"
TWO = "공적 마스크\t0a1b2c3d0a1b2c3f\t"


@pytest.fixture
def server():
    with running_server(ServerConfig(min_count=2), ASP, dim=DIM) as running:
        yield running


def heard(node) -> list[str]:
    return list(node.client.vocabulary().chains)


def test_the_others_hear_of_chains_each_once(server, connect):
    one, two = connect(server, "n0"), connect(server, "n1")
    assert (heard(one), heard(two)) == ([], [])
    one.push(chains=(ONE,))
    assert (heard(one), heard(two)) == ([], [ONE])
    two.pull()
    two.push(chains=(TWO,))
    assert (heard(one), heard(two)) == ([TWO], [])
    assert (heard(one), heard(two)) == ([], [])


def test_a_node_that_comes_later_or_again_hears_of_all_that_is_kept(server, connect, monkeypatch):
    connect(server, "n0").push(chains=(ONE, TWO))
    for name in ("n1", "n1", "n0"):
        assert heard(connect(server, name)) == [ONE, TWO]


def test_of_too_many_the_latest_are_kept(connect, monkeypatch):
    monkeypatch.setattr(accounting, "MOST_CHAINS", 2)
    with running_server(ServerConfig(), ASP, dim=DIM) as server:
        connect(server, "n0").push(chains=(TWO, TWO, ONE, TWO))
        assert heard(connect(server, "n1")) == [ONE, TWO]


def test_nobody_hears_of_a_word_that_was_erased(tmp_path, connect):
    config = ServerConfig(state_dir=tmp_path / "state")
    with running_server(config, ASP, dim=DIM) as server:
        connect(server).client.checkpoint()

    def make(digests) -> ServerState:
        return ServerState(config, ASP, RowShape(DIM, seed=0), digests=digests)

    erase_state(config, make, word="마스크")
    erase_state(config, make, word="온라인개학")
    with running_server(config, ASP, dim=DIM) as server:
        connect(server, "n0").push(chains=(ONE, TWO, "우한 폐렴\t0a1b2c3d\t"))
        assert heard(connect(server, "n1")) == ["우한 폐렴\t0a1b2c3d\t"]
