"""Kiwi morphemes behind a cache of eojeols."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import importlib.metadata
import importlib.util
import logging
import math
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from embedding.kernel.errors import ConfigError
from embedding.kernel.processes import give_back
from embedding.kernel.records import Phrase, batched
from embedding.text.config import TextConfig
from embedding.text.eojeols import Analysis, EojeolCache, EojeolReading
from embedding.text.generations import Generations
from embedding.text.mask import NEUTRAL
from embedding.text.morphemes import (
    MARKS,
    TOUCHES_BEFORE,
    TOUCHES_BEHIND,
    Morpheme,
    MorphemePart,
    Piece,
    make_select,
    pieces,
)
from embedding.text.passages import Passage, eojeols, linked
from embedding.text.tokenizers import TOKENIZERS, TokenizerTraits

# Words that the analyser takes to pieces, found in what is read.
#
# A noun of its own is met before many different particles: the variety of what follows it (accessor
# variety, Feng et al. 2004, Computational Linguistics 30:1) tells a word from a chance string. Only
# eojeols that the analyser had to look at are counted, so that this costs the stream next to
# nothing.
LEAST, MOST = 2, 8
"""Syllables of a word."""
VARIETY = 6
"""Different tails (particles, or none) behind a word."""
MENTIONS = 8
"""Analysed eojeols that begin with it."""
_TAKEN_WHOLE = 0.2
"""Share of them in which the analyser took it for one word, above which nothing is to be found."""
_HANGUL = re.compile(r"[가-힣]+")
_NOUNS = ("NNG", "NNP", "NNB", "NR", "MAG", "VV", "VA", "XR", "IC", "UN")
_MOST_TAILS = 32
_CANDIDATE = 800
_TAIL = 80
"""Bytes of a candidate, and of one tail more."""


class _Occurrences(NamedTuple):
    counts: list[int]
    """Mentions, and those in which the analyser said one word."""
    tails: set[str]
    parts: tuple[str, ...]
    """The words that it is read as."""
    since: float
    """Event time (Unix seconds) of the first mention."""


class WordFinder:
    """Candidates for new words, from analysed eojeols; `capacity` in bytes.

    when  event time (Unix seconds) of what is read
    """

    def __init__(self, capacity: int) -> None:
        self.when = math.inf
        self._heard: Generations[str, _Occurrences] = Generations(
            capacity, lambda _, heard: _CANDIDATE + _TAIL * len(heard.tails)
        )
        self._ripe: dict[str, None] = {}

    def hear(
        self, head: str, tail: str, tokens: Sequence[Morpheme], parts: tuple[str, ...]
    ) -> None:
        """An eojeol was analysed as `head`, of the morphemes `tokens`, and `tail`.

        parts  the words that the head is read as; it alone where the analyser takes it for one
        """
        whole = parts == (head,)
        if not LEAST <= len(head) <= MOST or not _HANGUL.fullmatch(head):
            return
        heard = self._heard.get(head)
        if heard is None:
            # An unknown word falls into pieces: at least one of one syllable, none of them a
            # prefix or suffix.
            single = len(tokens) > 1 and any(token.len == 1 for token in tokens)
            nouns = all(token.tag.partition("-")[0] in _NOUNS for token in tokens)
            if whole or not single or not nouns:
                return
            heard = _Occurrences([0, 0], set(), parts, self.when)
            self._heard.put(head, heard)
        heard.counts[0] += 1
        heard.counts[1] += whole
        if len(heard.tails) < _MOST_TAILS and tail not in heard.tails:
            heard.tails.add(tail)
            self._heard.grew(_TAIL)
        if len(heard.tails) >= VARIETY and heard.counts[0] >= MENTIONS:
            self._ripe[head] = None

    def take(self, most: int) -> list[Phrase]:
        """At most `most` words found since the last time; the analyser takes all to pieces."""
        words = []
        for word in sorted(self._ripe):
            heard = self._heard.get(word)
            if heard is not None and heard.counts[1] <= _TAKEN_WHOLE * heard.counts[0]:
                since = min(heard.since, self.when)
                words.append(Phrase(word, heard.parts, since, self.when, heard.counts[0]))
        self._ripe.clear()
        return words[:most]

    @property
    def memory(self) -> int:
        """Bytes held, by reckoning."""
        return self._heard.weight


# Reading an eojeol that was never met from parts that were: a head and a tail of particles.
#
# 국회의원에게서도 is read as 국회의원 (a head met in 국회의원은) and 에게서도 (a tail met behind
# other heads). Head and tail fit when the tail was met behind a head of the same class and of the
# same final sound, as the form of a particle depends on it. Only what can be read in one way is
# answered.
K = TypeVar("K")
V = TypeVar("V")

_ENTRY = 560
_VARIANT = 180
"""Bytes of a head or tail read in one way, and of one way more."""

_LEAST = 30
"""Product of the occurrences of head and tail below which a reading is not trusted."""
_SYLLABLE = 0xAC00
_NOMINAL = frozenset(("NNG", "NNP", "NNB", "NP", "NR", "XSN", "SL", "SH", "SN"))
_FUNCTIONAL = ("J", "E", "XS", "VC", "VX", "SF", "SP", "SS", "SE")


def ending(morpheme: Morpheme) -> str:
    """What a morpheme at the end of an eojeol shows to the next one: particle, or only its tag."""
    tag = morpheme.tag
    return sys.intern(morpheme.form + tag if tag.startswith(_FUNCTIONAL) else tag)


@dataclass(frozen=True, slots=True)
class Analysed:
    """Morphemes of one eojeol in its sentence.

    tokens  its morphemes; words  by morpheme, the words kept that begin with it
    base    where in the analysed text the eojeol begins
    """

    tokens: Sequence[Morpheme]
    words: Sequence[Analysis]
    base: int

    def reading(self) -> EojeolReading:
        """What is kept of it, and the ending it shows."""
        last = ending(self.tokens[-1]) if self.tokens else ""
        return EojeolReading(tuple(chain.from_iterable(self.words)), last)


def _weigh(_: object, spellings: Sized) -> int:
    return _ENTRY + _VARIANT * max(0, len(spellings) - 1)


class EojeolComposer:
    """Heads and tails met so far; `capacity` bytes, two thirds of them for heads. `finder` hears of
    them."""

    def __init__(self, capacity: int, finder: WordFinder | None = None) -> None:
        self._finder = finder
        self._heads: Generations[str, dict[tuple[Analysis, str], int]] = Generations(
            capacity * 2 // 3, _weigh
        )
        self._tails: Generations[tuple[str, int], dict[tuple[Analysis, str, str], int]] = (
            Generations(capacity // 3, _weigh)
        )

    @property
    def memory(self) -> int:
        """Bytes held, by reckoning."""
        return self._heads.weight + self._tails.weight

    def tail(self, head: str, tail: str) -> EojeolReading | None:
        """How `tail` is read behind the noun `head`; None for what was never met behind a noun."""
        tails = self._tails.get((tail, _final(head[-1])))
        nominal = {tail: n for tail, n in (tails or {}).items() if tail[1] == "N"}
        if not nominal:
            return None
        words, _, last = max(nominal, key=nominal.__getitem__)
        return EojeolReading(words, last)

    def learn(self, part: str, key: str, analysed: Analysed) -> None:
        """Take an analysed eojeol apart; `key` is what is remembered of it."""
        offset = part.find(key)
        tokens, words = analysed.tokens, analysed.words
        if offset < 0 or not tokens:  # figures were made alike, and places moved
            return
        begin = analysed.base + offset
        end = begin + len(key)
        inside = [i for i, token in enumerate(tokens) if begin <= token.start < end]
        if not inside:
            return
        tokens = tokens[inside[0] : inside[-1] + 1]
        words = words[inside[0] : inside[-1] + 1]
        split = _cut(tokens)
        if split == len(tokens):
            _count(self._heads, key, (_closed(_kept(words)), _kind(tokens[-1].tag)))
            self._hear(key, "", tokens, words)
            return
        length = tokens[split].start - begin
        if split == 0 or length <= 0:
            return
        kind = _kind(tokens[split - 1].tag)
        _count(self._heads, key[:length], (_closed(_kept(words[:split])), kind))
        if not tokens[split].tag.startswith("E"):
            # Behind an ending stands a verb: 못하-는, 못하-지, 못하-고 make no noun of 못하.
            self._hear(key[:length], key[length:], tokens[:split], words[:split])
        tail = (_kept(words[split:]), kind, ending(tokens[-1]))
        _count(self._tails, (key[length:], _final(key[length - 1])), tail)

    def _hear(
        self, head: str, tail: str, tokens: Sequence[Morpheme], words: Sequence[Analysis]
    ) -> None:
        if self._finder is not None:
            self._finder.hear(head, tail, tokens, tuple(piece.word for piece in _kept(words)))

    def read(self, eojeol: str) -> EojeolReading | None:
        """The one way to read `eojeol`, None when there is none or more than one."""
        readings: dict[Analysis, int] = {}
        shown: dict[Analysis, str] = {}
        for length in range(1, len(eojeol)):
            tails = self._tails.get((eojeol[length:], _final(eojeol[length - 1])))
            heads = self._heads.get(eojeol[:length]) if tails else None
            if not heads or not tails:
                continue
            for (words, kind), often in heads.items():
                for (more, behind, last), times in tails.items():
                    if behind == kind:
                        both = words + more
                        readings[both] = readings.get(both, 0) + often * times
                        shown[both] = last
        if len(readings) != 1:
            return None
        ((best, trust),) = readings.items()
        return EojeolReading(best, shown[best]) if trust >= _LEAST else None


def _cut(tokens: Sequence[Morpheme]) -> int:
    """Number of morphemes that belong to the head: up to the last content morpheme, and those that
    melt with it (했 is 하 and 었)."""
    head = len(tokens)
    while head and tokens[head - 1].tag.startswith(_FUNCTIONAL):
        head -= 1
    if head == 0:
        return 0
    end = max(token.start + token.len for token in tokens[:head])
    while head < len(tokens) and tokens[head].start < end:
        end = max(end, tokens[head].start + tokens[head].len)
        head += 1
    return head


def _kept(words: Sequence[Analysis]) -> Analysis:
    return tuple(chain.from_iterable(words))


def _closed(words: Analysis) -> Analysis:
    """The words of a head that has a tail: its last one does not end the eojeol."""
    if not words or not words[-1].edges & TOUCHES_BEHIND:
        return words
    last = words[-1]
    return (*words[:-1], last._replace(edges=last.edges & ~TOUCHES_BEHIND))


def _kind(tag: str) -> str:
    base = tag.partition("-")[0]
    return "N" if base in _NOMINAL else base


def _final(letter: str) -> int:
    """What a particle's form depends on: 0 no final consonant, 1 ㄹ, 2 another, -1 no Hangul."""
    syllable = ord(letter) - _SYLLABLE
    if not 0 <= syllable < 11_172:
        return -1
    final = syllable % 28
    return 0 if final == 0 else 1 if final == 8 else 2


