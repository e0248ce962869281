"""The quality gate: floors that a snapshot must keep before an alias may name it.

A model that cannot be read (snapshots/readability.py), collapsed or untrained, passes no gate, nor
does a snapshot that lacks how words were used (snapshots/format.py).

A floor is pinned to what it was measured on: the SHA-256 of the corpus file that `yeoron train`
read, and that of the gold file. On another corpus the same figure means something else, so such a
floor is left aside there, with a sentence. A figure that a floor asks for and that could not be
had fails the gate: nobody knows whether it is good.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from embedding.kernel.config import Config, explain
from embedding.kernel.durable import sha256
from embedding.kernel.errors import InputError
from embedding.snapshots.format import Manifest
from embedding.snapshots.readability import unreadable

LOWER_IS_BETTER = ("nll", "pip")
"""Figures whose first part is one of these are losses; all others are better when higher."""
Digest = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class QualityBound(Config):
    """One bound on one figure."""

    metric: str = Field(min_length=1)
    """Name of the figure, as `yeoron snapshot evaluate` prints it: `nll`, `similarity/ws353_ko`."""
    at_least: float | None = None
    """The figure must not be below this."""
    at_most: float | None = None
    """The figure must not be above this."""
    corpus: str | None = Digest
    """SHA-256 of the corpus file that it was measured on; None: it holds for every snapshot."""
    gold: str | None = Digest
    """SHA-256 of the gold file that the figure comes from; None: whatever the file says."""

    @model_validator(mode="after")
    def _one_bound(self) -> QualityBound:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("one of at_least and at_most is needed, and not both")
        return self

    def broken_by(self, value: float) -> str | None:
        """What is wrong with this value, None for nothing."""
        if self.at_least is not None and value < self.at_least:
            return f"{self.metric} is {value:.4g}, below the floor of {self.at_least:.4g}"
        if self.at_most is not None and value > self.at_most:
            return f"{self.metric} is {value:.4g}, above the ceiling of {self.at_most:.4g}"
        return None


class Floors(Config):
    """The content of a floors file."""

    floor: tuple[QualityBound, ...] = ()
    """The bounds, each a table `[[floor]]`."""


@dataclass(frozen=True)
class GateResult:
    """What the gate says of a snapshot.

    failed  one sentence for each bound that does not hold; empty when the snapshot passes
    aside   one sentence for each floor that was measured on something else
    unread  why the snapshot cannot be read yet; "" when it can. It passes no more than one that
            failed, but nothing went wrong: more text is needed
    lacks   one sentence for each part of its window that it lacks; it does not pass either
    """

    failed: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    unread: str = ""
    lacks: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no bound is broken, and the snapshot can be read and is complete."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        return (*self.failed, *([self.unread] if self.unread else []), *self.lacks)


def read_floors(path: Path) -> tuple[QualityBound, ...]:
    """The floors of a TOML file; InputError with the file, the field and what is accepted."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return Floors.model_validate(content).floor
    except FileNotFoundError as error:
        raise InputError(f"floors file {path}: there is no such file.") from error
    except OSError as error:
        raise InputError(f"floors file {path}: it cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"floors file {path}: it is not TOML: {error}.") from error
    except ValidationError as error:
        raise InputError(explain(error, f"floors file {path}", Floors)) from error


def judge(
    metrics: Mapping[str, float],
    floors: Sequence[QualityBound],
    *,
    corpus: str | None,
    gold: Sequence[Path] = (),
    before: Mapping[str, float] | None = None,
    max_rise: float | None = None,
    lacks: Sequence[str] = (),
) -> GateResult:
    """Hold the figures of a snapshot against the floors and against the snapshot before it.

    corpus    digest of the snapshot's corpus, as `corpus_digest` gives it; None: a stream's
    gold      the gold files that were used
    before    figures of the snapshot that the alias names now, None when it names none
    max_rise  share by which `nll` may be above that of `before`; None: by any
    lacks     why the window cannot be judged by the snapshot, a sentence each; empty: it can
    """
    digests = {path.stem: _digest(path) for path in gold}
    failed, aside = [], []
    for floor in floors:
        if why := _elsewhere(floor, corpus, digests):
            aside.append(why)
        elif floor.metric not in metrics:
            failed.append(f"{floor.metric} could not be measured, and a floor asks for it")
        elif why := floor.broken_by(metrics[floor.metric]):
            failed.append(why)
    failed += _risen(metrics, before or {}, max_rise)
    return GateResult(tuple(failed), tuple(aside), unreadable(metrics) or "", tuple(lacks))


def pin(
    metrics: Mapping[str, float], *, corpus: str | None, gold: Sequence[Path], margin: float
) -> tuple[QualityBound, ...]:
    """Floors that these figures keep with `margin` (a share of each) to spare.

    Figures that judge vectors are pinned: `nll`, similarity and analogy as a whole. Raises
    InputError when there is none of them.
    """
    digests = {path.stem: _digest(path) for path in gold}
    floors = []
    for metric, value in sorted(metrics.items()):
        kind, _, name = metric.partition("/")
        room = margin * abs(value)
        if metric == "nll":
            floors.append(QualityBound(metric=metric, at_most=_round(value + room), corpus=corpus))
        elif kind in ("similarity", "analogy") and name in digests:
            least = _round(value - room)
            floors.append(
                QualityBound(metric=metric, at_least=least, corpus=corpus, gold=digests[name])
            )
    if not floors:
        raise InputError(
            "pin: the snapshot has neither `nll` nor a figure of a gold file; --gold names files."
        )
    return tuple(floors)


def written(floors: Sequence[QualityBound]) -> str:
    """A floors file; `read_floors` gives the same floors back."""
    tables = []
    for floor in floors:
        given = floor.model_dump(exclude_none=True)
        lines = [
            f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value!r}"
            for name, value in given.items()
        ]
        tables.append("\n".join(["[[floor]]", *lines]) + "\n")
    return "\n".join(tables)


