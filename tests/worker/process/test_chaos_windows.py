"""kill -9 of nodes, readers and the server of a dated corpus: each window has all of its counts."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from killing import Chaos, chaos, kill

from embedding.kernel.records import Window, WindowUnit
from embedding.snapshots.store import SnapshotStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
DAYS, LINES, WORDS = 10, 1_500, 8
FIRST = datetime(2020, 2, 1, tzinfo=UTC)


def dated(path: Path) -> int:
    """Lines of ten days, in order; words in all."""
    dice = random.Random(3)
    with path.open("w", encoding="utf-8") as file:
        for day in range(DAYS):
            when = f"{FIRST + timedelta(days=day):%Y-%m-%d}"
            for _ in range(LINES):
                text = " ".join(f"낱말{dice.randrange(300)}" for _ in range(WORDS))
                file.write(json.dumps({"date": when, "text": text}, ensure_ascii=False) + "\n")
    return DAYS * LINES * WORDS


def by_day(found: Chaos) -> list[dict[str, int]]:
    """Tokens and counted words of each day, in its snapshot."""
    store = SnapshotStore(str(found.folder / "store"))
    days = []
    for day in range(DAYS):
        start = FIRST + timedelta(days=day)
        snapshot = store.open(found.client.cut(Window(start, start + timedelta(days=1))).id)
        counts = int(snapshot.by_source.counts.sum())
        tokens = snapshot.manifest.tokens.get("corpus", 0)
        days.append({"tokens": tokens, "counts": counts})
    return days


@pytest.mark.parametrize(
    ("policy", "shards"), [("bsp", 1), pytest.param("ssp", 2, marks=pytest.mark.laboratory)]
)
def test_whatever_is_killed_each_window_has_all_of_its_counts(
    tmp_path: Path, policy: str, shards: int
) -> None:
    path, moments = tmp_path / "c.jsonl", random.Random(7)
    total = dated(path)
    settings = {"cut": "watermark", "in_step": True, "shards": shards}
    with chaos(tmp_path, policy, **settings) as (found, pool):
        found.expect(2)
        found.learn(pool, path, 2, window=WindowUnit.DAY)
        for part, victim in enumerate(("crawler", "gradient", "server")):
            found.reach(total * (0.2 * part + moments.uniform(0.05, 0.15)))
            if victim == "server":
                found.kill_server()
                found.serve()
            else:
                kill(victim)
        assert sum(outcome.restarts for outcome in found.ended()) >= 2
        cut = len(found.client.status()["snapshots"])
        whole = {"tokens": LINES * WORDS, "counts": LINES * WORDS}
        assert by_day(found) == [whole] * DAYS
        assert cut >= DAYS // 2  # most were cut under way, and not by this test
        read = found.client.status()["sources"]["corpus"]
        assert (read["documents"], read["late_documents"]) == (DAYS * LINES, 0)
