"""What a checkpoint holds of a server's state, and how a server goes on from one."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from embedding.exchange.codec import phrase_header
from embedding.kernel.errors import ConfigError, UnavailableError
from embedding.kernel.records import Phrase
from embedding.server.figures.reports import lasting
from embedding.server.grouping import Followers
from embedding.server.ledger.sequence import Journal, read_journal
from embedding.server.policies.board import ClockEntry
from embedding.server.recovery.checkpoint import CheckpointFolder, Content, check_facts
from embedding.server.recovery.checkpointer import Checkpointer
from embedding.server.rows.tables import TablesCopy
from embedding.server.state import ServerState
from embedding.server.words.digests import (
    DIGEST_BYTES,
    digest_column,
    float_column,
    names_of,
    string_column,
)

logger = logging.getLogger(__name__)

_FORMAT = 2
"""2: words without a row are digests; in 1 they stood there as they are."""
READABLE = (1, _FORMAT)


class Recovery(Checkpointer):
    """Writes checkpoints in the background and restores the newest on construction.

    parts  whose facts are kept beside the state, and restored after it
    """

    def __init__(
        self,
        state: ServerState,
        folder: CheckpointFolder,
        *,
        every_s: float,
        parts: Sequence[Followers] = (),
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
                state.ledger.persisted(_applied(state))
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
            collected = collect(state, self._parts)
            copy = state.rows.own_copy()
            pause = time.perf_counter() - began
        old.close()
        longest = copy.finish(state.lock)
        state.rows.keep_first()
        self._folder.write(number, assemble(state, collected, copy))
        self._written = mark
        with state.lock:
            state.meters.checkpointed(max(pause, longest), time.monotonic())
            state.ledger.persisted(collected["facts"]["applied"])
        logger.info("checkpoint %d: %d words", number, collected["facts"]["words"])

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


def _listed(state: ServerState) -> list[Phrase]:
    """Phrases that have a row: any other may be a rare name."""
    known = list(state.accounts.phrases.values())
    rows = state.vocabulary.ids([phrase.word for phrase in known])
    return [phrase for phrase, row in zip(known, rows.tolist(), strict=True) if row >= 0]


def _applied(state: ServerState) -> dict[str, int]:
    return {name: entry.applied for name, entry in state.ledger.nodes.items()}


def collect(state: ServerState, parts: Sequence[Followers] = ()) -> dict[str, Any]:
    """Copies of everything but the rows (under the lock; quick)."""
    vocabulary, accounts = state.vocabulary, state.accounts
    ids = vocabulary.alive()
    meters = accounts.meters
    return {
        "facts": {
            "format": _FORMAT,
            "dim": state.dim,
            "buckets": state.composer.buckets,
            "seed": state.tables.seed,
            **state.rows.facts(),
            "config_digest": state.reports.digest,
            "timezone": state.config.timezone,
            "words": len(ids),
            "next_id": vocabulary.next_id,
            "weight": vocabulary.decay.weight,
            "applied": _applied(state),
            "clocks": {m.name: m.clock for m in state.machine.board.members.values()},
            **{name: each for part in parts for name, each in part.facts().items()},
            "node_tokens": {name: e.tokens for name, e in state.ledger.nodes.items()},
            "places": {name: e.applied_offset for name, e in state.ledger.nodes.items()},
            "closed_vocabulary": vocabulary.closed,
            "tokenizers": list(accounts.tokenizers),
            "phrases": phrase_header(_listed(state)),
            "told": lasting(state.reports.last),
            "departed": sorted(state.reports.departed),
            "usage": accounts.usage.facts(),
            "shifts": accounts.shifts.facts(),
            "readers": accounts.readers.facts(),
            "cut": sorted(accounts.cut),
            "amendable": _by_window(accounts.published),
            "closed": dict(accounts.closed),
            "totals": {name: getattr(meters, name) for name in _TOTALS},
            "sources": {
                name: [m.documents, m.tokens, m.late] for name, m in meters.sources.items()
            },
            "published": {
                name: source.published for name, source in accounts.tracker.sources.items()
            },
            "watermark": accounts.tracker.watermark,
            "reading": accounts.tracker.reading(),
            "window_tokens": _by_window(accounts.windows.tokens),
            "window_documents": _by_window(accounts.windows.documents),
        },
        "ids": ids,
        "names": vocabulary.names(ids),
        "slots": vocabulary.slots(ids, "checkpoint"),
        "stored": vocabulary.stored(ids),
        "last_seen": vocabulary.last_seen(ids),
        "candidates": dict(vocabulary.candidates),
        "young": state.accounts.rare.content(),
        "usage": accounts.usage.content() | accounts.shifts.content(),
        "windows": {start: accounts.windows.held(start) for start in accounts.windows.windows()},
    }


_TOTALS = (
    *("pushes", "duplicates", "refused", "tokens", "replayed_tokens", "documents"),
    *("loss_sum", "pairs", "dropped_pushes", "dropped_tokens", "dropped_rows", "dropped_counts"),
)


def assemble(state: ServerState, collected: dict[str, Any], copy: TablesCopy) -> Content:
    """Files of a checkpoint. Rows are in the order of slots, as they were copied."""
    ids = collected["ids"]
    arrays = copy.arrays() | collected["young"]() | collected["usage"]
    candidates, words = collected["candidates"], string_column(collected["names"])
    digests = state.vocabulary.candidates.digests
    tables = {
        "words": pa.table(
            {
                "word": words,
                "id": ids,
                "slot": collected["slots"],
                "stored": collected["stored"],
                "last_seen": collected["last_seen"],
            }
        ),
        "candidates": pa.table(
            {
                "digest": digest_column(candidates, DIGEST_BYTES),
                "stored": float_column(candidates.values(), len(candidates)),
            }
        ),
    }
    named = names_of(ids, words)
    for start, held in collected["windows"].items():
        hidden = partial(digests.hidden, shown=words)
        tables[f"window.{start}"] = held.table(named, hidden)
    return Content(collected["facts"], arrays, tables)


def restore(
    state: ServerState, content: Content, where: str, parts: Sequence[Followers] = ()
) -> None:
    """Put a checkpoint's content into a fresh state; ConfigError when it does not fit."""
    facts = content.facts
    started = {
        "dim": state.dim,
        "buckets": state.composer.buckets,
        "shards": state.config.shards,
        "split": state.config.split,
    }
    check_facts(facts, started, readable=READABLE, where=where, who="server")
    state.config.check_timezone(facts.get("timezone", "UTC"), f"state_dir {where}")
    digest = facts["config_digest"]
    if state.reports.digest and digest and digest != state.reports.digest:
        raise ConfigError(
            f"state_dir {where}: its checkpoint is of configuration {digest[:12]}, the server was "
            f"started with {state.reports.digest[:12]}; use that or an empty folder."
        )
    state.reports.digest = state.reports.digest or digest
    state.tables.seed = facts["seed"]
    _restore_rows(state, content)
    state.accounts.rare.restore(content.arrays)
    state.accounts.usage.restore(facts.get("usage", []), content.arrays)
    state.accounts.shifts.restore(facts.get("shifts", []), content.arrays)
    state.accounts.readers.restore(facts.get("readers", {}))
    _restore_accounts(state, content)
    state.reports.last.update(facts.get("told", {}))
    state.reports.departed.update(facts.get("departed", ()))
    for node, sequence in facts["applied"].items():
        tokens, places = facts["node_tokens"], facts.get("places", {})
        state.ledger.restore(node, sequence, tokens.get(node, 0), places.get(node, ""))
    for node, clock in facts["clocks"].items():
        state.machine.board.members[node] = ClockEntry(node, clock=clock)
    for part in parts:
        part.restore(facts)


