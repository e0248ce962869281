"""kill -9, SIGSTOP and restarts between the last document and the snapshot: words are used as in a
run that nobody disturbed."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import pytest

from crawlkills import NODE, Crawl, crawling_at, documents
from embedding.kernel.records import Window, WindowUnit
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.testing import AT_ONCE, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
FEBRUARY = Window(datetime(2020, 2, 1, tzinfo=UTC), datetime(2020, 3, 1, tzinfo=UTC))
READER = NODE.model_copy(update={"rehearsal_passes": 0.0})


def used(snapshot: Snapshot) -> dict[tuple[str, str, int], tuple[float, np.ndarray]]:
    """By word, source and unit: documents that use it, and the sum of their vectors from counts.
    Each process draws a key of pseudonyms; the unit of an author does not hang on it."""
    assert snapshot.usage is not None
    now = snapshot.usage.reread[0]
    return {
        (snapshot.words[row], source, unit): (
            float(now.pairs[at, unit]),
            np.asarray(now.means[at, unit], np.float64) * now.pairs[at, unit],
        )
        for at, (row, source) in enumerate(zip(now.rows.tolist(), now.sources, strict=True))
        for unit in np.flatnonzero(now.pairs[at]).tolist()
    }


def learnt(found: Crawl) -> None:
    if not found.client.status()["nodes"]:
        found.start("n0")
    found.until(lambda: found.learnt() == 270, "all is learnt")
    found.until(lambda: found.open() == 0, "everything is acknowledged")


def snapshot_of(found: Crawl) -> Snapshot:
    ref = found.client.cut(FEBRUARY)
    return SnapshotStore(str(found.folder / "snapshots")).open(ref.id)


def unlike() -> list[dict[str, object]]:
    """No passage twice, and each source has words of its own beside those of all."""
    draw, found = random.Random(5), documents()
    for each in found:
        own = [f"{each['part']}{at}" for at in range(8)]
        words = [f"말{at}" for at in range(25)] + own
        each["title"] = each["text"] = " ".join(draw.choices(words, k=14)) + "."
    return found


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with running(None, unlike()) as found:
        yield found


@pytest.fixture(scope="module")
def undisturbed(base: str, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("undisturbed")
    with crawling_at(base, folder, READER, window=WindowUnit.MONTH) as found:
        learnt(found)
        return snapshot_of(found)


def test_the_use_of_words_is_that_of_an_undisturbed_run(
    base: str, tmp_path: Path, undisturbed: Snapshot
) -> None:
    """Stopped, and then killed: a process, the server, the whole node."""
    with (
        crawling_at(base, tmp_path, READER, window=WindowUnit.MONTH) as found,
        ThreadPoolExecutor(1) as pool,
    ):
        learnt(found)
        for each in found.processes("n0"):
            each.send_signal(signal.SIGSTOP)
        cut = pool.submit(snapshot_of, found)
        found.until(lambda: bool(found.client.status()["waits"]), "it says for whom it waits")
        time.sleep(2)
        assert not cut.done()
        for each in found.processes("n0"):
            each.send_signal(signal.SIGCONT)
        found.kill_one("n0", random.Random(3))
        found.kill_server()
        found.serve()
        found.kill("n0")
        found.start("n0")
        now, before = cut.result(600), undisturbed
        assert now.manifest.documents == before.manifest.documents
        assert now.manifest.missing == ()
        theirs = used(before)
        assert {key: n for key, (n, _) in used(now).items()} == {
            key: n for key, (n, _) in theirs.items()
        }
        for key, (n, sums) in used(now).items():
            # Words may have other row ids, and are then added up in another order.
            assert np.allclose(sums, theirs[key][1], atol=0.01 * n + 0.01), key
        assert found.learnt() == 270, "what is read again is not counted"


def test_two_nodes_say_what_one_says_though_the_server_is_killed_while_one_waits(
    tmp_path: Path, undisturbed: Snapshot
) -> None:
    one = used(undisturbed)
    with (
        running(SimwebConfig(speed=AT_ONCE, crawl_delay=0), unlike()) as base,
        crawling_at(base, tmp_path, READER, window=WindowUnit.MONTH) as found,
        ThreadPoolExecutor(1) as pool,
    ):
        for node in ("n0", "n1"):
            found.start(node)
        found.until(lambda: len(found.client.status()["nodes"]) == 2, "both are there")
        httpx.post(f"{base}/control/start").raise_for_status()
        learnt(found)
        assert all(each["tokens"] for each in found.client.status()["nodes"].values())
        for each in found.processes("n1"):
            each.send_signal(signal.SIGSTOP)
        cut = pool.submit(snapshot_of, found)
        found.until(lambda: bool(found.client.status()["waits"]), "it says for whom it waits")
        time.sleep(1)  # n0 hands in its counts
        found.kill_server()
        found.serve()
        for each in found.processes("n1"):
            each.send_signal(signal.SIGCONT)
        snapshot = cut.result(600)
        assert snapshot.manifest.missing == ()
        two = used(snapshot)
    assert two.keys() == one.keys()
    for key, (n, sums) in one.items():
        assert two[key][0] == n, key
        assert np.allclose(two[key][1], sums, atol=0.01 * n + 0.01), key
