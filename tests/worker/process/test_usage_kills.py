"""kill -9, SIGSTOP and restarts between the last document and the snapshot: words are used as in a
run that nobody disturbed."""

from __future__ import annotations

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from crawlkills import NODE, Crawl, crawling
from embedding.kernel.records import Window, WindowUnit
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
FEBRUARY = Window(datetime(2020, 2, 1, tzinfo=UTC), datetime(2020, 3, 1, tzinfo=UTC))
READER = NODE.model_copy(update={"rehearsal_passes": 0.0})


def used(snapshot: Snapshot) -> dict[tuple[str, str], tuple[list[float], np.ndarray]]:
    """By word and source: documents of each unit, and means of vectors from counts."""
    assert snapshot.usage is not None
    now = snapshot.usage.reread[0]
    return {
        (snapshot.words[row], source): (now.pairs[at].tolist(), np.asarray(now.means[at]))
        for at, (row, source) in enumerate(zip(now.rows.tolist(), now.sources, strict=True))
    }


def learnt(found: Crawl) -> None:
    found.start("n0")
    found.until(lambda: found.learnt() == 270, "all is learnt")
    found.until(lambda: found.open() == 0, "everything is acknowledged")


def snapshot_of(found: Crawl) -> Snapshot:
    ref = found.client.cut(FEBRUARY)
    return SnapshotStore(str(found.folder / "snapshots")).open(ref.id)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("undisturbed")
    with crawling(folder, READER, window=WindowUnit.MONTH) as found:
        learnt(found)
        return snapshot_of(found)


@pytest.mark.parametrize(
    "troubles",
    [("node",), ("process", "server"), ("stop", "server", "node")],
    ids="-".join,
)
def test_the_use_of_words_is_that_of_an_undisturbed_run(
    tmp_path: Path, undisturbed: Snapshot, troubles: tuple[str, ...]
) -> None:
    with (
        crawling(tmp_path, READER, window=WindowUnit.MONTH) as found,
        ThreadPoolExecutor(1) as pool,
    ):
        learnt(found)
        if "stop" in troubles:
            for each in found.processes("n0"):
                each.send_signal(signal.SIGSTOP)
        cut = pool.submit(snapshot_of, found)
        if "stop" in troubles:
            found.until(lambda: bool(found.client.status()["waits"]), "it says for whom it waits")
            time.sleep(2)
            assert not cut.done()
            for each in found.processes("n0"):
                each.send_signal(signal.SIGCONT)
        for trouble in troubles:
            if trouble == "process":
                found.kill_one("n0", random.Random(3))
            if trouble == "server":
                found.kill_server()
                found.serve()
            if trouble == "node":
                found.kill("n0")
                found.start("n0")
        now, before = cut.result(600), undisturbed
        assert now.manifest.documents == before.manifest.documents
        assert now.manifest.missing == ()
        theirs = used(before)
        for key, (documents, means) in used(now).items():
            assert documents == theirs[key][0], key
            # The words have other row ids, and so are added up in another order.
            assert np.allclose(means, theirs[key][1], atol=0.01), key
        assert used(now).keys() == theirs.keys()
        assert found.learnt() == 270, "what is read again is not counted"
