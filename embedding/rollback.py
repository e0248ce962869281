"""Going back to before a bad window: a composition of every room that remembers.

1. The pool of nodes ends: their replay memories hold what is to be forgotten.
2. The frontier has the documents since then as new again; a poisoned source is blocked.
3. The snapshots since then are withdrawn (their files stay).
4. The server begins again from the snapshot before; its old state is kept in a folder beside it.
5. MLflow's aliases go back to versions that passed the gate.
6. The pool starts, and the windows are learnt again, without the blocked source.

Each step can be done twice: after a failure the same call goes on. A file in the home says what was
begun, since after the third step no list of snapshots shows what is to be forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from embedding.cluster import attach_pool, stop_pool
from embedding.crawl.rewinding import Rewound, block, rewind
from embedding.evaluation.registry import withdraw_versions
from embedding.exchange.peer import ask
from embedding.kernel.durable import replaced
from embedding.kernel.errors import InputError, PlatformError, UnavailableError
from embedding.kernel.private import private_folder
from embedding.server.recovery.rewriting import NOTHING
from embedding.settings import Settings
from embedding.snapshots.format import Manifest
from embedding.snapshots.store import SnapshotStore

BEGINNING = datetime.fromtimestamp(0, UTC)
RESTART_SECONDS = 120.0
Tell = Callable[[str], None]


@dataclass(frozen=True)
class RollbackRequest:
    """What was asked, by which a retry is known.

    run  whose retries may find it done, such as a run of a DAG; "": nobody's
    """

    to: str | None = None
    source: str | None = None
    since: str | None = None
    run: str = ""


@dataclass(frozen=True)
class Plan:
    """What a rollback will do.

    base       snapshot to go back to; None: to the beginning
    since      end of its window: documents from then on are read again
    withdrawn  snapshots that are taken out of the series, oldest first
    source     the source that is blocked, None for none
    reason     what is written beside all of it
    request    what was asked
    """

    base: str | None
    since: datetime
    withdrawn: tuple[str, ...]
    source: str | None
    reason: str
    request: RollbackRequest = RollbackRequest()


@dataclass(frozen=True)
class RolledBack:
    """What a rollback did: documents that are read again, versions by alias, nodes that run."""

    plan: Plan
    rewound: Rewound
    aliases: dict[str, str | None]
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class _Record:
    """The last rollback of a home; `done`: None while it is not."""

    plan: Plan
    done: RolledBack | None = None


_RECORDS = TypeAdapter(_Record)


def plan_rollback(
    settings: Settings,
    *,
    to: str | None = None,
    source: str | None = None,
    since: str | None = None,
    reason: str = "",
    run: str = "",
) -> Plan:
    """Which snapshots go, and where training goes on from; nothing is changed.

    to      go back to this snapshot (or `nothing`); with it neither `source` nor `since` is needed
    source  block this source; and, without `to`, go back to before the first window that holds
            any of it
    since   label of the first window to be forgotten, for a `source` that was good before
    run     by which `finished_rollback` finds it afterwards

    The same request as one that was not finished goes on with that. Raises InputError for a
    combination that says nothing, and for a snapshot or a window that is not there.
    """
    request = RollbackRequest(to, source, since, run)
    store = SnapshotStore(settings.snapshot_store)
    record = _read_record(settings)
    begun = record.plan if record is not None and record.done is None else None
    manifests = {ref.id: store.manifest(ref.id) for ref in store.list()}
    if to is not None and since is not None:
        raise InputError("rollback: a snapshot to go back to or a window, not both.")
    if begun is not None and begun.request == request:
        base = None if begun.base is None else store.require(begun.base)
    elif to is not None:
        base = None if to == NOTHING else store.require(to)
    elif since is not None:
        base = _before(manifests, manifests[store.require(since)])
    elif source is not None:
        first = next((m for m in _by_time(manifests) if m.tokens.get(source)), None)
        if first is None:
            seen = sorted({name for m in manifests.values() for name in m.tokens})
            raise InputError(
                f"rollback: no snapshot holds text of source {source!r}; they hold "
                f"{', '.join(seen) or 'none'}."
            )
        base = _before(manifests, first)
    else:
        raise InputError(
            "rollback: a snapshot to go back to, a source or a first window is needed."
        )
    end = BEGINNING if base is None else manifests[base].window.end.astimezone(UTC)
    gone = tuple(m.id for m in _by_time(manifests) if m.window.end > end)
    if begun is not None:
        # Models of what an earlier try has withdrawn may still be named by an alias.
        away = store.withdrawn()
        gone = (*(name for name in begun.withdrawn if name in away), *gone)
    why = reason or (f"source {source} was left out" if source else f"rolled back to {base}")
    return Plan(base, end, gone, source, why, request)


def finished_rollback(settings: Settings, run: str) -> RolledBack | None:
    """What the last rollback did, if it was this run's and is done; PlatformError: unreadable."""
    record = _read_record(settings)
    if record is None or record.plan.request.run != run:
        return None
    return record.done


