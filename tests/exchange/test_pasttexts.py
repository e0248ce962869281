"""Remembered documents as a message, and in the order of their corpus."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from embedding.exchange.pasttexts import PastDocuments, of_corpus, read, written
from embedding.exchange.payload import UNITS
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError


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


def test_documents_travel_whole():
    windows = {-5: [documents("s", 3, 4)], 7: [documents("s", 9), documents("t", 1, 2, 8)]}
    header, arrays = written(windows)
    found = read(Message({"past": header}, arrays))
    assert sorted(found) == [-5, 7]
    for window, parts in windows.items():
        assert all(same(*pair) for pair in zip(found[window], parts, strict=True))
    assert read(Message({"past": []})) == {}


def test_documents_of_several_nodes_come_in_the_order_of_their_lines():
    parts = [documents("s", 1, 5), documents("t", 4), documents("s", 0, 3)]
    whole = [documents("s", 0, 1, 3, 5), documents("t", 4)]
    assert all(same(*pair) for pair in zip(of_corpus(parts), whole, strict=True))


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header[0].__setitem__(4, 1),
        lambda header, arrays: header[0].__setitem__(0, "x"),
        lambda header, arrays: header[0].pop(),
        lambda header, arrays: arrays["past_ids"].__setitem__(0, -2),
        lambda header, arrays: arrays["past_documents"].__setitem__((0, 0), UNITS),
        lambda header, arrays: arrays["past_documents"].__setitem__((3, 0), 3),
        lambda header, arrays: arrays["past_sentences"].__setitem__(slice(2), [-1, 99]),
        lambda header, arrays: arrays.pop("past_documents"),
        lambda header, arrays: arrays.update(past_documents=arrays["past_documents"][:3]),
    ],
)
def test_what_are_no_documents_is_refused(change):
    header, arrays = written({0: [documents("s", 3, 4)]})
    change(header, arrays)
    with pytest.raises(RefusedError):
        read(Message({"op": "leave_window", "past": header}, arrays))


def test_a_part_can_be_taken():
    whole = documents("s", 0, 1, 2, 3)
    assert same(whole.take(np.array([1, 3])), documents("s", 1, 3))
    assert not same(whole, replace(whole, source="t"))
