"""Remembered documents, in the order of their corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from embedding.exchange.payload import UNITS
from embedding.kernel.records import Calendar, Document, TokenBlock, WindowUnit
from embedding.sources.base import Pseudonyms
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from embedding.worker.usage.past import PastDocuments, PastTexts, of_corpus


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


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MARCH = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
AUTHORS = ["김", "이", "", "박", "김", "", "최", "정"] * 8


def remembered(documents: Sequence[Document]) -> PastDocuments:
    block = TextPipeline(TextConfig(tokenizer="whitespace")).block(
        documents, [0.0] * len(documents)
    )
    past = PastTexts(Calendar(WindowUnit.MONTH), 10_000, 2)
    past.add([block], [np.arange(len(block.words))])
    (found,) = of_corpus(past.of_window(MARCH))
    return found


def written(at: int, url: str, author: str | None, title: str, text: str) -> Document:
    return Document(url, "s", text, NOON + timedelta(minutes=at % 30), NOON, title, author)


def test_units_and_order_are_those_of_the_documents_however_they_were_found():
    """A file and two crawls, whose keys of pseudonyms differ: other addresses, other blanks."""
    file = [
        written(at, f"corpus#{at + 1}", name or None, "", f"제목 {at}\n글은 이렇다, {at % 5}")
        for at, name in enumerate(AUTHORS)
    ]
    crawls = [
        [
            written(
                at,
                f"https://{key}.example/{at}",
                Pseudonyms(key.encode()).grouped("s", name),
                f"제목 {at}",
                f"  글은 이렇다,  {at % 5}",
            )
            for at, name in reversed(list(enumerate(AUTHORS)))
        ]
        for key in ("one", "other")
    ]
    whole, *found = map(remembered, (file, *crawls))
    assert len(set(whole.units.tolist())) > 8
    for other in found:
        assert np.array_equal(other.units, whole.units)
        assert np.array_equal(other.numbers, whole.numbers)
    assert not np.array_equal(found[0].voices, found[1].voices), "who wrote it stays hidden"


def test_the_same_text_at_another_time_is_another_document():
    """Else the oldest copy of a passage would always count."""
    texts = [written(at, f"corpus#{at + 1}", None, "", "같은 글이 또 왔다") for at in range(30)]
    assert len(set(remembered(texts).numbers.tolist())) == 30


def test_plain_lines_are_numbered_by_words_and_time_wherever_they_stand():
    """Nothing else is read of them: a file in another order is the same."""
    texts = [[["하나", "둘", f"말{at % 9}"]] for at in range(40)]
    times = [NOON.timestamp() + at % 10 for at in range(40)]

    def units(order: Sequence[int]) -> list[tuple[int, int]]:
        block = TokenBlock.build(
            "s",
            [texts[at] for at in order],
            published=[times[at] for at in order],
            keys=[f"corpus#{line + 1}" for line in range(40)],
        )
        past = PastTexts(Calendar(WindowUnit.MONTH), 10_000, 2)
        past.add([block], [np.arange(len(block.words))])
        (found,) = past.of_window(MARCH)
        return sorted(zip(found.numbers.tolist(), found.units.tolist(), strict=True))

    assert units(range(40)) == units(range(39, -1, -1))
    assert len({number for number, _ in units(range(40))}) == len(
        {(at % 9, at % 10) for at in range(40)}
    )
