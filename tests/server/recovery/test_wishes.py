"""A wish for a checkpoint outlives whoever was to write it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from grouped import DIM, counted, following, moved
from threads import fleet, sharded

from embedding.kernel.errors import UnavailableError
from embedding.server.config import ServerConfig
from embedding.server.recovery import checkpointer
from embedding.server.recovery.checkpointer import Checkpointer
from embedding.server.service import ParameterServer, running_server
from waiting import until

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def server(tmp_path) -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=1, shards=2, state_dir=tmp_path, checkpoint_every_s=3600)
    with sharded(config, dim=DIM) as found:
        yield found


def test_a_shard_that_died_before_it_wrote_is_asked_again(server, connect) -> None:
    node = connect(server)
    ids = node.words("봄", "여름")
    node.push(moved(ids, 1.0))
    asked: list[bool] = []
    link, shard = server.state.rows.links.links[0], fleet(server).servers[0]
    until(lambda: link.position == server.state.rows.log.position)
    shard.recovery.request = lambda *, wait: asked.append(wait)  # heard, and never written
    link.want_checkpoint()
    until(lambda: asked == [False])
    fleet(server).crash(0)
    fleet(server).restart(0)
    node.pull()  # the node notices, and sends the rows again
    until(lambda: link.durable == server.state.rows.log.position)


class Failing(Checkpointer):
    """Cannot be written while something is away, which is back after some tries."""

    def __init__(self, tries: int) -> None:
        super().__init__(every_s=3600)
        self.tries, self.written = tries, 0

    def _write(self) -> None:
        self.tries -= 1
        if self.tries >= 0:
            raise UnavailableError("shard 1 is away.")
        self.written += 1

    def _ended(self) -> None: ...


def test_a_checkpoint_that_a_shard_kept_from_being_written_is_tried_again(monkeypatch) -> None:
    monkeypatch.setattr(checkpointer, "AGAIN_S", 0.05)
    found = Failing(3)
    found.opened()
    assert "shard 1 is away" in str(found.request(wait=True))
    until(lambda: found.written == 1)
    assert found.failed is None
    assert found._pause_s == 3600
    found.stop()


@pytest.mark.parametrize("answers", [True, False])
def test_a_leader_that_died_before_it_wrote_is_asked_again(tmp_path, connect, answers) -> None:
    config = ServerConfig(min_count=1, state_dir=tmp_path, checkpoint_every_s=3600)
    with running_server(config, dim=DIM) as leader, following(leader) as b:
        node = connect(b, "n1")
        ids = node.words("봄")
        node.push(moved(ids, 1.0), counted(ids))
        until(lambda: leader.state.meters.pushes == 1)
        client, asked = b.link.client, []
        checkpoint, changes = client.checkpoint, client.changes

        def gone(*args: object, **more: object) -> None:
            client.changes = changes
            raise UnavailableError("it died.")

        def lost(*, wait: bool) -> None:
            asked.append(wait)
            client.checkpoint, client.changes = checkpoint, gone
            if not answers:
                raise UnavailableError("it died.")

        client.checkpoint = lost
        b.link.checkpoint(wait=False)
        until(lambda: asked == [False])
        until(lambda: leader.state.ledger.of("b").durable == 1)
