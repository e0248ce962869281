"""kill -9 of shards, alone and with a node or with the primary."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from killing import Chaos, chaos, corpus, kill, learnt_once

pytestmark = [pytest.mark.laboratory, pytest.mark.slow, pytest.mark.timeout(1800)]


def ended(found: Chaos, words: Counter[str]) -> list[dict[str, Any]]:
    """Each shard has carried out each push once, by its own ledger; their status."""
    found.ended()
    status = learnt_once(found, words)
    for shard in status["shards"]:
        assert (shard["state"], shard["behind"]) == ("up", 0)
        assert shard["pushes"] == status["pushes"]
    return status["shards"]


def test_shards_and_the_primary_are_killed_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    words = corpus(path, 20_000)
    with chaos(tmp_path, "ssp", shards=2) as (found, pool):
        found.learn(pool, path, 2)
        found.reach(words.total() * 0.2)
        found.kill_shards(1)
        found.reach(words.total() * 0.4)
        found.kill_server()
        found.serve()
        found.reach(words.total() * 0.6)
        found.kill_shards(2)
        shards = ended(found, words)
        assert [shard["restarts"] for shard in shards] == [1, 1]
        assert sum(shard["lost_pushes"] + shard["repeated_pushes"] for shard in shards) == 0


def test_a_node_and_a_shard_killed_together_lose_rows_that_are_counted(tmp_path: Path) -> None:
    """What the node had pushed since that shard's checkpoint is with nobody; its words are."""
    path = tmp_path / "c.txt"
    words = corpus(path, 15_000)
    with chaos(tmp_path, "ssp", shards=2, checkpoint_every_s=600.0) as (found, pool):
        found.learn(pool, path, 2)
        found.reach(words.total() * 0.3)
        found.kill_shards(2)  # before they can hear of the node's death
        kill("gradient")
        shards = ended(found, words)
        assert sum(shard["lost_pushes"] for shard in shards) > 0


def test_a_node_and_the_primary_killed_together_count_each_word_once(tmp_path: Path) -> None:
    """Shards go on from later than the primary; what they have is not applied again."""
    path = tmp_path / "c.txt"
    words = corpus(path, 15_000)
    with chaos(tmp_path, "ssp", shards=2, checkpoint_every_s=600.0) as (found, pool):
        found.learn(pool, path, 2)
        found.reach(words.total() * 0.3)
        assert found.server is not None
        os.kill(found.server.pid, signal.SIGSTOP)  # it cannot hear of the node's death
        kill("gradient")
        found.kill_server()
        found.serve()
        shards = ended(found, words)
        assert sum(shard["lost_pushes"] for shard in shards) == 0
        assert sum(shard["repeated_pushes"] for shard in shards) > 0
