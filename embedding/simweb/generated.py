"""A generated dated corpus with planted events and their truth.

Documents come from a topic grammar, so that words of a topic occur together and skip-gram
neighbours show the topic. Three things are planted: a word is born, a word changes its topic, and
one source uses a word in another topic than the rest and has its own words for some things.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from embedding.errors import InputError
from embedding.simweb.config import PARTS, SimwebConfig
from embedding.simweb.corpus import Corpus, CorpusDocument
from embedding.simweb.grammar import TOPICS, headline, sentence

FIRST_DAY = date(2021, 1, 1)
LAST_DAY = date(2021, 8, 31)
DOCUMENTS_PER_DAY = 18


@dataclass(frozen=True)
class Planted:
    """A word that stands in for nouns of a topic.

    It is used from `begin` on, before `change` in the topic `before` and from then on in
    `after`; in the parts of `elsewhere` always in the topic given there. `share` is the part of
    that topic's sentences that hold it.
    """

    word: str
    after: str
    before: str | None = None
    begin: date = FIRST_DAY
    change: date = FIRST_DAY
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    share: float = 0.12

    def topic(self, day: date, part: str) -> str | None:
        """Name of the topic in which the word is used that day in that part; None: nowhere."""
        if day < self.begin:
            return None
        if part in self.elsewhere:
            return self.elsewhere[part]
        return self.before if self.before is not None and day < self.change else self.after


BORN = Planted("메타버스", after="문화", begin=date(2021, 5, 10))
MOVED = Planted("나침반", before="교육", after="교통", change=date(2021, 5, 1))
CONTRAST = Planted("사다리", after="건강", elsewhere={"board": "경제"})
PLANTED = (BORN, MOVED, CONTRAST)

OWN_WORDS = {"교사": "강사", "병원": "의원"}
"""What the board says in place of these nouns."""


def generate(config: SimwebConfig) -> Corpus:
    """The generated corpus, the same for the same seed and shares; `truth` says what is in it.

    Raises InputError where first_day and last_day leave nothing of it.
    """
    rng = Random(config.seed)  # noqa: S311 - sentences, no secrets
    weights = [config.shares.get(part, 0.0) for part in PARTS]
    days = [FIRST_DAY + timedelta(days=n) for n in range((LAST_DAY - FIRST_DAY).days + 1)]
    documents = [
        _document(rng, day, rng.choices(PARTS, weights)[0])
        for day in days
        for _ in range(DOCUMENTS_PER_DAY)
    ]
    first, last = config.first_day or FIRST_DAY, config.last_day or LAST_DAY
    kept = tuple(d for d in documents if first <= d.when.date() <= last)
    if not kept:
        raise InputError(
            f"generated corpus: no document from {first} to {last}; it covers {FIRST_DAY} to "
            f"{LAST_DAY}."
        )
    return Corpus("generated", kept, truth=truth(config))


def _document(rng: Random, day: date, part: str) -> CorpusDocument:
    topic = rng.choice(TOPICS)
    replaced = OWN_WORDS if part == "board" else None
    words = [(p.word, p.share) for p in PLANTED if p.topic(day, part) == topic.name]
    lines = [sentence(rng, topic, _planted(rng, words), replaced) for _ in range(rng.randint(4, 7))]
    half = len(lines) // 2
    return CorpusDocument(
        when=datetime(day.year, day.month, day.day, tzinfo=UTC),
        title=headline(rng, topic),
        text=" ".join(lines[:half]) + "\n" + " ".join(lines[half:]),
        category=topic.name,
        source="generated",
        part=part,
    )


def _planted(rng: Random, words: list[tuple[str, float]]) -> str | None:
    at = rng.random()
    for word, share in words:
        if at < share:
            return word
        at -= share
    return None


def truth(config: SimwebConfig | None = None) -> dict[str, Any]:
    """What is planted in the generated corpus, JSON-safe: words, dates, topics and their nouns."""
    nouns = {topic.name: list(topic.nouns) for topic in TOPICS}
    return {
        "corpus": "generated",
        "seed": 0 if config is None else config.seed,
        "first_day": FIRST_DAY.isoformat(),
        "last_day": LAST_DAY.isoformat(),
        "topics": nouns,
        "born": [
            {
                "word": BORN.word,
                "date": BORN.begin.isoformat(),
                "topic": BORN.after,
                "neighbours": nouns[BORN.after],
            },
        ],
        "moved": [
            {
                "word": MOVED.word,
                "date": MOVED.change.isoformat(),
                "before": MOVED.before,
                "after": MOVED.after,
                "neighbours_before": nouns[str(MOVED.before)],
                "neighbours_after": nouns[MOVED.after],
            },
        ],
        "contrast": [
            {
                "word": CONTRAST.word,
                "part": part,
                "topic_there": topic,
                "topic_elsewhere": CONTRAST.after,
                "neighbours_there": nouns[topic],
                "neighbours_elsewhere": nouns[CONTRAST.after],
            }
            for part, topic in CONTRAST.elsewhere.items()
        ],
        "own_words": {"board": dict(OWN_WORDS)},
    }
