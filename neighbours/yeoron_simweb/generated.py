"""A generated dated corpus with planted events and their truth.

Documents are written by voices: authors of one part of the web, each with topics and habits of
its own. Words of a topic occur together, so skip-gram neighbours show the topic. Three things are
planted, once a model had three months to settle: a word is born and a word changes its topic; all
the time one source uses a word in another topic than the rest, and has its own words for some
things. Nothing else changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from embedding.kernel.errors import InputError
from yeoron_simweb.config import PARTS, SimwebConfig
from yeoron_simweb.corpus import CorpusDocument, PlaybackCorpus
from yeoron_simweb.grammar import CASUAL, FORMAL, POLITE, Register, Writer, headline
from yeoron_simweb.lexicon import Topic, WeightedChoice, lexicon
from yeoron_simweb.library import handle

FIRST_DAY = date(2021, 1, 1)
LAST_DAY = date(2021, 5, 31)
VOICES = 24
"""Authors in each part."""


@dataclass(frozen=True)
class PlantedWord:
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
    share: float = 0.35

    @property
    def topics(self) -> frozenset[str]:
        """Names of all topics in which it ever is used."""
        return frozenset({self.after, self.before or self.after, *self.elsewhere.values()})

    def topic(self, day: date, part: str) -> str | None:
        """Name of the topic in which the word is used that day in that part; None: nowhere."""
        if day < self.begin:
            return None
        if part in self.elsewhere:
            return self.elsewhere[part]
        return self.before if self.before is not None and day < self.change else self.after


BORN = PlantedWord("메타버스", after="문화", begin=date(2021, 4, 5))
MOVED = PlantedWord("나침반", before="교육", after="교통", change=date(2021, 4, 1))
CONTRAST = PlantedWord("사다리", after="건강", elsewhere={"board": "경제"})
PLANTED = (BORN, MOVED, CONTRAST)

OWN_WORDS = {"교사": "강사", "병원": "의원"}
"""What the board says in place of these nouns."""


@dataclass(frozen=True)
class Style:
    """How a part of the web is written.

    register   its frames
    sentences  least and most sentences of a document
    topics     what it writes about more than others do
    """

    register: Register
    sentences: tuple[int, int]
    topics: str


STYLES = {
    "politics": Style(FORMAL, (11, 18), "정치 외교 군사 사법 행정 노동"),
    "society": Style(FORMAL, (11, 18), "범죄 사법 복지 날씨 환경 에너지"),
    "life": Style(FORMAL, (11, 18), "음식 여행 주거 미용 의류 식물"),
    "euckr": Style(FORMAL, (11, 18), "역사 종교 농업 어업 산업 과학"),
    "board": Style(POLITE, (8, 18), "게임 컴퓨터 방송 체육 동물 유통"),
    "comments": Style(CASUAL, (1, 4), "정치 체육 방송 노동 가족 우주"),
}

_WEIGHT_PLANTED = 8.0
_WEIGHT_FAVOURED = 4.0
_SPREAD = 2.0
"""Shape of the gamma distribution by which a voice's taste differs from its part's; the larger,
the less."""
_MAIN = 0.8
"""Share of a document's sentences that are of its first topic; the rest are of its second."""


class Voice:
    """An author of a part: a name, topics, and habits of writing."""

    def __init__(self, config: SimwebConfig, part: str, number: int) -> None:
        digest = hashlib.blake2b(f"{config.seed} {part} {number}".encode(), digest_size=16).digest()
        rng = Random(digest)  # noqa: S311 - sentences, no secrets
        topics = tuple(lexicon().topics.values())
        self._part = part
        self._name = handle(digest)
        self._writer = Writer(STYLES[part].register, rng)
        self._topics = WeightedChoice(topics, [_weight(rng, topic.name, part) for topic in topics])

    def document(self, rng: Random, day: date) -> CorpusDocument:
        """A document of that day."""
        topics = [self._topics.draw(rng) for _ in range(2)]
        replaced = OWN_WORDS if self._part == "board" else {}
        lines = []
        for _ in range(rng.randint(*STYLES[self._part].sentences)):
            topic = topics[rng.random() >= _MAIN]
            word = _planted(rng, topic.name, day, self._part)
            lines.append(self._writer.sentence(rng, topic, word, replaced))
        return CorpusDocument(
            when=datetime(day.year, day.month, day.day, tzinfo=UTC),
            title="" if self._part == "comments" else headline(rng, topics[0], replaced),
            text="\n".join(" ".join(lines[at : at + 3]) for at in range(0, len(lines), 3)),
            category=topics[0].name,
            source="generated",
            part=self._part,
            author=self._name,
        )


