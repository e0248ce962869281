"""Questions to the tables as they are now, answered on their own device while nodes train.

Rows are copied block by block, the server's lock held for one block at a time: training waits for
one block at most, and for none where the rows lie on shards. Rows of different blocks may be some
pushes apart; each row is whole.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from embedding.evaluation.gold import AnalogyGold, PairGold, read_gold
from embedding.evaluation.judging import NearestRows, analogy, similarity
from embedding.kernel.devices import DeviceArray, to_host
from embedding.kernel.errors import InputError, RefusedError, UnavailableError
from embedding.kernel.records import FloatArray, IntArray, Table, TimeArray
from embedding.server.figures.reports import read_held_out
from embedding.server.rows.devices import beside
from embedding.server.state import ServerState
from embedding.server.words.inferred import IdRows, KnownContexts, RareWordReading
from embedding.snapshots.nearness import centre_of, frequent, sureness
from embedding.snapshots.readability import spread, unreadable

MAX_NEIGHBOURS = 1_000
MAX_JUDGED = 200_000
"""Words, the most frequent, among which the answer to an analogy is looked for."""

_BLOCK_BYTES = 4 * 1024 * 1024
_BREATH_S = 0.0002
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class LiveNeighbour:
    """A word near another: its nearness (snapshots/nearness.py) and its running count."""

    word: str
    nearness: float
    count: int


class LiveModel:
    """Answers about one server's tables; one question at a time."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._turn = threading.Lock()
        width = 4 * state.dim
        # A composed vector of fastText reads dozens of rows.
        self.block = max(1, _BLOCK_BYTES // (width * (32 if state.composer.buckets else 1)))
        self._reading: RareWordReading | None = None
        self.longest_s = 0.0

    def neighbours(self, word: str, n: int) -> list[LiveNeighbour]:
        """The n nearest words, nearest first; RefusedError for a word without a row."""
        if not 1 <= n <= MAX_NEIGHBOURS:
            raise RefusedError(f"n {n}: 1 to {MAX_NEIGHBOURS} are accepted.", kind="control")
        state = self._state
        with self._taking_turns():
            with state.lock:
                self._refuse_unknown(word)
                own = state.vocabulary.ids([word])
                ids = state.vocabulary.alive()
            known = ids[frequent(self._counts(ids))]
            rows = to_host(self._copied(known, Table.IN))
            figures = {
                "words_read": float(self._counts(ids).sum()),
                **spread(rows),
                **read_held_out(report for _, report in state.latest_reports()),
            }
            if why := unreadable(figures):
                raise RefusedError(f"word {word[:80]!r}: {why}", kind="control")
            query = self._copied(own, Table.IN)[0]
            nearest = NearestRows(query, n, beside(centre_of(rows), query))
            for part, vectors in self._blocks(ids[ids != own[0]], Table.IN):
                nearest.show(part, vectors, sureness(self._counts(part)))
            return self._named(nearest.best())

    def evaluate(self, gold: PairGold | AnalogyGold | None) -> dict[str, float]:
        """Quality of the rows as they are now; figures that cannot be had are left out.

        nll_sample                    mean loss of kept pairs on these rows, in nats a pair
        pip                           PIP loss of frequent words against their sampled SPPMI
        similarity/NAME, coverage/NAME, analogy/NAME, asked/NAME    against the gold set
        pause_ms                      longest time that training was held up
        """
        with self._taking_turns():
            self.longest_s = 0.0
            scores, vocabulary = self._state.scores, self._state.vocabulary
            ids = scores.needed()
            with self._state.lock:
                ids = ids[vocabulary.slots(ids, "evaluate") >= 0]
            figures: dict[str, float] = {}
            if len(ids):
                vectors = self._copied(ids, Table.IN)
                figures |= scores.judge(ids, vectors, self._copied(ids, Table.OUT))
            if isinstance(gold, PairGold):
                figures |= self._similarity(gold)
            elif gold is not None:
                figures |= self._analogy(gold)
            figures = {name: value for name, value in figures.items() if math.isfinite(value)}
            return {**figures, "pause_ms": self.longest_s * 1000}

    def _similarity(self, gold: PairGold) -> dict[str, float]:
        words = sorted({form for a, b, _ in gold.pairs for w in (a, b) for form in (w, w.lower())})
        with self._state.lock:
            ids = self._state.vocabulary.ids(words)
        known = np.flatnonzero(ids >= 0)
        index = {words[at]: place for place, at in enumerate(known.tolist())}
        return similarity_figures(gold, index, self._copied(ids[known], Table.IN))

    def _analogy(self, gold: AnalogyGold) -> dict[str, float]:
        state = self._state
        with state.lock:
            ids = state.vocabulary.alive()
            counts = state.vocabulary.counts(ids)
            ids = np.sort(ids[np.argsort(-counts, kind="stable")[:MAX_JUDGED]])
            names = state.vocabulary.names(ids)
        index = {word: at for at, word in enumerate(names)}
        total, _ = analogy(self._copied(ids, Table.IN), rows_of(index), gold)
        return {
            f"analogy/{gold.name}": total.accuracy,
            f"asked/{gold.name}": total.asked / total.questions if total.questions else math.nan,
        }

    def _counts(self, ids: IntArray) -> TimeArray:
        """Running counts float64 [n], 0 for a word that is evicted meanwhile."""
        vocabulary = self._state.vocabulary
        with self._state.lock:
            alive = vocabulary.slots(ids, "evaluate") >= 0
            counts: TimeArray = np.where(alive, vocabulary.counts(ids), 0.0)
        return counts

    def _look(self) -> RareWordReading | None:
        """What the tables say of what stands around words; None when it is too little."""
        state = self._state
        with state.lock:
            if not state.accounts.rare.mentions:
                return None
            taught, ids = state.accounts.rare.taught(), state.accounts.rare.contexts()
        vectors = to_host(state.rows.live(Table.IN, taught.ids))
        contexts = to_host(self._copied(ids, Table.OUT))
        return taught.reading(IdRows(taught.ids, vectors), IdRows(ids, contexts))

    def _copied(self, ids: IntArray, table: Table) -> DeviceArray:
        """Vectors [n, d] of ids; zeros for a word that is evicted meanwhile."""
        whole = self._state.composer.columns(
            self._state.tables.device.zeros(len(ids), self._state.dim)
        )
        at = 0
        for part, vectors in self._blocks(ids, table):
            whole[at : at + len(part)] = vectors
            at += len(part)
        return whole

    def _blocks(self, ids: IntArray, table: Table) -> Iterator[tuple[IntArray, DeviceArray]]:
        """Ids and their rows as they are read, a block under the lock at a time."""
        state = self._state
        for at in range(0, len(ids), self.block):
            part = ids[at : at + self.block]
            with state.lock if state.rows.local else nullcontext():  # shards answer meanwhile
                began = time.perf_counter()
                vectors = state.rows.live(table, part)
                rare: KnownContexts | None = None
                if self._reading is not None and table is Table.IN:
                    with state.lock:
                        rare = state.accounts.rare.held(part, self._counts(part))
                state.tables.device.wait()
                if state.rows.local:
                    self.longest_s = max(self.longest_s, time.perf_counter() - began)
            # Locks are not fair: without a breath the pushes that wait would starve.
            time.sleep(_BREATH_S)
            if rare is not None and self._reading is not None and len(rare.at):
                own = beside(rare.at, vectors)
                vectors[own] = beside(rare.over(to_host(vectors[own]), self._reading), vectors)
            yield part, vectors

    def _named(self, best: Sequence[tuple[int, float]]) -> list[LiveNeighbour]:
        ids = np.array([row for row, _ in best], dtype=np.int64)
        vocabulary = self._state.vocabulary
        with self._state.lock:
            alive = vocabulary.slots(ids, "neighbours") >= 0
            names = vocabulary.names(ids)
            counts = self._counts(ids)
        return [
            LiveNeighbour(word, near, round(float(count)))
            for word, (_, near), count, has_row in zip(names, best, counts, alive, strict=True)
            if has_row
        ]

    def _refuse_unknown(self, word: str) -> None:
        vocabulary = self._state.vocabulary
        if int(vocabulary.ids([word])[0]) >= 0:
            return
        read = vocabulary.candidates.of(word) / vocabulary.decay.weight
        why = (
            f"it was read {read:.0f} times and gets one at {vocabulary.min_count}"
            if read >= 0.5
            else f"it is none of the {len(vocabulary):,} words that have one"
        )
        raise RefusedError(f"word {word[:80]!r}: it has no row: {why}.", kind="control")

    @contextmanager
    def _taking_turns(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=_PATIENCE_S):
            raise UnavailableError("another question to the tables is being answered; ask again.")
        try:
            self._reading = self._look()
            yield
        finally:
            self._reading = None
            self._turn.release()


def read_gold_set(body: dict[str, Any]) -> PairGold | AnalogyGold | None:
    """The gold set in a control call, None when there is none.

    {"gold": {"name", "pairs": [[word, word, score], …]}}, or with "sections":
    {NAME: [[a, b, c, d], …]} in place of the pairs.
    """
    given = body.get("gold")
    if given is None:
        return None
    pairs = isinstance(given, dict) and given.get("pairs")
    kind: type[PairGold | AnalogyGold] = PairGold if pairs else AnalogyGold
    try:
        # Of JSON: strictly of Python, a list would be no tuple.
        gold = TypeAdapter(kind).validate_json(json.dumps(given), strict=True)
    except ValueError:
        gold = PairGold("", ())
    questions = gold.pairs if isinstance(gold, PairGold) else gold.sections
    scores = [score for *_, score in gold.pairs] if isinstance(gold, PairGold) else []
    if not questions or not all(map(math.isfinite, scores)) or not 1 <= len(gold.name) <= 100:
        raise RefusedError(
            "gold: an object with a `name`, and `pairs` of [word, word, score] or `sections` of "
            "[a, b, c, d], is accepted.",
            kind="control",
        )
    return gold


logger = logging.getLogger(__name__)


def measure_gold(path: Path, words: Sequence[str], vectors: FloatArray) -> dict[str, float]:
    """`similarity/NAME` and `coverage/NAME`; nothing, and a line in the log, without a file.

    vectors: float32 [n, dim] of `words`. The file is read at each cut, so that it may be corrected
    while the server runs.
    """
    try:
        gold = read_gold(path)
    except InputError as error:
        logger.warning("%s", error)
        return {}
    if not isinstance(gold, PairGold):
        logger.warning("gold file %s: the server measures word pairs; this has analogies.", path)
        return {}
    index = {word: at for at, word in enumerate(words)}
    figures = similarity_figures(gold, index, vectors)
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def similarity_figures(
    gold: PairGold, index: Mapping[str, int], vectors: DeviceArray
) -> dict[str, float]:
    """`similarity/NAME`, which may be NaN, and `coverage/NAME` of vectors [n, dim] by word."""
    result = similarity(vectors, rows_of(index), gold)
    return {f"similarity/{gold.name}": result.rho, f"coverage/{gold.name}": result.coverage}


def rows_of(index: Mapping[str, int]) -> Callable[[Sequence[str]], IntArray]:
    """Looks up the rows int64 [n] of words, -1 for one without."""
    return lambda words: np.array([index.get(word, -1) for word in words], dtype=np.int64)
