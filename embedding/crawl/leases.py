"""The leases in the frontier's database: the state machine of `lease.py`, one beat a transaction.

One row of `frontier_pool` is locked first, so beats of several nodes never overlap; on SQLite the
write lock does that. PostgreSQL's clock is the clock of all nodes, on SQLite it is the machine's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa

from embedding.crawl.lease import (
    Heartbeat,
    Incarnation,
    IncompleteError,
    Lease,
    LeaseConfig,
    LeaseView,
    Pool,
    Rest,
    Seat,
    shown,
)
from embedding.crawl.tables import BLOCKED, LEASES, NODES, POOL_TABLE, READING
from embedding.kernel.config import WITH_SECRETS
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import SOURCES

_NO_DEBTS = json.dumps([])
_CONCERNED = sa.select(*(column for column in LEASES.c if column.name != "settings"))
_CHANGE = (
    sa.update(LEASES)
    .where(LEASES.c.source == sa.bindparam("of"))
    .values(
        {
            column.name: sa.bindparam(column.name)
            for column in LEASES.c
            if column.name not in ("source", "settings")
        }
    )
)


class Leases:
    """The pool's leases. Safe for several threads and processes."""

    def __init__(
        self, engine: sa.Engine, config: LeaseConfig, lock: AbstractContextManager[object]
    ) -> None:
        self._engine = engine
        self._config = config
        self._lock = lock

    def publish(self, sources: Sequence[SourceConfig]) -> None:
        """From now on the pool reads these sources; nodes that run hear of it with a beat.

        A blocked source is left out (`rewinding.py`).
        """
        with self._lock, self._engine.begin() as connection:
            pool, before = self._load(connection, lock=True)
            blocked = set(connection.execute(sa.select(BLOCKED.c.source)).scalars())
            sources = [source for source in sources if source.name not in blocked]
            pool.publish({source.name: cost(source) for source in sources})
            self._store(connection, before, pool)
            for source in sources:
                connection.execute(
                    sa.update(LEASES)
                    .where(LEASES.c.source == source.name)
                    .values(settings=_settings(source))
                )

    def beat(
        self, incarnation: Incarnation, heartbeat: Heartbeat, now: float | None = None
    ) -> LeaseView:
        """A heartbeat; what the node may read. `now` is the database's clock if not given."""
        with self._lock, self._engine.begin() as connection:
            pool, before = self._load(connection, lock=True, of=(incarnation.node, heartbeat))
            at = self._now(connection) if now is None else now
            try:
                standing = pool.beat(incarnation, heartbeat, at)
            except IncompleteError:
                pool, before = self._load(connection, lock=True)
                standing = pool.beat(incarnation, heartbeat, at)
            self._store(connection, before, pool)
        return standing

    def sources(self, names: Sequence[str] | None = None) -> list[SourceConfig]:
        """The published sources, or those of these names."""
        query = sa.select(LEASES.c.settings).where(LEASES.c.gone.is_(False))
        if names is not None:
            query = sa.select(LEASES.c.settings).where(LEASES.c.source.in_(list(names)))
        with self._lock, self._reading().begin() as connection:
            rows = connection.execute(query.order_by(LEASES.c.source)).fetchall()
        return [SourceConfig.model_validate_json(row[0]) for row in rows if row[0]]

    def show(self) -> dict[str, Any]:
        """Nodes, rates and owners, JSON-safe."""
        with self._lock, self._reading().begin() as connection:
            pool, _ = self._load(connection, lock=False)
            return dict(shown(pool, self._now(connection)))

    def _reading(self) -> sa.Engine:
        return self._engine.execution_options(**{READING: True})

    def _now(self, connection: sa.Connection) -> float:
        if self._engine.dialect.name != "postgresql":
            return time.time()
        clock = sa.func.extract("epoch", sa.func.clock_timestamp())
        return float(connection.execute(sa.select(clock)).scalar_one())

    def _load(
        self,
        connection: sa.Connection,
        *,
        lock: bool,
        of: tuple[str, Heartbeat] | None = None,
    ) -> tuple[Pool, tuple[dict[str, Lease], dict[str, Seat]]]:
        """The pool as it is stored, and copies to compare with.

        of  a heartbeat and its node: only what it concerns is loaded, the rest is added up
        """
        query = sa.select(POOL_TABLE.c.allocated_at, POOL_TABLE.c.moves)
        row = connection.execute(query.with_for_update() if lock else query).fetchone()
        wanted = _CONCERNED if of is None else _CONCERNED.where(_concerns(*of))
        found = [_lease(each) for each in connection.execute(wanted).fetchall()]
        leases = {lease.source: lease for lease in found}
        rest = {} if of is None else self._rest(connection, leases)
        seats = {
            each.node: Seat(each.node, each.mark, each.until)
            for each in connection.execute(sa.select(NODES)).fetchall()
        }
        at, moves = (0.0, 0) if row is None else (row.allocated_at, row.moves)
        pool = Pool(self._config, dict(seats), dict(leases), at, moves, rest)
        return pool, (leases, seats)

    def _rest(
        self, connection: sa.Connection, loaded: Mapping[str, Lease]
    ) -> dict[str | None, Rest]:
        known = LEASES.c.measured >= self._config.allocate_every
        query = (
            sa.select(
                LEASES.c.wanted,
                sa.func.count(),
                sa.func.sum(sa.case((known, LEASES.c.rate), else_=0.0)),
                sa.func.sum(sa.case((known, LEASES.c.cost), else_=0.0)),
                sa.func.sum(sa.case((known, 0.0), else_=LEASES.c.cost)),
            )
            .where(LEASES.c.gone.is_(False), LEASES.c.source.not_in(list(loaded)))
            .group_by(LEASES.c.wanted)
        )
        return {row[0]: Rest(*row[1:]) for row in connection.execute(query).fetchall()}

    def _store(
        self,
        connection: sa.Connection,
        before: tuple[Mapping[str, Lease], Mapping[str, Seat]],
        pool: Pool,
    ) -> None:
        """Write what has changed."""
        leases, seats = before
        connection.execute(
            sa.update(POOL_TABLE).values(allocated_at=pool.allocated_at, moves=pool.moves)
        )
        changed = []
        for name, lease in pool.leases.items():
            known = leases.get(name)
            if known is None:
                connection.execute(sa.insert(LEASES).values(source=name, **_row(lease)))
            elif known is not lease and known != lease:
                changed.append({"of": name, **_row(lease)})
        if changed:
            connection.execute(_CHANGE, changed)
        for node, seat in pool.seats.items():
            if node not in seats:
                connection.execute(sa.insert(NODES).values(**asdict(seat)))
            elif seats[node] is not seat:
                changes = {"mark": seat.mark, "until": seat.until}
                connection.execute(sa.update(NODES).where(NODES.c.node == node).values(**changes))


