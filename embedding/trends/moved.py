"""The words whose meaning moved, judged against words of like frequency.

Some are called a window late: a month's text was too little to be sure, that of two is enough. A
word that was just short in window t (`just_short`) is judged again with the next window: the
documents of t and t + 1 together against those before t, by the test of `permutation.py`. So each
word of t + 1 is tested twice, in t + 1 and late; both p of all words are one family (Benjamini and
Hochberg 1995). The late p of a word that was not just short is 1, which can only make p larger: the
error of a window stays what it is without late calls (ADR 40).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.trends import noise
from embedding.trends.config import TrendsConfig
from embedding.trends.estimators import ESTIMATORS
from embedding.trends.evidence import RowWriter
from embedding.trends.frequency import Frequency
from embedding.trends.material import ReportInput, signs
from embedding.trends.pair import SnapshotPair, pair_of
from embedding.trends.permutation import (
    REFINED,
    SAMPLED,
    Grounds,
    Permuted,
    between_times,
    permutations,
    refined,
)
from embedding.trends.replicas import Labels, Units, UsedWords
from embedding.trends.rows import (
    SCORES_COLUMNS,
    SCORES_SCHEMA,
    ContextPull,
    Support,
    TrendRow,
    WordScores,
)
from embedding.trends.shift import shift
from embedding.trends.significance import TestArray, benjamini_hochberg
from embedding.trends.storage import key_of

SHORT = 0.05
"""p in its window up to which a word that was not called was just short."""


def just_short(scores: WordScores) -> frozenset[str]:
    """The words of a window that were just short, by the figures of all that were compared."""
    table = scores.table
    p, called = table.column("p").to_numpy(), table.column("significant").to_numpy()
    return frozenset(table.column("word").take(np.flatnonzero((p <= SHORT) & ~called)).to_pylist())


def judge_late(
    before: Sequence[UsedWords], after: UsedWords, at: IntArray
) -> tuple[TestArray, IntArray, Permuted] | None:
    """Judge words by both last windows: p float64 [n], 1 of a word that was not just short; the
    places int64 [m], increasing, of those that were looked at; and what was found of these. None
    without a window before these.

    before  the use of n words, the latest window first; after: in the window
    at      int64 [k], increasing: those that were just short in the latest window before

    What words have in common, and how much they change, is taken from those of most documents.
    """
    if len(before) < 2 or not len(at):
        return None
    seen = sum(after.pairs(name).sum(axis=1) for name in after.usage.by_source)
    words = np.union1d(at, np.argsort(-seen, kind="stable")[:SAMPLED])
    last, *older = (used.take(words) for used in before)
    permuted = between_times(older, after.take(words), last)
    p = np.ones(len(after.rows))
    p[at] = permuted.p[np.searchsorted(words, at)]
    return p, words, permuted


_SHARE = 0.25
"""Of a part's occurrences: fewer that may have gone to whole words do not change its company."""
_MOST_PARTS = 4
_LONGEST = 24


@dataclass(frozen=True)
class ShiftRanking:
    """The ranking, the noise floor it was judged by, and all words that were compared.

    judged  of the words compared, those with enough documents to be judged
    """

    rows: tuple[TrendRow, ...] = ()
    floor: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    compared: int = 0
    judged: int = 0
    scores: WordScores | None = None


