from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from embedding.kernel.records import Document
from embedding.text.config import TextConfig
from embedding.text.tokenizers import Tokenizer, make_tokenizer

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def document() -> Callable[..., Document]:
    """Make a document of the source `news`."""

    def make(text: str, url: str = "https://a.example/1", **fields: object) -> Document:
        when = datetime(2020, 2, 3, tzinfo=UTC)
        values = {"source": "news", "published_at": when, "fetched_at": when, **fields}
        return Document(url=url, text=text, **values)  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def kiwi() -> Tokenizer:
    """A tokenizer with a cache; Kiwi takes seconds to load, so it is shared."""
    return make_tokenizer(TextConfig(tokenizer="kiwi"))


@pytest.fixture(scope="session")
def plain() -> Tokenizer:
    """A tokenizer without a cache, over the same Kiwi."""
    return make_tokenizer(TextConfig(tokenizer="kiwi", cache_mb=0))
