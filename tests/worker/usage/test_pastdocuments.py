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


def test_one_document_stands_before_another_whichever_others_there_are():
    """The copy of a passage that counts is the same where a document is missing, or read later."""
    every, some = documents("s", *range(40)), documents("s", *range(3, 40, 3))
    for window in (0, 86_400, -86_400):
        order = every.numbers[every.chance_order(window)].tolist()
        assert sorted(order) == list(range(40))
        left = some.numbers[some.chance_order(window)].tolist()
        assert [number for number in order if number in left] == left
    orders = {tuple(every.chance_order(window).tolist()) for window in range(0, 864_000, 86_400)}
    assert len(orders) == 10, "another one in each window"
