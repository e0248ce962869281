from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from embedding.kernel.records import TokenBlock
from embedding.stream.queue import BlockQueue


@pytest.fixture
def block() -> Callable[..., TokenBlock]:
    """Make a block of `tokens` tokens in one document named `key`."""

    def make(tokens: int = 10, key: str = "https://a.example/1") -> TokenBlock:
        words = [f"낱말{i % 7}" for i in range(tokens)]
        return TokenBlock.build("news", [[words] if words else []], published=[1.0], keys=[key])

    return make


@pytest.fixture
def pair() -> Iterator[tuple[BlockQueue, BlockQueue]]:
    """Both ends of a queue of 100 tokens, in this process."""
    crawler, gradient = BlockQueue.pair(100)
    yield crawler, gradient
    crawler.close()
    gradient.close()
