"""The table of shards that `yeoron status` shows."""

from __future__ import annotations

import io

from rich.console import Console

from embedding.commands.status_tables import shown_table
from yeoron_lab.shown import shard_table


def test_a_server_without_shards_has_no_table():
    assert shard_table({"shards": []}) is None
    assert shard_table({}) is None


def test_each_shard_is_shown_also_one_that_said_nothing_yet():
    up = {"shard": 0, "state": "up", "rows": 1_200, "bytes": 3 * 2**20, "pushes": 7}
    up |= {"position": 9, "behind": 0, "restarts": 1}
    away = {"shard": 1, "state": "away", "behind": 9, "restarts": 0}
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(shown_table(shard_table({"shards": [up, away]})))
    text = console.export_text()
    for shown in ("1,200", "3 MiB", "away", "up"):
        assert shown in text
