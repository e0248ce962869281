"""Whether the vectors of a model can be read yet: a model of too little text has learnt nothing.

Until it has, all vectors point nearly the same way, every word is near the same few, and what seems
to move is the model leaving its start. Figures, kept with each snapshot:

    mean_cosine       of all pairs of the `CENTRED` most frequent words: (‖Σu‖² − n) / (n·(n − 1))
    first_axis        part of the energy of their unit vectors on one axis, not centred: s₁² / Σ s²
    words_read        running count of all words
    held_out          loss of held-out pairs in nats (worker/learning), and what it is of a model
    loss              where nothing is held out: of the text that was learnt last
    held_out_untrained, held_out_unigram   without any training: (1 + k)·ln 2, and of one that knows
                      how frequent words are and no more: ln(1 + k) + k·ln(1 + 1/k), k noise words
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from embedding.kernel.records import FloatArray
from embedding.snapshots.nearness import FEWEST, unit_rows

_COLLAPSED = 0.6
"""Mean cosine, or share of the first axis, above which vectors say next to nothing."""
LEARNT = 0.97
"""Held-out loss as a part of that of a model which knows frequencies alone, above which a model
has learnt no more than these."""
_LEARNT_WELL = 0.85
"""The same, below which vectors say something though they point one way: what all have in common
is taken off them. A pass over millions of words of plain text leaves them so."""
USUAL_WORDS = 50_000
"""Words that a model has to read, as a rule of thumb, before its vectors can be read."""


def spread(vectors: FloatArray) -> dict[str, float]:
    """mean_cosine and first_axis of vectors [n, d] of frequent words; nothing of a few words."""
    rows = np.asarray(vectors, dtype=np.float32)
    # Rows that are not finite are refused when the snapshot is written.
    known = rows[rows.any(axis=1) & np.isfinite(rows).all(axis=1)]
    if len(known) < FEWEST:
        return {}
    return {"mean_cosine": mean_cosine(known), "first_axis": first_axis(known)}


def mean_cosine(vectors: FloatArray) -> float:
    """Of all pairs of two different rows: 0 for directions by chance, 1 when all point one way."""
    units = unit_rows(vectors).astype(np.float64)
    n = len(units)
    return float((np.square(units.sum(axis=0)).sum() - n) / (n * (n - 1)))


def first_axis(vectors: FloatArray) -> float:
    """Share of the energy of unit rows on one axis: 1/d by chance, 1 when all lie on one line."""
    units = unit_rows(vectors).astype(np.float64)
    energy = np.linalg.eigvalsh(units.T @ units)
    return float(energy[-1] / energy.sum())


def reference_losses(negative: int) -> tuple[float, float]:
    """Loss in nats of a pair with so many noise words: untrained, and by frequencies alone."""
    untrained = (1 + negative) * math.log(2.0)
    unigram = math.log(1 + negative) + negative * math.log(1 + 1 / negative)
    return untrained, unigram


def unreadable(figures: Mapping[str, float]) -> str | None:
    """Why vectors with these figures cannot be read yet, and what is missing; None: they can.

    Figures that are not there are passed over: stores of before have none. One that counts its
    words and could measure nothing else has too few of them.
    """
    reasons = []
    cosine, axis = figures.get("mean_cosine", 0.0), figures.get("first_axis", 0.0)
    held_out, unigram = figures.get("held_out"), figures.get("held_out_unigram")
    loss = figures.get("loss") if held_out is None else held_out
    part = None if loss is None or unigram is None else loss / unigram
    if max(cosine, axis) > _COLLAPSED and (part is None or part > _LEARNT_WELL):
        reasons.append(f"its vectors point nearly the same way (mean cosine {cosine:.2f})")
    if part is not None and part > LEARNT:
        which = "the text that it learns" if held_out is None else "held-out text"
        reasons.append(f"it predicts {which} no better than word frequencies do")
    read = figures.get("words_read")
    too_few = read is not None and "mean_cosine" not in figures and held_out is None
    if too_few:
        reasons.append(
            f"fewer than {FEWEST} words have a vector"
            if read
            else "no word was read often enough to have a vector (min_count)"
        )
    if not reasons:
        return None
    if missing := missing_words(figures):
        wanted = f"about {missing:,} more words are needed"
    elif too_few:
        wanted = "text with more different words is needed"
    else:
        wanted = (
            "its text has to be learnt more often (node.rehearsal_passes; plain text: --epochs)"
        )
    return f"the model cannot be read yet: {' and '.join(reasons)}; {wanted}."


def missing_words(figures: Mapping[str, float]) -> int:
    """How many more words a model that cannot be read has to read, about; 0: it has read enough."""
    missing = USUAL_WORDS - figures.get("words_read", 0.0)
    return max(0, math.ceil(missing / 1000) * 1000)
