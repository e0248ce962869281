"""How well a mask does on generated texts: recall by kind, precision."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from embedding.text.mask import NEUTRAL, mask
from embedding.text.normalise import normalise

_TELLING = re.compile(r"[0-9A-Za-z]|[공일이삼사오육칠팔구]")


@dataclass
class Verdict:
    """found and missed pieces by kind; texts in which something innocent was replaced."""

    found: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    innocent: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.found.total() / (self.found.total() + self.missed.total())

    @property
    def precision(self) -> float:
        return self.found.total() / (self.found.total() + self.wrong)

    def by_kind(self) -> dict[str, float]:
        kinds = self.found.keys() | self.missed.keys()
        return {k: self.found[k] / (self.found[k] + self.missed[k]) for k in sorted(kinds)}


def judge(positives: Iterable[tuple[str, ...]], negatives: Iterable[str]) -> Verdict:
    """A positive is its kind, then by turns what is nobody's and a personal piece, ending with the
    former. It is found when nothing that tells of its pieces is left. What stood around them has
    to stay: a telling character lost, or a token more than there are pieces, counts as wrong."""
    verdict = Verdict()
    for kind, before, *rest in positives:
        text = before + "".join(rest)
        result = mask(normalise(text))
        left = Counter(_TELLING.findall(NEUTRAL.sub(" ", result.text)))
        front = re.sub(r"[^\s가-힣]*$", "", before) if result.counts.get("url") else before
        around = Counter(_TELLING.findall(normalise("\n".join([front, *rest[1::2]]))))
        told = bool(result.counts) and not left - around
        (verdict.found if told else verdict.missed)[kind] += 1
        kept = Counter({c: n for c, n in around.items() if c.isascii()})  # particles may go
        spoilt = bool(kept - left) or sum(result.counts.values()) > len(rest) // 2
        verdict.wrong += spoilt
        if not told or spoilt:
            verdict.examples.append(f"{kind}: {text!r} -> {result.text!r}")
    for text in negatives:
        verdict.innocent += 1
        result = mask(normalise(text))
        if result.counts:
            verdict.wrong += 1
            verdict.examples.append(f"innocent: {text!r} -> {result.text!r}")
    return verdict
