"""Which addresses are known, being fetched, waiting to be learnt, done or given up.

    new ──claim──► (claimed new) ──fetched──► fetched ──acknowledge──► done
     ▲  └─ postpone ◄──┘ └── fail ► failed        │ recover            │ read_again
     └───────────────────────────────────────────┴────────────────────┘

Never any text: addresses, times, validators and content digests only.

A node's frontier writes only of sources whose lease its incarnation holds (`lease.py`); the check
and the write are one transaction, so a node that was stopped and comes back late changes nothing.
It takes over from other sources what nobody has begun to read and lies on its own site.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from embedding.crawl.addresses import key_digest, storable
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
from embedding.crawl.origins import Publication
from embedding.crawl.tables import (
    AS_NEW,
    BLOCKED,
    LEASES,
    LISTED,
    NODES,
    OVER,
    OWING,
    POLLS,
    POOL_TABLE,
    READ,
    READING,
    URLS,
    USES,
    YIELDS,
    Fetched,
    new_row,
    open_engine,
)
from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.records import batched
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import SOURCES
from embedding.sources.links import same_site

# The leases in the frontier's database: the state machine of `lease.py`, one beat a transaction.
#
# One row of `frontier_pool` is locked first, so beats of several nodes never overlap; on SQLite the
# write lock does that. PostgreSQL's clock is the clock of all nodes, on SQLite it is the machine's.
_NO_DEBTS = json.dumps([])
_ALL = sa.select(*(column for column in LEASES.c if column.name != "settings"))
_NODE: sa.BindParameter[str] = sa.bindparam("node")
_CONCERNING = _ALL.where(
    LEASES.c.source.in_(
        sa.union_all(
            sa.select(LEASES.c.source).where(LEASES.c.wanted == _NODE),
            sa.select(LEASES.c.source).where(
                sa.func.substr(LEASES.c.holder, 1, sa.func.length(sa.bindparam("named")))
                == sa.bindparam("named")
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

named  the node's name and a blank: what its incarnations begin with as `holder`
owes   a pattern of `debts` that name one of them
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
                    .values(
                        settings=source.model_dump_json(exclude_defaults=True, context=WITH_SECRETS)
                    )
                )

    def beat(
        self, incarnation: Incarnation, heartbeat: Heartbeat, now: float | None = None
    ) -> LeaseView:
        """A heartbeat; what the node may read. `now` is the database's clock if not given."""
        with self._lock, self._engine.begin() as connection:
            stored = self._stored(connection, lock=True)
            moment = self._now(connection) if now is None else now
            pool, before = self._load_part(connection, stored, incarnation.node, heartbeat, moment)
            try:
                view = pool.beat(incarnation, heartbeat, moment)
            except IncompleteError:
                pool, before = self._load(connection, stored)
                view = pool.beat(incarnation, heartbeat, moment)
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
        return self._pool(connection, stored, _ALL, sa.select(NODES), {})

    def _pool(
        self,
        connection: sa.Connection,
        stored: tuple[float, int],
        leases: sa.Select[Any],
        seats: sa.Select[Any],
        values: Mapping[str, Any],
    ) -> tuple[Pool, _Loaded]:
        """A pool of what two queries give, which take the same values, and that once more."""
        rows = connection.execute(leases, values).fetchall()
        known = {row.source: _lease(row) for row in rows}
        nodes = connection.execute(seats, values).fetchall()
        seated = {row.node: Seat(row.node, row.mark, row.until) for row in nodes}
        return Pool(self._config, dict(seated), dict(known), *stored), (known, seated)

    def _load_part(
        self,
        connection: sa.Connection,
        stored: tuple[float, int],
        node: str,
        heartbeat: Heartbeat,
        now: float,
    ) -> tuple[Pool, _Loaded]:
        """The node, the leases that concern its heartbeat, and a summary of the others."""
        named = re.sub("([/%_])", r"/\1", json.dumps(node)[1:-1])  # as LIKE takes it
        concerning = {
            "node": node,
            "holds": sorted(heartbeat.holds),
            "named": f"{node} ",
            "owes": f'%"{named} %',
        }
        pool, loaded = self._pool(connection, stored, _CONCERNING, _SEAT, concerning)
        rate, cost = 0.0, 0.0
        if any(lease.measured < self._config.allocate_every for lease in pool.leases.values()):
            values = {"enough": self._config.allocate_every, "loaded": list(pool.leases)}
            rate, cost = connection.execute(_KNOWN, values).one()
        values = {"node": node, "at": self._config.last_round(now)}
        summary = connection.execute(_SUMMARY, values).one()
        idle = summary.idle or not any(lease.wanted == node for lease in pool.leases.values())
        several = idle and connection.execute(_SEVERAL).fetchone() is not None
        pool.others = Others(
            rate or 0.0,
            cost or 0.0,
            latest=now if summary.latest is None else summary.latest,
            uneven=summary.homeless or summary.orphaned or several,
        )
        return pool, loaded

    def _store(
        self, connection: sa.Connection, before: _Loaded, pool: Pool, stored: tuple[float, int]
    ) -> None:
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


