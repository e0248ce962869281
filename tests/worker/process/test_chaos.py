"""kill -9 of nodes and of the server while a corpus is learnt: nothing twice, nothing left out."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from killing import chaos, corpus, gradient_processes, kill, kill_without_reader, learnt_once

from embedding.kernel.records import Window
from embedding.snapshots.store import SnapshotStore
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_whatever_is_killed_each_word_is_learnt_once(tmp_path: Path) -> None:
    path, moments = tmp_path / "c.txt", random.Random(7)
    words = corpus(path, 30_000)
    with chaos(tmp_path, "bsp") as (found, pool):
        found.learn(pool, path, 2)
        for part, victim in enumerate(("gradient", "server", "crawler")):
            found.reach(words.total() * (0.2 * part + moments.uniform(0.05, 0.15)))
            if victim == "server":
                found.kill_server()
                found.serve()
            else:
                kill(victim)
        outcomes = found.ended()
        assert sum(outcome.restarts for outcome in outcomes) >= 2
        learnt_once(found, words)


def test_what_was_read_ahead_is_read_again_by_who_comes_after(tmp_path: Path) -> None:
    """The whole corpus was read before the first block was learnt, and the reader has ended."""
    path = tmp_path / "c.txt"
    words = corpus(path, 30_000)
    with chaos(tmp_path, "asp") as (found, pool):
        found.node = found.node.model_copy(update={"look_ahead_tokens": 10_000_000})
        found.learn(pool, path, 1)
        found.reach(0.1 * words.total())
        kill_without_reader()
        assert found.ended()[0].restarts == 1
        learnt_once(found, words)


def test_with_what_nodes_keep_back_each_word_is_learnt_once(tmp_path: Path) -> None:
    """A killed node's residuals are gone, and what the server believed it has; nothing else is."""
    path = tmp_path / "c.txt"
    words = corpus(path, 15_000)
    compressed = {"compression": "threshold", "pulls": "changes", "cache_bytes": 1 << 20}
    with chaos(tmp_path, "ssp") as (found, pool):
        found.learn(pool, path, 2, **compressed)
        for part, victim in enumerate(("gradient", "server")):
            found.reach(words.total() * (0.2 + 0.2 * part))
            if victim == "server":
                found.kill_server()
                found.serve()
            else:
                kill(victim)
        found.ended()
        assert "pull out in.u1" in found.client.status()["bytes"]["by_part"]
        learnt_once(found, words)


def test_a_tick_of_several_sources_is_learnt_as_a_whole_whatever_is_killed(tmp_path: Path) -> None:
    """A reader killed while it hands over a tick leaves a part of it, which is read again."""
    path, names, dice = tmp_path / "c.jsonl", ("뉴스", "게시판", "댓글"), random.Random(3)
    counts: dict[str, Counter[str]] = {}
    with path.open("w", encoding="utf-8") as file:
        for _ in range(15_000):
            source = dice.choice([*names, "드묾", None])
            words = [f"낱말{dice.randrange(300)}" for _ in range(8)]
            line = {"date": "2020-02-03", "text": " ".join(words), "source": source}
            file.write(json.dumps(line) + "\n")
            counted = source if source in names else "corpus" if source is None else "other"
            counts.setdefault(counted, Counter()).update(words)
    with chaos(tmp_path, "ssp", in_step=True) as (found, pool):
        found.learn(pool, path, 2, names)
        for part, victim in enumerate(("crawler", "gradient", "server")):
            found.reach(120_000 * (0.1 + 0.2 * part))
            if victim == "server":
                found.kill_server()
                found.serve()
            else:
                kill(victim)
        found.ended()
        status = found.client.status()
        read = {name: figures["tokens"] for name, figures in status["sources"].items()}
        assert read == {name: words.total() for name, words in counts.items()}
        day = datetime(2020, 2, 3, tzinfo=UTC)
        ref = found.client.cut(Window(day, day + timedelta(days=1)))
        learnt = SnapshotStore(str(tmp_path / "store")).open(ref.id).by_source
    rows = zip(learnt.sources, learnt.words, learnt.counts.tolist(), strict=True)
    told = {(source, word): n for source, word, n in rows}
    assert told == {(s, word): n for s, words in counts.items() for word, n in words.items()}


def test_a_node_and_the_server_killed_together_lose_nothing(tmp_path: Path) -> None:
    """Pushes that were acknowledged and are in no checkpoint are with nobody: they are read again.

    The other node still has its own and sends them again.
    """
    path = tmp_path / "c.txt"
    words = corpus(path, 20_000)
    with chaos(tmp_path, "ssp", checkpoint_every_s=600.0) as (found, pool):
        found.learn(pool, path, 2)
        found.reach(words.total() * 0.3)
        os.kill(found.server.pid, signal.SIGSTOP)  # it cannot hear of the node's death
        kill("gradient")
        found.kill_server()
        found.serve()
        found.ended()
        learnt_once(found, words)


def test_a_server_that_is_away_for_longer_than_a_node_waits_ends_no_node(tmp_path: Path) -> None:
    """A gradient process that gave up has not learnt its corpus: it is started again."""
    path = tmp_path / "c.txt"
    words = corpus(path, 10_000)
    with chaos(tmp_path, "ssp") as (found, pool):
        found.learn(pool, path, 2, connect_timeout_s=1.0)
        found.reach(words.total() * 0.3)
        before = gradient_processes()
        found.kill_server()
        until(lambda: not before & gradient_processes(), "no node has given up")
        found.serve()
        outcomes = found.ended()
        assert all(outcome.restarts for outcome in outcomes)
        learnt_once(found, words)


def test_a_server_killed_when_a_node_has_ended_has_all_that_it_pushed(tmp_path: Path) -> None:
    """Nobody could send it again: a node ends once its pushes are in a checkpoint."""
    path = tmp_path / "c.txt"
    words = corpus(path, 5_000)
    with chaos(tmp_path, "ssp", checkpoint_every_s=600.0) as (found, pool):
        found.learn(pool, path, 1)
        found.ended()
        found.kill_server()
        found.serve()
        learnt_once(found, words)
