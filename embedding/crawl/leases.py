"""The leases in the frontier's database: the state machine of `lease.py`, one beat a transaction.

One row of `frontier_pool` is locked first, so beats of several nodes never overlap; on SQLite the
write lock does that. PostgreSQL's clock is the clock of all nodes, on SQLite it is the machine's.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from embedding.crawl.lease import (
    Heartbeat,
    Incarnation,
    IncompleteError,
    Lease,
    LeaseConfig,
    LeaseView,
    Others,
    Pool,
    Seat,
    shown,
)
from embedding.crawl.tables import BLOCKED, LEASES, NODES, OWING, POOL_TABLE, READING
from embedding.kernel.config import WITH_SECRETS
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import SOURCES

_NO_DEBTS = json.dumps([])
_ALL = sa.select(*(column for column in LEASES.c if column.name != "settings"))
_NODE: sa.BindParameter[str] = sa.bindparam("node")
_CONCERNING = _ALL.where(
    LEASES.c.source.in_(
        sa.union_all(
            sa.select(LEASES.c.source).where(LEASES.c.wanted == _NODE),
            sa.select(LEASES.c.source).where(
                sa.func.substr(LEASES.c.holder, 1, sa.func.length(sa.bindparam("life")))
                == sa.bindparam("life")
            ),
            sa.select(LEASES.c.source).where(
                OWING, LEASES.c.debts.like(sa.bindparam("owes"), escape="/")
            ),
            sa.select(LEASES.c.source).where(
                LEASES.c.source.in_(sa.bindparam("holds", expanding=True))
            ),
        )
    )
)
"""Leases that a heartbeat of a node may change, or that may owe to it: each part by an index.