@dataclass(frozen=True)
class JudgedWords:
    """All words that were compared, n of them.

    rows      int64 [n], rows of the pair
    ranked    z, p and q by the configured estimator
    shift     float32 [n], how much each changed by it; `floor` has what is usual
    expected  float64 [n], shift of a typical word of the same frequency
    grounds   by what documents they were judged; places: int64 [n] of the words in it
    late      of words that are called since the window before, their places in `late_grounds`
    """

    rows: IntArray
    ranked: noise.RankedShifts
    shift: FloatArray
    expected: TestArray
    floor: noise.NoiseFloor
    grounds: Grounds | None = None
    places: IntArray | None = None
    late: Mapping[int, int] = field(default_factory=dict)
    late_grounds: Grounds | None = None

    def judged_by(self, word: int) -> tuple[Grounds | None, int]:
        """The documents that a word was judged by, and its place there; None: none say it."""
        if word in self.late:
            return self.late_grounds, self.late[word]
        return self.grounds, -1 if self.places is None else int(self.places[word])

    def scores(self, limit: float) -> TestArray:
        """float64 [n]: how much those changed whose q is at most `limit`; 0 of the others."""
        figures: TestArray = np.where(self.ranked.q <= limit, np.maximum(self.shift, 0.0), 0.0)
        return figures

    def interval(self, word: int) -> tuple[float, float] | tuple[None, None]:
        """Of the shift of a word, 95 %; None where documents do not say it."""
        grounds, place = self.judged_by(word)
        if grounds is None or self.ranked.p[word] == 1.0:
            return None, None
        return grounds.interval(place)

    def with_late(self, pair: SnapshotPair, short: Container[str], limit: float) -> JudgedWords:
        """With the words that are called since the window before.

        short  those that were just short in it; limit: q up to which a word is called
        """
        at = np.flatnonzero([pair.words[row] in short for row in self.rows.tolist()])
        late = judge_late(*pair.used(self.rows), at) if self.grounds is not None else None
        if late is None:
            return self
        p_late, words, tests = late
        q, q_late = np.split(benjamini_hochberg(np.concatenate([self.ranked.p, p_late])), 2)
        called = np.flatnonzero((q_late <= limit) & (q > limit))
        index = np.searchsorted(words, called)
        z, p, values = self.ranked.z.copy(), self.ranked.p.copy(), self.shift.copy()
        z[called], p[called], q[called] = tests.z[index], tests.p[index], q_late[called]
        values[called] = tests.size[index]
        return replace(
            self,
            ranked=replace(self.ranked, z=z, p=p, q=q),
            shift=values,
            late=dict(zip(called.tolist(), index.tolist(), strict=True)),
            late_grounds=tests.grounds,
        )


def pair_in(material: ReportInput) -> SnapshotPair:
    """The window and the one before."""
    return pair_of(material.earlier[-1], material.snapshot)


def held_out_of(material: ReportInput) -> set[str]:
    """Words that a change of the tokenizer between both windows touched; they are not ranked."""
    before, after = material.earlier[-1].manifest, material.snapshot.manifest
    if before.tokenizer_digest == after.tokenizer_digest:
        return set()
    return touched_words(
        *(
            dict(zip(window.words, window.counts_of(window.words).tolist(), strict=True))
            for window in (material.past[-1], material.now)
        )
    )


def by_use(pair: SnapshotPair, config: TrendsConfig) -> bool:
    """Whether words are judged by how documents used them, for which no model is needed."""
    return ESTIMATORS.traits(config.estimator).judge is not None and pair.usage_compares