def cost(source: SourceConfig) -> float:
    """What a source is taken for before its rate is known: a browser costs as much as two."""
    return 2.0 if SOURCES.traits(source.kind).browser else 1.0


def _lease(row: Any) -> Lease:
    holder = None if row.holder is None else Incarnation.of(row.holder)
    debts = json.loads(row.debts) if row.debts != _NO_DEBTS else ()
    owed = tuple(map(Incarnation.of, debts))
    return Lease(**{**row._asdict(), "holder": holder, "debts": owed})


def _row(lease: Lease) -> dict[str, Any]:
    holder = None if lease.holder is None else str(lease.holder)
    row = {**vars(lease), "holder": holder, "debts": json.dumps(list(map(str, lease.debts)))}
    del row["source"]
    return row


class SourceStates:
    """States by source, JSON, of one table. Safe for several threads and processes."""

    def __init__(
        self, engine: sa.Engine, lock: AbstractContextManager[object], table: sa.Table
    ) -> None:
        self._engine = engine
        self._lock = lock
        self._table = table

    def save(self, source: str, state: dict[str, Any], now: float) -> None:
        """Keep a state; `now` is Unix seconds."""
        table, values = self._table, {"state": json.dumps(state), "saved_at": now}
        with self._lock, self._engine.begin() as connection:
            updated = sa.update(table).where(table.c.source == source).values(values)
            if connection.execute(updated).rowcount == 0:
                connection.execute(sa.insert(table).values(source=source, **values))

    def load(self, source: str, now: float) -> tuple[dict[str, Any], float] | None:
        """The state and the seconds since it was saved; None when there is none that is whole."""
        engine, table = self._engine.execution_options(**{READING: True}), self._table
        query = sa.select(table.c.state, table.c.saved_at).where(table.c.source == source)
        with self._lock, engine.begin() as connection:
            row = connection.execute(query).first()
        with suppress(ValueError):
            if row is not None and isinstance(state := json.loads(row.state), dict):
                return state, max(0.0, now - float(row.saved_at))
        return None


_BATCH = 400
_OPEN = ("new", "fetched")


@dataclass(frozen=True)
class Claim:
    """A page that was given out to be fetched.

    published_at  Unix seconds; with `is_lastmod` it is when the page was changed last
    address       as it was linked: what is asked for
    """

    key: str
    published_at: float | None
    attempts: int
    address: str
    is_lastmod: bool = False

    @property
    def listed(self) -> Publication:
        """The time that its listing gives."""
        if self.published_at is None:
            return Publication()
        when = datetime.fromtimestamp(self.published_at, UTC)
        return Publication(when, "lastmod" if self.is_lastmod else "listing")


