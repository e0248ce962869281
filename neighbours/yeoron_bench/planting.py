"""Planted changes: a dated corpus in which it is known which words change, when and how much.

Genuine shifts are made by exchanging words, so that a word gets the contexts of another one while
its frequency stays (pseudo-words, as in Rosenfeld and Erk 2018, Dubossarsky et al. 2019, and
Schlechtweg and Schulte im Walde 2020); decoys change what a careless estimator takes for meaning:
how often a word is written, in which window its texts stand, how it is spelt. Documents are
assigned to windows by chance, so that nothing else changes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from embedding.kernel.config import Config
from embedding.kernel.errors import InputError
from embedding.kernel.records import IntArray

PlantedDocument = Sequence[Sequence[str]]
"""Sentences of words."""
NEW_SPELLING = "~"
"""Behind a word in its new spelling."""
_ALIKE = 0.25
"""Two words that are exchanged differ in frequency by at most this, as natural logarithm."""
_TRIES = 200


class ChangeKind(StrEnum):
    """What happens to a word."""

    EXCHANGED = "exchanged"
    """It gets the contexts of another word of like frequency, which gets its own: both move."""
    GAINED = "gained"
    """It takes over the mentions of another word beside its own: a second sense."""
    RISEN = "risen"
    """Decoy: texts that hold it were rare before the date."""
    FALLEN = "fallen"
    """Decoy: texts that hold it are rare from the date on."""
    WAVE = "wave"
    """Decoy: many of the texts that hold it stand in the one window."""
    SEASON = "season"
    """Decoy: as a wave, in every `period`-th window."""
    RESPELT = "respelt"
    """Decoy: from the date on most of its mentions are spelt in another way."""

    @property
    def genuine(self) -> bool:
        """Whether the meaning changes."""
        return self in {ChangeKind.EXCHANGED, ChangeKind.GAINED}


DECOYS = tuple(kind for kind in ChangeKind if not kind.genuine)


class PlantingConfig(Config):
    """How many changes of which kind are planted."""

    windows: int = Field(default=6, ge=4, le=200)
    """Windows of equally many documents."""

    first: int = Field(default=3, ge=1)
    """The first window in which something changes; models have to converge before."""

    bands: int = Field(default=5, ge=1, le=20)
    """Bands of frequency, of equally many words each, which get equally many changes."""

    exchanges: int = Field(default=10, ge=0)
    """Pairs of words that are exchanged, in each band."""

    gains: int = Field(default=5, ge=0)
    """Words that gain a sense, in each band."""

    decoys: int = Field(default=5, ge=0)
    """Words of each kind of decoy, in each band."""

    strengths: tuple[float, ...] = (0.3, 0.6, 1.0)
    """Shares of the mentions that change, in turn."""

    least: int = Field(default=20, ge=1)
    """Mentions in a window, on average, that a planted word has at least."""

    common: int = Field(default=50, ge=0)
    """So many of the most frequent words are left alone."""

    thinned: float = Field(default=0.6, gt=0, lt=1)
    """Share of texts that is left out (risen, fallen) or moved (wave, season)."""

    thin: Literal["texts", "sentences"] = "texts"
    """What decoys leave out or move: whole texts that hold the word, or the sentences that hold it.
    Long texts hold many decoys, and would nearly all be left out of some window."""

    period: int = Field(default=3, ge=1)
    """Windows from one season to the next."""

    seed: int = 0

    @model_validator(mode="after")
    def _fits(self) -> PlantingConfig:
        if self.first >= self.windows:
            raise ValueError(f"first {self.first}: the last window is {self.windows - 1}")
        if not self.strengths or not all(0 < s <= 1 for s in self.strengths):
            raise ValueError(f"strengths {self.strengths}: shares above 0, up to 1, are accepted")
        return self


@dataclass(frozen=True)
class PlantedChange:
    """One change: which word, how, from which window on, how much of it, in which band."""

    word: str
    kind: ChangeKind
    window: int
    strength: float
    band: int
    other: str | None = None


@dataclass(frozen=True)
class PlantedCorpus:
    """Documents by window, what was planted, and words that are neither planted nor untouched."""

    windows: tuple[tuple[PlantedDocument, ...], ...]
    planted: tuple[PlantedChange, ...]
    touched: frozenset[str]


def plant(documents: Sequence[PlantedDocument], config: PlantingConfig) -> PlantedCorpus:
    """Plant changes in documents.

    The same documents and configuration give the same corpus. Raises InputError when there are too
    few words that are frequent enough.
    """
    rng = np.random.default_rng(config.seed)
    counts = Counter(word for document in documents for sentence in document for word in sentence)
    changes = _choose(counts, len(documents), config, rng)
    order = rng.permutation(np.arange(len(documents)))
    window = np.empty(len(documents), dtype=np.int64)
    window[order] = np.arange(len(documents)) * config.windows // max(len(documents), 1)
    texts = [_texts(document, config) for document in documents]
    owner = np.repeat(np.arange(len(documents)), [len(own) for own in texts])
    placed = _moved([text for own in texts for text in own], window[owner], changes, config, rng)
    first = np.searchsorted(owner, np.arange(len(documents) + 1))
    writing = _Writing(changes, rng)
    windows: list[list[PlantedDocument]] = [[] for _ in range(config.windows)]
    for at in order.tolist():
        where = placed[first[at] : first[at + 1]]
        for now in np.unique(where[where >= 0]).tolist():
            text = [s for part, to in zip(texts[at], where, strict=True) if to == now for s in part]
            windows[now].append(writing.document(text, now))
    touched = {c.other for c in changes if c.kind is ChangeKind.GAINED and c.other}
    touched |= {c.word + NEW_SPELLING for c in changes if c.kind is ChangeKind.RESPELT}
    return PlantedCorpus(tuple(tuple(docs) for docs in windows), tuple(changes), frozenset(touched))


def _texts(document: PlantedDocument, config: PlantingConfig) -> list[PlantedDocument]:
    """The parts of a document that decoys act on."""
    return [document] if config.thin == "texts" else [[sentence] for sentence in document]


def _choose(
    counts: Mapping[str, int], documents: int, config: PlantingConfig, rng: np.random.Generator
) -> list[PlantedChange]:
    """Which words change: each once, in each band alike."""
    by_count = sorted(counts, key=lambda word: (-counts[word], word))[config.common :]
    least = config.least * config.windows
    words = [word for word in by_count if counts[word] >= least]
    needed = 2 * (config.exchanges + config.gains) + len(DECOYS) * config.decoys
    if len(words) < config.bands * needed:
        raise InputError(
            f"{documents:,} documents have {len(words):,} words with {least:,} mentions; "
            f"{config.bands * needed:,} are needed to plant in. Take a larger corpus, fewer "
            "windows, or fewer changes a band."
        )
    chosen: list[PlantedChange] = []
    for band, part in enumerate(np.array_split(np.arange(len(words))[::-1], config.bands)):
        chosen += _Band(band, [words[i] for i in part], counts, config, rng).changes()
    return chosen


class _Band:
    """Draws words of one band of frequency without repetition."""

    def __init__(
        self,
        band: int,
        words: Sequence[str],
        counts: Mapping[str, int],
        config: PlantingConfig,
        rng: np.random.Generator,
    ) -> None:
        self._band, self._counts, self._config, self._rng = band, counts, config, rng
        self._left = [words[i] for i in rng.permutation(len(words)).tolist()]

    def changes(self) -> list[PlantedChange]:
        config = self._config
        planted: list[PlantedChange] = []
        for at in range(config.exchanges):
            word, other = self._pair()
            change = self._planted(word, ChangeKind.EXCHANGED, at, other)
            planted += [change, replace(change, word=other, other=word)]
        for at in range(config.gains):
            word, other = self._pair()
            planted.append(self._planted(word, ChangeKind.GAINED, at, other))
        for kind in DECOYS:
            planted += [self._planted(self._left.pop(), kind, at) for at in range(config.decoys)]
        return planted

    def _planted(
        self, word: str, kind: ChangeKind, at: int, other: str | None = None
    ) -> PlantedChange:
        config = self._config
        window = int(self._rng.integers(config.first, config.windows))
        strength = config.strengths[at % len(config.strengths)]
        return PlantedChange(word, kind, window, strength, self._band, other)

    def _pair(self) -> tuple[str, str]:
        """Two words of like frequency; the most alike one when there is none."""
        word = self._left.pop()
        apart = [abs(np.log(self._counts[other] / self._counts[word])) for other in self._left]
        near = [i for i, gap in enumerate(apart) if gap <= _ALIKE][:_TRIES]
        return word, self._left.pop(near[0] if near else int(np.argmin(apart)))


def _moved(
    documents: Sequence[PlantedDocument],
    window: IntArray,
    changes: Sequence[PlantedChange],
    config: PlantingConfig,
    rng: np.random.Generator,
) -> IntArray:
    """int64 [documents]: the window that each stands in now, -1: it is left out."""
    by_word = {change.word: change for change in changes if not change.kind.genuine}
    placed: IntArray = window.copy()
    for at, document in enumerate(documents):
        own = {word for sentence in document for word in sentence if word in by_word}
        for word in sorted(own):
            change = by_word[word]
            if placed[at] >= 0 and rng.random() < config.thinned:
                placed[at] = _place(change, int(placed[at]), config, rng)
    return placed


def _place(
    change: PlantedChange, window: int, config: PlantingConfig, rng: np.random.Generator
) -> int:
    if change.kind is ChangeKind.RISEN:
        return -1 if window < change.window else window
    if change.kind is ChangeKind.FALLEN:
        return -1 if window >= change.window else window
    if change.kind is ChangeKind.WAVE:
        return change.window
    if change.kind is ChangeKind.SEASON:
        first = change.window % config.period
        return int(rng.choice(np.arange(first, config.windows, config.period)))
    return window


class _Writing:
    """Writes documents with other words where a change asks for it."""

    def __init__(self, changes: Sequence[PlantedChange], rng: np.random.Generator) -> None:
        self._rng = rng
        self._rules: defaultdict[str, list[tuple[int, float, str]]] = defaultdict(list)
        for change in changes:
            if change.kind is ChangeKind.EXCHANGED and change.other is not None:
                self._rules[change.word].append((change.window, change.strength, change.other))
            elif change.kind is ChangeKind.GAINED and change.other is not None:
                self._rules[change.other].append((change.window, change.strength, change.word))
            elif change.kind is ChangeKind.RESPELT:
                self._rules[change.word].append(
                    (change.window, change.strength, change.word + NEW_SPELLING)
                )

    def document(self, document: PlantedDocument, window: int) -> PlantedDocument:
        return [[self._word(word, window) for word in sentence] for sentence in document]

    def _word(self, word: str, window: int) -> str:
        for first, strength, instead in self._rules.get(word, ()):
            if window >= first and self._rng.random() < strength:
                return instead
        return word
