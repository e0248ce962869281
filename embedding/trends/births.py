"""Words that were born: read for the first time of late, and by now in enough documents.

A word seldom comes all at once: it is first read here and there. It is born in the window in which
as many documents as the settings ask for hold it, all windows together, if the first of them lies
at most `born_windows` windows back, and behind a window that did not use it. It is ranked by how
much more this window uses it than all windows before: of the documents that hold it, how many would
be in this window by chance (the binomial test that conditions on their number; Przyborowski and
Wilenski 1940). Any word might have been born, and those that were are chosen by what this window
held of them: so q is that of a test of every word of the model, where the others found nothing.
Mentions that came before a word had its row are counted among the b, as far as they are known, and
so are documents that held a phrase before it was read as one word; those of the window itself are
counted with it (`expressions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.config import TrendsConfig
from embedding.trends.distributions import binomial_log_sf, normal_isf, normal_sf
from embedding.trends.emergence import Judged, source_spread
from embedding.trends.expressions import unlisted
from embedding.trends.material import Mask, ReportInput, signs
from embedding.trends.significance import benjamini_hochberg

_SMALLEST = -700.0
"""Natural log of the smallest p that is told from 0."""


@dataclass(frozen=True)
class Births(Judged):
    """The `words` born in a window, against all before; p is one-sided, q over the model."""

    words: tuple[str, ...]


def births(material: ReportInput, config: TrendsConfig, inflation: float) -> Births:
    """The words born in the window.

    inflation  by how much words fluctuate more than sampling alone would make them
    """
    now = material.now
    last = material.past[-1]
    often = last.documents_of(now.words) >= config.min_documents
    chosen = np.flatnonzero(~signs(now.words, config) & ~often)
    words, held, before = _young([now.words[at] for at in chosen.tolist()], material, config)
    before = before + _waiting(words, material, config.born_windows)
    read, past = int(now.total_documents.sum()), sum(_read(material))
    share = read / max(read + past, 1)
    mentioned = held.sum(axis=1) + unlisted(words, material).now
    chance = binomial_log_sf(mentioned, mentioned + before, share)
    z = normal_isf(np.exp(np.maximum(chance, _SMALLEST))) / inflation
    p = normal_sf(z)
    spread = source_spread(held.astype(float), now.total_documents.astype(float))
    odds = np.log((mentioned + 0.5) / (read + 1.0)) - np.log((before + 0.5) / (past + 1.0))
    q = benjamini_hochberg(p, tests=material.snapshot.manifest.words)
    return Births(odds, z, p, q, spread, z * np.sqrt(spread), words)


def _young(
    words: list[str], material: ReportInput, config: TrendsConfig
) -> tuple[tuple[str, ...], IntArray, IntArray]:
    """The words born, documents int64 [n, S] of this window by source, and [n] of all before.

    A store may begin in the middle of a stream: a word that its oldest snapshot counts more often
    than all windows do was read before. The snapshots after that do not say so: sources run ahead
    of the watermark, and each may have been cut when much of later windows was read.
    """
    now = material.now
    held = now.take(words, now.sources)[1]
    sources = {name: held[:, at] > 0 for at, name in enumerate(now.sources)}
    later = now.counts_of(words)
    hidden = unlisted(words, material)
    before, first = hidden.before.copy(), hidden.first.copy()
    for at in range(len(material.past) - 1, -1, -1):
        snapshot, part = material.earlier[at], material.past[at]
        running = _running(snapshot, words)
        snapshot.release()
        counts, documents = part.take(words, part.sources)
        counted = counts.sum(axis=1)
        known = (counted == 0) & (running > later)
        first[counted > 0] = np.minimum(first[counted > 0], at)
        before += documents.sum(axis=1)
        for column, name in enumerate(part.sources):
            seen = documents[:, column] > 0
            sources[name] = sources.get(name, np.zeros(len(words), bool)) | seen
        later = later + counted
    total = held.sum(axis=1) + hidden.now + before
    oldest = next((at for at, read in enumerate(_read(material)) if read), 0)
    fresh = (first == len(material.past)) | (first > oldest)
    spread = np.sum([*sources.values()], axis=0)
    born: Mask = (
        ~known
        & fresh
        & (first >= len(material.past) - config.born_windows)
        & (before - hidden.before * hidden.fresh < config.min_documents)
        & (total >= config.min_documents)
        & (spread >= config.min_sources)
    )
    at_born = np.flatnonzero(born)
    return tuple(words[at] for at in at_born.tolist()), held[at_born], before[at_born]


def _waiting(words: Sequence[str], material: ReportInput, last: int) -> IntArray:
    """int64 [n]: mentions of words while they waited for a row, which no window lists.

    words  first listed in this window or one of the `last` before

    They are what the running count of the first snapshot that lists a word has above what windows
    count until then, and fewer than `server.min_count`: what is more was read ahead of the window.
    """
    server = material.snapshot.manifest.config.get("server")
    most = int(server.get("min_count", 1)) - 1 if isinstance(server, dict) else 0
    found, known = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
    listed = np.zeros(len(words), bool)
    if not most:
        return found
    snapshots = (*material.earlier[-last:], material.snapshot)
    for snapshot, part in zip(snapshots, (*material.past[-last:], material.now), strict=True):
        counted = part.counts_of(words)
        running = _running(snapshot, words)
        known += counted
        first = ~listed & (counted > 0) & (running > 0)
        found[first] = (running - known)[first]
        listed |= first
    waited: IntArray = np.clip(found, 0, most)
    return waited


def _running(snapshot: Snapshot, words: Sequence[str]) -> IntArray:
    rows = snapshot.rows(words)
    found: IntArray = np.where(rows >= 0, snapshot.counts[np.maximum(rows, 0)], 0)
    return found


def _read(material: ReportInput) -> list[int]:
    """Documents of each window before."""
    return [sum(one.manifest.documents.values()) for one in material.earlier]
