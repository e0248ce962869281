"""One training from file to snapshots: what is refused, and in which order things begin.

Words are counted and the processes of nodes get ready while the rest is imported here.
"""

from __future__ import annotations

import time
from dataclasses import replace

from embedding.models.traits import COUNT_MODELS
from embedding.snapshots.store import SnapshotStore
from embedding.training.checks import INITIAL_ROWS, check_corpus, check_memory, check_options
from embedding.training.request import Progress, TrainRequest, TrainResult
from embedding.training.resume import resuming
from embedding.training.store import new_store
from embedding.training.vocabulary import CountingThread, counting
from embedding.worker.process.forking import OF_A_CORPUS, processes


def train_corpus(request: TrainRequest, progress: Progress = lambda _: None) -> TrainResult:
    """Train; raises ConfigError or InputError for what cannot work, if it can before it starts."""
    started = time.monotonic()
    check_options(request)
    survey = check_corpus(request)
    check_memory(request, 0)  # fastText's n-gram rows are there before the first word is
    check_memory(request, INITIAL_ROWS)
    counted_only = request.model.model in COUNT_MODELS
    if not counted_only:
        processes(OF_A_CORPUS)
    with (
        resuming(request) as resume,
        new_store(request.out, None if resume is None else resume.snapshots) as store,
        counting(request, None if resume is None else resume.total) as count,
    ):
        if isinstance(count, CountingThread) and counted_only:
            count_corpus = COUNT_MODELS.get(request.model.model)
            result: TrainResult = count_corpus(request, store, progress, count)
        else:
            from embedding.training.running import train

            result = train(request, store, progress, resume, count, survey)
        last = SnapshotStore(store).open()
        result = replace(result, unreadable=last.unreadable)
    refs = result.snapshots
    if request.out is not None:
        refs = SnapshotStore(request.out).list()
    return replace(result, seconds=time.monotonic() - started, snapshots=refs)
