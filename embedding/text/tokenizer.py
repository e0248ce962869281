"""What a tokenizer is, and how to get one by name."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from embedding.kernel.errors import ConfigError
from embedding.text.config import TextConfig
from embedding.text.tokenizers import AUTO_TOKENIZER, TOKENIZERS

log = logging.getLogger(__name__)


@runtime_checkable
class Tokenizer(Protocol):
    """Turns normalised, masked sentences into words."""

    name: str

    @property
    def digest(self) -> str:
        """Names everything that decides the words: program, model, dictionary, settings."""

    @property
    def morphemes(self) -> int:
        """Units analysed so far, kept or not (for rates)."""

    def renew(self) -> bool:
        """Between two blocks: take in what was found of new words; whether the digest changed."""

    def tokenize(self, sentences: Sequence[str]) -> list[list[str]]:
        """Words of each sentence, one list a sentence, empty where nothing is kept.

        Neutral tokens such as `<phone>` come out whole.
        """


def make_tokenizer(config: TextConfig) -> Tokenizer:
    """The tokenizer for Korean text that `config` names (`auto`: Kiwi, or by script without it).

    Raises ConfigError when a tokenizer was asked for by name and cannot run.
    """
    if config.tokenizer != AUTO_TOKENIZER:
        return TOKENIZERS.get(config.tokenizer)(config)
    try:
        return TOKENIZERS.get("kiwi")(config)
    except ConfigError as error:
        log.warning("%s Korean text is cut into words by script instead.", error)
        return TOKENIZERS.get("script")(config)