def judge_words(
    material: ReportInput,
    pair: SnapshotPair,
    config: TrendsConfig,
    among: Container[str] | None = None,
    held_out: Container[str] | None = None,
) -> JudgedWords | None:
    """Judge all words that are frequent enough on both sides; None when there are none.

    among     only these words, judged as among all
    held_out  words that are not judged; None: `held_out_of`
    """
    in_window = material.now.counts_of(pair.words)
    often = (in_window >= config.min_count) & (pair.seen_before >= config.min_count)
    rows = np.flatnonzero(often & ~signs(pair.words, config)).astype(np.int64)
    held_out = held_out_of(material) if held_out is None else held_out
    rows = rows[[pair.words[row] not in held_out for row in rows.tolist()]]
    if len(rows) == 0 or len(pair) < 3:
        return None
    traits, sure = ESTIMATORS.traits(config.estimator), None
    if traits.judge is not None and by_use(pair, config):
        sure = traits.judge(pair, rows)
        values = sure.size.astype(np.float32)
    else:
        name = traits.without_usage or config.estimator
        traits = ESTIMATORS.traits(name)
        values = shift(pair, rows, config, name)
        rows, values = rows[np.isfinite(values)], values[np.isfinite(values)]
    if not len(rows):
        return None
    exposure = noise.exposure(pair.seen_before[rows], in_window[rows])
    stable = traits.scale.forward(values.astype(np.float64))
    judged = ranked = noise.judge(stable, exposure)
    if sure is not None:
        ranked = noise.RankedShifts(sure.z, sure.p, benjamini_hochberg(sure.p), judged.floor)
    grounds = None if sure is None else sure.grounds
    in_grounds = np.arange(len(rows), dtype=np.int64)
    expected = traits.scale.inverse(judged.floor.at(exposure)[0])
    if among is not None:
        chosen = np.array([pair.words[row] in among for row in rows.tolist()], dtype=bool)
        ranked, rows = ranked.take(chosen), rows[chosen]
        values, expected, in_grounds = values[chosen], expected[chosen], in_grounds[chosen]
    return JudgedWords(rows, ranked, values, expected, judged.floor, grounds, in_grounds)


def rank_moved(
    material: ReportInput,
    pair: SnapshotPair,
    writer: RowWriter,
    config: TrendsConfig,
    limit: float | None = None,
    short: Container[str] = (),
    held_out: Container[str] | None = None,
    readable: bool = True,
) -> ShiftRanking:
    """Rank those that are called by how much they changed, behind them the others by z.

    limit  q up to which a word is called; None: `config.false_discovery`
    short  words that were just short in the window before, so that they may be called late
    held_out  words that are not judged; None: `held_out_of`
    readable  whether both models can be read; else no figure comes from their vectors
    """
    limit = config.false_discovery if limit is None else limit
    judged = judge_words(material, pair, config, held_out=held_out)
    if judged is None:
        return ShiftRanking()
    judged = judged.with_late(pair, short, limit)
    rows, ranked = judged.rows, judged.ranked
    words, scores = [pair.words[at] for at in rows], judged.scores(limit)
    order = np.lexsort((words, -ranked.z.round(9), -scores.round(9)))
    best = order[: config.rows].tolist()
    now, then = (s.manifest.window.label for s in (material.snapshot, material.earlier[-1]))
    every = {
        name: judged.shift[best]
        if name == config.estimator
        else shift(pair, rows[best], config, name)
        for name in usable(pair, readable)
    }
    values: list[dict[str, object]] = [
        {
            "score": float(scores[at]),
            "z": float(ranked.z[at]),
            "p": float(ranked.p[at]),
            "q": float(ranked.q[at]),
            "significant": bool(ranked.q[at] <= limit),
            "shift": float(judged.shift[at]),
            **dict(zip(("shift_low", "shift_high"), judged.interval(at), strict=True)),
            "expected": float(judged.expected[at]),
            "since": (then if at in judged.late else now) if ranked.q[at] <= limit else None,
            "figures": {name: float(column[i]) for name, column in every.items()},
            "support": _support(judged, at, limit),
            "contexts": pulling(material.snapshot, words[at]) if ranked.q[at] <= limit else (),
        }
        for i, at in enumerate(best)
    ]
    figures = {"z": ranked.z, "p": ranked.p, "q": ranked.q, "expected": judged.expected}
    figures["shift"] = judged.shift.astype(np.float64)
    return ShiftRanking(
        rows=tuple(writer.rows([words[at] for at in best], values)),
        floor=judged.floor.to_dict(),
        compared=len(rows),
        judged=int((ranked.p < 1.0).sum()),
        scores=word_scores(words, figures, order, material, config, limit),
    )


def _support(judged: JudgedWords, word: int, limit: float) -> Support | None:
    """Who moved a word that is called; None of another, and where documents do not say it."""
    grounds, place = judged.judged_by(word)
    return None if grounds is None or judged.ranked.q[word] > limit else support(grounds, place)


