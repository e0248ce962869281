"""The counting pass: every word that will have a row gets it before the first node learns.

Words are admitted most frequent first, so that a word's id is its rank.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import numpy.random  # noqa: F401  before two threads import it: Python may see a deadlock there

from embedding.text.counting import CountedWords, count_blocks, count_lines
from embedding.training.checks import check_memory
from embedding.training.request import TrainRequest
from embedding.worker.corpus.corpus import stretches
from embedding.worker.corpus.reading import blocks, text_process
from embedding.worker.spec import CorpusShare, NodeSpec

if TYPE_CHECKING:
    from embedding.server.service import ParameterServer


T = TypeVar("T")


class CountingThread:
    """A counting pass on a thread of its own, while the rest is imported and started."""

    def __init__(self, request: TrainRequest, pool: ThreadPoolExecutor) -> None:
        self._request = request
        self._stop = threading.Event()
        self._counted = pool.submit(self._count)

    def stop(self) -> None:
        self._stop.set()

    def wait(self) -> CountedWords:
        """Wait; the words that get rows, maybe none. Raises ConfigError where memory cannot hold
        their rows."""
        request = self._request
        counted = self._counted.result().at_least(request.min_count)
        counted = CountedWords(
            counted.words[: request.max_words], counted.counts[: request.max_words]
        )
        check_memory(request, len(counted.counts))
        return counted

    def admit(self, server: ParameterServer) -> int:
        """Wait, give the words their rows, and return how many tokens an epoch will learn."""
        counted = self.wait()
        words = counted.words.to_pylist()
        server.state.words.admit(words, counted.counts)
        with server.state.lock:
            # Closed: a rarer word would reach min_count in a later epoch, or evict another; and
            # noise and subsampling follow the whole corpus from the first block on.
            server.state.vocabulary.close(words, counted.counts)
        return counted.tokens

    def _count(self) -> CountedWords:
        request = self._request
        share = CorpusShare(path=str(request.corpus), timezone=request.server.timezone)
        if request.quickly_counted:
            texts = (stretch.text for stretch in stretches(share))
            return count_lines(self._until_stopped(texts), request.text)
        spec = NodeSpec(name="counting", server="", corpus=share, text=request.text)
        with text_process(spec) as text:
            return count_blocks(self._until_stopped(blocks(spec, share, text=text)))

    def _until_stopped(self, items: Iterator[T]) -> Iterator[T]:
        for item in items:
            if self._stop.is_set():
                return
            yield item


class Counted:
    """A counting pass that an interrupted training has made: the server has its words."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    def admit(self, server: ParameterServer) -> int:
        """How many tokens an epoch learns."""
        del server
        return self._tokens


@contextmanager
def counting(
    request: TrainRequest, counted: int | None = None
) -> Iterator[CountingThread | Counted | None]:
    """A counting pass under way, None where the vocabulary grows.

    counted  tokens of an epoch, when an interrupted training has counted them
    """
    if not request.counts_first or counted is not None:
        yield None if counted is None else Counted(counted)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="counting") as pool:
        pass_ = CountingThread(request, pool)
        try:
            yield pass_
        finally:
            pass_.stop()
