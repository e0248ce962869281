"""Remembered documents, in the order of their corpus."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from embedding.exchange.payload import UNITS
from embedding.worker.usage.past import PastDocuments, of_corpus


def documents(source: str, *lines: int) -> PastDocuments:
    """Each of two sentences, whose tokens are its line and its length."""
    sizes = [1 + line % 3 for line in lines]
    ids = [token for line, n in zip(lines, sizes, strict=True) for token in (line, *[n] * n)]
    ends = np.cumsum([0, *(length for n in sizes for length in (1, n))])
    numbers = np.array(lines, dtype=np.int64)
    return PastDocuments(
        source,
        np.array(ids, dtype=np.int32),
        ends,
        2 * np.arange(len(lines) + 1),
        numbers % UNITS,
        -1 - numbers,
        numbers,
    )


def same(one: PastDocuments, other: PastDocuments) -> bool:
    return all(
        np.array_equal(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)
    )


def test_documents_of_several_stretches_come_in_the_order_of_their_lines():
    parts = [documents("s", 1, 5), documents("t", 4), documents("s", 0, 3)]
    whole = [documents("s", 0, 1, 3, 5), documents("t", 4)]
    assert all(same(*pair) for pair in zip(of_corpus(parts), whole, strict=True))


def test_a_part_can_be_taken():
    whole = documents("s", 0, 1, 2, 3)
    assert same(whole.take(np.array([1, 3])), documents("s", 1, 3))
    assert not same(whole, replace(whole, source="t"))