def usable(pair: SnapshotPair, readable: bool = True) -> list[str]:
    """Names of the estimators that can compare this pair by themselves, sorted.

    readable  whether both models can be read; else only those that read how words were used
    """
    equal = pair.before.shape[1] == pair.after.shape[1]
    names = []
    for name in ESTIMATORS:
        traits = ESTIMATORS.traits(name)
        lacks = not pair.usage_compares if traits.needs_usage else not readable
        if not lacks and (equal or not traits.needs_equal_dimensions):
            names.append(name)
    return sorted(names)


def support(grounds: Grounds, word: int) -> Support | None:
    """Who moved a word, by its place among those that were judged; None without a change.

    With R_k the residuals of `permutation.py` and A their sum over the units of the window, a set
    of these units brought the share Σ_k R_k·A / |A|², so the shares of all sources add up to 1. A
    unit holds all that its authors wrote. The call is judged again without each source, without the
    unit that brought most (a change that one author made does not stand without that unit), and
    without what the busiest authors of the window wrote, where its nodes knew them
    (`worker/usage`).
    """
    units = grounds.compared.units(np.array([word], dtype=np.int64))
    rest, _ = units.residuals()
    change = rest[0, units.later].sum(axis=0)
    if grounds.common.shape[1]:
        change = change - (change @ grounds.common) @ grounds.common.T
    total = float(change @ change)
    if total <= 0.0:
        return None
    shares = np.where(units.later, rest[0] @ change / total, 0.0)
    most = int(np.argmax(shares))
    supporting = [i for i in range(len(grounds.sources)) if (rest[0, units.source == i] != 0).any()]
    without: dict[str, float] = {}
    if len(supporting) > 1:
        without = {
            grounds.sources[i]: _judged(grounds, units, units.source != i) for i in supporting
        }
    calm = grounds.compared.without_busiest(np.array([word], dtype=np.int64))
    return Support(
        sources={grounds.sources[i]: float(shares[units.source == i].sum()) for i in supporting},
        without_source=without,
        authors=float(shares[most]),
        without_authors=_judged(grounds, units, np.arange(len(shares)) != most),
        without_busiest=None if calm is None else _judged(grounds, calm, np.isfinite(shares)),
    )


def _judged(grounds: Grounds, units: Units, chosen: Labels) -> float:
    """p by some of the units; 1 where they say nothing."""
    some = units.take(chosen)
    p = refined(some, grounds.common, grounds.usual, permutations(some, REFINED[0]))[0]
    return float(p) if np.isfinite(p) else 1.0


def touched_words(before: Mapping[str, int], after: Mapping[str, int]) -> set[str]:
    """Words that a change of the tokenizer may have touched; words that nodes find are no change.

    When a dictionary gains a word, texts that were cut into its parts hold the whole word from then
    on: it seems to be born, and its parts lose company that they had. When it loses one, the other
    way round. Which words that were is seen by their spelling: words of one window alone that are
    made of two or more words of the other one, and the parts they are made of. Any new word can be
    spelt with short words, so a part counts as touched only where such words may have taken a good
    share of its occurrences.

    before, after  occurrences of the words that were read in each window
    """
    touched: set[str] = set()
    for window, other in ((after, before), (before, after)):
        whole: Counter[str] = Counter()
        for word in window.keys() - other.keys():
            if parts := _parts(word, other):
                touched.add(word)
                whole.update(dict.fromkeys(parts, window[word]))
        touched.update(part for part, count in whole.items() if count >= _SHARE * other[part])
    return touched


