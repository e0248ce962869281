"""A stream from its texts: what nodes count and read again, what a server adds up, snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from embedding.exchange.protocol import Push
from embedding.kernel.records import (
    COUNT_COLUMNS,
    Calendar,
    SnapshotData,
    TokenBlock,
    Window,
    WindowUnit,
    WordCounts,
)
from embedding.server.parts import PushArrival
from embedding.server.snapshotting.usage import usage_of
from embedding.server.words.usage import UsageSums, added_up
from embedding.snapshots.store import SnapshotStore
from embedding.worker.corpus.authors import Authors, mixed
from embedding.worker.corpus.counting import count_words
from embedding.worker.usage.past import PastTexts
from embedding.worker.usage.usage import UsageReader

DIM = 24
DAY = 86_400
FIRST = 18_000
TOPICS = [[f"{topic}{at}" for at in range(40)] for topic in "가나다라마바"]
COMMON = [f"말{at}" for at in range(60)]


@dataclass(frozen=True)
class Text:
    """A document: its words, who wrote it, where."""

    words: Sequence[str]
    author: int
    source: str = "게시판"


def usual(random: np.random.Generator, n: int, sources: Sequence[str] = ("게시판",)) -> list[Text]:
    """n documents of as many authors, each about one topic."""
    found = []
    for at in range(n):
        topic = TOPICS[random.integers(len(TOPICS))]
        words = [str(random.choice(topic if random.random() < 0.6 else COMMON)) for _ in range(14)]
        found.append(Text(words, int(random.integers(1 << 40)), sources[at % len(sources)]))
    return found


def make(
    folder: Path, days: Sequence[Sequence[Text]], quality: Mapping[str, float] | None = None
) -> SnapshotStore:
    """One snapshot a day.

    quality  figures of each day's model
    """
    store, parent = SnapshotStore(str(folder)), None
    ids: dict[str, int] = {}
    running = np.zeros(0, dtype=np.int64)
    vectors = np.zeros((0, DIM), dtype=np.float32)
    random = np.random.default_rng(7)
    reader = UsageReader(5, DIM, PastTexts(Calendar(WindowUnit.DAY), 1 << 22, 6))
    authors = Authors()
    for at, texts in enumerate(days):
        start = (FIRST + at) * DAY
        blocks = [
            block(name, [one for one in texts if one.source == name], start)
            for name in sorted({one.source for one in texts})
        ]
        for one in blocks:
            for word in one.words:
                ids.setdefault(word, len(ids))
        grown = random.standard_normal((len(ids) - len(vectors), DIM)).astype(np.float32)
        vectors = np.concatenate([vectors, grown])
        running = np.concatenate([running, np.zeros(len(ids) - len(running), dtype=np.int64)])
        tables = [np.array([ids[word] for word in one.words], dtype=np.int64) for one in blocks]
        names = [*ids]
        rows: dict[str, list] = {name: [] for name in ("words", "sources", *COUNT_COLUMNS)}
        for one, table in zip(blocks, tables, strict=True):
            counted = count_words([one], [table], Calendar(WindowUnit.DAY), authors)
            rows["words"] += [names[row] for row in counted.ids.tolist()]
            rows["sources"] += [one.source] * len(counted.ids)
            for name, column in zip(COUNT_COLUMNS, counted.columns, strict=True):
                rows[name] += column.tolist()
            np.add.at(running, counted.ids, counted.counts)
        reader.keep(blocks, tables)
        every = np.arange(len(ids), dtype=np.int64)
        lexicon = SimpleNamespace(
            ids=every,
            counts=running + 1.0,
            places=lambda asked: asked,
            rows=lambda waiting: np.full(len(waiting), -1),
            names=lambda asked, names=names: [names[row] for row in asked.tolist()],
        )
        table_of = vectors
        sums = UsageSums(DIM, wanted=True, limit=1 << 20)
        sent = reader.close(start, lexicon, lambda asked, table=table_of: table[asked]).sums
        sums.learnt(PushArrival.prepare(Push("n0", 1, 0, usage=sent), 0), 0.0, ())
        data = SnapshotData(
            window=Window.holding(_moment(start), WindowUnit.DAY),
            words=names,
            ids=every,
            counts=running.copy(),
            last_seen=np.full(len(ids), float(start)),
            vectors=vectors,
            contexts=vectors,
            by_source=WordCounts(
                words=rows["words"],
                sources=rows["sources"],
                windows=np.full(len(rows["words"]), start, dtype=np.int64),
                **{name: np.array(rows[name], dtype=np.int64) for name in COUNT_COLUMNS},
            ),
            tokens={one.source: len(one.codes) for one in blocks},
            documents={one.source: one.n_documents for one in blocks},
            tokenizer_digest="t1",
            quality=dict(quality or {}),
        )
        usage = usage_of(added_up(sums.held([start])), every)
        parent = store.publish(replace(data, parent=parent), usage).id
    return store


def block(source: str, texts: Sequence[Text], start: int) -> TokenBlock:
    """One source's documents of a day."""
    found = TokenBlock.build(
        source,
        [[list(one.words)] for one in texts],
        published=[float(start)] * len(texts),
        keys=[f"{source}{start}{at}" for at in range(len(texts))],
    )
    # mod 16 a voice is the group of its author, a hash of the name.
    who = np.array([one.author for one in texts], dtype=np.int64)
    groups = (mixed(who.astype(np.uint64)) % np.uint64(16)).astype(np.int64)
    return replace(found, voices=who // 16 * 16 + groups)


def _moment(start: int):
    from datetime import UTC, datetime

    return datetime.fromtimestamp(start, UTC)