def roll_back(settings: Settings, plan: Plan, *, restart: bool = True, tell: Tell) -> RolledBack:
    """Do it; `tell` hears a sentence for each step. Raises YeoronError where a step fails."""
    _write_record(settings, _Record(plan))
    ended = stop_pool(settings)
    tell(f"Nodes stopped: {', '.join(ended) or 'none ran'}.")
    frontier = settings.database_address("frontier")
    without = () if plan.source is None else (plan.source,)
    if plan.source is not None:
        block(frontier, plan.source, plan.reason)
        tell(f"Source {plan.source} is blocked.")
    rewound = rewind(frontier, plan.since.timestamp(), without=without)
    tell(
        f"{rewound.addresses:,} documents will be fetched again, {rewound.listed:,} be taken from "
        "their listings as far as those still have them."
    )
    SnapshotStore(settings.snapshot_store).withdraw(plan.withdrawn, plan.reason)
    tell(f"{len(plan.withdrawn)} snapshots withdrawn.")
    _restart_server(settings, plan.base or NOTHING)
    tell(f"The server goes on from {plan.base or 'nothing'}.")
    wanted = settings.evaluation
    aliases = withdraw_versions(
        plan.withdrawn,
        plan.reason,
        tracking_uri=settings.tracking_address,
        model_name=wanted.model_name,
        best_by=wanted.best_by,
    )
    nodes: tuple[str, ...] = ()
    if restart:
        nodes = tuple(attach_pool(settings).nodes)
        tell(f"Nodes started: {', '.join(nodes)}.")
    done = RolledBack(plan, rewound, aliases, nodes)
    _write_record(settings, _Record(plan, done))
    return done


def _record_file(settings: Settings) -> Path:
    return settings.paths.home / "rollback.json"


def _read_record(settings: Settings) -> _Record | None:
    path = _record_file(settings)
    try:
        return _RECORDS.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise PlatformError(
            f"{path}: cannot be read; remove it if no rollback was cut off."
        ) from error


def _write_record(settings: Settings, record: _Record) -> None:
    private_folder(settings.paths.home)
    with replaced(_record_file(settings)) as file:
        file.write(_RECORDS.dump_json(record, indent=1))


def _by_time(manifests: dict[str, Manifest]) -> list[Manifest]:
    return sorted(manifests.values(), key=lambda m: (m.window.start, m.window.end))


def _before(manifests: dict[str, Manifest], first: Manifest) -> str | None:
    """The last snapshot whose window ends before that of `first` begins."""
    earlier = [m for m in _by_time(manifests) if m.window.end <= first.window.start]
    return earlier[-1].id if earlier else None


def _ask(settings: Settings, name: str, body: dict[str, Any]) -> Any:
    return ask(settings.server_location, settings.line(operator=True), name, body)


def _restart_server(settings: Settings, to: str) -> None:
    """Have the server begin again from a snapshot, and wait until its next incarnation answers.

    An answer that is lost is asked for again: going back twice ends where going back once does,
    and another incarnation alone does not say that it began from there.
    """
    deadline = time.monotonic() + RESTART_SECONDS
    before = ""
    while True:
        try:
            epoch = str(_ask(settings, "status", {})["epoch"])
            if before and epoch != before:
                return
            if not before:
                _ask(settings, "rollback", {"to": to})
                before = epoch
        except UnavailableError as error:
            if not before and time.monotonic() > deadline:
                raise UnavailableError(f"rollback: {error}") from error
        if time.monotonic() > deadline:
            raise PlatformError(
                f"the parameter server was not back within {RESTART_SECONDS:.0f} s after its "
                "rollback; its log says why."
            )
        time.sleep(0.3)