def _concerns(node: str, heartbeat: Heartbeat) -> sa.ColumnElement[bool]:
    """Leases that a heartbeat of `node` may change, or that may owe to it."""
    return sa.or_(
        LEASES.c.wanted == node,
        LEASES.c.holder.startswith(f"{node} ", autoescape=True),
        LEASES.c.debts != _NO_DEBTS,
        LEASES.c.source.in_(sorted(heartbeat.holds)),
    )


def _settings(source: SourceConfig) -> str:
    """As the nodes that read it need them."""
    return source.model_dump_json(exclude_defaults=True, context=WITH_SECRETS)


def cost(source: SourceConfig) -> float:
    """What a source is taken for before its rate is known: a browser costs as much as two."""
    return 2.0 if SOURCES.traits(source.kind).browser else 1.0


def _lease(row: Any) -> Lease:
    return Lease(
        source=row.source,
        cost=row.cost,
        rate=row.rate,
        measured=row.measured,
        wanted=row.wanted,
        gone=row.gone,
        holder=None if row.holder is None else Incarnation.of(row.holder),
        until=row.until,
        fence=row.fence,
        debts=()
        if row.debts == _NO_DEBTS
        else tuple(Incarnation.of(text) for text in json.loads(row.debts)),
    )


def _row(lease: Lease) -> dict[str, Any]:
    values = asdict(replace(lease, holder=None, debts=()))
    values.pop("source")
    holder = None if lease.holder is None else str(lease.holder)
    return {
        **values,
        "holder": holder,
        "debts": json.dumps([str(incarnation) for incarnation in lease.debts]),
    }
