"""Whether a regular expression takes linear time, by its automaton and not by a clock.

A search that backtracks takes more than linear time of a text where two states of the automaton
can both stay where they are on the same word, and the first one can get to the second on that word
too (infinitely ambiguous, Weber and Seidl 1991; Weideman et al. 2016 for backtracking). A search
that may begin anywhere is one more such state before the expression: `<br[^>]*>` is quadratic by
it. The text must then fail; where an expression may end at once, it does not.

Here everything is read as if more matched: assertions hold, references match any one character,
what is possessive gives back. So an expression may be named that is linear. A repeat of at most a
thousand is a constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from re import _constants as ops
from re import _parser as parser
from typing import Any

LARGE = 1_000
"""Repeats beyond it count as endless."""
_USUAL = "aZ0_- \n\t.<>/'\"&;:=@가힣ㄱ一あé²٣\x00"


@dataclass
class Automaton:
    """Positions of an expression (Glushkov 1961), from 1 on; 0 is before the first.

    classes  characters that each position matches; None: it matches nothing (an assertion)
    begins   assertions that hold at the begin of the text alone
    follow   positions that come after each
    last     those with which the expression may end
    nested   an endless repeat of what is an endless repeat itself, with something after it
    """

    classes: list[frozenset[str] | None] = field(default_factory=lambda: [frozenset()])
    follow: list[set[int]] = field(default_factory=lambda: [set()])
    last: set[int] = field(default_factory=set)
    begins: set[int] = field(default_factory=set)
    nested: bool = False


Part = tuple[bool, set[int], set[int]]
"""Whether it may be empty, and the positions with which it begins and ends."""


class Reading:
    """Builds the automaton of one pattern."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        text = pattern.pattern
        text = text.decode("latin-1") if isinstance(text, bytes) else text
        flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
        self._flags = flags
        tree = parser.parse(text, flags & ~re.DEBUG)
        self._alphabet = sorted(set(_USUAL) | set(_characters(tree)))
        self._dotall, self._ignorecase = bool(flags & re.DOTALL), bool(flags & re.IGNORECASE)
        self._seen: dict[str, frozenset[str]] = {}
        self.automaton = Automaton()
        empty, first, last = self._sequence(list(tree))
        self.automaton.follow[0] = first
        self.automaton.last = last | ({0} if empty else set())

    def _position(self, matched: frozenset[str] | None) -> Part:
        self.automaton.classes.append(matched)
        self.automaton.follow.append(set())
        at = len(self.automaton.classes) - 1
        return False, {at}, {at}

    def _joined(self, left: Part, right: Part) -> Part:
        for at in left[2]:
            self.automaton.follow[at] |= right[1]
        first = left[1] | (right[1] if left[0] else set())
        last = right[2] | (left[2] if right[0] else set())
        return left[0] and right[0], first, last

    def _sequence(self, nodes: Iterable[Any]) -> Part:
        whole: Part = (True, set(), set())
        for node in nodes:
            whole = self._joined(whole, self._node(node))
        return whole

    def _node(self, node: Any) -> Part:
        op, value = node
        if op is ops.BRANCH:
            parts = [self._sequence(each) for each in value[1]]
            return (
                any(p[0] for p in parts),
                set().union(*(p[1] for p in parts)),
                set().union(*(p[2] for p in parts)),
            )
        if op is ops.SUBPATTERN:
            return self._sequence(value[3])
        if op is ops.ATOMIC_GROUP:
            return self._sequence(value)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            return self._repeat(*value)
        if op is ops.AT:
            part = self._position(None)
            begin = value is ops.AT_BEGINNING and not self._flags & re.MULTILINE
            if begin or value is ops.AT_BEGINNING_STRING:
                self.automaton.begins |= part[1]
            return part
        if op in (ops.ASSERT, ops.ASSERT_NOT):
            # What it looks at is read too, and leads nowhere.
            looked, none = self._sequence(value[1]), self._position(None)
            return False, looked[1] | none[1], none[2]
        if op is ops.GROUPREF:
            return self._position(frozenset(self._alphabet))
        return self._position(self._matched(node))

    def _repeat(self, least: int, most: Any, body: Any) -> Part:
        endless = most is ops.MAXREPEAT or most > LARGE
        whole: Part = (True, set(), set())
        for _ in range(min(least, 2)):
            whole = self._joined(whole, self._sequence(body))
        if endless:
            self.automaton.nested |= any(self._endless_alone(body))
            one = self._sequence(body)
            for at in one[2]:
                self.automaton.follow[at] |= one[1]
            return self._joined(whole, (True, one[1], one[2]))
        for _ in range(min(most - least, 2)):
            one = self._sequence(body)
            whole = self._joined(whole, (True, one[1], one[2]))
        return whole

    def _endless_alone(self, body: Any) -> Iterator[bool]:
        """Whether a part of the body is endless while all around it may be empty."""
        nodes = list(body)
        for at, (op, value) in enumerate(nodes):
            if op is ops.SUBPATTERN:
                inner = any(self._endless_alone(value[3]))
            elif op is ops.BRANCH:
                inner = any(any(self._endless_alone(each)) for each in value[1])
            elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
                inner = value[1] is ops.MAXREPEAT or value[1] > LARGE
            else:
                inner = False
            others = parser.SubPattern(body.state, nodes[:at] + nodes[at + 1 :])
            yield inner and others.getwidth()[0] == 0

    def _matched(self, node: Any) -> frozenset[str]:
        """Characters of the alphabet; an expression repeats the same few classes."""
        key = repr(node)
        if key not in self._seen:
            self._seen[key] = frozenset(c for c in self._alphabet if self._matches(node, c))
        return self._seen[key]

    def _matches(self, node: Any, character: str) -> bool:
        if node[0] is ops.ANY:
            return self._dotall or character != "\n"
        tried = {character}
        if self._ignorecase:
            tried |= {character.lower(), character.upper()}
        return any(_holds(node, each) for each in tried if len(each) == 1)


