"""What tokenizers declare of themselves, and the registry of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from embedding.kernel.errors import ConfigError
from embedding.kernel.registry import Registry

if TYPE_CHECKING:
    from embedding.text.config import TextConfig

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


AUTO_TOKENIZER = "auto"
"""The choice of Kiwi for Korean, and of words by script for the rest."""


@dataclass(frozen=True, kw_only=True)
class TokenizerTraits:
    """What a tokenizer does."""

    as_written: bool = False
    """Its words are what stands between blanks: text that is not masked needs no pipeline."""

    always_runs: bool = False
    """It can be made wherever Yeoron is installed. Without it one is made before a training
    begins, so that what is missing is told at once."""

    def contradiction(self) -> str:
        return ""


TOKENIZERS: Registry[Callable[[TextConfig], Tokenizer], TokenizerTraits] = Registry(
    "tokenizer",
    "yeoron.tokenizers",
    {
        "kiwi": "embedding.text.kiwi",
        "script": "embedding.text.pipeline",
        "whitespace": "embedding.text.pipeline",
    },
)
"""All tokenizers: those built in, and those of other packages."""


def check_tokenizer(name: str) -> str:
    """The name; ValueError, for a validator of settings, names the accepted ones."""
    return AUTO_TOKENIZER if name == AUTO_TOKENIZER else TOKENIZERS.check(name)


def as_written(name: str) -> bool:
    """Whether the words of this choice are what stands between blanks."""
    return name != AUTO_TOKENIZER and TOKENIZERS.traits(name).as_written
