"""What a server is made of: parts that are counted by, saved, restored, shown and erased alike.

What a checkpoint holds, what the status shows and what is erased is asked of the list of parts
(`ServerState.parts`); nothing else knows them all. Other packages add parts: a server makes one of
each that is installed, whatever its policy, which can change while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt
import pyarrow as pa

from embedding.kernel.records import IntArray
from embedding.kernel.registry import NoTraits, Registry
from embedding.server.config import ServerConfig, SyncConfig


@dataclass(frozen=True)
class Content:
    """What a checkpoint holds: JSON facts, arrays and tables by name."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]
    tables: Mapping[str, pa.Table]


class Saved(NamedTuple):
    """What a part puts into a checkpoint, under names that no other part uses.

    facts  JSON-safe
    files  called once the lock is free: arrays and tables
    """

    facts: Mapping[str, Any]
    files: Callable[[], Mapping[str, npt.NDArray[Any] | pa.Table]] = dict


class Moment(NamedTuple):
    """When the status is asked for: seconds of the monotonic clock, and times as it shows them.

    iso  a time in Unix seconds in the server's time zone; None: there is none
    """

    now: float
    iso: Callable[[float | None], str | None]


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

    def reconfigure(self, sync: SyncConfig) -> None:
        """Another policy begins; ConfigError where that cannot be, and then nothing changes."""

    def calls(self, state: Any, who: Any) -> Mapping[str, Any]:
        """Operations by name that it adds to one stream of a node (`flight/shell.py`).

        state  the `ServerState`, not locked
        who    which node greeted on the stream, and its session (`Who`)
        """
        del state, who
        return {}

    def save(self, words: Any) -> Saved:
        """What it keeps in a checkpoint; quick: what takes time belongs into `Saved.files`.

        words  the `WordsCopy` of the vocabulary now
        """
        del words
        return Saved({})

    def load(self, content: Content) -> None:
        """Go on from a checkpoint, in a part that is new."""

    def describe(self, at: Moment) -> Mapping[str, Any]:
        """Its fields of the status, JSON-safe; an object is joined with that of other parts."""
        del at
        return {}

    def erase(self, erasure: Erasure) -> None:
        """Forget a word or a source."""


class ServerPart(Protocol):
    """A class of `Part` that another package adds."""

    figures: Sequence[Any]
    """Its families of Prometheus (`figures/metrics.py`)."""

    def __call__(self, config: ServerConfig, rows: Any, vocabulary: Any, sync: SyncConfig) -> Part:
        """One of it; rows  the `RowStore`; vocabulary  the `Vocabulary`."""


SERVER_PARTS: Registry[ServerPart, NoTraits] = Registry("part of a server", "yeoron.parts")
"""All parts of other packages; the core has none of its own."""