def _parts(word: str, known: Collection[str], most: int = _MOST_PARTS) -> tuple[str, ...]:
    """The fewest known words that the word is made of, at least two; () when there are none."""
    if not 2 <= len(word) <= _LONGEST:
        return ()
    best: dict[int, tuple[str, ...]] = {0: ()}
    for end in range(1, len(word) + 1):
        first = 1 if end == len(word) else 0  # the whole word is no part
        matches = [
            (*best[start], word[start:end])
            for start in range(first, end)
            if start in best and word[start:end] in known
        ]
        if matches:
            best[end] = min(matches, key=lambda match: (len(match), match))
    whole = best.get(len(word), ())
    return whole if 2 <= len(whole) <= most else ()


def pulling(snapshot: Snapshot, word: str) -> tuple[ContextPull, ...]:
    """The contexts that pulled a word in a snapshot's window, the largest shares first.

    Empty where the snapshot does not say it: of one that was cut before 2026-11-25, and of words
    that hardly shifted.
    """
    row = snapshot.index(word)
    if row is None or snapshot.pulls is None:
        return ()
    pulls = snapshot.pulls
    contexts = [
        ContextPull(
            snapshot.words[int(pulls.contexts[place])],
            float(pulls.share[place]),
            float(pulls.before[place]),
            float(pulls.after[place]),
        )
        for place in pulls.of(row)
    ]
    return tuple(sorted(contexts, key=lambda context: (-context.share, context.word)))


def word_scores(
    words: Sequence[str],
    figures: dict[str, TestArray],
    order: IntArray,
    material: ReportInput,
    config: TrendsConfig,
    limit: float,
) -> WordScores:
    """All words that were compared, n of them.

    figures  z, p, q, shift and expected, float [n] each
    order    int64 [n], the words by rank
    limit    q up to which a word is called
    """
    ordered = [words[at] for at in order]
    columns: dict[str, Any] = {"rank": np.arange(1, len(words) + 1), "word": ordered}
    columns |= {name: values[order].astype(np.float64) for name, values in figures.items()}
    columns["significant"] = columns["q"] <= limit
    for suffix, window in (("_before", material.past[-1]), ("", material.now)):
        columns[f"count{suffix}"] = window.counts_of(ordered)
        columns[f"documents{suffix}"] = window.documents_of(ordered)
    table = pa.table({name: columns[name] for name in SCORES_COLUMNS}, schema=SCORES_SCHEMA)
    return WordScores(table, _key(material, config))


def no_scores(material: ReportInput, config: TrendsConfig) -> WordScores:
    """Where no word was compared."""
    return WordScores(SCORES_SCHEMA.empty_table(), _key(material, config))


def _key(material: ReportInput, config: TrendsConfig) -> str:
    return key_of([snapshot.ref for snapshot in (*material.earlier, material.snapshot)], config)


def why_not(
    words: Sequence[str], before: Snapshot | None, after: Snapshot, config: TrendsConfig
) -> dict[str, str]:
    """Why each of `words`, none of which was compared, was not: a sentence without a full stop."""
    if not words:
        return {}
    now, skipped = Frequency.read(after).counts_of(words), signs(words, config)
    return {
        word: "there is no window before to compare with"
        if before is None
        else _reason(word, int(now[at]), bool(skipped[at]), before, after, config)
        for at, word in enumerate(words)
    }


def _reason(
    word: str, now: int, sign: bool, before: Snapshot, after: Snapshot, config: TrendsConfig
) -> str:
    labels = before.manifest.window.label, after.manifest.window.label
    indices = [snapshot.index(word) for snapshot in (before, after)]
    if indices == [None, None]:
        return f"neither {labels[0]} nor {labels[1]} knows it"
    for row, label in zip(indices, labels, strict=True):
        if row is None:
            return f"{label} does not know it"
    if sign:
        return "a number, a sign or a mark, which is never ranked (trends.skip)"
    seen = int(np.asarray(before.counts)[indices[0]])
    if now < config.min_count or seen < config.min_count:
        return (
            f"too rare: {now:,} mentions in {labels[1]} and {seen:,} up to {labels[0]}, "
            f"{config.min_count} of each are needed (trends.min_count)"
        )
    return "it was not compared; the notes of the report say more"
