"""A small grammar of Korean: frames with slots, endings, particles, and the ways people write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from yeoron_simweb.lexicon import Predicate, Topic, WeightedChoice, lexicon

TOPICAL = 0.8
"""Share of nouns that are of the sentence's topic; the rest are general words."""
TOPICAL_VERBS = 0.6
"""The same of verbs."""


@dataclass(frozen=True)
class Register:
    """A way to write: the frames out of which a sentence is put together.

    In a frame {n} is a noun, {v:고} a verb and {p:고} an adjective with that ending (ㅆ is the
    past), {a} an adjective before a noun, {d} an adverb; a particle in brackets is chosen by the
    syllable before it. What a frame says by itself are function words, which the text pipeline
    leaves out, nearly all: so neighbours show topics and no frames.
    """

    openers: tuple[str, ...]
    finals: tuple[str, ...]


_LINKS = (
    *("", "", ""),
    *("{n}[은] {v:고} ", "{n}[이] {v:지만} ", "{n}[을] {v:서} ", "{n}[이] {v:는데} "),
    *("{n}[을] {v:기} 때문에 ", "{n}[이] {p:고} ", "{n}[은] {p:지만} ", "{n}[과] {n}[을] {v:고} "),
)
_SUBJECTS = (
    *("{n}[은]", "{n}[이]", "{n}의 {n}[이]", "{n}[과] {n}[은]", "{a} {n}[이]", "{n} {n}[은]"),
    *(
        "{n}에서 {n}[이]",
        "{v:던} {n}[이]",
        "{v:는} {n}[은]",
        "{n}에서는 {n}도",
        "{n}[이나] {n}[이]",
    ),
)
_OBJECTS = (
    *("{n}[을]", "{n}[과] {n}[을]", "{n}의 {n}[을]", "{a} {n}[을]", "{n}에 {n}[을]", "{n}[으로]"),
    *("{d} {n}[을]", "{n}에서 {n}[을]", "{n} {n}[을]", "{n}[으로] {n}[을]", "{n} 때문에 {n}[을]"),
    *("{n}부터 {n}까지", "{v:던} {n}[을]", "{n}에게 {n}[을] {d}"),
)

FORMAL = Register(
    openers=("", "", "", "", "{d} ", "그러나 ", "그래서 ", "그리고 ", "따라서 "),
    finals=(
        *(
            "{v:ㅆ다}.",
            "{v:ㅆ다}.",
            "{v:ㅆ다}.",
            "{v:고} 있다.",
            "{v:지} 않았다.",
            "{v:ㅆ다}고 한다.",
        ),
        *("{v:야} 한다.", "{v:는} 것이다.", "{v:ㅆ던} 것이다.", "{v:ㅆ을} 것이다.", "{p:ㅆ다}."),
    ),
)
POLITE = Register(
    openers=("", "", "", "근데 ", "그래서 ", "그런데 ", "{d} ", "진짜 ", "그니까 "),
    finals=(
        *(
            "{v:ㅆ어요}.",
            "{v:ㅆ어요}.",
            "{v:네요}.",
            "{v:고} 있어요.",
            "{v:ㅆ는데요}.",
            "{v:지} 않아요.",
        ),
        *("{v:ㅆ거든요}.", "{v:ㅆ더라고요}.", "{p:네요}.", "{v:ㅆ습니다}.", "{v:ㅆ어요} ㅎㅎ"),
    ),
)
CASUAL = Register(
    openers=("", "", "", "근데 ", "아니 ", "진짜 ", "와 ", "{d} "),
    finals=(
        *("{v:네} ㅋㅋ", "{v:ㅆ네}", "{v:ㅆ지}.", "{v:고} 있네 ㅠㅠ", "{v:ㅆ다}!", "{v:지} 마라."),
        *("{v:자}.", "{v:ㅆ냐}?", "{p:네}.", "{v:ㅆ어}.", "{v:ㅆ다} ㅋㅋㅋ"),
    ),
)

