"""kill -9 of crawling nodes and of the server: each document that was published is learnt once."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from crawlkills import NODE, NODES, Crawl, crawling
from disks import full, small_disk
from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import LeaseConfig
from pgserver import running_postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SEED = int(os.environ.get("KILLS_SEED", "7"))
"""Others for kills at other moments."""


def test_seven_kills_a_database_restart_and_a_full_disk_in_one_run(tmp_path: Path) -> None:
    """The disk is that of the server's checkpoints and journal; one node dies for good."""
    chance = random.Random(SEED)
    troubles = ("process", "database", "both", "node", "disk", "process", "server")
    with (
        running_postgres() as postgres,
        small_disk(tmp_path) as disk,
        crawling(tmp_path, state=disk / "state", frontier=postgres.new_database()) as found,
    ):
        for name in NODES:
            found.start(name)
        shown = found.frontier.leases(LeaseConfig())
        found.until(lambda: {*holders(shown.show())} == {*NODES}, "each node reads something")
        for part, trouble in enumerate(troubles):
            enough = 270 * (part + 0.3) / (len(troubles) + 1)
            found.until(lambda enough=enough: found.learnt() >= enough, f"before {part} {trouble}")
            time.sleep(chance.uniform(0.0, 0.6))
            name = chance.choice(NODES)
            if trouble == "process":
                found.kill_one(name, chance)
            if trouble in ("node", "both"):
                found.kill(name)
            if trouble in ("server", "both"):
                found.kill_server()
                found.serve()
            if trouble in ("node", "both"):
                found.start(name)
            if trouble == "database":
                postgres.stop()
                time.sleep(2)
                postgres.start()
                found.frontier.close()  # this test's own connection, which nobody mends
                found.frontier = Frontier(found.address)
            if trouble == "disk":
                with full(disk):
                    time.sleep(3)
        # The other tells apart what it had pushed and what it had only fetched.
        found.kill("n0")
        shown = found.frontier.leases(LeaseConfig())
        found.until(lambda: {*holders(shown.show())} == {"n1"}, "its sources are taken over")
        found.until(lambda: found.learnt() >= 270, "all is learnt")
        found.until(lambda: found.open() == 0, "everything is acknowledged")
        all_is_learnt_once(found)


def all_is_learnt_once(found: Crawl) -> None:
    """Tokens learnt are tokens read, of each document."""
    assert found.learnt() == 270
    tokens, counts = found.client.status()["tokens"], found.word_counts()
    numbered = {word: n for word, n in counts.items() if word.startswith("글")}
    assert numbered == {f"글{i}번": 2 for i in range(270)}
    assert counts["시장"] == 2 * 270
    assert tokens == sum(counts.values())


def test_killed_while_it_rehearses_a_node_goes_on_and_counts_nothing_twice(
    tmp_path: Path,
) -> None:
    """What is learnt again is counted nowhere, whoever dies over it."""
    budget = {"rehearsal_passes": 1_000.0, "rehearsal_share": 1.0, "held_out": 0.0}
    chance = random.Random(5)
    with crawling(tmp_path, NODE.model_copy(update=budget)) as found:

        def rehearsal() -> dict[str, object]:
            report = found.client.status()["nodes"]["n0"]["report"]["rehearsal"]
            return dict(report)

        found.start("n0")
        replayed = 0
        for part, victim in enumerate(("process", "node", "server")):
            found.until(lambda part=part: found.learnt() > 50 * (part + 1), "some is fresh")
            found.until(lambda more=replayed: found.replayed() > more + 10_000, "it rehearses")
            # On a busy machine it may have done all its passes before more text came.
            found.until(lambda: not rehearsal()["converged"], "it goes on")
            if victim == "process":
                found.kill_one("n0", chance)
            if victim == "node":
                found.kill("n0")
                found.start("n0")
            if victim == "server":
                found.kill_server()
                found.serve()
            replayed = found.replayed()
        found.until(lambda: found.learnt() == 270, "all is learnt")
        found.until(lambda: found.open() == 0, "everything is acknowledged")
        found.until(lambda: found.replayed() > replayed + 10_000, "it rehearses at the end")
        before = found.client.status()
        counts = found.word_counts()
        numbered = {word: n for word, n in counts.items() if word.startswith("글")}
        assert numbered == {f"글{i}번": 2 for i in range(270)}
        assert counts["시장"] == 2 * 270
        assert before["tokens"] == sum(counts.values())
        assert found.learnt() == 270


def holders(shown: dict[str, Any]) -> list[str | None]:
    return [each["held_by"] for each in shown["sources"].values()] or [None]