life  the node's name and a blank: what its incarnations begin with as `holder`
owes  a pattern of `debts` that name one of them
"""
_SEAT = sa.select(NODES).where(NODES.c.node == _NODE)
_KNOWN = sa.select(
    sa.func.sum(LEASES.c.rate).label("rate"), sa.func.sum(LEASES.c.cost).label("cost")
).where(
    LEASES.c.measured >= sa.bindparam("enough"),
    ~LEASES.c.gone,
    LEASES.c.source.not_in(sa.bindparam("loaded", expanding=True)),
)
_READ_BY_IT = sa.exists().where(LEASES.c.wanted == NODES.c.node)
_OTHER = NODES.c.node != _NODE
_SUMMARY = sa.select(
    sa.select(sa.func.max(NODES.c.until)).scalar_subquery().label("latest"),
    sa.exists().where(LEASES.c.wanted.is_(None), ~LEASES.c.gone).label("homeless"),
    sa.exists().where(_OTHER, NODES.c.until <= sa.bindparam("at"), _READ_BY_IT).label("orphaned"),
    sa.exists().where(_OTHER, NODES.c.until > sa.bindparam("at"), ~_READ_BY_IT).label("idle"),
)
"""Of the nodes but one, and of all sources: whether a source has no node, whether one has a node
that is dead, whether a node that is alive is to read nothing."""
_SEVERAL = (
    sa.select(LEASES.c.wanted)
    .where(LEASES.c.wanted.is_not(None))
    .group_by(LEASES.c.wanted)
    .having(sa.func.count() > 1)
    .limit(1)
)
_SEAT_CHANGE = (
    sa.update(NODES)
    .where(NODES.c.node == sa.bindparam("of"))
    .values(mark=sa.bindparam("mark"), until=sa.bindparam("until"))
)
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


_Loaded = tuple[Mapping[str, Lease], Mapping[str, Seat]]
"""What was in the database before a change."""


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
            stored = self._stored(connection, lock=True)
            pool, before = self._load(connection, stored)
            blocked = set(connection.execute(sa.select(BLOCKED.c.source)).scalars())
            sources = [source for source in sources if source.name not in blocked]
            pool.publish({source.name: cost(source) for source in sources})
            self._store(connection, before, pool, stored)
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
            stored = self._stored(connection, lock=True)
            at = self._now(connection) if now is None else now
            pool, before = self._load_part(connection, stored, incarnation.node, heartbeat, at)
            try:
                view = pool.beat(incarnation, heartbeat, at)
            except IncompleteError:
                pool, before = self._load(connection, stored)
                view = pool.beat(incarnation, heartbeat, at)
            self._store(connection, before, pool, stored)
        return view

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
            pool, _ = self._load(connection, self._stored(connection, lock=False))
            return dict(shown(pool, self._now(connection)))

    def _reading(self) -> sa.Engine:
        return self._engine.execution_options(**{READING: True})

    def _now(self, connection: sa.Connection) -> float:
        if self._engine.dialect.name != "postgresql":
            return time.time()
        # Not now(), which is when the transaction began: that was before it waited for the lock,
        # so beats would be judged by times in another order than they come.
        clock = sa.func.extract("epoch", sa.func.clock_timestamp())
        return float(connection.execute(sa.select(clock)).scalar_one())

    def _stored(self, connection: sa.Connection, *, lock: bool) -> tuple[float, int]:
        """When sources were last allocated, and how many have changed nodes."""
        query = sa.select(POOL_TABLE.c.allocated_at, POOL_TABLE.c.moves)
        row = connection.execute(query.with_for_update() if lock else query).fetchone()
        return (0.0, 0) if row is None else (row.allocated_at, row.moves)

    def _load(self, connection: sa.Connection, stored: tuple[float, int]) -> tuple[Pool, _Loaded]:
        """The pool as it is stored, and what to compare it with."""
        leases = _leases(connection, _ALL)
        seats = _seats(connection, sa.select(NODES))
        return Pool(self._config, dict(seats), dict(leases), *stored), (leases, seats)

    def _load_part(
        self,
        connection: sa.Connection,
        stored: tuple[float, int],
        node: str,
        heartbeat: Heartbeat,
        now: float,
    ) -> tuple[Pool, _Loaded]:
        """The node, the leases that concern its heartbeat, and a summary of the others."""
        concerning = {
            "node": node,
            "holds": sorted(heartbeat.holds),
            "life": f"{node} ",
            "owes": f'%"{_literal(json.dumps(node)[1:-1])} %',
        }
        leases = _leases(connection, _CONCERNING, concerning)
        seats = _seats(connection, _SEAT, {"node": node})
        rate, cost = 0.0, 0.0
        if any(each.measured < self._config.allocate_every for each in leases.values()):
            values = {"enough": self._config.allocate_every, "loaded": list(leases)}
            rate, cost = connection.execute(_KNOWN, values).one()
        values = {"node": node, "at": self._config.last_round(now)}
        summary = connection.execute(_SUMMARY, values).one()
        idle = summary.idle or not any(each.wanted == node for each in leases.values())
        several = idle and connection.execute(_SEVERAL).fetchone() is not None
        others = Others(
            rate or 0.0,
            cost or 0.0,
            latest=now if summary.latest is None else summary.latest,
            uneven=summary.homeless or summary.orphaned or several,
        )
        return Pool(self._config, dict(seats), dict(leases), *stored, others), (leases, seats)

    def _store(
        self,
        connection: sa.Connection,
        before: _Loaded,
        pool: Pool,
        stored: tuple[float, int],
    ) -> None:
        """Write what has changed."""
        leases, seats = before
        if (pool.allocated_at, pool.moves) != stored:
            connection.execute(
                sa.update(POOL_TABLE).values(allocated_at=pool.allocated_at, moves=pool.moves)
            )
        added, changed = [], []
        for name, lease in pool.leases.items():
            known = leases.get(name)
            if known is None:
                added.append({"source": name, **_row(lease)})
            elif known is not lease and known != lease:
                changed.append({"of": name, **_row(lease)})
        if added:
            connection.execute(sa.insert(LEASES), added)
        if changed:
            connection.execute(_CHANGE, changed)
        come = [asdict(seat) for node, seat in pool.seats.items() if node not in seats]
        if come:
            connection.execute(sa.insert(NODES), come)
        for node, seat in pool.seats.items():
            if node in seats and seats[node] is not seat:
                values = {"of": node, "mark": seat.mark, "until": seat.until}
                connection.execute(_SEAT_CHANGE, values)


def _leases(
    connection: sa.Connection, query: sa.Select[Any], values: Mapping[str, Any] | None = None
) -> dict[str, Lease]:
    found = [_lease(row) for row in connection.execute(query, values).fetchall()]
    return {lease.source: lease for lease in found}


def _seats(
    connection: sa.Connection, query: sa.Select[Any], values: Mapping[str, Any] | None = None
) -> dict[str, Seat]:
    rows = connection.execute(query, values).fetchall()
    return {row.node: Seat(row.node, row.mark, row.until) for row in rows}


def _literal(text: str) -> str:
    """As a part of a pattern of LIKE."""
    return re.sub("([/%_])", r"/\1", text)


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
    return {
        "cost": lease.cost,
        "rate": lease.rate,
        "measured": lease.measured,
        "wanted": lease.wanted,
        "gone": lease.gone,
        "holder": None if lease.holder is None else str(lease.holder),
        "until": lease.until,
        "fence": lease.fence,
        "debts": json.dumps([str(incarnation) for incarnation in lease.debts]),
    }
