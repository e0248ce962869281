"""Documents in, a token block out: normalise → mask → sentences → words → phrases.

Sentences that a site repeats are left out before they are cut into words.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.records import Document, Phrase, TokenBlock
from embedding.text.config import TextConfig, contents, contributors, voices
from embedding.text.generations import Generations
from embedding.text.kiwi import KiwiTokenizer
from embedding.text.mask import MASK_VERSION, mask
from embedding.text.normalise import NORMALISER_VERSION, normalise
from embedding.text.passages import Passage, split_sentences
from embedding.text.phrases import PHRASES_VERSION as PHRASES_VERSION
from embedding.text.phrases import Phrases
from embedding.text.tokenizers import (
    AUTO_TOKENIZER,
    TOKENIZERS,
    Tokenizer,
    TokenizerTraits,
    make_tokenizer,
)

_HANGUL = re.compile(r"[가-힣]+")
_LETTERS = re.compile(r"[^\W\d_]+")
KOREAN_SHARE = 0.2
"""Share of Hangul among letters from which a text is Korean: news mixes in Latin names freely."""


def hangul_share(text: str) -> float:
    """Share of Hangul syllables among the letters of the first 4,000 characters; 0 without."""
    head = text[:4_000]
    letters = sum(map(len, _LETTERS.findall(head)))
    return sum(map(len, _HANGUL.findall(head))) / letters if letters else 0.0


def is_korean(text: str, language: str | None = None) -> bool:
    """Whether to analyse as Korean: by script, and by the declared language where there are few
    letters to judge from."""
    share, declared = hangul_share(text), (language or "").lower().startswith("ko")
    return share > 0.0 and share >= (KOREAN_SHARE / 4 if declared else KOREAN_SHARE)


_UNSPACED = (
    r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_PIECE = re.compile(
    rf"<[a-z]+>|(?P<run>[{_UNSPACED}]+)"
    rf"|(?P<word>(?:(?![{_UNSPACED}])[^\W\d_])+(?:['’-](?:(?![{_UNSPACED}])[^\W\d_])+)*)"
    r"|[ㄱ-ㅎㅏ-ㅣ]+|[\U0001f1e6-\U0001f1ff]{2}|[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff]"
)


class _Cut:
    """Words of a sentence alone, those that are too short or too long left out."""

    name: str

    def __init__(self, config: TextConfig) -> None:
        self._least, self._most = config.min_length, config.max_length
        text = f"{self.name} 1 {config.min_length} {config.max_length}"
        self.digest = hashlib.sha256(text.encode()).hexdigest()
        self.morphemes = 0

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        cut = [self._words(sentence) for sentence in sentences]
        self.morphemes += sum(map(len, cut))
        return [[word for word in words if self._least <= len(word) <= self._most] for words in cut]

    def _words(self, sentence: str) -> list[str]:
        raise NotImplementedError


@TOKENIZERS.register("script", TokenizerTraits(always_runs=True))
class ScriptTokenizer(_Cut):
    """Words by script, for any language.

    Letters that belong together are a word, in lower case, with inner apostrophes and hyphens.
    Scripts written without spaces (Han, kana, Thai, Lao, Burmese, Khmer) give overlapping pairs of
    characters, which need no dictionary. Digits and punctuation are dropped, emoji kept.
    """

    name = "script"

    def _words(self, sentence: str) -> list[str]:
        words: list[str] = []
        for piece in _PIECE.finditer(sentence):
            run = piece["run"]
            if run is not None and len(run) > 1:
                words.extend(run[at : at + 2] for at in range(len(run) - 1))
            else:
                words.append(piece[0].lower().replace("’", "'"))
        return words


@TOKENIZERS.register("whitespace", TokenizerTraits(as_written=True, always_runs=True))
class WhitespaceTokenizer(_Cut):
    """Words as they stand between blanks: for text that was cut into words before."""

    name = "whitespace"

    def _words(self, sentence: str) -> list[str]:
        return sentence.split()


# Sentences that a site repeats on page after page: its own words, not those of who writes there.
#
# A sentence of at least WORDS words is boilerplate of a source from its LEAST-th document on, if it
# stood in at least `share` of the source's documents since its first. A document counts only where
# at least FRESH of its characters are new: what stands on pages that otherwise differ is the
# site's. Texts that people copy as a whole, as in a campaign, are no boilerplate, however many
# there are. What is boilerplate is cut off a sentence that begins or ends with it, too: a site's
# words often follow a text without a mark between them.
BOILERPLATE_VERSION = "1"
MIN_SENTENCE_WORDS = 5
"""Whitespace-delimited words: shorter sentences are repeated by people, too."""
MIN_REPEATS = 10
_FRESH = 0.25
MAX_SENTENCES = 50_000
"""Sentences, at some 250 bytes each."""
_SOURCES = 4_096
LENGTHS = 64
"""Lengths of boilerplate sentences of a source that sentences are looked through for."""


@dataclass(slots=True)
class _Sentence:
    """first: how many were read before it came; count: documents of the source that held it."""

    first: int
    count: int = 0


@dataclass(slots=True)
class _Source:
    """read: documents so far; lengths: characters of its boilerplate sentences."""

    read: int = 0
    lengths: set[int] = field(default_factory=set)


class Boilerplate:
    """Leaves out what sites repeat, in bounded memory; one instance a process.

    Of a text it keeps hashes alone. What was unused for longest is forgotten first.
    """

    def __init__(self, share: float) -> None:
        """share: of a source's documents; above 0."""
        self._share = share
        self._sources: Generations[str, _Source] = Generations(_SOURCES)
        self._seen: Generations[tuple[str, int], _Sentence] = Generations(MAX_SENTENCES)
        self.left_out = 0
        """Sentences left out so far."""

    def without(self, source: str, sentences: Sequence[str]) -> list[str]:
        """The sentences of a document of a source, in order, without what the site repeats."""
        site = self._sources.get(source)
        if site is None:
            site = _Source()
            self._sources.put(source, site)
        new = total = 0
        known: dict[int, _Sentence] = {}
        parts = [part for sentence in sentences for part in self._parts(source, site, sentence)]
        for text, mark in parts:
            total += len(text)
            seen = self._seen.get((source, mark)) if mark else None
            if seen is None:
                new += len(text)
                if mark:
                    seen = _Sentence(site.read)
                    self._seen.put((source, mark), seen)
            if seen is not None:
                known[mark] = seen
        site.read += 1
        if new >= _FRESH * total:
            for seen in known.values():
                seen.count += 1
        repeated = {mark for mark, seen in known.items() if self._is_repeated(seen, site.read)}
        own = [text for text, mark in parts if mark not in repeated]
        for text, mark in parts if repeated else ():
            if mark in repeated and len(site.lengths) < LENGTHS:
                site.lengths.add(len(text))
        self.left_out += len(parts) - len(own)
        return own

    def _parts(self, source: str, site: _Source, sentence: str) -> Iterator[tuple[str, int]]:
        """A sentence, or boilerplate in it and the rest, with marks; 0 of what is too short."""
        for length in sorted(site.lengths, reverse=True):
            for own, rest in (
                (sentence[-length:], sentence[:-length].rstrip()),
                (sentence[:length], sentence[length:].lstrip()),
            ):
                if not rest or own != own.strip():
                    continue
                seen = self._seen.get((source, hash(own)))
                if seen is not None and self._is_repeated(seen, site.read):
                    yield rest, _mark(rest)
                    yield own, hash(own)
                    return
        yield sentence, _mark(sentence)

    def _is_repeated(self, seen: _Sentence, read: int) -> bool:
        return seen.count >= max(MIN_REPEATS, self._share * (read - seen.first))