def _restore_rows(state: ServerState, content: Content) -> None:
    words = content.tables["words"]
    ids = words["id"].to_numpy()
    slots = state.vocabulary.restore(
        words=words["word"].to_pylist(),
        ids=ids,
        stored=words["stored"].to_numpy(),
        last_seen=words["last_seen"].to_numpy(),
        next_id=content.facts["next_id"],
        weight=content.facts["weight"],
        candidates=_candidates(state, content.tables["candidates"]),
    )
    if content.facts.get("closed_vocabulary"):
        state.vocabulary.shut()
    state.rows.restore(content.facts, content.arrays, slots, words["slot"].to_numpy())


def _candidates(state: ServerState, table: pa.Table) -> dict[bytes, float]:
    """Stored counts of words without a row by digest."""
    digests = state.vocabulary.candidates.digests
    if "word" in table.column_names:  # format 1
        keys = [digests.of(word) for word in table["word"].to_pylist()]
    else:
        keys = table["digest"].to_pylist()
    return dict(zip(keys, table["stored"].to_pylist(), strict=True))


def _restore_accounts(state: ServerState, content: Content) -> None:
    facts, accounts = content.facts, state.accounts
    for name in _TOTALS:
        setattr(accounts.meters, name, facts["totals"].get(name, 0))
    for name, (documents, tokens, late) in facts["sources"].items():
        meter = accounts.meters.source(name)
        meter.documents, meter.tokens, meter.late = documents, tokens, late
    now = time.monotonic()
    for name, published in facts["published"].items():
        if published is not None:
            accounts.tracker.progress(name, published, now=now)
    accounts.tracker.watermark = facts["watermark"]
    patience = state.machine.config.liveness_timeout_s
    readers = accounts.tracker.restore(facts.get("reading", {}))
    accounts.tracker.expect({*readers, *accounts.readers.nodes}, until=now + patience)
    accounts.tokenizers.update(dict.fromkeys(facts["tokenizers"]))
    accounts.note(Phrase(w, tuple(p), *rest) for w, p, *rest in facts.get("phrases", []))
    accounts.closed.update(facts["closed"])
    for start, documents in facts.get("amendable", {}).items():
        accounts.published[int(start)] = dict(documents)
    windows = accounts.windows
    for held, name in ((windows.tokens, "tokens"), (windows.documents, "documents")):
        for start, by_source in facts[f"window_{name}"].items():
            held[int(start)] = dict(by_source)
    for name, table in content.tables.items():
        if name.startswith("window."):
            windows.replace(int(name.removeprefix("window.")), table)
    # A window whose counts are still there was being published. Its snapshot may not exist, so it
    # is cut again, before those after it; if it exists, `Cutter.forget_published` closes it.
    accounts.cut |= set(facts["cut"]) - (set(windows.windows()) - accounts.published.keys())


def _by_window(held: dict[int, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {str(start): dict(by_source) for start, by_source in held.items()}
