"""MeCab-ko morphemes, where python-mecab-ko is installed: quicker than Kiwi, splits new words."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from collections.abc import Iterator, Sequence
from typing import Any

from embedding.kernel.errors import ConfigError
from embedding.text.config import TextConfig
from embedding.text.mask import NEUTRAL
from embedding.text.morphemes import MorphemePart, join, make_select
from embedding.text.tokenizers import TOKENIZERS, TokenizerTraits

_ANALYSER_VERSION = "2"


@TOKENIZERS.register("mecab", TokenizerTraits())
class MecabTokenizer:
    """Content words by MeCab-ko (python-mecab-ko), in the forms that the Kiwi tokenizer uses.

    A contraction (갔 is 가 and 았) is taken apart as its dictionary says, so that 갔다 and 가다 are
    one word; one-syllable nouns that touch are joined as for Kiwi.
    """

    name = "mecab"

    def __init__(self, config: TextConfig) -> None:
        try:
            self._mecab = importlib.import_module("mecab").MeCab()
            packages = ("python-mecab-ko", "python-mecab-ko-dic")
            versions = [importlib.metadata.version(package) for package in packages]
        except (ImportError, AttributeError, RuntimeError, OSError) as error:
            raise ConfigError(
                "tokenizer = 'mecab' needs python-mecab-ko, which is not installed or has no "
                "dictionary; install it (pip install yeoron[mecab]) or choose 'kiwi'."
            ) from error
        if config.user_words:
            raise ConfigError("user_words work with tokenizer = 'kiwi' only, not with 'mecab'.")
        self._select = make_select(config.keep_tags, config.min_length, config.max_length)
        parts = (
            _ANALYSER_VERSION,
            *versions,
            config.keep_tags,
            config.min_length,
            config.max_length,
        )
        self.digest = hashlib.sha256("\n".join(map(str, ("mecab", *parts))).encode()).hexdigest()
        self.morphemes = 0

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return [self._words(sentence) for sentence in sentences]

    def _words(self, sentence: str) -> list[str]:
        words: list[str] = []
        for piece, neutral in _split_neutral(sentence):
            if neutral:
                words.append(piece)
                continue
            morphemes = list(self._pieces(piece))
            self.morphemes += len(morphemes)
            for form, tag, _ in join(morphemes):
                word = self._select(form, tag)
                if word is not None:
                    words.append(word)
        return words

    def _pieces(self, text: str) -> Iterator[MorphemePart]:
        for morpheme in self._mecab.parse(text):
            start, length = morpheme.span.start, morpheme.span.end - morpheme.span.start
            for form, tag in _taken_apart(morpheme):
                yield MorphemePart(form, tag, start, length)
                start, length = start + length, 0  # what melts with the first has no place


def _taken_apart(morpheme: Any) -> list[tuple[str, str]]:
    """(form, tag) of a morpheme, or of each part of a contraction, as 가/VV/*+았/EP/*."""
    feature = morpheme.feature
    tag = feature.pos
    if tag == "UNKNOWN":
        tag = "UN" if morpheme.surface.isalnum() else "SW"
    elif tag == "SY":  # signs, emoji among them
        tag = "SW"
    if feature.type != "Inflect" or not feature.expression:
        return [(morpheme.surface, tag.partition("+")[0])]
    parts = (part.split("/") for part in feature.expression.split("+"))
    return [(part[0], part[1]) for part in parts if len(part) > 1]


def _split_neutral(text: str) -> Iterator[tuple[str, bool]]:
    """Pieces of `text` in order, each with whether it is a neutral token; blank ones left out."""
    last = 0
    for match in NEUTRAL.finditer(text):
        if text[last : match.start()].strip():
            yield text[last : match.start()], False
        yield match[0], True
        last = match.end()
    if text[last:].strip():
        yield text[last:], False