_SLOT = re.compile(r"\{(\w)(?::([^}]+))?\}")
_PARTICLE = re.compile(r"(.)\[([^\]]+)\]")
# Particle after a consonant, after a vowel.
_PARTICLES = {
    "은": "는",
    "이": "가",
    "을": "를",
    "과": "와",
    "으로": "로",
    "이나": "나",
}
_RIEUL = 8
_SSANGSIOT = 20


class Writer:
    """Writes sentences in a register, with habits: how often it uses which frame."""

    def __init__(self, register: Register, rng: Random) -> None:
        self._parts = [
            WeightedChoice(frames, [rng.gammavariate(1.0, 1.0) + 0.1 for _ in frames])
            for frames in (register.openers, _LINKS, _SUBJECTS, _OBJECTS, register.finals)
        ]

    def sentence(
        self,
        rng: Random,
        topic: Topic,
        planted: str | None = None,
        replaced: Mapping[str, str] | None = None,
    ) -> str:
        """One sentence of a topic; `planted` takes the place of one of its nouns.

        `replaced` exchanges nouns (a source's own words for things).
        """
        opener, link, subject, objects, final = (part.draw(rng) for part in self._parts)
        # What an adjective says is said of the subject.
        middle = " " if "{p:" in final else f" {objects} "
        frame = f"{opener}{link}{subject}{middle}{final}"
        nouns_left = rng.randrange(frame.count("{n}")) if planted is not None else -1
        used: set[str] = set()

        def fill(slot: re.Match[str]) -> str:
            nonlocal nouns_left
            kind, ending = slot.groups()
            if kind == "n":
                nouns_left -= 1
                if nouns_left == -1 and planted is not None:
                    return planted
                return (replaced or {}).get(noun := _noun(rng, topic, used), noun)
            if kind == "d":
                return lexicon().adverbs.draw(rng)
            if kind == "v":
                of = topic if rng.random() < TOPICAL_VERBS else lexicon().general
                return conjugate(of.verbs.draw(rng), ending)
            adjective = lexicon().adjectives.draw(rng)
            return adjective.adnominal if kind == "a" else conjugate(adjective, ending)

        return with_particles(_SLOT.sub(fill, frame))


def _noun(rng: Random, topic: Topic, used: set[str]) -> str:
    """A noun that the sentence does not hold yet."""
    while True:
        of = topic if rng.random() < TOPICAL else lexicon().general
        noun = of.nouns.draw(rng)
        if noun not in used:
            used.add(noun)
            return noun


def headline(rng: Random, topic: Topic, replaced: Mapping[str, str] | None = None) -> str:
    """A headline of a topic."""
    used: set[str] = set()
    nouns = [_noun(rng, topic, used) for _ in range(3)]
    first, second, third = ((replaced or {}).get(noun, noun) for noun in nouns)
    return with_particles(
        rng.choice((f"{first} {second}, {third}", f"{first}[과] {second} {third}"))
    )


def conjugate(predicate: Predicate, ending: str) -> str:
    """A predicate with an ending; one that begins with ㅆ is of the past.

    ㄹ at the end of a stem is left out before ㄴ.
    """
    if ending[0] == "ㅆ":
        return _closed(predicate.infix, _SSANGSIOT) + ending[1:]
    if ending in ("서", "야"):
        return predicate.infix + ending
    stem = predicate.stem
    if ending[0] in "네는" and _final(stem) == _RIEUL:
        stem = _closed(stem, 0)
    return stem + ending


def with_particles(text: str) -> str:
    """Replace [은] [이] [을] [과] [으로] [이나] by the form that fits the syllable before."""

    def fit(match: re.Match[str]) -> str:
        syllable, particle = match.groups()
        final = _final(syllable)
        opened = final == 0 or (particle == "으로" and final == _RIEUL)
        return syllable + (_PARTICLES[particle] if opened else particle)

    return _PARTICLE.sub(fit, text)


def _final(text: str) -> int:
    """Number of the consonant that ends the last syllable (Unicode's order); 0: it is open."""
    return (ord(text[-1]) - 0xAC00) % 28


def _closed(text: str, final: int) -> str:
    """The text with this consonant at the end of its last syllable; 0: with none."""
    return text[:-1] + chr(ord(text[-1]) - _final(text) + final)
