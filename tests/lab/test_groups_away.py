"""Groups whose leader is away, and perhaps their own shards as well."""

from __future__ import annotations

import httpx
import pytest
from grouped import DIM, following
from threads import ThreadFleet, fleet

from embedding.commands.status_tables import figure_table
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from waiting import until

pytestmark = [pytest.mark.laboratory, pytest.mark.timeout(600)]


def metrics(server) -> str:
    return httpx.get(f"{server.http_url}/metrics", trust_env=False).text


def test_a_group_says_that_its_leader_is_away_while_its_shards_are_too(monkeypatch) -> None:
    monkeypatch.setattr("yeoron_lab.shards.sharding.Fleet", ThreadFleet)
    with running_server(ServerConfig(min_count=1), dim=DIM) as leader:
        assert "yeoron_leader_up" not in metrics(leader)
        with following(leader, shards=2) as b:
            assert "yeoron_leader_up 1.0" in metrics(b)
            fleet(b).crash(0)
            until(lambda: b.link._rows.lacking)
            until(lambda: b.link.exchanges > 0 and b.status()["following"]["state"] == "up")
            assert not any("leader" in each for each in b.ailing()), "the leader is there"
            leader.stop()
            until(lambda: b.status()["following"]["state"] == "away")
            reasons = httpx.get(f"{b.http_url}/health", trust_env=False).json()["reasons"]
            assert any("the leader of group b is away" in each for each in reasons)
            assert any("shard 0 is away" in each for each in reasons)
            assert figure_table("Leader", b.status()) is not None
            assert "yeoron_leader_up 0.0" in metrics(b)
