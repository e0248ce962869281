"""What a checkpoint holds of a server's state, and how a server goes on from one."""

from __future__ import annotations

import logging
import time
from typing import Any

import pyarrow as pa

from embedding.kernel.errors import ConfigError, UnavailableError
from embedding.server.ledger.sequence import Fences, Journal, read_journal
from embedding.server.parts import Content, Saved
from embedding.server.recovery.checkpoint import CheckpointFolder, check_facts
from embedding.server.recovery.checkpointer import Checkpointer, last_of
from embedding.server.rows.tables import TablesCopy
from embedding.server.state import ServerState

logger = logging.getLogger(__name__)

_FORMAT = 4
"""4: each part's facts have the names of the glossary, as in `_migrated`."""
READABLE = (3, _FORMAT)


class Recovery(Checkpointer):
    """Writes checkpoints in the background and restores the newest on construction."""

    def __init__(self, state: ServerState, folder: CheckpointFolder, *, every_s: float) -> None:
        super().__init__(every_s=every_s)
        self._state = state
        self._folder = folder
        self._written: tuple[object, ...] = ()
        self._restore()

    def unkept(self) -> list[str]:
        failed = self._failed
        return [] if failed is None else [f"state_dir {self._folder.path}: {last_of(failed)}"]

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
            saved = collect(state)
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
        newest = self._folder.newest()
        state = self._state
        if newest is not None:
            restore(state, newest[1], str(self._folder.path))
        # A folder that is refused stays as it is: reading its fences writes them again.
        state.ledger.fences = Fences(self._folder.path / "fences.jsonl")
        for path in self._folder.journals(0 if newest is None else newest[0]):
            for entry in read_journal(path):
                fresh = entry.words[max(0, state.vocabulary.next_id - entry.first) :]
                if fresh and entry.first <= state.vocabulary.next_id:
                    state.words.install(fresh, entry.evicted)
        last = self._folder.next_number() - 1
        state.words.go_on_in(Journal(self._folder.last_journal(last), repair=True))
        if newest is not None:
            logger.info(
                "restored checkpoint %d: %d words, %d tokens",
                newest[0],
                len(state.vocabulary),
                state.meters.tokens,
            )


def collect(state: ServerState) -> Saved:
    """What all parts save, but for the rows (under the lock; quick)."""
    words = state.vocabulary.copied()
    saved = [part.save() for part in state.parts.values()]
    facts: dict[str, Any] = {
        "format": _FORMAT,
        "dim": state.dim,
        "buckets": state.composer.buckets,
        "seed": state.tables.seed,
        "timezone": state.config.timezone,
    }
    for part in saved:
        facts |= part.facts
    files = [part.files for part in saved]
    return Saved(facts, lambda _: {name: file for of in files for name, file in of(words).items()})


def assemble(saved: Saved, copy: TablesCopy) -> Content:
    """Files of a checkpoint. Rows are in the order of slots, as they were copied."""
    files = {**copy.arrays(), **saved.files(None)}
    tables = {name: file for name, file in files.items() if isinstance(file, pa.Table)}
    arrays = {name: file for name, file in files.items() if not isinstance(file, pa.Table)}
    return Content(saved.facts, arrays, tables)


def restore(state: ServerState, content: Content, where: str) -> None:
    """Put a checkpoint's content into a fresh state; ConfigError when it does not fit."""
    started = {
        "dim": state.dim,
        "buckets": state.composer.buckets,
        **state.rows.layout,
    }
    content = _migrated(content)
    check_facts(content.facts, started, readable=READABLE, where=where, who="server")
    state.config.check_timezone(content.facts["timezone"], f"state_dir {where}")
    digest = content.facts["config_digest"]
    if state.reports.digest and digest and digest != state.reports.digest:
        raise ConfigError(
            f"state_dir {where}: its checkpoint is of configuration {digest[:12]}, the server was "
            f"started with {state.reports.digest[:12]}; use that or an empty folder."
        )
    state.tables.seed = content.facts["seed"]
    for part in state.parts.values():
        part.load(content)
    accounts = state.accounts
    awaited = {*accounts.tracker.nodes, *accounts.readers.nodes}
    until = time.monotonic() + state.machine.config.liveness_timeout_s
    accounts.tracker.expect(awaited, until=until)


_RENAMED = {
    "cut": "closed_windows",
    "closed": "snapshots",
    "amendable": "revisable",
    "weight": "decay_weight",
    "published": "event_times",
}
"""Facts of format 3."""


def _migrated(content: Content) -> Content:
    """A checkpoint of format 3 as one of this format."""
    if content.facts.get("format") != 3:
        return content
    facts = {_RENAMED.get(name, name): fact for name, fact in content.facts.items()}
    facts["readers_of"] = {
        source: {"event_times": readers["heard"], "pending": readers["pending"]}
        for source, readers in facts.pop("reading").items()
    }
    facts = {"split": "rows", **facts, "format": _FORMAT}
    return Content(facts, content.arrays, content.tables)
