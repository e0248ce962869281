"""The table of server groups, and the line of one that follows, that `yeoron status` shows."""

from __future__ import annotations

import io

from rich.console import Console

from embedding.commands.status_tables import shown_table
from yeoron_lab.shown import following_line, group_table

FIGURES = {"entries": 1_200, "rows_in": 7_000, "rows_out": 9, "bytes_in": 3 * 2**20}


def test_a_server_that_nobody_follows_has_no_table():
    assert group_table({"groups": []}) is None
    assert group_table({}) is None
    assert following_line({"following": None}) is None


def test_each_group_is_shown_also_one_that_said_nothing_yet():
    up = {"group": "b", "state": "up", "nodes": 2, "lag_s": 0.51, "bytes_out": 0, **FIGURES}
    away = {**up, "group": "c", "state": "away", "lag_s": None}
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(shown_table(group_table({"groups": [up, away]})))
    text = console.export_text()
    for shown in ("0.5 s", "1,200", "7,000", "3.0 MiB", "away"):
        assert shown in text


def test_a_group_says_whom_it_follows_and_why_it_cannot():
    told = {"group": "b", "leader": "grpc://h:1", "state": "up", "lag_s": 0.2, "reason": None}
    told |= {"waiting_pushes": 3, "waiting_rows": 1_000}
    line = following_line({"following": told})
    assert line == "group b follows grpc://h:1: up, lag 0.2 s, 3 pushes and 1,000 rows to tell"
    failed = {**told, "state": "failed", "reason": "it cannot."}
    assert following_line({"following": failed}).endswith("; it cannot.")