@dataclass(frozen=True)
class _Writing:
    """A transaction of a frontier; `leased` are the sources that it may write, None: all."""

    connection: sa.Connection
    leased: Set[str] | None

    def may(self, source: str) -> bool:
        return self.leased is None or source in self.leased

    def own(self, statement: Any) -> Any:
        """An update of `URLS` narrowed down to these sources."""
        return statement if self.leased is None else statement.where(URLS.c.source.in_(self.leased))

    def update(self, statement: Any) -> int:
        """The number of rows that it changed."""
        return max(0, int(self.connection.execute(self.own(statement)).rowcount))


class Frontier:
    """The frontier on SQLite or PostgreSQL. Safe for several threads and processes."""

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url)
        self._reading = self._engine.execution_options(**{READING: True})
        # One in-memory connection is shared by all threads; files would not need the lock.
        self._lock = threading.RLock()
        self._insert: Any = (
            postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        )
        self._incarnation: Incarnation | None = None
        self.again: dict[str, str] = {}
        """By key, what is read again for how it uses words alone: mark of the process that learnt
        it. Known before a document is given out; whoever reads documents keeps it."""

    def held_by(self, incarnation: Incarnation) -> None:
        """From now on write only of sources whose lease `incarnation` holds."""
        self._incarnation = incarnation

    def leases(self, config: LeaseConfig) -> Leases:
        """Which node reads which source, in the same database."""
        return Leases(self._engine, config, self._lock)

    def polls(self) -> SourceStates:
        """What was learnt of the sources' rates of change, in the same database."""
        return SourceStates(self._engine, self._lock, POLLS)

    def yields(self) -> SourceStates:
        """What was learnt of how much the sources bring, in the same database."""
        return SourceStates(self._engine, self._lock, YIELDS)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[_Writing]:
        """A transaction with the sources that it may write: nobody can take them before it ends."""
        with self._lock, self._engine.begin() as connection:
            leased = None
            if self._incarnation is not None:
                query = sa.select(LEASES.c.source).where(LEASES.c.holder == str(self._incarnation))
                leased = set(connection.execute(query.with_for_update(read=True)).scalars())
            yield _Writing(connection, leased)

    def _run(self, statement: Any) -> int:
        with self._writing() as writing:
            return writing.update(statement)

    def _add(self, statement: Any, source: str, rows: Any) -> int:
        """Execute one insert of rows of `source`; number of rows it touched."""
        with self._writing() as writing:
            if not writing.may(source):
                return 0
            # Without it PostgreSQL's driver tells no number of rows for an insert.
            counted = {"preserve_rowcount": True}
            done = writing.connection.execute(statement, rows, execution_options=counted)
            return max(0, int(done.rowcount))

    def _rows(self, statement: Any) -> Sequence[Any]:
        with self._lock, self._reading.begin() as connection:
            return connection.execute(statement).fetchall()

    def discover(
        self,
        source: str,
        references: Sequence[tuple[str, float | None]],
        now: float,
        listed: Mapping[str, tuple[str, bool]] | None = None,
        *,
        site: str = "",
    ) -> int:
        """Add references (key, published) in the order of their listing; number of new ones.

        listed  by key, the address as it was linked, and whether its time is when it was changed
                last; missing where the address is the key
        site    the source's own address: what waits on this site for a source of another one is
                the source's from now on, and new to it

        Keys that no database could hold (`storable`) are left out, here and in `offer`.
        Listings show the newest first, so that those without a time are ordered from the end.
        """
        rows = [
            new_row(
                key,
                source,
                now,
                published_at=published,
                order_at=now - 1e-3 * position if published is None else published,
            )
            for position, (key, published) in enumerate(references)
            if storable(key)
        ]
        added = 0
        for part in batched([row["key"] for row in rows], _BATCH):
            wanted = set(part) - set(self._known(part))
            if site:
                own = [key for key in part if key not in wanted and same_site(key, site)]
                added += self._take_over(source, own, now)
            fresh = [row for row in rows if row["key"] in wanted]
            if fresh:
                insert = self._insert(URLS).on_conflict_do_nothing(index_elements=["key"])
                self._add(insert, source, fresh)
                added += len({row["key"] for row in fresh})
                noted = [
                    {"key": key, "source": source, "address": address, "is_lastmod": is_lastmod}
                    for key, (address, is_lastmod) in (listed or {}).items()
                    if key in wanted and storable(address)
                ]
                if noted:
                    insert = self._insert(LISTED).on_conflict_do_nothing(index_elements=["key"])
                    self._add(insert, source, noted)
        return added

    def _take_over(self, source: str, keys: Sequence[str], now: float) -> int:
        """Give the source what nobody has begun to read for a source of another site; how many.

        Sites of sources are known where a pool published them.
        """
        waiting = sa.and_(
            URLS.c.key.in_(keys),
            URLS.c.source != source,
            URLS.c.status == "new",
            URLS.c.inline.is_(False),
            URLS.c.claimed_until <= now,
        )
        query = (
            sa.select(URLS.c.key, LEASES.c.settings)
            .where(waiting)
            .join(LEASES, LEASES.c.source == URLS.c.source)
        )
        theirs = [
            (str(key), json.loads(text or "{}").get("url")) for key, text in self._rows(query)
        ]
        taken = [key for key, url in theirs if url and not same_site(key, url)]
        if not taken:
            return 0
        with self._writing() as writing:
            if not writing.may(source):
                return 0
            move = sa.update(URLS).where(waiting, URLS.c.key.in_(taken)).values(source=source)
            moved = writing.connection.execute(move).rowcount
            ours = sa.select(URLS.c.key).where(URLS.c.source == source, URLS.c.key.in_(taken))
            move = sa.update(LISTED).where(LISTED.c.key.in_(ours)).values(source=source)
            writing.connection.execute(move)
        return max(0, int(moved))

    def _known(self, keys: Sequence[str], *conditions: Any) -> list[str]:
        query = sa.select(URLS.c.key).where(URLS.c.key.in_(keys), *conditions)
        return [row[0] for row in self._rows(query)]

    def offer(
        self,
        source: str,
        texts: Sequence[tuple[str, float | None]],
        now: float,
        *,
        again: bool = False,
    ) -> frozenset[str]:
        """Take the keys of inline texts (key, published); those not taken before (or recovered).

        again  the same offer once more, as the database did not say whether it took the first:
               what that one took counts as not taken before
        """
        rows = {
            key: new_row(
                key,
                source,
                now,
                inline=True,
                status="fetched",
                fetched_at=now,
                published_at=published,
                order_at=now if published is None else published,
            )
            for key, published in texts
            if storable(key)
        }
        take = self._insert(URLS).on_conflict_do_update(
            index_elements=["key"],
            set_={"status": "fetched", "fetched_at": now, "inline": True},
            where=sa.and_(
                URLS.c.source == source,
                sa.or_(
                    sa.and_(URLS.c.status == "new", URLS.c.claimed_until < now),
                    sa.and_(URLS.c.status == "fetched", URLS.c.fetched_at == now)
                    if again
                    else sa.false(),
                ),
            ),
        )
        taken: set[str] = set()
        for part in batched(list(rows), _BATCH):
            # Nothing can be taken for those that are past new.
            shut = set() if again else set(self._known(part, URLS.c.status != "new"))
            fresh = [rows[key] for key in part if key not in shut]
            if fresh:
                with self._writing() as writing:
                    if writing.may(source):
                        done = writing.connection.execute(take.returning(URLS.c.key), fresh)
                        keys = done.scalars().all()
                        self._given_out(writing.connection, keys)
                        taken.update(keys)
        return frozenset(taken)

    def _given_out(self, connection: sa.Connection, keys: Sequence[str]) -> None:
        """Know which of these are read again before anybody reads them: others are learnt."""
        if keys:
            these = sa.and_(USES.c.key.in_(keys), USES.c.again.is_(True))
            query = sa.select(USES.c.key, USES.c.life).where(these)
            for key in keys:
                self.again.pop(key, None)
            self.again.update((str(key), str(mark)) for key, mark in connection.execute(query))

    def claim(self, source: str, n: int, now: float, lease: float) -> list[Claim]:
        """Give out up to `n` new references, oldest first, to nobody else for `lease` seconds."""
        due = (
            sa.select(URLS.c.key)
            .where(
                URLS.c.source == source,
                URLS.c.status == "new",
                URLS.c.inline.is_(False),
                URLS.c.not_before <= now,
                URLS.c.claimed_until <= now,
            )
            .order_by(URLS.c.order_at)
            .limit(n)
            .with_for_update(skip_locked=True)
        )
        take = (
            sa.update(URLS)
            .where(URLS.c.key.in_(due.scalar_subquery()))
            .values(claimed_until=now + lease, attempts=URLS.c.attempts + 1)
            .returning(URLS.c.key, URLS.c.published_at, URLS.c.attempts, URLS.c.order_at)
        )
        with self._writing() as writing:
            connection = writing.connection
            claimed = connection.execute(writing.own(take)).fetchall()
            query = sa.select(LISTED).where(LISTED.c.key.in_([row.key for row in claimed]))
            listed = {row.key: row for row in connection.execute(query)} if claimed else {}
            self._given_out(connection, [row.key for row in claimed])
        return [
            Claim(
                row.key,
                row.published_at,
                row.attempts,
                listed[row.key].address if row.key in listed else row.key,
                row.key in listed and bool(listed[row.key].is_lastmod),
            )
            for row in sorted(claimed, key=lambda row: float(row.order_at))
        ]

    def release(self, keys: Sequence[str]) -> None:
        """Give claims back unused; the attempt does not count."""
        for part in batched(keys, _BATCH):
            self._run(
                sa.update(URLS)
                .where(URLS.c.key.in_(part), URLS.c.status == "new")
                .values(claimed_until=0.0, attempts=URLS.c.attempts - 1)
            )

    def record(
        self, fetched: Sequence[Fetched], finished: Sequence[tuple[Fetched, str]], now: float
    ) -> None:
        """Claimed addresses and inline texts that were read, in one transaction.

        fetched   what is handed on; done once it is acknowledged
        finished  what no document comes of, and why (`duplicate`, …)
        """
        if not fetched and not finished:
            return
        with self._writing() as writing:
            read = [
                {
                    "of": page.key,
                    "now": now,
                    "at": page.published,
                    "tag": page.etag,
                    "modified": page.last_modified,
                    "code": page.content_hash,
                }
                for page in fetched
                if writing.may(page.source)
            ]
            over = [
                {"of": page.key, "now": now, "why": why}
                for page, why in finished
                if writing.may(page.source)
            ]
            if read:
                writing.connection.execute(READ, read)
            if over:
                writing.connection.execute(OVER, over)

    def reopen(self, key: str) -> None:
        """What was recorded as fetched could not be handed on after all: it is to be read again."""
        self._run(
            sa.update(URLS)
            .where(URLS.c.key == key, URLS.c.status == "fetched")
            .values(status="new", claimed_until=0.0, content_hash=None)
        )

    def fail(self, key: str, now: float, reason: str) -> None:
        values = {"status": "failed", "reason": reason, "done_at": now, "content_hash": None}
        self._run(sa.update(URLS).where(URLS.c.key == key).values(values))

    def read_undated(self, source: str) -> None:
        """What had no date is new again, and counts for when it was fetched first."""
        self._run(
            sa.update(URLS)
            .where(URLS.c.source == source, URLS.c.status == "failed", URLS.c.reason == "undated")
            .values(**AS_NEW, published_at=URLS.c.done_at, discovered_at=time.time())
        )

    def postpone(self, key: str, until: float, reason: str, *, counts: bool = True) -> None:
        """Try `key` again after `until`; without `counts` this try is forgotten."""
        attempts = URLS.c.attempts - (0 if counts else 1)
        values = {"not_before": until, "claimed_until": 0.0, "reason": reason}
        self._run(
            sa.update(URLS)
            .where(URLS.c.key == key, URLS.c.status == "new")
            .values(**values, attempts=attempts)
        )

    def acknowledge(self, keys: Sequence[str], now: float, mark: str = "") -> int:
        """Mark fetched keys done; number of keys that were waiting for it.

        mark  of the incarnation that learnt them; "": of this one
        """
        if not mark and self._incarnation is not None:
            mark = self._incarnation.mark
        changed = 0
        for part in batched(keys, _BATCH):
            these = sa.and_(URLS.c.key.in_(part), URLS.c.status == "fetched")
            when = sa.func.coalesce(URLS.c.published_at, URLS.c.fetched_at, now)
            used = sa.select(URLS.c.key, URLS.c.source, when, sa.literal(mark), sa.false())
            done = sa.update(URLS).values(status="done", done_at=now, reason=None)
            with self._writing() as writing:
                # Noted first, in the same transaction: what is done is no longer found by its
                # status, and nobody could say later which process had learnt it.
                if mark:
                    names = ["key", "source", "at", "life", "again"]
                    note = self._insert(USES).from_select(names, writing.own(used.where(these)))
                    fresh = {name: note.excluded[name] for name in names[1:]}
                    writing.connection.execute(
                        note.on_conflict_do_update(index_elements=["key"], set_=fresh)
                    )
                changed += writing.update(done.where(these))
        return changed

    def read_again(self, source: str, mark: str, since: float) -> int:
        """Documents of event time `since` and later that a dead process learnt are new again, for
        how they use words alone; how many."""
        these = sa.and_(
            USES.c.source == source,
            USES.c.life == mark,
            USES.c.at >= since,
            USES.c.again.is_(False),
        )
        with self._writing() as writing:
            if not writing.may(source):
                return 0
            connection = writing.connection
            keys = list(connection.execute(sa.select(USES.c.key).where(these)).scalars())
            now = time.time()
            for part in batched(keys, _BATCH):
                connection.execute(
                    sa.update(URLS)
                    .where(URLS.c.key.in_(part), URLS.c.status == "done")
                    .values(**AS_NEW, discovered_at=now)
                )
                connection.execute(sa.update(USES).where(USES.c.key.in_(part)).values(again=True))
        return len(keys)

    def reading_again(self, sources: Iterable[str]) -> dict[str, str]:
        """By key, the marks of those who learnt what is still to be read again of some sources."""
        query = sa.select(USES.c.key, USES.c.life).where(
            USES.c.source.in_(list(sources)), USES.c.again.is_(True)
        )
        return {str(key): str(mark) for key, mark in self._rows(query)}

    def was_read_again(self, keys: Sequence[str]) -> None:
        for part in batched(keys, _BATCH):
            with self._writing() as writing:
                done = sa.update(URLS).where(URLS.c.key.in_(part), URLS.c.status == "fetched")
                writing.update(done.values(status="done", done_at=time.time(), reason=None))
                over = sa.update(USES).where(USES.c.key.in_(part)).values(again=False)
                writing.connection.execute(over)

    def gone_again(self, sources: Iterable[str]) -> list[tuple[str, str, float]]:
        """Mark, source and event time of what was to be read again and cannot be; it is not asked
        for any more."""
        waits = sa.select(URLS.c.key).where(URLS.c.key == USES.c.key, URLS.c.status.in_(_OPEN))
        these = sa.and_(USES.c.source.in_(list(sources)), USES.c.again.is_(True), ~sa.exists(waits))
        with self._lock, self._engine.begin() as connection:
            query = sa.select(USES.c.key, USES.c.life, USES.c.source, USES.c.at).where(these)
            rows = connection.execute(query).fetchall()
            for part in batched([str(row[0]) for row in rows], _BATCH):
                connection.execute(sa.delete(USES).where(USES.c.key.in_(part)))
        return [(str(mark), str(source), float(published)) for _, mark, source, published in rows]

    def forget_uses(self, sources: Iterable[str], before: float) -> None:
        """Documents before an event time are not compared with any more."""
        these = sa.and_(USES.c.source.in_(list(sources)), USES.c.at < before)
        with self._lock, self._engine.begin() as connection:
            connection.execute(sa.delete(USES).where(these, USES.c.again.is_(False)))

    def recover(
        self, sources: Iterable[str], learnt: Set[int] = frozenset(), mark: str = ""
    ) -> int:
        """After a restart: what was fetched and never acknowledged is new again.

        learnt  `key_digest` of documents that the server has: those are done
        mark    of the incarnation that learnt them
        """
        names = list(sources)
        if learnt:
            query = sa.select(URLS.c.key).where(
                URLS.c.source.in_(names), URLS.c.status == "fetched"
            )
            waiting = [str(row[0]) for row in self._rows(query)]
            now = time.time()
            self.acknowledge([key for key in waiting if key_digest(key) in learnt], now, mark)
        return self._run(
            sa.update(URLS)
            .where(
                URLS.c.source.in_(names),
                sa.or_(
                    URLS.c.status == "fetched",
                    sa.and_(URLS.c.status == "new", URLS.c.claimed_until > 0),
                ),
            )
            .values(status="new", claimed_until=0.0, content_hash=None)
        )

    def expire(self, source: str, before: float) -> int:
        """Give up inline keys that wait since `before` to be listed again: they are gone."""
        return self._run(
            sa.update(URLS)
            .where(
                URLS.c.source == source,
                URLS.c.status == "new",
                URLS.c.inline.is_(True),
                URLS.c.discovered_at < before,
            )
            .values(status="failed", reason="gone", done_at=before)
        )

    def relist(self, source: str) -> int:
        """How many inline keys wait to be listed again."""
        these = (URLS.c.source == source, URLS.c.status == "new", URLS.c.inline.is_(True))
        return int(self._rows(sa.select(sa.func.count()).select_from(URLS).where(*these))[0][0])

    def known(self, keys: Sequence[str]) -> int:
        return sum(len(self._known(part)) for part in batched(keys, _BATCH))

    def backlog(self, sources: Iterable[str]) -> dict[str, int]:
        """By source, addresses that are neither done nor given up, fetched ones included."""
        names = list(sources)
        query = sa.select(URLS.c.source, sa.func.count()).group_by(URLS.c.source)
        query = query.where(URLS.c.source.in_(names), URLS.c.status.in_(_OPEN))
        return dict.fromkeys(names, 0) | {str(r[0]): int(r[1]) for r in self._rows(query)}

    def with_content(self, hashes: Iterable[str]) -> dict[str, set[str]]:
        """Addresses that had these texts, by digest of the text."""
        keys: defaultdict[str, set[str]] = defaultdict(set)
        for part in batched(list(hashes), _BATCH):
            query = sa.select(URLS.c.content_hash, URLS.c.key).where(URLS.c.content_hash.in_(part))
            for code, key in self._rows(query):
                keys[code].add(key)
        return keys

    def alias(self, name: str, key: str, source: str, now: float) -> bool:
        """Note that `name` is the same page as `key`; False when `name` was read by itself.

        A name that still waits is taken off the list: its page is in hand.
        """
        if not storable(name):
            return False
        row = new_row(name, source, now, status="done", reason="alias", done_at=now, alias_of=key)
        statement = self._insert(URLS).values(row)
        statement = statement.on_conflict_do_update(
            index_elements=["key"],
            set_={"status": "done", "reason": "alias", "done_at": now, "alias_of": key},
            where=sa.or_(
                URLS.c.alias_of == key,
                # What waits for another source may be in another node's hands.
                sa.and_(
                    URLS.c.source == source, URLS.c.status == "new", URLS.c.claimed_until < now
                ),
                URLS.c.status == "failed",
            ),
        )
        return self._add(statement, source, None) > 0
