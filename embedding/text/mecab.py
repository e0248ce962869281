"""MeCab-ko morphemes, where python-mecab-ko is installed: quicker than Kiwi, splits new words."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from collections.abc import Sequence

from embedding.errors import ConfigError
from embedding.text.config import TextConfig
from embedding.text.morphemes import make_select
from embedding.text.neutral import split_neutral


class MecabTokenizer:
    """Content words by MeCab-ko (python-mecab-ko), in the forms that the Kiwi tokenizer uses."""

    name = "mecab"

    def __init__(self, config: TextConfig) -> None:
        try:
            self._mecab = importlib.import_module("mecab").MeCab()
            version = importlib.metadata.version("python-mecab-ko")
        except (ImportError, AttributeError, RuntimeError, OSError) as error:
            raise ConfigError(
                "tokenizer = 'mecab' needs python-mecab-ko, which is not installed or has no "
                "dictionary; install it (pip install python-mecab-ko) or choose 'kiwi'."
            ) from error
        if config.user_words:
            raise ConfigError("user_words work with tokenizer = 'kiwi' only, not with 'mecab'.")
        self._select = make_select(config.keep_tags, config.min_length, config.max_length)
        text = f"mecab {version} {config.keep_tags} {config.min_length} {config.max_length}"
        self.digest = hashlib.sha256(text.encode()).hexdigest()
        self.morphemes = 0

    def renew(self) -> bool:
        """Nothing is found here."""
        return False

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        """Words of each sentence."""
        return [self._words(sentence) for sentence in sentences]

    def _words(self, sentence: str) -> list[str]:
        words: list[str] = []
        for piece, neutral in split_neutral(sentence):
            if neutral:
                words.append(piece)
                continue
            for form, tags in self._mecab.pos(piece):
                self.morphemes += 1
                # A contraction carries several tags (VV+EP); its first says what it is.
                word = self._select(form, tags.partition("+")[0])
                if word is not None:
                    words.append(word)
        return words
