"""A report that is asked for while its snapshot is amended: of the old revision or the new one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from embedding.ask.answers import Answers
from embedding.ask.config import AskConfig
from embedding.snapshots.store import SnapshotStore
from embedding.trends.config import TrendsConfig
from embedding.trends.storage import FinishedReports, save
from incomplete import incomplete_store, parts
from waiting import until

CONFIG = TrendsConfig()


def test_each_is_whole_and_that_of_the_new_revision_is_computed_after(
    planted: ModuleType, tmp_path: Path
) -> None:
    store = incomplete_store(tmp_path / "store", planted, lacking=())
    folder = tmp_path / "trends"
    first = store.list()[-1]
    answers = Answers(AskConfig(snapshots=store.uri, reports=folder, refresh_s=0))
    save(answers.report(first.id, None), folder)
    last = parts(planted)[-1]
    source, documents = next(iter(last.documents.items()))
    read: dict[str, set[int]] = {}
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            newest = SnapshotStore(store.uri).list()[-1].id
            found = answers.report(newest, None)
            read.setdefault(found.snapshot.id, set()).add(found.snapshot.total_documents)

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            until(lambda: first.id in read or asking.done())
            amended = replace(
                last,
                parent=first.parent,
                documents={**last.documents, source: documents + 2},
            )
            second = store.publish(amended, store.open(first.id).usage, revision=2)
            assert FinishedReports(store.list(), CONFIG, folder).report(second.id) is None
            until(lambda: second.id in read or asking.done())
        finally:
            over.set()
        asking.result(120)
    whole = sum(last.documents.values())
    assert read == {first.id: {whole}, second.id: {whole + 2}}
    assert SnapshotStore(store.uri).open(first.id).manifest.revision == 1, "it has its readers"
