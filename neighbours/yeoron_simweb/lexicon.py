"""The words of the generated corpus: topics and general words, each ranked by frequency."""

from __future__ import annotations

import tomllib
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")

_HEAD = 1.0
"""Added to every rank, as Mandelbrot did: the first words of a list are not far above the rest."""


class WeightedChoice(Generic[T]):
    """Values with a weight each; without weights Zipf's, 1 / (rank + 1) with ranks from 1."""

    def __init__(self, values: Sequence[T], weights: Iterable[float] | None = None) -> None:
        self.values = tuple(values)
        zipf = (1 / (rank + _HEAD) for rank in range(1, len(self.values) + 1))
        self._sums = list(accumulate(zipf if weights is None else weights))

    def draw(self, rng: Random) -> T:
        at = bisect(self._sums, rng.random() * self._sums[-1])
        return self.values[min(at, len(self.values) - 1)]


@dataclass(frozen=True)
class Predicate:
    """A verb or an adjective by the forms that endings are put to.

    word       what the text pipeline makes of it: the dictionary form, or the noun before 하다
    stem       before consonants: 오르(고)
    infix      before -어 and the past: 올라(서), 올랐(다)
    adnominal  an adjective before a noun: 높은
    """

    word: str
    stem: str
    infix: str
    adnominal: str = ""


@dataclass(frozen=True)
class Topic:
    """Words that occur together."""

    name: str
    nouns: WeightedChoice[str]
    verbs: WeightedChoice[Predicate]

    @property
    def words(self) -> tuple[str, ...]:
        """Each word once, as the text pipeline gives it: nouns in the order of frequency, verbs."""
        verbs = (verb.word for verb in self.verbs.values)
        return tuple(dict.fromkeys((*self.nouns.values, *verbs)))


@dataclass(frozen=True)
class TopicLexicon:
    """All topics by name, and the general words, which belong to none (`general.name` is "")."""

    topics: Mapping[str, Topic]
    general: Topic
    adjectives: WeightedChoice[Predicate]
    adverbs: WeightedChoice[str]


@cache
def lexicon() -> TopicLexicon:
    """The lexicon of the package."""
    text = resources.files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    general = tables["general"]
    return TopicLexicon(
        {name: _topic(name, table) for name, table in tables["topics"].items()},
        _topic("", general),
        WeightedChoice([_predicate(entry) for entry in general["adjectives"].split()]),
        WeightedChoice(general["adverbs"].split()),
    )


def _topic(name: str, table: Mapping[str, str]) -> Topic:
    nouns, acts = table["nouns"].split(), table["acts"].split()
    made = [Predicate(act, f"{act}하", f"{act}해") for act in acts]
    verbs = [_predicate(entry) for entry in table["verbs"].split()]
    return Topic(name, WeightedChoice(_mixed(nouns, acts)), WeightedChoice(_mixed(made, verbs)))


def _predicate(entry: str) -> Predicate:
    stem, infix, *adnominal = entry.split("/")
    if stem.endswith("하") and len(stem) > 2:
        return Predicate(stem[:-1], stem, infix, *adnominal)
    return Predicate(f"{stem}다", stem, infix, *adnominal)


def _mixed(first: Sequence[T], second: Sequence[T]) -> list[T]:
    """Both lists in one, evenly, each in its order."""
    placed = [(at / len(some), each) for some in (first, second) for at, each in enumerate(some)]
    return [each for _, each in sorted(placed, key=lambda pair: pair[0])]
