"""Tokenizers that need no dictionary: words by script, and words as they stand."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from embedding.text.config import TextConfig
from embedding.text.tokenizers import TOKENIZERS, TokenizerTraits

_UNSPACED = (
    r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_PIECE = re.compile(
    rf"<[a-z]+>|(?P<run>[{_UNSPACED}]+)"
    rf"|(?P<word>(?:(?![{_UNSPACED}])[^\W\d_])+(?:['’-](?:(?![{_UNSPACED}])[^\W\d_])+)*)"
    r"|[ㄱ-ㅎㅏ-ㅣ]+|[\U0001f1e6-\U0001f1ff]{2}|[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff]"
)


def _digest(name: str, config: TextConfig, version: str) -> str:
    text = f"{name} {version} {config.min_length} {config.max_length}"
    return hashlib.sha256(text.encode()).hexdigest()


@TOKENIZERS.register("script", TokenizerTraits(always_runs=True))
class ScriptTokenizer:
    """Words by script, for any language.

    Letters that belong together are a word, in lower case, with inner apostrophes and hyphens.
    Scripts written without spaces (Han, kana, Thai, Lao, Burmese, Khmer) give overlapping pairs of
    characters, which need no dictionary. Digits and punctuation are dropped, emoji kept.
    """

    name = "script"

    def __init__(self, config: TextConfig) -> None:
        self._least, self._most = config.min_length, config.max_length
        self.digest = _digest(self.name, config, "1")
        self.morphemes = 0

    def renew(self) -> bool:
        """Nothing is found here."""
        return False

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        """Words of each sentence."""
        return [self._words(sentence) for sentence in sentences]

    def _words(self, sentence: str) -> list[str]:
        words: list[str] = []
        for found in _PIECE.finditer(sentence):
            run = found["run"]
            if run is not None and len(run) > 1:
                words.extend(run[at : at + 2] for at in range(len(run) - 1))
            else:
                words.append(found[0].lower().replace("’", "'"))
        self.morphemes += len(words)
        return [word for word in words if self._least <= len(word) <= self._most]


@TOKENIZERS.register("whitespace", TokenizerTraits(as_written=True, always_runs=True))
class WhitespaceTokenizer:
    """Words as they stand between blanks: for text that was cut into words before."""

    name = "whitespace"

    def __init__(self, config: TextConfig) -> None:
        self._least, self._most = config.min_length, config.max_length
        self.digest = _digest(self.name, config, "1")
        self.morphemes = 0

    def renew(self) -> bool:
        """Nothing is found here."""
        return False

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        """Words of each sentence."""
        result: list[list[str]] = []
        for sentence in sentences:
            words = sentence.split()
            self.morphemes += len(words)
            result.append([word for word in words if self._least <= len(word) <= self._most])
        return result
