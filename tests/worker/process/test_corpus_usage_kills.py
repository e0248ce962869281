"""kill -9 in the middle of a month of a dated corpus: words are used as in an undisturbed run."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from killing import NODE, chaos, kill

from embedding.kernel.records import Window, WindowUnit
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
MONTHS = (1, 2, 3)
LINES, WORDS = 1_200, 8
SOURCES = ("뉴스", "게시판")


def write(path: Path) -> int:
    """Three months of lines of two sources; words in all."""
    dice = random.Random(3)
    with path.open("w", encoding="utf-8") as file:
        for month in MONTHS:
            for at in range(LINES):
                text = " ".join(f"낱말{dice.randrange(200)}" for _ in range(WORDS))
                line = {"date": f"2020-{month:02d}-{1 + at * 27 // LINES:02d}", "text": text}
                line["source"] = SOURCES[at % 2]
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return len(MONTHS) * LINES * WORDS


def used(snapshot: Snapshot, time: int) -> dict[tuple[str, str], tuple[float, np.ndarray]]:
    """By word and source: documents that use it in the window (0), or in the one before (1), and
    the sum of their vectors from counts."""
    assert snapshot.usage is not None
    table = snapshot.usage.reread[time]
    return {
        (snapshot.words[row], source): (
            float(table.pairs[at].sum()),
            (np.asarray(table.means[at], np.float64) * table.pairs[at][:, None]).sum(axis=0),
        )
        for at, (row, source) in enumerate(zip(table.rows.tolist(), table.sources, strict=True))
    }


def snapshots(folder: Path, nodes: int, kills: tuple[float, ...]) -> list[Snapshot]:
    """Of each month; the process that learns is killed at these parts of the corpus."""
    folder.mkdir()
    path = folder / "c.jsonl"
    total = write(path)
    settings = {"cut": "watermark", "in_step": True, "window": WindowUnit.MONTH, "min_count": 1}
    with chaos(folder, "ssp", **settings) as (found, pool):
        found.node = NODE.model_copy(update={"block_tokens": 400, "rehearsal_passes": 0.0})
        found.expect(nodes)
        found.learn(pool, path, nodes, sources=SOURCES, window=WindowUnit.MONTH)
        for part in kills:
            found.reach(total * part)
            kill("gradient")
        restarts = sum(outcome.restarts for outcome in found.ended())
        assert bool(restarts) == bool(kills)
        store = SnapshotStore(str(folder / "store"))
        cut = []
        for month in MONTHS:
            start = datetime(2020, month, 1, tzinfo=UTC)
            window = Window.holding(start, WindowUnit.MONTH)
            cut.append(store.open(found.client.cut(window).id))
        until(lambda: not found.client.status()["waits"])
        return cut


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_use_of_words_is_that_of_an_undisturbed_run(tmp_path: Path, nodes: int) -> None:
    undisturbed = snapshots(tmp_path / "undisturbed", nodes, ())
    disturbed = snapshots(tmp_path / "disturbed", nodes, (0.5,))
    for month, (now, before) in enumerate(zip(disturbed, undisturbed, strict=True)):
        assert now.manifest.missing == before.manifest.missing == ()
        assert now.manifest.documents == before.manifest.documents
        for time in (0, 1) if month else (0,):
            ours, theirs = used(now, time), used(before, time)
            assert {key: n for key, (n, _) in ours.items()} == {
                key: n for key, (n, _) in theirs.items()
            }
            for key, (n, sums) in ours.items():
                # Words may have other row ids, and are then added up in another order.
                assert np.allclose(sums, theirs[key][1], atol=0.01 * n + 0.01), key
