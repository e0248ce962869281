"""How well an estimator finds planted changes: ranking, decisions and delay (`planting.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray, IntArray
from yeoron_bench.planting import PlantedChange, PlantedCorpus

_FlagArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Judgement:
    """What an estimator says of the words of one window against the one before.

    words     str [n]
    score     float [n], higher: moved more surely
    flagged   bool [n], called moved; None for an estimator that only ranks
    mentions  int64 [n], mentions in this window
    """

    window: int
    words: Sequence[str]
    score: FloatArray
    flagged: _FlagArray | None
    mentions: IntArray


@dataclass(frozen=True)
class Detection:
    """Figures of one estimator, over all windows.

    average_precision   mean over the windows in which something genuine was planted
    by_strength, by_band, by_decoy   the same, of the changes of one strength or band alone, and
                        the share of decoys of a kind among as many words as genuine ones
    precision, recall   of the words that were called moved, at the date; None without decisions
    false_discovery     share of those called moved, in any window, that had not changed then
    mentions, documents median mentions of a found word from its date to the cut that found it, and
                        median documents of the corpus in that time
    """

    average_precision: float
    by_strength: Mapping[str, float]
    by_band: Mapping[str, float]
    by_decoy: Mapping[str, float]
    precision: float | None
    recall: float | None
    false_discovery: float | None
    flagged: int
    mentions: float | None
    documents: float | None


def average_precision(score: FloatArray, genuine: _FlagArray) -> float:
    """Mean of the precision at each genuine item; ties in the order given. NaN without any."""
    order = np.argsort(-np.asarray(score, dtype=np.float64), kind="stable")
    hit = np.asarray(genuine, dtype=bool)[order]
    if not hit.any():
        return float("nan")
    precision = np.cumsum(hit) / np.arange(1, len(hit) + 1)
    return float(precision[hit].mean())


def detect(judgements: Sequence[Judgement], corpus: PlantedCorpus) -> Detection:
    """Compare what an estimator says with what was planted."""
    genuine = [change for change in corpus.planted if change.kind.genuine]
    flagged, right, wrong = _decisions(judgements, corpus, genuine)
    delays = _delays(judgements, corpus, genuine)
    decided = any(change.flagged is not None for change in judgements)
    return Detection(
        average_precision=_mean_ap(judgements, corpus, genuine),
        by_strength={
            f"{value:g}": _mean_ap(judgements, corpus, [g for g in genuine if g.strength == value])
            for value in sorted({g.strength for g in genuine})
        },
        by_band={
            str(band): _mean_ap(judgements, corpus, [g for g in genuine if g.band == band], band)
            for band in sorted({g.band for g in genuine})
        },
        by_decoy=_decoys(judgements, corpus, genuine),
        precision=right / flagged if decided and flagged else None,
        recall=len(delays) / len(genuine) if decided and genuine else None,
        false_discovery=wrong / max(flagged, 1) if decided else None,
        flagged=flagged,
        mentions=float(np.median([n for n, _ in delays.values()])) if delays else None,
        documents=float(np.median([n for _, n in delays.values()])) if delays else None,
    )


def _mean_ap(
    judgements: Iterable[Judgement],
    corpus: PlantedCorpus,
    wanted: Sequence[PlantedChange],
    band: int | None = None,
) -> float:
    """Over windows; genuine changes that are not wanted are left out of the ranking."""
    values = []
    for judged in judgements:
        positive = {change.word for change in wanted if change.window == judged.window}
        if not positive:
            continue
        keep = _ranked(judged, corpus, positive, band)
        hit = np.array([judged.words[i] in positive for i in keep], dtype=bool)
        # A change of a word that was not compared was not found.
        missing = len(positive) - int(hit.sum())
        value = average_precision(judged.score[keep], hit) if hit.any() else 0.0
        values.append(value * hit.sum() / (hit.sum() + missing))
    return float(np.mean(values)) if values else float("nan")


def _ranked(
    judged: Judgement, corpus: PlantedCorpus, positive: Collection[str], band: int | None
) -> IntArray:
    """Places of the words that are ranked: wanted ones, decoys, and words that nothing happened to.

    Words that changed earlier are left out: what they still do is neither right nor wrong.
    """
    bands = {change.word: change.band for change in corpus.planted}
    out = {change.word for change in corpus.planted if change.kind.genuine} | corpus.touched
    keep = [
        at
        for at, word in enumerate(judged.words)
        if word in positive or (word not in out and (band is None or bands.get(word, band) == band))
    ]
    return np.array(keep, dtype=np.int64)


def _decisions(
    judgements: Iterable[Judgement], corpus: PlantedCorpus, genuine: Sequence[PlantedChange]
) -> tuple[int, int, int]:
    """Words called moved; of them those at their date, and those that had not changed yet."""
    since = {change.word: change.window for change in genuine}
    flagged = right = wrong = 0
    for judged in judgements:
        if judged.flagged is None:
            continue
        for at in np.flatnonzero(judged.flagged).tolist():
            word = judged.words[at]
            if word in corpus.touched:
                continue
            flagged += 1
            right += since.get(word, judged.window + 1) <= judged.window
            wrong += since.get(word, judged.window + 1) > judged.window
    return flagged, right, wrong


def _delays(
    judgements: Sequence[Judgement], corpus: PlantedCorpus, genuine: Sequence[PlantedChange]
) -> dict[str, tuple[int, int]]:
    """Mentions of each found word, and documents, from its date to the cut that first called it."""
    delays: dict[str, tuple[int, int]] = {}
    for change in genuine:
        mentions = 0
        for judged in sorted(judgements, key=lambda each: each.window):
            if (
                judged.window < change.window
                or judged.flagged is None
                or change.word not in judged.words
            ):
                continue
            at = list(judged.words).index(change.word)
            mentions += int(judged.mentions[at])
            if judged.flagged[at]:
                read = sum(map(len, corpus.windows[change.window : judged.window + 1]))
                delays[change.word] = mentions, read
                break
    return delays


def _decoys(
    judgements: Sequence[Judgement], corpus: PlantedCorpus, genuine: Sequence[PlantedChange]
) -> dict[str, float]:
    """Share of each kind of decoy that is ranked among the first words, as many as genuine ones."""
    hits: dict[str, list[bool]] = {}
    for judged in judgements:
        n = sum(change.window == judged.window for change in genuine)
        keep = _ranked(judged, corpus, {g.word for g in genuine if g.window == judged.window}, None)
        order = keep[np.argsort(-judged.score[keep], kind="stable")][:n]
        first = {judged.words[i] for i in order.tolist()}
        for change in corpus.planted:
            if not change.kind.genuine and change.window == judged.window:
                hits.setdefault(change.kind.value, []).append(change.word in first)
    return {kind: float(np.mean(values)) for kind, values in sorted(hits.items())}
