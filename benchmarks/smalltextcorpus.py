"""A dated corpus as content words, cut once and kept, so that every trainer reads the same words.

The text is cut by the project's own pipeline with Kiwi, which keeps content words and leaves
particles and endings out. One line a document: its date, and its words with a blank between and a
line for each sentence. `yeoron train --dated --tokenizer whitespace` reads these words unchanged.

Which words are nouns, verbs and adjectives is decided beside it: every `SAMPLED`-th document is
cut a second time with the tags `NOUNS_AND_VERBS` only, and a word counts as one when at least half
of its mentions there remain. So pronouns, number words, adverbs and interjections are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from embedding.kernel.errors import InputError
from embedding.kernel.records import Window, WindowUnit
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from embedding.worker.spec import CorpusShare
from yeoron_bench.datedlines import dated_lines

NOUNS_AND_VERBS = ("NNG", "NNP", "XR", "SL", "VV", "VA")
SAMPLED = 8
GROWTH = 0.05
"""A window is judged when at least so much more text was read than at the last one judged."""
LEAST_TOKENS = 10_000
"""Tokens before the first window is judged, and of the text behind a window."""


@dataclass(frozen=True)
class Document:
    """date: ISO with a time zone; lines: sentences, words with a blank between."""

    date: str
    lines: tuple[str, ...]

    @property
    def tokens(self) -> int:
        return sum(line.count(" ") + 1 for line in self.lines)

    def start(self, unit: WindowUnit) -> datetime:
        """Start of its window."""
        return Window.holding(datetime.fromisoformat(self.date).astimezone(UTC), unit).start


@dataclass(frozen=True)
class WindowEnd:
    """start: of the window in event time; documents: how many are read at its end."""

    start: datetime
    documents: int
    tokens: int


@dataclass(frozen=True)
class TokenCorpus:
    """Documents in time order, and which of their words are nouns, verbs or adjectives."""

    name: str
    documents: Sequence[Document]
    content: frozenset[str]

    @cached_property
    def read(self) -> list[int]:
        """Tokens before each document, and of all."""
        return [0, *accumulate(document.tokens for document in self.documents)]

    def first(self, tokens: int) -> TokenCorpus:
        """Whole documents until `tokens` tokens are reached; all where there are fewer."""
        enough = next((at for at, read in enumerate(self.read) if read >= tokens), None)
        return TokenCorpus(self.name, self.documents[:enough], self.content)

    def lines(self, first: int = 0, last: int | None = None) -> list[str]:
        return [line for document in self.documents[first:last] for line in document.lines]

    def ends(self, unit: WindowUnit) -> list[WindowEnd]:
        """Ends of windows that can be judged: enough text, and `GROWTH` since the one before."""
        starts = [document.start(unit) for document in self.documents]
        ends: list[WindowEnd] = []
        for at, start in enumerate(starts, start=1):
            last = at == len(starts)
            if not last and starts[at] == start:
                continue
            before = ends[-1].tokens if ends else 0
            grown = self.read[at] >= max(LEAST_TOKENS, (1 + GROWTH) * before)
            if last and len(ends) > 1 and not grown:
                ends.pop()
            if grown or last:
                ends.append(WindowEnd(start, at, self.read[at]))
        return ends

    def behind(self, documents: int, unit: WindowUnit) -> list[str]:
        """Lines behind so many documents: whole windows until there are `LEAST_TOKENS` tokens."""
        for at in range(documents + 1, len(self.documents) + 1):
            last = at == len(self.documents)
            if self.read[at] - self.read[documents] >= LEAST_TOKENS and (
                last or self.documents[at].start(unit) != self.documents[at - 1].start(unit)
            ):
                return self.lines(documents, at)
        return []

    def write(self, path: Path) -> None:
        """As dated JSONL."""
        with path.open("w", encoding="utf-8") as file:
            for document in self.documents:
                file.write(_line(document))


def spread(ends: Sequence[WindowEnd], most: int) -> list[WindowEnd]:
    """At most so many ends (0: all): the first, the last, and some evenly spread by tokens."""
    if not most or len(ends) <= most:
        return list(ends)
    if most == 1:
        return [ends[0]]
    first, last = ends[0].tokens, ends[-1].tokens
    wanted = [first + (last - first) * step / (most - 1) for step in range(most)]
    chosen = {min(range(len(ends)), key=lambda at: abs(ends[at].tokens - each)) for each in wanted}
    return [ends[at] for at in sorted(chosen)]


def digest(lines: Sequence[str]) -> str:
    hashed = hashlib.sha256()
    for line in lines:
        hashed.update(line.encode() + b"\n")
    return hashed.hexdigest()


def tokenised(corpus: Path, folder: Path) -> TokenCorpus:
    """The corpus as content words; cut at the first call and read from `folder` afterwards."""
    name = corpus.name.partition(".")[0]
    tokens, content = folder / f"{name}.tokens.jsonl", folder / f"{name}.content.txt"
    if not (tokens.exists() and content.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        _cut(corpus, tokens, content)
    documents = []
    with tokens.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            documents.append(Document(row["date"], tuple(row["text"].split("\n"))))
    words = frozenset(content.read_text(encoding="utf-8").split())
    return TokenCorpus(name, documents, words)


def _cut(corpus: Path, tokens: Path, content: Path) -> None:
    pipeline = TextPipeline(TextConfig(tokenizer="kiwi"))
    narrow = TextPipeline(TextConfig(tokenizer="kiwi", keep_tags=NOUNS_AND_VERBS))
    plain = TextPipeline(TextConfig(tokenizer="whitespace", mask=False, new_words=0))
    documents: list[tuple[float, Document]] = []
    every: Counter[str] = Counter()
    remaining: Counter[str] = Counter()
    for at, line in enumerate(dated_lines(CorpusShare(path=str(corpus)))):
        # As the whitespace tokenizer reads them when they are written with blanks.
        sentences = plain.words("\n".join(map(" ".join, pipeline.words(line.text))))
        if not sentences:
            continue
        date = datetime.fromtimestamp(line.when, UTC).isoformat()
        documents.append((line.when, Document(date, tuple(map(" ".join, sentences)))))
        if at % SAMPLED == 0:
            every.update(word for words in sentences for word in words)
            remaining.update(word for words in narrow.words(line.text) for word in words)
    if not documents:
        raise InputError(f"{corpus}: no words; dated JSONL of Korean text is expected.")
    documents.sort(key=lambda dated: dated[0])
    chosen = sorted(word for word in every if 2 * remaining[word] >= every[word])
    content.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    work = tokens.with_suffix(".part")
    with work.open("w", encoding="utf-8") as file:
        file.writelines(_line(document) for _, document in documents)
    work.rename(tokens)


def _line(document: Document) -> str:
    text = "\n".join(document.lines)
    return json.dumps({"date": document.date, "text": text}, ensure_ascii=False) + "\n"
