"""What a server is made of: parts that learn, are saved, restored, shown and made to forget alike.

What is counted of a push, what a checkpoint holds, what the status shows and what is forgotten is
asked of the list of parts (`ServerState.parts`); nothing else knows them all. Other packages add
parts: a server makes one of each that is installed, whatever its policy, which can change while it
runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, TimeArray
from embedding.kernel.registry import NoTraits, Registry
from embedding.server.config import ServerConfig, SyncConfig

if TYPE_CHECKING:  # so that the terminal shows figures without compiling anything
    from embedding.exchange.protocol import Push


@dataclass(frozen=True)
class Content:
    """What a checkpoint holds: JSON facts, arrays and tables by name."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]
    tables: Mapping[str, pa.Table]


class Saved(NamedTuple):
    """What a part puts into a checkpoint, under names that no other part uses.

    facts  JSON-safe
    files  called once the lock is free, with the `WordsCopy` of the vocabulary: arrays and tables
    """

    facts: Mapping[str, Any]
    files: Callable[[Any], Mapping[str, npt.NDArray[Any] | pa.Table]] = lambda _: {}


class Moment(NamedTuple):
    """When the status is asked for: seconds of the monotonic clock, and times as it shows them.

    iso  a time in Unix seconds in the server's time zone; None: there is none
    """

    now: float
    iso: Callable[[float | None], str | None]


_FAR = 400 * 365 * 86_400
"""Seconds from 1970 beyond which a window's start or a time of publication is nonsense."""


@dataclass(frozen=True)
class PushArrival:
    """A push with what could be worked out about it before the lock was taken.

    seen    float64 [n], when each word was read (Unix seconds); nbytes  of the push as it came
    """

    push: Push
    seen: TimeArray
    nbytes: int

    @classmethod
    def prepare(cls, push: Push, nbytes: int) -> PushArrival:
        """The arrival of a checked push; RefusedError for times outside any calendar."""
        groups, progress = push.counts.groups, push.progress
        named: tuple[Any, ...] = (*groups, *progress, *push.usage, *push.shifts, *push.hand_ins)
        times = [part.window for part in named] + [math.floor(each.published) for each in progress]
        if times and not -_FAR < min(times) <= max(times) < _FAR:
            raise RefusedError(
                f"push {push.sequence} of node {push.node}: a window or a publication outside "
                "any calendar; Unix seconds are accepted."
            )
        published = {each.source: each.published for each in progress}
        read_at = [published.get(group.source, float(group.window)) for group in groups]
        lengths = np.diff([0, *(group.stop for group in groups)])
        return cls(push, np.repeat(np.asarray(read_at, dtype=np.float64), lengths), nbytes)


@dataclass(frozen=True)
class Erasure:
    """What a server that is not running forgets: a word or a source.

    ids     rows of the word, int64 [n]; none where it has none
    hidden  the word as a checkpoint writes it while it has no row
    """

    word: str | None
    source: str | None
    ids: IntArray
    hidden: str


class Part:
    """One part; what it does not do does nothing here. The server's lock guards all calls."""

    def check_policy(self, sync: SyncConfig, before: SyncConfig) -> None:
        """RefusedError or ConfigError where a policy cannot follow the one before."""

    def reconfigure(self, sync: SyncConfig) -> None:
        """Another policy begins, to which no part objected."""

    def calls(self, stream: Any) -> Mapping[str, Any]:
        """Operations by name that it adds to one stream, a `NodeSession`; the lock is free."""
        return {}

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        """A push was applied: its rows have changed, and it is counted.

        closed  starts of windows that take nothing any more
        """

    def tick(self, now: float) -> None:
        """Half a second passed."""

    def save(self) -> Saved:
        """What it keeps in a checkpoint; quick: what takes time belongs into `Saved.files`."""
        return Saved({})

    def load(self, content: Content) -> None:
        """Go on from a checkpoint, in a part that is new."""

    def describe(self, at: Moment) -> Mapping[str, Any]:
        """Its fields of the status, JSON-safe; an object is joined with that of other parts."""
        return {}

    def forget(self, erasure: Erasure) -> None:
        """Forget a word or a source."""

    def catch_up(self) -> None:
        """Wait until what others know by now is here; without the lock."""

    def check_rollback(self) -> None:
        """RefusedError where the server cannot go back to a snapshot now."""


class Companion:
    """What works beside a server's requests: threads, processes, a line to another server. It takes
    the server's lock itself."""

    @property
    def pids(self) -> dict[str, int]:
        """Of the processes that it keeps, by name."""
        return {}

    def start(self) -> None:
        """Begin, before ports open; PlatformError where that cannot be."""

    def opened(self) -> None:
        """The ports are open."""

    def tick(self) -> None:
        """Half a second passed."""

    def checkpoint(self, *, wait: bool) -> None:
        """Have what it keeps in a checkpoint, now or soon; UnavailableError: it is not."""

    def ailing(self) -> list[str]:
        """Why it does not do all of its work, a sentence each."""
        return []

    def unkept(self) -> list[str]:
        """What could not be kept in the end, a sentence each."""
        return []

    def stop(self) -> None:
        """Finish what was begun; it may not have been started."""


SERVER_PARTS: Registry[Callable[[ServerConfig, Any, Any, SyncConfig], Part], NoTraits] = Registry(
    "part of a server", "yeoron.parts"
)
"""Makers of the parts of other packages, from the settings, the `RowStore`, the `Vocabulary` and
the policy; the core has none of its own."""