def corpus_digest(manifest: Manifest) -> str | None:
    """SHA-256 of the corpus file that was read for this snapshot, None for a stream's."""
    server = manifest.config.get("server")
    digest = server.get("corpus_digest") if isinstance(server, dict) else None
    return str(digest) if digest else None


def better(metric: str, value: float, other: float) -> bool:
    """Whether one value of this figure is better than another."""
    lower = metric.partition("/")[0] in LOWER_IS_BETTER
    return value < other if lower else value > other


def _elsewhere(floor: QualityBound, corpus: str | None, digests: Mapping[str, str]) -> str | None:
    """Why a floor says nothing of this snapshot; None when it applies."""
    if floor.corpus is not None and floor.corpus != corpus:
        what = f"{corpus[:12]}" if corpus else "a stream"
        return f"{floor.metric}: its floor was measured on corpus {floor.corpus[:12]}, not {what}"
    digest = digests.get(floor.metric.partition("/")[2].partition("/")[0])
    if floor.gold is not None and digest is not None and floor.gold != digest:
        return (
            f"{floor.metric}: its floor was measured with gold file {floor.gold[:12]}, "
            f"not {digest[:12]}"
        )
    return None


def _risen(
    metrics: Mapping[str, float], before: Mapping[str, float], max_rise: float | None
) -> Iterator[str]:
    now, then = metrics.get("nll"), before.get("nll")
    if max_rise is not None and now is not None and then and now > then * (1.0 + max_rise):
        yield (
            f"nll is {now:.4g}, {now / then - 1:.0%} above the {then:.4g} of the snapshot before "
            f"it; {max_rise:.0%} is accepted (evaluation.max_rise)"
        )


def _round(value: float) -> float:
    return float(f"{value:.6g}")


def _digest(path: Path) -> str:
    """Of a file; empty for one that cannot be read, whose figures are missing too."""
    try:
        return sha256(path)
    except OSError:
        return ""
