"""How much a new source would bring: the figures of candidates, and their order.

    tokens a request = new documents × tokens a document / (requests of the listing + documents)

A document is new unless a source that is read already, or a better candidate, lists the same
address or nearly the same text. How different the words are is the Jensen-Shannon divergence of
their distributions in bits (J. Lin, "Divergence measures based on the Shannon entropy", 1991): 0
for the same words in the same shares, 1 for no word in common.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from embedding.crawl.shingles import similar
from embedding.sources.kinds import SOURCES

_SLOWEST = 1e-6


@dataclass(frozen=True)
class SampledDocument:
    """One document of a listing that was read: how many tokens, which words, MinHash of its text.

    No text is kept.
    """

    url: str
    words: Mapping[str, int]
    signature: bytes = b""

    @property
    def tokens(self) -> int:
        return sum(self.words.values())


@dataclass(frozen=True)
class Listed:
    """What reading a listing gave.

    urls      canonical addresses in it
    times     publication times of those that have one
    titles    (title, address, time) of the first ones
    requests  requests that listing them took
    """

    kind: str
    url: str
    found_on: str
    urls: tuple[str, ...]
    times: tuple[datetime, ...] = ()
    titles: tuple[tuple[str, str, str | None], ...] = ()
    requests: int = 1
    samples: tuple[SampledDocument, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """A proposal, JSON-safe by `to_dict`.

    documents_per_day  None where the listing has no times
    new                share of its documents that nothing better brings
    difference         Jensen-Shannon divergence (bits) from the words read so far; None: none were
    tokens_per_request new tokens that one request brings
    score              tokens_per_request × difference
    """

    name: str
    kind: str
    url: str
    why: str
    found_on: str
    listed: int
    documents_per_day: float | None
    tokens_per_document: float
    new: float
    difference: float | None
    tokens_per_request: float
    score: float
    titles: tuple[tuple[str, str, str | None], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        titles = [dict(zip(("title", "url", "time"), row, strict=True)) for row in self.titles]
        numbers = {
            key: None if value is None else round(value, 4)
            for key, value in vars(self).items()
            if isinstance(value, float) or value is None
        }
        return {**vars(self), **numbers, "titles": titles, "settings": dict(self.settings)}


@dataclass(frozen=True)
class Known:
    """What is read already: addresses, and samples of the texts."""

    urls: frozenset[str] = frozenset()
    samples: tuple[SampledDocument, ...] = ()

    def with_(self, listed: Listed) -> Known:
        return replace(
            self, urls=self.urls | frozenset(listed.urls), samples=self.samples + listed.samples
        )


def rank(
    listings: Sequence[Listed], known: Known, *, least_new: float = 0.2, threshold: float = 0.85
) -> tuple[list[Candidate], list[tuple[Listed, str]]]:
    """The candidates, best first, and those that bring nothing, each with a sentence.

    The best is chosen first and counts as read when the others are judged: of a feed, an Atom feed
    and a sitemap of the same articles one is proposed.
    """
    left, chosen, dropped = list(listings), [], []
    while left:
        judged = [(judge(listing, known, threshold), listing) for listing in left]
        best, listed = max(judged, key=lambda pair: (pair[0].score, -len(pair[1].url)))
        left.remove(listed)
        if best.new < least_new:
            dropped.append((listed, f"only {best.new:.0%} of what it lists is new"))
        elif not best.tokens_per_request:
            dropped.append((listed, "no text was found behind what it lists"))
        else:
            chosen.append(best)
            known = known.with_(listed)
    return chosen, dropped


def judge(listed: Listed, known: Known, threshold: float) -> Candidate:
    """The figures of one listing beside what is known."""
    urls, samples = set(listed.urls), listed.samples
    other = sum(url not in known.urls for url in urls) / len(urls) if urls else 0.0
    fresh = [sample for sample in samples if sample.url not in known.urls]
    copies = sum(
        any(similar(sample.signature, read.signature) >= threshold for read in known.samples)
        for sample in fresh
    )
    new = other * (1.0 - copies / len(fresh)) if fresh else other
    tokens = sum(sample.tokens for sample in samples) / len(samples) if samples else 0.0
    gain = new * len(urls) * tokens / max(1, listed.requests + len(urls))
    difference = None
    if known.samples and samples:
        difference = divergence(_pooled(samples), _pooled(known.samples))
    rate = per_day(listed.times)
    return Candidate(
        name=name_of(listed.url),
        kind=listed.kind,
        url=listed.url,
        why=_why(listed, rate, tokens, new, difference),
        found_on=listed.found_on,
        listed=len(urls),
        documents_per_day=rate,
        tokens_per_document=tokens,
        new=new,
        difference=difference,
        tokens_per_request=gain,
        score=gain * (1.0 if difference is None else difference),
        titles=listed.titles,
        settings=listed.settings,
    )


def divergence(left: Mapping[str, int], right: Mapping[str, int]) -> float:
    """Jensen-Shannon divergence of two word counts in bits, 0 to 1."""
    totals = sum(left.values()), sum(right.values())
    if not all(totals):
        return 0.0
    total = 0.0
    for word in left.keys() | right.keys():
        p, q = left.get(word, 0) / totals[0], right.get(word, 0) / totals[1]
        middle = (p + q) / 2
        total += sum(share / 2 * math.log2(share / middle) for share in (p, q) if share)
    return min(1.0, max(0.0, total))


def per_day(times: Sequence[datetime]) -> float | None:
    """Documents a day, from the times of a listing; None with fewer than two."""
    seconds = sorted(when.timestamp() for when in times)
    if len(seconds) < 2:
        return None
    days = max((seconds[-1] - seconds[0]) / 86_400.0, _SLOWEST)
    return (len(seconds) - 1) / days


def name_of(url: str, taken: Set[str] = frozenset()) -> str:
    """A short unique name of a source: host and path."""
    bare = url.partition("://")[2].partition("?")[0].removeprefix("www.")
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", bare).strip("-")[:70].strip(".-") or "source"
    name, n = plain, 2
    while name in taken:
        name, n = f"{plain}-{n}", n + 1
    return name


def named(candidates: Sequence[Candidate], taken: Collection[str]) -> list[Candidate]:
    """The candidates with names that are unique among themselves and among `taken`."""
    names, result = set(taken), []
    for candidate in candidates:
        name = name_of(candidate.url, names)
        names.add(name)
        result.append(replace(candidate, name=name))
    return result


def _pooled(samples: Sequence[SampledDocument]) -> Counter[str]:
    return sum((Counter(sample.words) for sample in samples), Counter[str]())


def _why(
    listed: Listed, rate: float | None, tokens: float, new: float, difference: float | None
) -> str:
    """One sentence for a person who decides."""
    parts = [f"{SOURCES.traits(listed.kind).noun} of {len(set(listed.urls))} documents"]
    if rate is not None:
        parts.append(f"about {rate:,.1f} a day")
    parts.append(f"{tokens:,.0f} tokens each")
    parts.append(f"{new:.0%} new")
    if difference is not None:
        parts.append(f"{difference:.2f} bits from the words read so far")
    return ", ".join(parts)
