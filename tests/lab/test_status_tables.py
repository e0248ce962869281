"""The tables of the laboratory's figures that `yeoron status` shows."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from embedding.commands.status_tables import figure_table

GROUPS = "Server groups that follow"
FIGURES = {"entries": 1_200, "rows_in": 7_000, "rows_out": 9, "bytes_in": 3 * 2**20}


def shown(title: str, server: dict[str, Any]) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(figure_table(title, server))
    return console.export_text()


@pytest.mark.parametrize(
    ("title", "server"),
    [
        ("Shards", {"shards": []}),
        (GROUPS, {"groups": []}),
        ("Leader", {"following": None}),
        ("Rounds of L-BFGS", {"sync": {"rounds": {"rounds": 0, "by_node": {}, "last": None}}}),
    ],
)
def test_what_a_server_has_not_has_no_table(title: str, server: dict[str, Any]) -> None:
    assert figure_table(title, server) is None


def test_each_shard_is_shown_also_one_that_said_nothing_yet() -> None:
    up = {"shard": 0, "state": "up", "rows": 1_200, "bytes": 3 * 2**20, "pushes": 7}
    up |= {"position": 9, "behind": 0, "restarts": 1}
    away = {"shard": 1, "state": "away", "behind": 9, "restarts": 0}
    text = shown("Shards", {"shards": [up, away]})
    for cell in ("1,200", "3.0 MiB", "away", "up", "restarts"):
        assert cell in text


def test_each_group_is_shown_also_one_that_said_nothing_yet() -> None:
    up = {"group": "b", "state": "up", "nodes": 2, "lag_s": 0.51, "bytes_out": 0, **FIGURES}
    away = {**up, "group": "c", "state": "away", "lag_s": None}
    text = shown(GROUPS, {"groups": [up, away]})
    for cell in ("0.5 s", "1,200", "7,000", "3.0 MiB", "away"):
        assert cell in text


def test_a_group_says_whom_it_follows_and_why_it_cannot() -> None:
    following = {"group": "b", "leader": "grpc://h:1", "state": "failed", "lag_s": 0.2}
    following |= {"waiting_pushes": 3, "waiting_rows": 1_000, "reason": "it cannot."}
    text = shown("Leader", {"following": following})
    for cell in ("group b follows grpc://h:1", "failed", "0.2 s", "1,000", "it cannot."):
        assert cell in text


def test_rounds_are_shown_with_the_portions_of_each_node() -> None:
    rounds = {"rounds": 2, "iterations": 9, "why": "it converged", "by_node": {"n0": 1_500}}
    text = shown("Rounds of L-BFGS", {"sync": {"rounds": {**rounds, "first": 2.5, "last": 1.25}}})
    for cell in ("it converged", "n0 1,500", "2.500", "1.250"):
        assert cell in text
