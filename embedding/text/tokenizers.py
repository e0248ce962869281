"""What tokenizers declare of themselves, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedding.kernel.registry import Registry

if TYPE_CHECKING:
    from embedding.text.config import TextConfig
    from embedding.text.tokenizer import Tokenizer

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
        """Why these traits cannot all be; empty where they can."""
        return ""


TOKENIZERS: Registry[Callable[[TextConfig], Tokenizer], TokenizerTraits] = Registry(
    "tokenizer", "yeoron.tokenizers", "embedding.text", "TOKENIZERS"
)
"""All tokenizers: those built in, and those of other packages."""


def check_tokenizer(name: str) -> str:
    """The name; ValueError, for a validator of settings, names the accepted ones."""
    return AUTO_TOKENIZER if name == AUTO_TOKENIZER else TOKENIZERS.check(name)


def as_written(name: str) -> bool:
    """Whether the words of this choice are what stands between blanks."""
    return name != AUTO_TOKENIZER and TOKENIZERS.traits(name).as_written
