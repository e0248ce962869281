"""A tokenizer: what stands between blanks, in lower case."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from embedding.text.config import TextConfig
from embedding.text.tokenizers import TOKENIZERS, TokenizerTraits


@TOKENIZERS.register("outside-words", TokenizerTraits(always_runs=True))
class LowerCase:
    name = "outside-words"

    def __init__(self, config: TextConfig) -> None:
        self._least, self._most = config.min_length, config.max_length
        settings = f"{self.name} {self._least} {self._most}"
        self.digest = hashlib.sha256(settings.encode()).hexdigest()
        self.morphemes = 0

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        return [self._words(sentence.lower().split()) for sentence in sentences]

    def _words(self, words: list[str]) -> list[str]:
        self.morphemes += len(words)
        return [word for word in words if self._least <= len(word) <= self._most]
