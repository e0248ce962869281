"""The documents of a corpus laid out over the parts of the simulated web, in event order."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from yeoron_simweb.config import PARTS
from yeoron_simweb.corpus import CorpusDocument

_DAY = 86400.0
_ADJECTIVES = ("푸른", "느린", "작은", "고요한", "둥근", "빠른", "수줍은", "맑은", "늦은", "든든한")
_ANIMALS = ("고래", "두루미", "너구리", "다람쥐", "거북", "참새", "수달", "제비", "여우", "부엉이")


@dataclass(frozen=True, slots=True)
class LibraryItem:
    """A document with its place: `event` is its event time (Unix seconds), `rank` its position in
    event order among all items and `number` that among the items of its part (from 0), `id`
    stable from run to run; `titled` says that the corpus gave the title."""

    id: str
    part: str
    rank: int
    number: int
    event: float
    title: str
    text: str
    category: str
    author: str
    titled: bool

    @property
    def moment(self) -> datetime:
        """Event time as datetime (UTC, whole seconds)."""
        return datetime.fromtimestamp(int(self.event), UTC)

    @property
    def iso(self) -> str:
        return self.moment.isoformat()


@dataclass(frozen=True)
class Library:
    """All items in event order, by part, and by id."""

    items: tuple[LibraryItem, ...]
    parts: dict[str, tuple[LibraryItem, ...]]
    by_id: dict[str, LibraryItem]

    @classmethod
    def build(cls, documents: Sequence[CorpusDocument], shares: dict[str, float]) -> Library:
        """Give each document an id, a part and a moment, all deterministic."""
        items: list[LibraryItem] = []
        parts: dict[str, list[LibraryItem]] = {part: [] for part in PARTS}
        copies: Counter[str] = Counter()
        for event, document in spread(documents):
            key = f"{document.when:%Y-%m-%d}\n{document.title}\n{document.text}"
            copies[key] += 1
            digest = hashlib.blake2b(f"{key}\n{copies[key]}".encode(), digest_size=16).digest()
            part = document.part or share_out(digest, shares)
            item = LibraryItem(
                id=digest[:8].hex(),
                part=part,
                rank=len(items),
                number=len(parts[part]),
                event=event,
                title=document.title or shortened(document.text.partition("\n")[0], 30),
                text=document.text,
                category=document.category,
                author=document.author or handle(digest),
                titled=bool(document.title),
            )
            parts[part].append(item)
            items.append(item)
        return cls(tuple(items), {p: tuple(i) for p, i in parts.items()}, {i.id: i for i in items})


def share_out(digest: bytes, shares: dict[str, float]) -> str:
    """The part of a document with this digest, by weight."""
    weights = [(part, shares.get(part, 0.0)) for part in PARTS]
    at = int.from_bytes(digest[8:14]) / 2**48 * sum(weight for _, weight in weights)
    for part, weight in weights:
        at -= weight
        if at < 0:
            return part
    return next(part for part, weight in reversed(weights) if weight > 0)


def spread(documents: Sequence[CorpusDocument]) -> list[tuple[float, CorpusDocument]]:
    """Documents with strictly increasing event times, in that order.

    A document with a time of day keeps it (to the millisecond); those of a day that have only a
    date keep their order and stand at even distances between midnight and midnight (UTC).
    """
    days = Counter(d.when.date() for d in documents if not d.timed)
    placed: Counter[object] = Counter()
    timed: list[tuple[float, CorpusDocument]] = []
    for document in documents:
        moment = document.when.timestamp()
        if not document.timed:
            day = document.when.date()
            moment += _DAY * (placed[day] + 0.5) / days[day]
            placed[day] += 1
        timed.append((moment, document))
    timed.sort(key=lambda pair: pair[0])
    last = float("-inf")
    strict: list[tuple[float, CorpusDocument]] = []
    for moment, document in timed:
        last = max(moment, last + 1e-3)
        strict.append((last, document))
    return strict


def shortened(text: str, most: int) -> str:
    """A text in one line of `most` characters at most."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def handle(digest: bytes) -> str:
    """A made-up name of an author."""
    adjective = _ADJECTIVES[digest[14] % len(_ADJECTIVES)]
    return f"{adjective}{_ANIMALS[digest[15] % len(_ANIMALS)]}{digest[13] % 90 + 10}"