def _mark(sentence: str) -> int:
    """What a sentence is remembered by; 0 of one that is too short to be boilerplate."""
    return hash(sentence) if sentence.count(" ") + 1 >= MIN_SENTENCE_WORDS else 0


log = logging.getLogger(__name__)


class VocabularyStatistics:
    """Counts documents, tokens, distinct and new words over blocks, in bounded memory.

    `capacity` words are remembered; one that was not seen for about that many distinct words counts
    as new again, so `distinct` is exact below `capacity` / 2 and an upper estimate above.
    """

    def __init__(self, capacity: int) -> None:
        self._seen: Generations[str, bool] = Generations(capacity)
        names = ("documents", "empty_documents", "sentences", "tokens", "distinct_words")
        self.counts = dict.fromkeys(names, 0)
        self._unseen = 0
        self._recent = 0.0

    def update(self, block: TokenBlock) -> None:
        occurrences = np.bincount(block.codes, minlength=len(block.words))
        new = []
        for code, word in enumerate(block.words):
            if not self._seen.get(word):
                self._seen.put(word, True)
                new.append(code)
        unseen = int(occurrences[new].sum())
        self._unseen += unseen
        for name, n in (
            ("documents", block.n_documents),
            ("empty_documents", int((np.diff(block.documents) == 0).sum())),
            ("sentences", len(block.sentences) - 1),
            ("tokens", block.n_tokens),
            ("distinct_words", len(new)),
        ):
            self.counts[name] += n
        if block.n_tokens:
            share = unseen / block.n_tokens
            self._recent = share if not self._recent else 0.9 * self._recent + 0.1 * share

    def to_dict(self) -> dict[str, float]:
        """JSON-safe: documents (and those without a word), sentences, tokens, distinct words,
        `oov_share` (tokens of words not met before in their block's past, over all tokens) and
        `oov_recent` (the same, moving average over about ten blocks)."""
        share = self._unseen / self.counts["tokens"] if self.counts["tokens"] else 0.0
        return {**self.counts, "oov_share": share, "oov_recent": self._recent}