def _count(parts: Generations[K, dict[V, int]], key: K, value: V) -> None:
    counts = parts.get(key)
    if counts is None:
        parts.put(key, {value: 1})
        return
    if value not in counts:
        parts.grew(_VARIANT)
    counts[value] = counts.get(value, 0) + 1


log = logging.getLogger(__name__)

_ANALYSER_VERSION = "5"
_lock = threading.Lock()
_shared: dict[tuple[int, tuple[str, ...]], Any] = {}

_FIGURES = re.compile(r"[0-9]+")
_PLAIN_ONLY = frozenset(("SN", "SF", "SP", "SS", "SSO", "SSC", "SE", "SB", "W_SERIAL"))
GUESS_CHECK = 2
"""Occurrence at which an eojeol that was put together from parts is analysed after all."""

_NEVER = 0
"""Occurrence of the check of a reading that is not the analyser's to say."""


class Readings:
    """The cache of eojeols, and the parts that unknown ones are put together from.

    Marks around an eojeol are left out and figures are alike, as long as no such thing is kept.
    """

    def __init__(self, config: TextConfig) -> None:
        # A half for words, a third for their parts, a sixth for candidates: near to how they grow.
        room = config.cache_mb * 1_000_000
        self._cache = EojeolCache(room * 6 // 12)
        self._finder = WordFinder(room * 2 // 12) if config.new_words else None
        self._composer = EojeolComposer(room * 4 // 12, self._finder)
        self._most_found, self._every = config.new_words, config.new_words_every
        self._looked = 0
        self.found: frozenset[str] = frozenset()
        folds = not _PLAIN_ONLY.intersection(config.keep_tags)
        self._marks = MARKS if folds else ""
        self._folds = folds
        self.composed = 0

    def figures(self) -> dict[str, float]:
        """Words found in the stream that are in the dictionary now, the share of eojeols read
        without an analysis, those held, those that had to go for others, and bytes of all held."""
        cache, finder = self._cache, self._finder
        share = (cache.hits + self.composed) / max(1, cache.hits + cache.misses)
        memory = cache.known.weight + self._composer.memory
        return {
            "new_words": len(self.found),
            "known_share": round(share, 4),
            "cached_words": len(cache.known),
            "forgotten_words": cache.known.forgotten,
            "cache_bytes": memory + (finder.memory if finder is not None else 0),
        }

    def renew(self, when: float) -> list[Phrase]:
        """Take the words found into the dictionary, if it is time; `when`: see `WordFinder`.

        A found word is put together with its particles here: the analyser, which would need
        seconds for each word, is not told.
        """
        cache = self._cache
        if self._finder is None:
            return []
        self._finder.when = when
        if cache.hits + cache.misses < self._looked + self._every:
            return []
        self._looked = cache.hits + cache.misses
        fresh = self._finder.take(self._most_found - len(self.found))
        words = tuple(phrase.word for phrase in fresh)
        self.found |= frozenset(words)
        cache.known.drop(lambda eojeol: eojeol.startswith(words))
        return fresh

    def look_up(self, parts: Sequence[str]) -> list[EojeolReading | None]:
        """Readings of the eojeols of a sentence, None where the analyser has to say."""
        known: list[EojeolReading | None] = []
        before: str | None = ""
        for part in parts:
            if part[0] == "<" and NEUTRAL.fullmatch(part):
                reading: EojeolReading | None = EojeolReading((Piece(part),), "<>")
            else:
                reading = self._read(part, before)
            known.append(reading)
            before = None if reading is None else reading.ending
        return known

    def learn(self, part: str, before: str, analysed: Analysed) -> EojeolReading:
        """Remember an analysis made in context; `before` is the ending of the eojeol before."""
        reading = analysed.reading()
        key = self._key(part)
        if key:
            self._cache.learn(key, before, reading)
            self._composer.learn(part, key, analysed)
        return reading

    def _read(self, part: str, before: str | None) -> EojeolReading | None:
        key = self._key(part)
        if not key:
            return EojeolReading((), part[-1])
        reading = self._cache.get(key, before)
        if reading is None and self._cache.known.get(key) is None:
            reading, check = self._found(key), _NEVER
            if reading is None:
                reading, check = self._composer.read(key), GUESS_CHECK
            if reading is not None:
                self.composed += 1
                self._cache.put(key, before or "", reading, check)
        return reading

    def _found(self, key: str) -> EojeolReading | None:
        """The reading of an eojeol that is a found word with or without particles."""
        for end in range(min(len(key), MOST), LEAST - 1, -1) if self.found else ():
            word = key[:end]
            if word in self.found:
                if end == len(key):
                    whole = Piece(word, word, TOUCHES_BEFORE | TOUCHES_BEHIND)
                    return EojeolReading((whole,), "NNP")
                tail = self._composer.tail(word, key[end:])
                if tail is not None:
                    head = Piece(word, word, TOUCHES_BEFORE)
                    return EojeolReading((head, *tail.pieces), tail.ending)
        return None

    def _key(self, part: str) -> str:
        """The eojeol as it is remembered; "" for marks alone."""
        key = part.strip(self._marks) if self._marks else part
        if self._folds and not key.isalpha():
            key = _FIGURES.sub("0", key)
        return key


def shared_kiwi(workers: int = 1, user_words: tuple[str, ...] = ()) -> Any:
    """The process's one Kiwi (seconds to load, half a gigabyte), made at first use.

    Another number of threads or other user words replace it. Raises ConfigError when Kiwi or its
    model is not installed, or cannot be loaded.
    """
    with _lock:
        kiwi = _shared.get((workers, user_words))
        if kiwi is None:
            _shared.clear()
            try:
                # Kiwi's own allocator gives back what is freed at its next call, which may never
                # come; with no delay at once. It reads this when it is loaded.
                os.environ.setdefault("MIMALLOC_PURGE_DELAY", "0")
                # Without entries of several words: a word of ours holds no blank.
                module = importlib.import_module("kiwipiepy")
                kiwi = module.Kiwi(num_workers=workers, load_multi_dict=False)
            except (ImportError, OSError, RuntimeError, ValueError) as error:
                raise ConfigError(
                    f"the morpheme analyser Kiwi cannot be loaded ({error}); install kiwipiepy, "
                    "or choose tokenizer = 'script' or 'whitespace'."
                ) from error
            for word in user_words:
                kiwi.add_user_word(word, "NNP")
            _shared[workers, user_words] = kiwi
        return kiwi


@TOKENIZERS.register("kiwi", TokenizerTraits(always_runs=True))
class KiwiTokenizer:
    """Content words by Kiwi (see `morphemes`).

    Known eojeols come out of a cache (`eojeols`), others are put together from a head and a tail
    that were met (`compose`); what then remains is analysed by Kiwi together with a neighbour on
    each side, as the neighbours decide what an eojeol is. `cache_mb = 0` analyses
    every sentence whole. Kiwi is loaded at the first sentence that needs it, which raises
    ConfigError where it cannot be.
    """

    name = "kiwi"

    def __init__(self, config: TextConfig) -> None:
        if importlib.util.find_spec("kiwipiepy") is None:
            raise ConfigError(
                "the morpheme analyser Kiwi is not installed; install kiwipiepy, or choose "
                "tokenizer = 'script' or 'whitespace'."
            )
        self._workers = config.workers
        self._user_words = config.user_words
        self._readings = Readings(config) if config.cache_mb else None
        self._context = 1 if config.cache_mb else sys.maxsize
        self._select = make_select(config.keep_tags, config.min_length, config.max_length)
        self._kiwi: Any = None
        self._rests = False
        self.morphemes = 0
        self.digest = _digest(config)

    def renew(self, when: float) -> list[Phrase]:
        """Take words found in the stream into the dictionary: these are read as one from now on.

        when  event time (Unix seconds) of what is read next
        After `rest` Kiwi is loaded, here because the time of a text does not count yet.
        """
        if self._rests:
            self._rests = False
            with contextlib.suppress(ConfigError):  # the first text that needs it raises it again
                self._kiwi = shared_kiwi(self._workers, self._user_words)
        return self._readings.renew(when) if self._readings is not None else []

    def rest(self) -> None:
        """Give Kiwi's memory back until `renew`. It holds nothing that was learnt."""
        if self._kiwi is not None:
            self._kiwi, self._rests = None, True
            with _lock:
                _shared.clear()
            gc.collect()
            give_back()

    def figures(self) -> dict[str, float]:
        """See `Readings.figures`; without a cache nothing."""
        return {} if self._readings is None else self._readings.figures()

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return [passage.words for passage in self.passages(sentences)]

    def passages(self, sentences: Sequence[str]) -> list[Passage]:
        """Words of each sentence, and which of them touch: see `passages.Passage`."""
        result: list[Passage] = []
        # Sentence by sentence the cache knows most; several threads need several at a time.
        for some in batched(sentences, 1 if self._workers == 1 else 32 * self._workers):
            result.extend(self._words([eojeols(sentence) for sentence in some]))
        return result

    def _words(self, batch: list[list[str]]) -> list[Passage]:
        known: list[list[EojeolReading | None]] = [
            [None] * len(parts) if self._readings is None else self._readings.look_up(parts)
            for parts in batch
        ]
        spans = [
            (sentence, first, last)
            for sentence, readings in enumerate(known)
            for first, last in _gaps(readings, self._context)
        ]
        texts = [batch[sentence][first:last] for sentence, first, last in spans]
        for (sentence, first, _), span in zip(spans, self._analyse(texts), strict=True):
            readings = known[sentence]
            for i, analysed in enumerate(span, start=first):
                # A neighbour that only lent its context was itself seen without its own.
                if readings[i] is not None:
                    continue
                if self._readings is None:
                    readings[i] = analysed.reading()
                else:
                    before = readings[i - 1] if i else None
                    shown = before.ending if before is not None else ""
                    readings[i] = self._readings.learn(batch[sentence][i], shown, analysed)
        return [linked(parts, readings) for parts, readings in zip(batch, known, strict=True)]

    def _analyse(self, spans: list[list[str]]) -> Iterator[list[Analysed]]:
        if not spans:
            return
        if self._kiwi is None:
            self._kiwi = shared_kiwi(self._workers, self._user_words)
        texts = [" ".join(parts) for parts in spans]
        if self._workers == 1:
            analysed = map(self._kiwi.tokenize, texts)
        else:
            analysed = self._kiwi.tokenize(texts)
        for parts, text, tokens in zip(spans, texts, analysed, strict=True):
            self.morphemes += len(tokens)
            yield self._assign(parts, text, tokens)

    def _assign(self, parts: list[str], text: str, tokens: Sequence[Morpheme]) -> list[Analysed]:
        """What the morphemes of a span say of each eojeol of `parts`.

        Kiwi reads 10: 30 as one morpheme: each eojeol gets its part of it.
        """
        analysed, following, base = [], 0, 0
        over: list[MorphemePart] = []  # what the last morpheme holds of the next eojeol
        for part in parts:
            begin, end = following, base + len(part)
            while following < len(tokens) and tokens[following].start <= end:
                following += 1
            own: list[Morpheme] = [*over, *tokens[begin:following]]
            over = []
            if own and own[-1].start + own[-1].len > end:
                last = own.pop()
                start, stop = last.start, last.start + last.len
                if start < end:
                    own.append(MorphemePart(text[start:end], last.tag, start, end - start))
                over = [MorphemePart(text[end + 1 : stop], last.tag, end + 1, stop - end - 1)]
            words: list[Analysis] = [()] * len(own)
            for first, piece in pieces(text, base, end, own, self._select):
                words[first] = (piece,)
            analysed.append(Analysed(own, words, base))
            base = end + 1
        return analysed


def _digest(config: TextConfig) -> str:
    """SHA-256 over everything that decides what Kiwi makes of a text."""
    try:
        versions = [importlib.metadata.version(name) for name in ("kiwipiepy", "kiwipiepy_model")]
    except importlib.metadata.PackageNotFoundError as error:
        raise ConfigError(
            f"the morpheme analyser Kiwi is not whole: {error}; install kiwipiepy again."
        ) from error
    context = config.context if config.cache_mb else "whole"
    lengths = f"{config.min_length} {config.max_length}"
    parts = (_ANALYSER_VERSION, *versions, config.keep_tags, config.user_words, lengths, context)
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def _gaps(known: Sequence[object], context: int) -> list[tuple[int, int]]:
    """Spans [first, last) around runs of None, widened by `context` on both sides and joined."""
    spans: list[tuple[int, int]] = []
    for position, value in enumerate(known):
        if value is not None:
            continue
        first, last = max(0, position - context), min(len(known), position + context + 1)
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((first, last))
    return spans
