"""What a checkpoint holds of a server's state, and how a server goes on from one."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from embedding.kernel.errors import ConfigError, UnavailableError
from embedding.server.ledger.sequence import Journal, read_journal
from embedding.server.parts import Content, Part, Saved
from embedding.server.recovery.checkpoint import CheckpointFolder, check_facts
from embedding.server.recovery.checkpointer import Checkpointer
from embedding.server.rows.tables import TablesCopy
from embedding.server.state import ServerState

logger = logging.getLogger(__name__)

_FORMAT = 3
"""3: each part's facts and arrays have the names of the glossary, as in `_migrated`."""
READABLE = (2, _FORMAT)


class Recovery(Checkpointer):
    """Writes checkpoints in the background and restores the newest on construction.

    parts  that are no parts of the state; restored after them
    """

    def __init__(
        self,
        state: ServerState,
        folder: CheckpointFolder,
        *,
        every_s: float,
        parts: Sequence[Part] = (),
    ) -> None:
        super().__init__(every_s=every_s)
        self._state = state
        self._folder = folder
        self._parts = parts
        self._written: tuple[object, ...] = ()
        self._restore()

    def _ended(self) -> None:
        self._state.words.journal.close()
        self._folder.close()

    def _try_write(self) -> str | None:
        failed = super()._try_write()
        self._state.meters.checkpoint_failures += failed is not None
        return failed

    def _write(self) -> None:
        state = self._state
        with state.lock:
            if self._mark() == self._written:
                state.ledger.persisted(state.ledger.applied)
                return
        number = self._folder.next_number()
        # The file first: a copy of tables that nobody finishes would follow them for ever.
        fresh = Journal(self._folder.journal(number))
        with state.words.admitting, state.lock:
            try:
                state.changes.check()
            except UnavailableError:
                fresh.close()
                raise
            mark, began = self._mark(), time.perf_counter()
            old = state.words.go_on_in(fresh)
            saved = collect(state, self._parts)
            copy = state.rows.own_copy()
            pause = time.perf_counter() - began
        old.close()
        longest = copy.finish(state.lock)
        state.rows.keep_first()
        self._folder.write(number, assemble(saved, copy))
        self._written = mark
        with state.lock:
            state.meters.checkpointed(max(pause, longest), time.monotonic())
            state.ledger.persisted(saved.facts["applied"])
        logger.info("checkpoint %d: %d words", number, saved.facts["words"])

    def _mark(self) -> tuple[object, ...]:
        """Another one says that there is something to write (under the lock)."""
        vocabulary, departed = self._state.vocabulary, frozenset(self._state.reports.departed)
        return self._state.meters.pushes, vocabulary.next_id, vocabulary.closed, departed

    def _restore(self) -> None:
        found = self._folder.newest()
        state = self._state
        state.ledger.keep_fences(self._folder.path / "fences.jsonl")
        if found is not None:
            restore(state, found[1], str(self._folder.path), self._parts)
        for path in self._folder.journals(0 if found is None else found[0]):
            for entry in read_journal(path):
                fresh = entry.words[max(0, state.vocabulary.next_id - entry.first) :]
                if fresh and entry.first <= state.vocabulary.next_id:
                    state.words.install(fresh, entry.evicted)
        last = self._folder.next_number() - 1
        state.words.go_on_in(Journal(self._folder.last_journal(last), repair=True))
        if found is not None:
            logger.info(
                "restored checkpoint %d: %d words, %d tokens",
                found[0],
                len(state.vocabulary),
                state.meters.tokens,
            )


def collect(state: ServerState, parts: Sequence[Part] = ()) -> Saved:
    """What all parts save, but for the rows (under the lock; quick)."""
    words = state.vocabulary.copied()
    saved = [part.save(words) for part in (*state.parts.values(), *parts)]
    facts: dict[str, Any] = {
        "format": _FORMAT,
        "dim": state.dim,
        "buckets": state.composer.buckets,
        "seed": state.tables.seed,
        "timezone": state.config.timezone,
    }
    for one in saved:
        facts |= one.facts
    return Saved(facts, lambda: {name: each for one in saved for name, each in one.files().items()})


def assemble(saved: Saved, copy: TablesCopy) -> Content:
    """Files of a checkpoint. Rows are in the order of slots, as they were copied."""
    files = {**copy.arrays(), **saved.files()}
    tables = {name: one for name, one in files.items() if isinstance(one, pa.Table)}
    arrays = {name: one for name, one in files.items() if not isinstance(one, pa.Table)}
    return Content(saved.facts, arrays, tables)


def restore(state: ServerState, content: Content, where: str, parts: Sequence[Part] = ()) -> None:
    """Put a checkpoint's content into a fresh state; ConfigError when it does not fit."""
    started = {
        "dim": state.dim,
        "buckets": state.composer.buckets,
        "shards": state.config.shards,
        "split": state.config.split,
    }
    check_facts(content.facts, started, readable=READABLE, where=where, who="server")
    content = _migrated(content)
    state.config.check_timezone(content.facts["timezone"], f"state_dir {where}")
    digest = content.facts["config_digest"]
    if state.reports.digest and digest and digest != state.reports.digest:
        raise ConfigError(
            f"state_dir {where}: its checkpoint is of configuration {digest[:12]}, the server was "
            f"started with {state.reports.digest[:12]}; use that or an empty folder."
        )
    state.tables.seed = content.facts["seed"]
    for part in (*state.parts.values(), *parts):
        part.load(content)
    accounts = state.accounts
    awaited = {*accounts.tracker.nodes, *accounts.readers.nodes}
    until = time.monotonic() + state.machine.config.liveness_timeout_s
    accounts.tracker.expect(awaited, until=until)


_BEFORE: Mapping[str, Any] = {"departed": [], "readers": {}, "amendable": {}, "timezone": "UTC"}
"""Facts that not every checkpoint of format 2 has."""
_RENAMED = {"told": "reports", "places": "offsets"}
"""Facts of format 2."""


def _migrated(content: Content) -> Content:
    """A checkpoint of format 2 as one of this format."""
    if content.facts["format"] != 2:
        return content
    if any(len(one) != 5 for one in content.facts.get("usage", ())) or any(
        isinstance(one, int) for one in content.facts.get("shifts", ())
    ):
        raise ConfigError(
            "its checkpoint is of before 27 November 2026; open it once with Yeoron of 30 November "
            "2026, which writes what this one reads."
        )
    facts = {_RENAMED.get(name, name): each for name, each in {**_BEFORE, **content.facts}.items()}
    readers = facts["readers"]
    facts["readers"] = {"incarnations": readers.get("lives", {}), **readers}
    arrays = {
        f"rare.{name.removeprefix('young.')}" if name.startswith("young.") else name: each
        for name, each in content.arrays.items()
    }
    return Content(facts, arrays, content.tables)
