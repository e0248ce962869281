"""Documents as row ids: what a node remembers of a window, and what it tells of that.

The nodes of one corpus leave a window one after another, and each hands over what it remembers of
it and of those before. The last one is given what all of them remember. Only the text of a corpus
travels so, which every node may read anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embedding.exchange.headers import COUNT, INTEGER, STRING, rows
from embedding.exchange.payload import UNITS
from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.positions import ranges
from embedding.kernel.records import CodeArray, IntArray

LEAVE_WINDOW = "leave_window"
PastWindows = Mapping[int, Sequence["PastDocuments"]]
"""Documents by window (Unix seconds of its start)."""
END = 2**40
"""Behind all windows, and as far before 1970 as any may start (Unix seconds)."""
TOKEN_BYTES = 16
"""What a remembered token takes in a message at most, with its sentence and document."""
_MOST_PARTS = 100_000
"""Windows and sources in a message."""


@dataclass(frozen=True)
class PastDocuments:
    """Documents of one source.

    ids        int32 [n], the row id of each token, -1 for none
    sentences  int64 [m + 1], token offsets of sentences
    documents  int64 [d + 1], sentence offsets of documents
    units      int64 [d], the unit (0 to UNITS - 1) that each document belongs to
    voices     int64 [d], alike for documents of one author; below 0 where that is unknown
    numbers    int64 [d], the line of its corpus that each document is, or a number by its address
    life       mark of the dead process that had learnt it; it does not travel
    """

    source: str
    ids: CodeArray
    sentences: IntArray
    documents: IntArray
    units: IntArray
    voices: IntArray
    numbers: IntArray
    life: str = ""

    def take(self, which: IntArray) -> PastDocuments:
        """Some of the documents, int64 [k], in this order."""
        ends = self.documents[which + 1]
        sentences, documents = _gathered(self.documents[which], ends)
        starts, stops = self.sentences[sentences], self.sentences[sentences + 1]
        tokens, offsets = _gathered(starts, stops)
        return PastDocuments(
            *(self.source, self.ids[tokens], offsets, documents),
            *(self.units[which], self.voices[which], self.numbers[which], self.life),
        )


def of_corpus(parts: Sequence[PastDocuments]) -> list[PastDocuments]:
    """Documents of several nodes, a stretch for each source, in the order of their lines."""
    sources: dict[str, list[PastDocuments]] = {}
    for part in parts:
        sources.setdefault(part.source, []).append(part)
    found = [joined(each) for _, each in sorted(sources.items())]
    return [each.take(np.argsort(each.numbers, kind="stable")) for each in found]


def joined(parts: Sequence[PastDocuments]) -> PastDocuments:
    """Documents of several stretches (at least one) behind each other, as of the first source."""
    ids = np.concatenate([part.ids for part in parts])
    units, voices, numbers = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("units", "voices", "numbers")
    )
    sentences = _behind([part.sentences for part in parts])
    documents = _behind([part.documents for part in parts])
    return PastDocuments(parts[0].source, ids, sentences, documents, units, voices, numbers)


def written(windows: PastWindows) -> tuple[list[list[object]], dict[str, Array]]:
    """Header and arrays of a message: documents of all windows behind each other."""
    parts = [(window, part) for window, held in sorted(windows.items()) for part in held]
    header: list[list[object]] = [
        [window, part.source, len(part.units), len(part.sentences) - 1, len(part.ids)]
        for window, part in parts
    ]
    if not parts:
        return header, {}
    documents = [np.stack([p.units, p.voices, p.numbers, np.diff(p.documents)]) for _, p in parts]
    return header, {
        "past_ids": np.concatenate([part.ids for _, part in parts]).astype(np.int32),
        "past_sentences": np.concatenate([np.diff(part.sentences) for _, part in parts]),
        "past_documents": np.concatenate(documents, axis=1).astype(np.int64),
    }


def read(message: Message) -> dict[int, list[PastDocuments]]:
    """Inverse of `written`; RefusedError for what are no documents."""
    fields = {
        "window": INTEGER,
        "source": STRING,
        "documents": COUNT,
        "sentences": COUNT,
        "tokens": COUNT,
    }
    described = rows(
        message.header.get("past", []), "past", fields, most=_MOST_PARTS, of=LEAVE_WINDOW
    )
    found: dict[int, list[PastDocuments]] = {}
    if not described:
        return found
    ids = message.array("past_ids", "i4", 1)
    lengths = message.array("past_sentences", "i8", 1)
    columns = message.array("past_documents", "i8", 2)
    sizes = [sum(row[at] for row in described) for at in (2, 3, 4)]
    if sizes != [columns.shape[1], len(lengths), len(ids)] or len(columns) != 4:
        raise RefusedError(
            f"{LEAVE_WINDOW}: the columns of `past` are of other lengths than it says."
        )
    units = columns[0]
    if bool((ids < -1).any()) or bool((units < 0).any()) or bool((units >= UNITS).any()):
        raise RefusedError(
            f"{LEAVE_WINDOW}: `past` has row ids below -1, or units outside 0 to 15."
        )
    document = sentence = token = 0
    for window, source, d, m, n in described:
        units, voices, numbers, wide = columns[:, document : document + d]
        part = PastDocuments(
            source,
            ids[token : token + n],
            _offsets(lengths[sentence : sentence + m], n),
            _offsets(wide, m),
            *(units, voices, numbers),
        )
        found.setdefault(window, []).append(part)
        document, sentence, token = document + d, sentence + m, token + n
    return found


def _offsets(lengths: IntArray, total: int) -> IntArray:
    if bool((lengths < 0).any()) or int(lengths.sum()) != total:
        raise RefusedError(f"{LEAVE_WINDOW}: lengths in `past` do not add up.")
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _behind(offsets: Sequence[IntArray]) -> IntArray:
    """Offsets of several lists as offsets of one."""
    lengths = [np.diff(each) for each in offsets]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])


def _gathered(starts: IntArray, stops: IntArray) -> tuple[IntArray, IntArray]:
    """The places of several ranges behind each other, int64 [n], and their offsets [k + 1]."""
    lengths = stops - starts
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return ranges(starts, lengths), offsets