def _holds(node: Any, character: str) -> bool:
    op, value = node
    code = ord(character)
    if op is ops.LITERAL:
        return bool(code == value)
    if op is ops.NOT_LITERAL:
        return bool(code != value)
    if op is ops.RANGE:
        return bool(value[0] <= code <= value[1])
    if op is ops.CATEGORY:
        return re.match(_CATEGORIES[value], character) is not None
    assert op is ops.IN, op
    negated = value[0][0] is ops.NEGATE
    return any(_holds(each, character) for each in value[negated:]) != negated


_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}


def _characters(tree: Any) -> Iterator[str]:
    """Characters at which classes of the expression begin and end, and those behind them."""
    for op, value in tree:
        if op in (ops.LITERAL, ops.NOT_LITERAL):
            yield from _near(value)
        elif op is ops.RANGE:
            yield from (*_near(value[0]), *_near(value[1]))
        elif op is ops.IN:
            yield from _characters(value)
        elif op is ops.BRANCH:
            for each in value[1]:
                yield from _characters(each)
        elif op is ops.SUBPATTERN:
            yield from _characters(value[3])
        elif op is ops.ATOMIC_GROUP:
            yield from _characters(value)
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            yield from _characters(value[2])
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            yield from _characters(value[1])


def _near(code: int) -> Iterator[str]:
    yield from {chr(code), chr(code).lower()[:1], chr(code).upper()[:1]}
    yield chr(min(code + 1, 0x10FFFF))


def superlinear(pattern: re.Pattern[Any], *, anywhere: bool = True, whole: bool = False) -> str:
    """Why it may take more than linear time; empty where it does not.

    anywhere  it is searched for; else it is tried at the begin of a text alone
    whole     it must match to the end of the text
    """
    found = Reading(pattern).automaton
    if found.nested:
        return "an endless repeat of an endless repeat"
    classes, steps, ends = _without_assertions(found, anywhere=anywhere, whole=whole)
    reach = {at: _reachable(steps, at) for at in steps}
    loops = [at for at in steps if at in reach[at]]
    same = {at: {to for to in reach[at] if at in reach[to]} for at in loops}
    for p in loops:
        if p and _two_ways(p, classes, steps, same[p]):
            return f"two ways to repeat on {_shown(classes[p])}"
        for q in loops:
            if p != q and q in reach[p]:
                between = {at for at in reach[p] | {p} if q in reach[at] or at == q}
                # What may end within the repeat does not fail there.
                if _stays(p, q, classes, steps, same[p], same[q] - ends, between):
                    where = "any begin" if p == 0 else _shown(classes[p])
                    return f"{where} and a repeat of {_shown(classes[q])} take the same text"
    return ""


def _without_assertions(
    found: Automaton, *, anywhere: bool, whole: bool
) -> tuple[list[frozenset[str]], dict[int, set[int]], set[int]]:
    """Classes, steps between positions that match something, and where it may end at once."""
    every = frozenset().union(*(each for each in found.classes if each))
    every |= frozenset(_USUAL)

    def through(at: int, seen: set[int]) -> set[int]:
        to: set[int] = set()
        for each in found.follow[at]:
            if found.classes[each] is not None:
                to.add(each)
            elif each not in seen and not (at == 0 and anywhere and each in found.begins):
                to |= through(each, seen | {each})
        return to

    steps = {at: through(at, set()) for at, held in enumerate(found.classes) if held is not None}
    if anywhere:
        steps[0].add(0)
        begins = set().union(*(through(each, {each}) for each in found.begins))
        steps[-1] = begins | steps[0]
    classes = [each if each is not None else frozenset() for each in found.classes]
    classes[0] = every
    return classes, steps, set() if whole else found.last


def _reachable(steps: dict[int, set[int]], start: int) -> set[int]:
    seen: set[int] = set()
    new = steps[start]
    while new:
        seen |= new
        new = set().union(*(steps[at] for at in new)) - seen
    return seen


def _two_ways(
    p: int, classes: list[frozenset[str]], steps: dict[int, set[int]], inside: set[int]
) -> bool:
    """Whether two different paths lead from p back to p on one word."""
    seen: set[tuple[int, int, bool]] = set()
    left = [(p, p, False)]
    while left:
        one, other, apart = left.pop()
        for a in steps[one] & inside:
            for b in steps[other] & inside:
                if classes[a] & classes[b]:
                    state = (a, b, apart or a != b)
                    if state == (p, p, True):
                        return True
                    if state not in seen:
                        seen.add(state)
                        left.append(state)
    return False


def _stays(
    p: int,
    q: int,
    classes: list[frozenset[str]],
    steps: dict[int, set[int]],
    around_p: set[int],
    around_q: set[int],
    between: set[int],
) -> bool:
    """Whether p → p, p → q and q → q on one word."""
    seen: set[tuple[int, int, int]] = set()
    left = [(p, p, q)]
    while left:
        one, middle, other = left.pop()
        for a in steps[one] & around_p:
            for c in steps[other] & around_q:
                both = classes[a] & classes[c]
                if not both:
                    continue
                for b in steps[middle] & between:
                    state = (a, b, c)
                    if state in seen or not both & classes[b]:
                        continue
                    if state == (p, q, q):
                        return True
                    seen.add(state)
                    left.append(state)
    return False


def _shown(matched: frozenset[str]) -> str:
    return "".join(sorted(matched))[:12].__repr__()
