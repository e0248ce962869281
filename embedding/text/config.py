"""Settings of the text room."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field, field_validator

from embedding.kernel.authors import AUTHOR_GROUPS, group_of
from embedding.kernel.config import Config
from embedding.kernel.records import IntArray
from embedding.text.morphemes import CONTENT_TAGS, MORPHEME_TAGS
from embedding.text.tokenizers import check_tokenizer

_NO_LETTERS = re.compile(r"\W+")

UnknownAuthors = Literal["one", "each"]


def voices(source: str, authors: Sequence[str | None], keys: Sequence[str]) -> IntArray:
    """A number for the author of each document, int64 [n]; the same for one author of a source.

    Modulo AUTHOR_GROUPS it is the author's `group_of`. A document whose author is unknown has a
    number of its own, by its key: below 0.
    """
    pairs = zip(authors, keys, strict=True)
    numbers = (
        _hashed(f"{source}\0a{who}") // AUTHOR_GROUPS * AUTHOR_GROUPS + group_of(who)
        if who
        else -1 - _hashed(f"{source}\0u{key}")
        for who, key in pairs
    )
    return np.fromiter(numbers, np.int64, len(keys))


def contents(texts: Sequence[str], published: Sequence[float]) -> IntArray:
    """A number for each text, int64 [n], not negative: by its letters and the second of its time.

    Alike for a document of a file and the same one of a crawl, at whatever address it was found.
    """
    pairs = zip(texts, published, strict=True)
    marks = (_hashed(f"{int(when)}\0{_NO_LETTERS.sub('', text)}") for text, when in pairs)
    return np.fromiter(marks, np.int64, len(texts))


def contributors(voices: IntArray, source: str, unknown: UnknownAuthors = "one") -> IntArray:
    """int64 [n]: who wrote documents of a source, as far as it is known who did.

    Nobody can say that unknown authors of a source were several: they are one, or each is another.
    """
    if unknown == "each":
        return voices
    writers: IntArray = np.where(voices < 0, -1 - _hashed(f"s{source}"), voices)
    return writers


def _hashed(text: str) -> int:
    """63 bits."""
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


TokenizerName = Annotated[str, AfterValidator(check_tokenizer)]
"""auto, or the name of a registered tokenizer."""


class TextConfig(Config):
    """How a document becomes words."""

    INTERNAL: ClassVar = frozenset(("new_words_every",))

    tokenizer: TokenizerName = "auto"
    """auto: Kiwi morphemes for Korean and words by script for the rest; or one for everything:
    kiwi, mecab (when python-mecab-ko is installed), script, whitespace (words as they stand), or
    one that another package adds (docs/extending.md)."""

    cache_mb: int = Field(default=256, ge=0)
    """Megabytes of analysed whitespace-delimited words and their parts kept in front of the
    morpheme analyser, in each text process; 0: no cache. Some 1,000 words a megabyte."""

    workers: int = Field(default=1, ge=1, le=64)
    """Threads of the morpheme analyser."""

    keep_tags: tuple[str, ...] = CONTENT_TAGS
    """Part-of-speech tags (Sejong tag set, as Kiwi names them) whose words are kept."""

    user_words: tuple[str, ...] = ()
    """Proper nouns to add to the morpheme analyser's dictionary."""

    new_words: int = Field(default=2_000, ge=0)
    """Most words that are added to the dictionary because the stream uses them as nouns, although
    Kiwi splits them; 0: none. Needs the cache: only words that it does not know are looked at."""

    new_words_every: int = Field(default=200_000, ge=100)
    """Whitespace-delimited words read between two looks for new words."""

    phrases: int = Field(default=20_000, ge=0)
    """Most phrases of several nouns that are joined to one word; those unused for longest are
    forgotten first. 0: none. Needs Kiwi, which says where a noun ends."""

    phrase_voices: int = Field(default=5, ge=2, le=100)
    """Authors who must have written a phrase before it is joined."""

    unknown_authors: UnknownAuthors = "one"
    """How texts without an author count towards the number of people who used a word or a phrase.
    one: all such texts of a source count as one author, as nobody can say that they were more; a
    word that only such sources use then needs as many sources as it needs authors
    (`server.min_authors`). each: every text counts as an author of its own; a name that stands in a
    few texts of one person then gets a row. Texts of a corpus file always count each."""

    boilerplate: float = Field(default=0.01, ge=0, le=1)
    """A sentence that a site repeats is left out where it stands in at least this share of the
    source's documents; 0: nothing is left out."""

    min_length: int = Field(default=1, ge=1)
    """Shorter words (in characters) are dropped."""

    mask: bool = True
    """Replace personal data by neutral tokens before anything else sees the text."""

    emoji: Literal["keep", "token", "drop"] = "keep"
    """keep: each emoji is a word of its own; token: all become `<emoji>`; drop."""

    # Constants: a file that sets one is refused.
    # Neighbours analysed with an eojeol that the cache does not know: fewer are quicker and agree
    # less with the analysis of whole sentences.
    context: ClassVar = "both"
    # How much the parts of a phrase keep together at least: normalised pointwise mutual
    # information, 0 by chance, 1 for parts that never stand alone.
    phrase_npmi: ClassVar = 0.3
    # Megabytes of nouns and of chains of nouns remembered for finding phrases, in each text
    # process. Some 2,000 chains a megabyte.
    phrase_mb: ClassVar = 32
    max_length: ClassVar = 40  # Longer words (in characters) are dropped: they are debris.
    run_length: ClassVar = 2  # ㅋㅋㅋㅋ, ㅠㅠㅠ, !!!! and the like are cut to this many characters.
    # Distinct words that the running vocabulary statistics remember.
    statistics_words: ClassVar = 500_000

    @field_validator("keep_tags")
    @classmethod
    def _known_tags(cls, tags: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(tags) - set(MORPHEME_TAGS))
        if unknown or not tags:
            raise ValueError(
                f"unknown tags {', '.join(unknown) or '(none given)'}; "
                f"accepted are {', '.join(MORPHEME_TAGS)}"
            )
        return tags

    @field_validator("user_words")
    @classmethod
    def _usable_words(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        for word in words:
            if not word.strip() or word != word.strip():
                raise ValueError(f"a user word must be a word without outer spaces, not {word!r}")
        return words