class TextPipeline:
    """Turns documents into token blocks; keeps nothing of their text.

    One instance a process, used by one thread at a time. With `tokenizer = "auto"` a document is
    analysed as Korean when enough of its letters are Hangul, and by script otherwise.
    Raises ConfigError when the tokenizer that was asked for cannot run.
    """

    def __init__(self, config: TextConfig) -> None:
        self._config = config
        self._tokenizer = make_tokenizer(config)
        self._script: Tokenizer = ScriptTokenizer(config)
        finds = config.phrases and isinstance(self._tokenizer, KiwiTokenizer)
        self._phrases = Phrases(config) if finds else None
        self._boilerplate = Boilerplate(config.boilerplate) if config.boilerplate else None
        self.statistics = VocabularyStatistics(config.statistics_words)
        self.masked: Counter[str] = Counter()
        self.left_out: dict[str, str] = {}
        """Reasons by keys of documents of the latest block that could not be prepared."""
        self.digest = self._make_digest()

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def morphemes(self) -> int:
        """Units analysed so far, kept or not."""
        tokenizers = {id(cutter): cutter for cutter in (self._tokenizer, self._script)}
        return sum(cutter.morphemes for cutter in tokenizers.values())

    def block(
        self,
        documents: Sequence[Document],
        available: Sequence[float],
        *,
        before: Callable[[int, int], None] = lambda *_: None,
    ) -> TokenBlock:
        """One block of the documents of one source.

        `available` is the wall time (Unix seconds) at which each could first be fetched. A document
        without a word keeps its key, with no sentence, so that it can be acknowledged; one whose
        text raises is such a document, and is named in `left_out`. `before` is called with the
        number of each document and its characters before it is read, and with -1 and all characters
        before the rest. Raises InputError for no documents, documents of several sources, or the
        wrong number of times.
        """
        sources = {document.source for document in documents}
        if len(sources) != 1 or len(available) != len(documents):
            raise InputError(
                f"a token block takes the documents of one source and a time for each; "
                f"got {len(documents)} documents of {len(sources)} sources, {len(available)} times."
            )
        source, keys = documents[0].source, [document.url for document in documents]
        who = voices(source, [document.author for document in documents], keys)
        published = [document.published_at.timestamp() for document in documents]
        taken: list[Phrase] = []
        if isinstance(self._tokenizer, KiwiTokenizer):
            taken = self._tokenizer.renew(min(published))
        self.left_out = {}
        passages = []
        for number, document in enumerate(documents):
            before(number, len(document.text) + len(document.title))
            passages.append(self._sentences(document))
        before(-1, sum(len(document.text) for document in documents))
        joined: tuple[Phrase, ...] = ()
        if self._phrases is not None:
            wrote = contributors(who, source, self._config.unknown_authors)
            sentences, joined = self._phrases.read(passages, wrote, published)
        else:
            sentences = [[passage.words for passage in document] for document in passages]
        block = TokenBlock.build(
            source,
            sentences,
            published=published,
            available=available,
            fetched=[document.fetched_at.timestamp() for document in documents],
            keys=keys,
            tokenizer_digest=self.digest,
        )
        texts = [f"{document.title}{document.text}" for document in documents]
        block = replace(
            block,
            voices=who,
            contents=contents(texts, published),
            phrases=(*(word for word in taken if len(word.parts) > 1), *joined),
            inline=np.array([document.inline for document in documents], dtype=np.int8),
        )
        self.statistics.update(block)
        return block

    def rest(self) -> None:
        """Give the memory of the analyser back until the next block; what was learnt stays."""
        if isinstance(self._tokenizer, KiwiTokenizer):
            self._tokenizer.rest()

    def words(self, text: str, language: str | None = None) -> list[list[str]]:
        """Sentences of words of one text; sentences without a word are left out.

        Phrases and what a site repeats are found in blocks alone: here parts stay apart, and
        nothing is left out.
        """
        return [passage.words for passage in self._passages(text, language)]

    def _passages(
        self, text: str, language: str | None, source: str | None = None
    ) -> list[Passage]:
        """Sentences of one text that hold a word, of a source without what it repeats."""
        config = self._config
        clean = normalise(text, run_length=config.run_length, emoji=config.emoji)
        if config.mask:
            result = mask(clean)
            clean = result.text
            self.masked.update(result.counts)
        sentences = split_sentences(clean)
        if source is not None and self._boilerplate is not None:
            sentences = self._boilerplate.without(source, sentences)
        if not sentences:
            return []
        passages = self._tokenize(sentences, clean, language)
        return [passage for passage in passages if passage.words]

    def _tokenize(self, sentences: list[str], text: str, language: str | None) -> list[Passage]:
        if self._config.tokenizer != AUTO_TOKENIZER:
            return _passages(self._tokenizer, sentences)
        if not is_korean(text, language):
            return _passages(self._script, sentences)
        try:
            return _passages(self._tokenizer, sentences)
        except ConfigError as error:
            log.warning("%s Korean text is cut into words by script instead.", error)
            self._tokenizer = self._script
            self.digest = self._make_digest()
            return _passages(self._script, sentences)

    def report(self) -> dict[str, object]:
        """JSON-safe counters: vocabulary statistics, morphemes, what was masked by kind."""
        kiwi, phrases = self._tokenizer, self._phrases
        return {
            **self.statistics.to_dict(),
            "morphemes": self.morphemes,
            "tokenizer": self._tokenizer.name,
            "masked": dict(self.masked),
            "boilerplate": 0 if self._boilerplate is None else self._boilerplate.left_out,
            **(kiwi.figures() if isinstance(kiwi, KiwiTokenizer) else {}),
            **({"phrases": phrases.found, "phrase_bytes": phrases.memory} if phrases else {}),
        }

    def _sentences(self, document: Document) -> list[Passage]:
        text = f"{document.title}\n{document.text}" if document.title else document.text
        try:
            return self._passages(text, document.language, document.source)
        except (ConfigError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001  (what a text provokes is that text's failure)
            # Its words might quote the text.
            self.left_out[document.url] = f"preparing it raised {type(error).__name__}"
            return []

    def _make_digest(self) -> str:
        config = self._config
        parts: tuple[object, ...] = (
            self._tokenizer.digest,
            self._script.digest if config.tokenizer == AUTO_TOKENIZER else "",
            NORMALISER_VERSION,
            MASK_VERSION if config.mask else "",
            config.run_length,
            config.emoji,
        )
        if self._phrases is not None:
            # What decides which are found: those found are named by snapshots themselves.
            rule = (config.phrase_voices, config.phrase_npmi, config.unknown_authors)
            parts = (*parts, PHRASES_VERSION, config.phrases, *rule)
        if self._boilerplate is not None:
            parts = (*parts, BOILERPLATE_VERSION, config.boilerplate)
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def _passages(tokenizer: Tokenizer, sentences: list[str]) -> list[Passage]:
    """Sentences as passages; only Kiwi says which words touch."""
    if isinstance(tokenizer, KiwiTokenizer):
        return tokenizer.passages(sentences)
    return [Passage(words) for words in tokenizer.tokenize(sentences)]