def generate(config: SimwebConfig) -> PlaybackCorpus:
    """The generated corpus, the same for the same seed and shares; `truth` says what is in it.

    Raises InputError where first_day and last_day leave nothing of it.
    """
    rng = Random(config.seed)  # noqa: S311 - sentences, no secrets
    weights = [config.shares.get(part, 0.0) for part in PARTS]
    voices = {
        part: WeightedChoice([Voice(config, part, n) for n in range(VOICES)]) for part in PARTS
    }
    days = [FIRST_DAY + timedelta(days=n) for n in range((LAST_DAY - FIRST_DAY).days + 1)]
    documents = [
        voices[rng.choices(PARTS, weights)[0]].draw(rng).document(rng, day)
        for day in days
        for _ in range(config.documents_per_day)
    ]
    first, last = config.first_day or FIRST_DAY, config.last_day or LAST_DAY
    chosen = tuple(d for d in documents if first <= d.when.date() <= last)
    if not chosen:
        raise InputError(
            f"generated corpus: no document from {first} to {last}; it covers {FIRST_DAY} to "
            f"{LAST_DAY}."
        )
    return PlaybackCorpus("generated", chosen)


def _weight(rng: Random, topic: str, part: str) -> float:
    """How much a voice of a part writes about a topic; all voices alike about planted ones.

    So a word that changes its topic keeps its frequency, whoever happens to write.
    """
    if any(topic in planted.topics for planted in PLANTED):
        return _WEIGHT_PLANTED
    usual = _WEIGHT_FAVOURED if topic in STYLES[part].topics.split() else 1.0
    return usual * rng.gammavariate(_SPREAD, 1 / _SPREAD)


def _planted(rng: Random, topic: str, day: date, part: str) -> str | None:
    at = rng.random()
    for planted in PLANTED:
        if planted.topic(day, part) == topic:
            if at < planted.share:
                return planted.word
            at -= planted.share
    return None


def truth(config: SimwebConfig | None = None) -> dict[str, Any]:
    """What is planted in the generated corpus, JSON-safe: words, dates, topics and their words.

    Words are those that the text pipeline makes of the corpus; a topic's are in the order of
    their frequency, nouns before verbs, with those that are planted in it at the end.
    """
    words = {name: _words(topic) for name, topic in lexicon().topics.items()}
    return {
        "corpus": "generated",
        "seed": 0 if config is None else config.seed,
        "first_day": FIRST_DAY.isoformat(),
        "last_day": LAST_DAY.isoformat(),
        "topics": words,
        "born": [
            {
                "word": BORN.word,
                "date": BORN.begin.isoformat(),
                "topic": BORN.after,
                "neighbours": words[BORN.after],
            },
        ],
        "moved": [
            {
                "word": MOVED.word,
                "date": MOVED.change.isoformat(),
                "before": MOVED.before,
                "after": MOVED.after,
                "neighbours_before": words[str(MOVED.before)],
                "neighbours_after": words[MOVED.after],
            },
        ],
        "contrast": [
            {
                "word": CONTRAST.word,
                "part": part,
                "topic_there": topic,
                "topic_elsewhere": CONTRAST.after,
                "neighbours_there": words[topic],
                "neighbours_elsewhere": words[CONTRAST.after],
            }
            for part, topic in CONTRAST.elsewhere.items()
        ],
        "own_words": {"board": dict(OWN_WORDS)},
    }


def _words(topic: Topic) -> list[str]:
    own = [its for common, its in OWN_WORDS.items() if common in topic.nouns.values]
    planted = [each.word for each in PLANTED if topic.name in each.topics]
    return [*topic.words, *own, *planted]
