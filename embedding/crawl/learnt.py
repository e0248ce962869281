"""What was learnt of the sources, kept with the frontier for the next start or the next node."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa

from embedding.crawl.tables import READING


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
        try:
            state = json.loads(row.state) if row is not None else None
        except ValueError:
            return None
        if row is None or not isinstance(state, dict):
            return None
        return state, max(0.0, now - float(row.saved_at))
